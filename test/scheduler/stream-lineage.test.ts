import { describe, expect, test } from "#test";
import { Space } from "../../src/cells/space.ts";
import type { SendOutcome } from "../../src/scheduler/send.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { rejected } from "../../src/store/rejection.ts";
import type { Launch } from "../../src/work/lineage.ts";
import { FaultyLine, Gate } from "../store/faulty-store.ts";
import { Calls, setup } from "./scheduler-setup.ts";

const STALE = rejected("stale", "read-moved", "somebody was faster");
const REFUSED = rejected("refused", "too-large", "too large");

/** Two spaces of one scheduler, each behind a line of its own. */
async function twoSpaces() {
  const here = await setup();
  const line = new FaultyLine(memoryStore({ host: here.host, disk: here.disk }));
  const there = await Space.open({
    store: line.store,
    host: here.host,
    name: "there",
    scheduler: here.scheduler,
    neighbours: new Map(),
  });
  return { ...here, there, thereLine: line };
}

class Told implements Launch {
  readonly steps: string[] = [];
  started(): void {
    this.steps.push("started");
  }
  confirmed(): void {
    this.steps.push("confirmed");
  }
  cancelled(why: string): void {
    this.steps.push(`cancelled: ${why}`);
  }
}

describe("lineage of handlers' launches", () => {
  test("[I10] a send of a handling with unknown outcome does not fail before the outcome is known", async () => {
    const { space, host, line } = await setup();
    const [parent, child] = [space.stream<number>("parent"), space.stream<number>("child")];
    const x = space.cell<number>("x");
    const outcomes = new Calls<string>();
    parent.handle((value) => {
      x.set(value);
      child.send(value, { onOutcome: ({ kind }) => outcomes.note(kind) });
    });
    child.handle(() => {
      throw new Error("thrown upon what was never sent");
    });
    let commits = 0;
    line.plan = ({ method }) =>
      method === "commit" && ++commits === 1 ? { instead: rejected("unknown", "no-answer", "nobody knows") } : {};
    parent.send(1);
    await host.advance(30_000);
    // The first was never sent; the parent, handled again, has sent another.
    expect(outcomes.take()).toEqual(["dropped", "failed"]);
  });

  test("[I10] a send of a transaction with a lost answer is handled once: of that commit if it landed, else of the next attempt", async () => {
    for (const isThere of [true, false]) {
      const { space, host, line, there } = await twoSpaces();
      const a = space.cell<number>("a");
      a.set(0);
      await host.run(() => space.settled());
      const stream = there.stream<number>("stream");
      const handled = new Calls();
      stream.handle(handled.note);
      const outcomes = new Calls<SendOutcome>();
      let commits = 0;
      const unknown = rejected("unknown", "no-answer", "nobody knows");
      line.plan = ({ method }) => {
        if (method !== "commit" || ++commits > 2) return {};
        // The question is lost too, the first time.
        return isThere || commits === 2 ? { loseAnswer: true } : { instead: unknown };
      };
      const code = () => {
        a.set(1);
        stream.send(7, { onOutcome: outcomes.note });
      };
      await host.run(() => space.transact(code));
      await host.advance(30_000);
      const expected = isThere ? [[7], ["handled"]] : [[7], ["dropped", "handled"]];
      expect([handled.take(), outcomes.take().map(({ kind }) => kind)]).toEqual(expected);
    }
  });

  test("[I39] a send of a failed handling is dropped also if its handler threw, whichever answer comes first", async () => {
    for (const answers of ["the origin", "the reads"] as const) {
      const { space, line, quiet } = await setup();
      const [parent, child] = [space.stream<number>("parent"), space.stream<number>("child")];
      const x = space.cell<number>("x");
      const outcomes: SendOutcome[] = [];
      parent.handle((value) => {
        x.set(value);
        child.send(value, { onOutcome: (outcome) => outcomes.push(outcome) });
      });
      child.handle(() => {
        throw new Error("thrown upon what was never sent");
      });
      const gate = new Gate();
      let commits = 0;
      line.plan = ({ method }) => {
        if (method !== "commit" || ++commits > 1) return {};
        const held = answers === "the origin" ? { answered: gate.opened } : { arrives: gate.opened };
        return { ...held, instead: REFUSED };
      };
      parent.send(1);
      await quiet();
      gate.open();
      await quiet();
      expect([answers, outcomes.map(({ kind }) => kind), commits]).toEqual([answers, ["dropped"], 2]);
      expect(outcomes).toMatchObject([{ reason: "origin-failed" }]);
    }
  });

  test("[I10] a send of a failed handling is dropped also while it waits for a handler, and does not come back", async () => {
    const { space, scheduler, line, quiet } = await setup();
    const [parent, child] = [space.stream<number>("parent"), space.stream<number>("child")];
    const outcomes: SendOutcome[] = [];
    parent.handle((value) => child.send(value, { onOutcome: (outcome) => outcomes.push(outcome) }) && undefined);
    const gate = new Gate();
    line.plan = ({ method }) => (method === "commit" ? { arrives: gate.opened, instead: REFUSED } : {});
    parent.send(1);
    await quiet();
    expect(scheduler.getQueues()[0]?.unhandled).toMatchObject([{ sends: 1 }]);
    gate.open();
    await quiet();
    expect(outcomes).toMatchObject([{ kind: "dropped", reason: "origin-failed" }]);
    expect(scheduler.getQueues()[0]?.unhandled).toEqual([]);
    const seen = new Calls<number>();
    child.handle(seen.note);
    await quiet();
    expect(seen.take()).toEqual([]);
  });

  test("[I10] a handler that is retried sends once, with the reads of its committed attempt", async () => {
    const { space, host, line } = await setup();
    const [parent, child] = [space.stream<number>("parent"), space.stream<number>("child")];
    let attempts = 0;
    parent.handle(() => {
      attempts++;
      child.send(attempts * 100);
    });
    const seen = new Calls<number>();
    const done = space.cell<number[]>("done");
    child.handle((value) => {
      seen.note(value);
      done.push(value);
    });
    let refusals = 1;
    line.plan = ({ method }) => (method === "commit" && refusals-- > 0 ? { instead: STALE } : {});
    const sent = parent.send(1);
    await host.advance(1_000);
    expect((await sent.outcome).kind).toBe("handled");
    expect([attempts, done.get()]).toEqual([2, [200]]);
    // The first attempt's send may have been tried, without effect.
    expect(seen.take().at(-1)).toBe(200);
  });

  test("[I10] a send of a failed handler is never handled, even if it needs only the value", async () => {
    const { space, line, quiet } = await setup();
    const [parent, child] = [space.stream<number>("parent"), space.stream<number>("child")];
    const outcomes = new Calls<SendOutcome>();
    const done = space.cell<number[]>("done");
    parent.handle((value, context) => {
      context.sendTo(child, value, { onOutcome: outcomes.note });
    });
    child.handle((value) => done.push(value));
    let refusals = 1;
    line.plan = ({ method }) => (method === "commit" && refusals-- > 0 ? { instead: REFUSED } : {});
    const sent = parent.send(1);
    await quiet();
    expect(await sent.outcome).toMatchObject({ kind: "failed", reason: "rejected", rejection: { class: "refused" } });
    expect(outcomes.take()).toMatchObject([{ kind: "dropped", reason: "origin-failed" }]);
    expect(done.get()).toBeUndefined();
  });

  test("[I38] a send in the same space is handled before its origin has an answer, and the store checks the origin", async () => {
    const { space, line, quiet } = await setup();
    const [parent, child] = [space.stream<number>("parent"), space.stream<number>("child")];
    const seen = new Calls<number>();
    parent.handle((value) => void child.send(value));
    child.handle(seen.note);
    const gate = new Gate();
    line.plan = ({ method }) => (method === "commit" ? { answered: gate.opened } : {});
    parent.send(1);
    await quiet();
    expect(seen.take()).toEqual([1]);
    const origins = line.arrived.map(({ preconditions }) =>
      preconditions.find(({ kind }) => kind === "originCommitted"),
    );
    expect(origins[1]).toMatchObject({
      session: line.arrived[0]?.session,
      localSequence: line.arrived[0]?.localSequence,
    });
    gate.open();
    await space.settled();
  });

  test("[I10] a handler that does not commit (throws) takes its sends with it, however deep", async () => {
    const { space, line, quiet } = await setup();
    const [a, b, c] = [space.stream<number>("a"), space.stream<number>("b"), space.stream<number>("c")];
    const seen = new Calls<string>();
    a.handle((value) => void b.send(value));
    b.handle((value) => void c.send(value));
    c.handle((value) => seen.note(`c ${value}`));
    let commits = 0;
    line.plan = ({ method }) => (method === "commit" && ++commits === 1 ? { instead: REFUSED } : {});
    a.send(1);
    a.send(2);
    await quiet();
    const kept = line.arrived.length;
    expect(kept).toBeLessThanOrEqual(5);
    expect(space.scheduler.getQueues()[0]).toMatchObject({ waiting: 0, inFlight: 0 });
    expect(seen.take().filter((line) => line === "c 2")).toEqual(["c 2"]);
  });

  test("[I38] into another space it waits until the origin is confirmed, and is dropped if that fails", async () => {
    const { space, there, line, quiet } = await twoSpaces();
    const [from, to] = [space.stream<number>("from"), there.stream<number>("to")];
    const seen = new Calls<number>();
    const outcomes = new Calls<SendOutcome>();
    from.handle((value, context) => void context.sendTo(to, value, { onOutcome: outcomes.note }));
    to.handle(seen.note);
    const gate = new Gate();
    line.plan = ({ method }) => (method === "commit" ? { answered: gate.opened } : {});
    from.send(1);
    await quiet();
    expect(seen.take()).toEqual([]);
    expect(space.scheduler.getQueues().find(({ space }) => space === "there")?.head?.waitsFor).toBe("origin");
    gate.open();
    await space.settled();
    expect(seen.take()).toEqual([1]);
    line.plan = ({ method }) => (method === "commit" ? { instead: REFUSED } : {});
    from.send(2);
    await quiet();
    expect(seen.take()).toEqual([]);
    expect(outcomes.take().map(({ kind }) => kind)).toEqual(["handled", "dropped"]);
  });

  test("[I10] an origin that is committed, has failed, or only read: handled, dropped, handled; idle comes in every case", async () => {
    const { space, line, quiet } = await setup();
    const stream = space.stream<string>("stream");
    const seen = new Calls<string>();
    stream.handle(seen.note);
    const a = space.cell<number>("a");
    const commit = () => {
      const tx = space.replica(space.name).transaction();
      tx.write(a.address.document, [], Number(tx.read(a.address.document) ?? 0) + 1);
      return tx.commit();
    };
    const committed = commit();
    await committed.outcome;
    line.plan = ({ method }) => (method === "commit" ? { instead: REFUSED } : {});
    const failed = commit();
    await failed.outcome;
    line.plan = () => ({});
    const reading = space.replica(space.name).transaction();
    reading.read(a.address.document);
    const read = reading.commit();
    stream.send("committed", { origin: committed });
    const dropped = stream.send("failed", { origin: failed });
    stream.send("read", { origin: read });
    const gate = new Gate();
    line.plan = ({ method, request }) =>
      method === "commit" && request?.patches.some(({ id }) => id === "a") ? { answered: gate.opened } : {};
    stream.send("open", { origin: commit() });
    await quiet();
    expect(seen.take()).toEqual(["committed", "read"]);
    gate.open();
    await space.idle();
    expect(seen.take()).toEqual(["open"]);
    expect(await dropped.outcome).toMatchObject({ kind: "dropped", reason: "origin-failed" });
  });

  test("[I10] a send of a transaction shares its outcome: none if it throws, one if it is run again", async () => {
    const { space, host, line, quiet } = await setup();
    const stream = space.stream<number>("stream");
    const done = space.cell<number[]>("done");
    stream.handle((value) => done.push(value));
    const a = space.cell<number>("a");
    const failing = space.transact(() => {
      a.set(1);
      stream.send(1);
      throw new Error("no");
    });
    await expect(failing).rejects.toThrow("no");
    await quiet();
    expect(done.get()).toBeUndefined();
    let refusals = 1;
    line.plan = ({ method }) => (method === "commit" && refusals-- > 0 ? { instead: STALE } : {});
    let runs = 0;
    const lasting = space.transact(() => {
      a.set(++runs);
      stream.send(runs);
    });
    await host.advance(1_000);
    await lasting;
    await space.transact(() => void stream.send(9));
    await space.settled();
    expect([runs, done.get()]).toEqual([2, [2, 9]]);
  });

  test("[I40] other work is told: started with the commit, confirmed, or cancelled with the attempt", async () => {
    const { space, host, line } = await setup();
    const stream = space.stream<string>("stream");
    const told: Told[] = [];
    stream.handle((value, { launch }) => {
      const one = new Told();
      told.push(one);
      launch(one);
      if (value === "throws") throw new Error("no");
    });
    let refusals = 1;
    line.plan = ({ method }) => (method === "commit" && refusals-- > 0 ? { instead: STALE } : {});
    stream.send("retried");
    await host.advance(1_000);
    stream.send("throws");
    await space.settled();
    expect(told.map(({ steps }) => steps)).toEqual([
      ["started", "cancelled: somebody was faster"],
      ["started", "confirmed"],
      ["cancelled: the handler threw"],
    ]);
  });

  test("[I10] a send outside of attempts is tied to no commit", async () => {
    const { scheduler, space } = await setup();
    expect(scheduler.parts.events.launch(new Told())).toBe(false);
    const told = new Told();
    const stream = space.stream("stream");
    stream.handle(() => scheduler.parts.events.launch(told));
    stream.send(0);
    await space.settled();
    expect(told.steps).toEqual(["started", "confirmed"]);
  });

  test("[I41] events that a handler publishes are in its commit, once", async () => {
    const { space, host, disk, line } = await setup();
    const stream = space.stream<number>("stream");
    stream.handle((value, { emit, id = "" }) => {
      emit("order.placed", { value, eventId: id });
    });
    let refusals = 1;
    line.plan = ({ method }) => (method === "commit" && refusals-- > 0 ? { instead: STALE } : {});
    const sent = stream.send(7);
    await host.advance(1_000);
    await space.settled();
    const rows = await memoryStore({ host, disk }).query({ limit: 10 });
    expect(rows).toHaveLength(1);
    expect(rows[0]).toMatchObject({ topic: "order.placed", message: { data: { value: 7, eventId: sent.id } } });
  });

  test("[I42] writes to another space are durable there before the handling commits here", async () => {
    const { space, there, line, thereLine, quiet } = await twoSpaces();
    const [here, far] = [space.cell<number>("here"), there.cell<number>("far")];
    const stream = space.stream<number>("stream");
    stream.handle((value) => {
      far.set(value);
      here.set(value);
      return value;
    });
    const gate = new Gate();
    thereLine.plan = ({ method }) => (method === "commit" ? { answered: gate.opened } : {});
    const before = line.arrived.length;
    const sent = stream.send(1);
    await quiet();
    expect([thereLine.arrived.length, line.arrived.length - before]).toEqual([1, 0]);
    gate.open();
    expect(await sent.outcome).toMatchObject({ kind: "handled", result: 1 });
    expect([here.get(), far.get()]).toEqual([1, 1]);
  });

  test("[I10] if the other space refuses, this one is not written; if this one is stale, the other is written once", async () => {
    const { space, there, line, thereLine, host } = await twoSpaces();
    const [here, far] = [space.cell<number[]>("here"), there.cell<number[]>("far")];
    const stream = space.stream<number>("stream");
    stream.handle((value) => {
      far.push(value);
      here.push(value);
    });
    thereLine.plan = ({ method }) => (method === "commit" ? { instead: REFUSED } : {});
    const refused = stream.send(1);
    await host.advance(100);
    expect(await refused.outcome).toMatchObject({ kind: "failed", reason: "rejected" });
    expect([here.get(), far.get()]).toEqual([undefined, undefined]);
    thereLine.plan = () => ({});
    let refusals = 1;
    line.plan = ({ method }) => (method === "commit" && refusals-- > 0 ? { instead: STALE } : {});
    const retried = stream.send(2);
    await host.advance(1_000);
    expect((await retried.outcome).kind).toBe("handled");
    expect([here.get(), far.get()]).toEqual([[2], [2]]);
  });
});
