/** Changes between the request for a node's row and the answer. */
import { describe, expect, test } from "#test";
import { Space } from "../../src/cells/space.ts";
import { simulatedProcess } from "../../src/host/simulated-process.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import type { Store } from "../../src/store/store.ts";
import { FaultyLine, Gate } from "../store/faulty-store.ts";
import { double as build, firstLife, Life, type Setup, setup } from "./restart-setup.ts";
import { Calls } from "./scheduler-setup.ts";

/** A process that gets the rows of its nodes late, as of the time of the request. */
async function late({ host, disk }: Setup) {
  const answers = new Gate();
  const store = memoryStore({ host, disk });
  const slow: Store = new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (name === "basis") {
        return async (...asked: Parameters<Store["basis"]>) => {
          const rows = await target.basis(...asked);
          await answers.opened;
          return rows;
        };
      }
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
  const line = new FaultyLine(slow);
  const space = await Space.open({ store: line.store, host, name: "s", persist: { version: "1" } });
  return { answers, line, space };
}

describe("an input that changes while it is asked for", () => {
  test("[I7] an input changed by another process before the answer makes the node outdated", async () => {
    const at = setup();
    await firstLife(at);
    const { answers, space } = await late(at);
    const other = await at.begin();
    const restoring = space.restore(() => build(space));
    await at.host.advance(0);
    other.space.cell("input").set(5);
    await at.host.advance(100);
    answers.open();
    const seen = new Calls<unknown>();
    void restoring.then((double) => double.sink(seen.note));
    await at.host.advance(100);
    expect(seen.seen.at(-1)).toBe(10);
  });

  test("[I7] here, by a write that the store has not seen: the node is not taken for current", async () => {
    const at = setup();
    await firstLife(at);
    const { answers, line, space } = await late(at);
    const commits = new Gate();
    line.plan = ({ method }) => (method === "commit" ? { arrives: commits.opened } : {});
    space.cell<number>("input").set(7);
    await at.host.advance(0);
    const restoring = space.restore(() => build(space));
    await at.host.advance(0);
    answers.open();
    const seen = new Calls<unknown>();
    void restoring.then((double) => double.sink(seen.note));
    await at.host.advance(100);
    expect(seen.seen.at(-1)).toBe(14);
    commits.open();
    await at.host.advance(1_000);
    expect(seen.seen.at(-1)).toBe(14);
  });
});

describe("an output that another process replaces after the look-up", () => {
  /** Inputs return to their values, so that the reads of the row are as they were. */
  test("[I12] the node runs though its inputs are those of its row", async () => {
    const at = setup();
    await firstLife(at);
    const [here, other] = [await at.begin(), await at.begin()];
    const double = await at.host.run(() => here.space.restore(() => build(here.space)));
    const away = (await at.host.run(() => other.space.restore(() => build(other.space)))).sink(() => undefined);
    other.space.cell("input").set(2);
    await at.host.advance(100);
    away();
    other.space.cell("input").set(1);
    await at.host.advance(100);
    const seen = new Calls<unknown>();
    double.sink(seen.note);
    await at.host.advance(100);
    expect(seen.seen).toEqual([2]);
    here.space.scheduler.checkInvariants();
  });

  test("[I12] a process that was paused and stores an older output does not change the value elsewhere", async () => {
    const at = setup();
    const paused = simulatedProcess(at.host);
    const slow = await at.host.run(() => Life.begin(paused, memoryStore({ host: paused, disk: at.disk })));
    slow.space.cell("input").set(1);
    await at.host.advance(100);
    expect(await at.host.run(() => build(slow.space).pull())).toBe(2);
    paused.pause();
    const second = await at.begin();
    await at.host.run(() => second.space.transact(() => second.space.cell("input").set(2)));
    expect(await at.host.run(() => build(second.space).pull())).toBe(4);
    await at.host.run(() => second.space.close());
    const third = await at.begin();
    const double = await at.host.run(() => third.space.restore(() => build(third.space)));
    paused.resume();
    await at.host.advance(1_000);
    const seen = new Calls<unknown>();
    double.sink(seen.note);
    await at.host.advance(1_000);
    expect(seen.seen).toEqual([4]);
  });
});
