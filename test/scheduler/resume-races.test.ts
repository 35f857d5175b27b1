/** What changes between the question of what a node rests on and the answer to it. */
import { describe, expect, test } from "#test";
import { Space } from "../../src/cells/space.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import type { Store } from "../../src/store/store.ts";
import { FaultyLine, Gate } from "../store/faulty-store.ts";
import { double as build, firstLife, type Setup, setup } from "./restart-setup.ts";
import { Calls } from "./scheduler-setup.ts";

/** A process whose questions for what nodes rest on are answered late, as of when they were asked. */
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
  test("[I7] by another process, before the answer is here: the node is not taken for current", async () => {
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
