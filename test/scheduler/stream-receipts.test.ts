import { describe, expect, test } from "#test";
import type { SendOutcome } from "../../src/scheduler/send.ts";
import { receiptOf } from "../../src/store/receipt-name.ts";
import { rejected } from "../../src/store/rejection.ts";
import { Gate } from "../store/faulty-store.ts";
import { Calls, setup } from "./scheduler-setup.ts";

const STALE = rejected("stale", "read-moved", "somebody was faster");

describe("receipts", () => {
  test("[I11] the same event twice has one effect; the second finds the first result and is not tried again", async () => {
    const { space, line } = await setup();
    const done = space.cell<number[]>("done");
    const stream = space.stream<number>("stream");
    stream.handle((value) => {
      done.push(value);
      return { value };
    });
    const first = stream.send(1);
    await space.settled();
    const before = line.arrived.length;
    const second = stream.send(2, { eventId: first.id });
    expect(await second.outcome).toEqual({ kind: "already", id: first.id, result: { value: 1 } });
    await space.settled();
    expect([done.get(), line.arrived.length - before]).toEqual([[1], 0]);
  });

  test("[I11] sends under different ids of a caller are different events, however alike the ids are", async () => {
    const { space } = await setup();
    const done = space.cell<string[]>("done");
    const stream = space.stream<string>("stream");
    stream.handle((value) => done.push(value));
    const ids = ["a", "b", "A", "aa", "ab", "ba", "a ", " a", "1", "01"];
    const sent = ids.map((id) => stream.send(id, { id }));
    const kinds = (await Promise.all(sent.map(({ outcome }) => outcome))).map(({ kind }) => kind);
    expect(kinds).toEqual(ids.map(() => "handled"));
    expect(done.get()).toEqual(ids);
  });

  test("[I11] the same event twice at once has one effect, even if the second would write no change", async () => {
    const { space } = await setup();
    const stream = space.stream<number>("stream");
    const a = space.cell<number>("a");
    stream.handle(() => a.set(1));
    const sent = [0, 1, 2].map(() => stream.send(0, { eventId: "the-same" }));
    const kinds = (await Promise.all(sent.map(({ outcome }) => outcome))).map(({ kind }) => kind);
    expect(kinds).toEqual(["handled", "already", "already"]);
  });

  test("[I11] another process that gets the same event only answers", async () => {
    const { space, open, host } = await setup();
    const other = await open();
    const handle = (site: typeof space) => {
      const done = site.cell<string[]>("done");
      const stream = site.stream<string>("stream");
      stream.handle((value) => {
        done.push(value);
        return value;
      });
      return stream;
    };
    const [here, there] = [handle(space), handle(other.space)];
    const sent = [here.send("here", { eventId: "e" }), there.send("there", { eventId: "e" })];
    await host.advance(1_000);
    const outcomes = await Promise.all(sent.map(({ outcome }) => outcome));
    expect(outcomes.map(({ kind }) => kind).sort()).toEqual(["already", "handled"]);
    const results = outcomes.map((outcome) => ("result" in outcome ? outcome.result : undefined));
    expect(results[0]).toBe(results[1]);
    expect(space.cell("done").get()).toEqual([results[0]]);
  });

  test("[I44] a handler that throws because it was done before gets the result, in this process and in another", async () => {
    const { space, open, host } = await setup();
    const sold = (shop: typeof space) => {
      const left = shop.cell<number>("left");
      shop.stream<null>("take").handle(() => {
        const now = left.get() ?? 0;
        if (now === 0) throw new Error("sold out");
        left.set(now - 1);
        return now - 1;
      });
      return left;
    };
    sold(space).set(1);
    const first = space.stream<null>("take").send(null);
    expect(await first.outcome).toMatchObject({ kind: "handled", result: 0 });
    const again = { kind: "already", id: first.id, result: 0 };
    expect(await space.stream<null>("take").send(null, { eventId: first.id }).outcome).toEqual(again);
    const { space: other } = await open();
    const left = sold(other);
    await left.pull();
    expect(await other.stream<null>("take").send(null, { eventId: first.id }).outcome).toEqual(again);
    const another = other.stream<null>("take").send(null, { eventId: "another" });
    expect(await another.outcome).toMatchObject({ kind: "failed", reason: "threw" });
    await host.advance(0);
  });

  test("[I11] twice at once in another process: both get the result of the one that was handled, not of each other", async () => {
    const { space, open, host } = await setup();
    const { space: other, line } = await open();
    const handle = (site: typeof space) => {
      const stream = site.stream<string>("stream");
      stream.handle((value) => value);
      return stream;
    };
    await handle(space).send("first", { eventId: "e" }).outcome;
    const there = handle(other);
    const [loaded, committed] = [new Gate(), new Gate()];
    const { id } = receiptOf({ kind: "send", id: "e" });
    line.plan = ({ refs }) => (refs?.some((ref) => ref.id === id) ? { answered: loaded.opened } : {});
    const second = there.send("second", { eventId: "e" });
    await host.advance(10);
    // Handled while the receipt is looked for that has refused the other.
    line.plan = ({ method }) => (method === "commit" ? { answered: committed.opened } : {});
    const third = there.send("third", { eventId: "e" });
    await host.advance(10);
    loaded.open();
    await host.advance(10);
    committed.open();
    await host.advance(100);
    const already = { kind: "already", id: "e", result: "first" };
    expect(await Promise.all([second.outcome, third.outcome])).toEqual([already, already]);
  });

  test("[I11] a conflict on another document: the retry has the same receipt and commits", async () => {
    const { space, line, host } = await setup();
    const stream = space.stream<number>("stream");
    let calls = 0;
    stream.handle(() => ++calls);
    let refusals = 1;
    const seen: string[] = [];
    line.plan = ({ method, request }) => {
      if (method !== "commit") return {};
      seen.push(
        ...(request?.preconditions ?? []).map((condition) => (condition.kind === "absent" ? condition.id : "")),
      );
      return refusals-- > 0 ? { instead: STALE } : {};
    };
    const sent = stream.send(1);
    await host.advance(1_000);
    expect(await sent.outcome).toMatchObject({ kind: "handled", result: 2 });
    expect(new Set(seen)).toEqual(new Set([receiptOf({ kind: "send", id: sent.id }).id]));
    expect(seen).toHaveLength(2);
  });

  test("[I11] a late question gets the same answer: the id of the receipt, and the handler's result", async () => {
    const { space, line, host } = await setup();
    const stream = space.stream<number>("stream");
    stream.handle((value) => ({ value }));
    const [asked, unasked] = [stream.send(1), stream.send(2)];
    const early = asked.outcome;
    await host.run(() => space.settled());
    // Ids that are minted now begin with another time.
    await host.advance(24 * 3_600_000);
    const outcomes = [await early, await asked.outcome, await unasked.outcome];
    expect(outcomes).toEqual([
      { kind: "handled", id: asked.id, result: { value: 1 } },
      { kind: "handled", id: asked.id, result: { value: 1 } },
      { kind: "handled", id: unasked.id, result: { value: 2 } },
    ]);
    expect(unasked.outcome).toBe(unasked.outcome);
    const receipts = [asked, unasked].map(({ id }) => receiptOf({ kind: "send", id }));
    const { documents } = await host.run(() => line.store.load(space.name, receipts));
    expect(documents.map(({ value }) => value)).toEqual([{ value: 1 }, { value: 2 }]);
    expect(stream.send(3).id.slice(0, 8) > asked.id.slice(0, 8)).toBe(true);
  });

  test("[I11] the receipt is a document with the handler's result; no result is {}", async () => {
    const { space } = await setup();
    const stream = space.stream<boolean>("stream");
    stream.handle((value) => (value ? { x: 1 } : undefined));
    const [some, none] = [stream.send(true), stream.send(false)];
    await space.settled();
    expect(await space.cell(receiptOf({ kind: "send", id: some.id }).id).pull()).toEqual({ x: 1 });
    expect(await space.cell(receiptOf({ kind: "send", id: none.id }).id).pull()).toEqual({});
  });

  test("[I11] a thousand handlings leave a thousand receipts in the store and no document in the replica", async () => {
    const { space, line } = await setup();
    const count = space.cell<number>("count");
    const stream = space.stream<number>("stream");
    stream.handle(() => count.update((value = 0) => value + 1));
    stream.send(0);
    await space.settled();
    const before = space.replica(space.name).residentDocuments;
    const sent = Array.from({ length: 1_000 }, (_, i) => stream.send(i));
    await space.settled();
    expect([count.get(), space.replica(space.name).residentDocuments - before]).toEqual([1_001, 0]);
    const { documents } = await line.store.load(
      space.name,
      sent.map(({ id }) => receiptOf({ kind: "send", id })),
    );
    expect(documents.filter(({ value }) => value !== undefined)).toHaveLength(1_000);
  });

  test("[I11] a result that cannot be stored fails: no commit is made and the sender is told", async () => {
    const { space, quiet } = await setup();
    const a = space.cell<number>("a");
    const stream = space.stream<number>("stream");
    stream.handle((value) => {
      a.set(value);
      return () => {};
    });
    const { outcome } = stream.send(1);
    await quiet();
    expect(await outcome).toMatchObject({ kind: "failed", reason: "result" });
    expect(a.get()).toBeUndefined();
  });

  test("[I11] a commit without an answer that landed is found: handled once, and its sends continue", async () => {
    const { space, line, host } = await setup();
    const [stream, after] = [space.stream<number>("stream"), space.stream<number>("after")];
    const [done, follow] = [space.cell<number[]>("done"), space.cell<number[]>("follow")];
    stream.handle((value) => {
      done.push(value);
      after.send(value);
      return value;
    });
    after.handle((value) => follow.push(value));
    let losses = 1;
    line.plan = ({ method }) => (method === "commit" && losses-- > 0 ? { loseAnswer: true } : {});
    const sent = stream.send(1);
    await host.advance(5_000);
    expect(await sent.outcome).toEqual({ kind: "handled", id: sent.id, result: 1 });
    expect([done.get(), follow.get()]).toEqual([[1], [1]]);
  });

  test("[I11] a commit without an answer that did not land is made again, once", async () => {
    const { space, line, host } = await setup();
    const stream = space.stream<number>("stream");
    const done = space.cell<number[]>("done");
    stream.handle((value) => done.push(value));
    let losses = 1;
    line.plan = ({ method }) =>
      method === "commit" && losses-- > 0 ? { instead: rejected("unknown", "no-answer", "silence") } : {};
    const sent = stream.send(1);
    await host.advance(5_000);
    expect((await sent.outcome).kind).toBe("handled");
    expect(done.get()).toEqual([1]);
  });

  test("[I43] a send with lasting conflicts is given up after the window, with an outcome", async () => {
    const { space, line, host } = await setup();
    const stream = space.stream<number>("stream");
    let calls = 0;
    stream.handle(() => void calls++);
    line.plan = ({ method }) => (method === "commit" ? { instead: STALE } : {});
    const outcomes = new Calls<SendOutcome>();
    stream.send(1, { onOutcome: outcomes.note });
    await host.advance(29_000);
    expect(outcomes.count).toBe(0);
    await host.advance(2_000);
    expect(outcomes.take()).toMatchObject([{ kind: "failed", reason: "gave-up", rejection: { class: "stale" } }]);
    // Pauses grow: it is neither given up at once nor tried without end.
    expect(calls).toBeGreaterThan(20);
    expect(calls).toBeLessThan(2_000);
  });

  test("[I43] a permanent rejection is never tried again", async () => {
    const { space, line, host } = await setup();
    const stream = space.stream<number>("stream");
    let calls = 0;
    stream.handle(() => void calls++);
    line.plan = ({ method }) => (method === "commit" ? { instead: rejected("permanent", "lease-lost", "gone") } : {});
    const sent = stream.send(1);
    await host.advance(60_000);
    expect(await sent.outcome).toMatchObject({ kind: "failed", reason: "rejected", rejection: { class: "permanent" } });
    expect(calls).toBe(1);
  });

  test("[I11] sends that were rolled back with another come back in the order of sending", async () => {
    const { space, line, host, quiet } = await setup();
    const done = space.cell<number[]>("done");
    done.set([]);
    await space.settled();
    const stream = space.stream<number>("stream");
    stream.handle((value) => done.push(value));
    let commits = 0;
    line.plan = ({ method }) => (method === "commit" && ++commits === 3 ? { instead: STALE } : {});
    const sent = Array.from({ length: 20 }, (_, i) => stream.send(i));
    await quiet();
    await host.advance(5_000);
    expect((await Promise.all(sent.map(({ outcome }) => outcome))).map(({ kind }) => kind)).toEqual(
      sent.map(() => "handled"),
    );
    expect(done.get()).toEqual(sent.map((_, i) => i));
  });

  test("[I11] a handler that threw because of an unconfirmed read is called again, even with a duplicate", async () => {
    const { space, host } = await setup();
    const tea = space.cell<number>("tea");
    tea.set(2);
    const orders = space.stream<number>("orders");
    orders.handle(() => {
      const left = tea.get() ?? 0;
      if (left === 0) throw new Error("no tea");
      tea.set(left - 1);
      return left;
    });
    const sent = [orders.send(1, { id: "a" }), orders.send(1, { id: "a" }), orders.send(2), orders.send(3)];
    await host.advance(1_000);
    const outcomes = await Promise.all(sent.map(({ outcome }) => outcome));
    expect(outcomes.map(({ kind }) => kind)).toEqual(["handled", "already", "handled", "failed"]);
    expect(tea.get()).toBe(0);
  });

  test("[I45] each send has an id of its own; a caller's id counts for its session and this stream", async () => {
    const { space } = await setup();
    const [a, b] = [space.stream<number>("a"), space.stream<number>("b")];
    const ids = [
      a.send(1).id,
      a.send(1).id,
      b.send(1).id,
      a.send(1, { id: "x" }).id,
      b.send(1, { id: "x" }).id,
      a.send(1, { id: "x", session: "other" }).id,
    ];
    expect(new Set(ids).size).toBe(6);
    expect(a.send(1, { id: "x" }).id).toBe(ids[3]);
    expect(a.send(1, { id: "x", session: "other" }).id).toBe(ids[5]);
    expect(() => a.send(1, { id: "x", eventId: "y" })).toThrow(/not both/);
  });

  test("[I11] a caller's id counts as long as the space is open, also after a commit went unanswered", async () => {
    const { space, line, host } = await setup();
    const stream = space.stream<number>("stream");
    const done = space.cell<number[]>("done");
    stream.handle((value) => done.push(value));
    let losses = 1;
    line.plan = ({ method }) => (method === "commit" && losses-- > 0 ? { loseAnswer: true } : {});
    stream.send(1, { id: "x" });
    await host.advance(5_000);
    stream.send(2, { id: "x" });
    await host.advance(5_000);
    expect(done.get()).toEqual([1]);
  });

  test("[I45] ids that a handler mints follow from the event: a retry makes the same documents, not others", async () => {
    const { space, line, host } = await setup();
    const stream = space.stream<number>("stream");
    const minted = new Calls<readonly string[]>();
    stream.handle((value, { newId }) => {
      const ids = [newId(), newId(), newId("named")];
      minted.note(ids);
      for (const id of ids) space.cell(id).set(value);
    });
    let refusals = 1;
    line.plan = ({ method }) => (method === "commit" && refusals-- > 0 ? { instead: STALE } : {});
    stream.send(1);
    await host.advance(1_000);
    const [first, second] = minted.take();
    expect(first).toEqual(second);
    expect(new Set(first).size).toBe(3);
  });

  test("[I11] a receipt outlives the process: sent again after a restart, it is there", async () => {
    const { space, open } = await setup();
    const handle = (site: typeof space) => {
      const stream = site.stream<number>("stream");
      stream.handle((value) => ({ value }));
      return stream;
    };
    const { id } = handle(space).send(1, { id: "order-1", session: "client" });
    await space.close();
    const next = await open();
    const again = handle(next.space).send(2, { id: "order-1", session: "client" });
    expect(again.id).toBe(id);
    expect(await again.outcome).toEqual({ kind: "already", id, result: { value: 1 } });
  });

  test("[I11] a handler's context has no effect after the handler has ended", async () => {
    const { space } = await setup();
    const a = space.cell<number>("a");
    const stream = space.stream<number>("stream");
    let leaked: (() => void) | undefined;
    stream.handle((_, context) => {
      leaked = () => context.set(a, 1);
    });
    stream.send(0);
    await space.settled();
    expect(leaked).toThrow(/has ended, and its writes with it; await everything/);
    expect(a.get()).toBeUndefined();
  });
});
