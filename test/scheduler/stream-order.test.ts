import { describe, expect, test } from "#test";
import type { Cell } from "../../src/cells/cell.ts";
import type { Space } from "../../src/cells/space.ts";
import { SENDS_ASIDE_MAX } from "../../src/limits.ts";
import type { SendOutcome } from "../../src/scheduler/send.ts";
import { rejected } from "../../src/store/rejection.ts";
import { Gate } from "../store/faulty-store.ts";
import { Calls, setup } from "./scheduler-setup.ts";

const STALE = rejected("stale", "read-moved", "somebody was faster");

describe("order and consistency of sends", () => {
  test("[I30] a handler that reads a computed value with an input written just before sees the new value", async () => {
    const { space } = await setup();
    const typed = space.cell<number>("typed");
    const total = space.computed("total", () => (typed.get() ?? 0) * 10);
    const clicks = space.stream<string>("clicks");
    const seen = new Calls();
    clicks.handle(() => seen.note(total.get()));
    typed.set(1);
    clicks.send("a");
    await space.idle();
    typed.set(2);
    clicks.send("b");
    await space.idle();
    expect(seen.take()).toEqual([10, 20]);
    // Demanded by the sends alone.
    expect(total.node.live).toBe(false);
  });

  test("[I30] [I35] declared inputs are up to date before the handler is called, and other nodes do not run for it", async () => {
    const { space } = await setup();
    const [p, q] = [space.cell<number>("p"), space.cell<number>("q")];
    const ofP = space.computed("of p", () => (p.get() ?? 0) + 1);
    const ofQ = space.computed("of q", () => (q.get() ?? 0) + 1);
    const stream = space.stream<number>("stream");
    const seen = new Calls();
    stream.handle(() => seen.note([ofP.get(), ofP.node.runs]), { reads: [ofP] });
    p.set(1);
    q.set(1);
    stream.send(0);
    await space.idle();
    expect(seen.take()).toEqual([[2, 1]]);
    expect(ofQ.node.runs).toBe(0);
  });

  test("[I4] a chain of ten computations that sleeps is brought up to date inside the handler's read", async () => {
    const { space, scheduler } = await setup();
    const source = space.cell<number>("source");
    let last: { get(): number | undefined } = source;
    for (let i = 0; i < 10; i++) {
      const below = last;
      last = space.computed(`step ${i}`, () => (below.get() ?? 0) + 1);
    }
    const end = last;
    const stream = space.stream<number>("stream");
    const seen = new Calls();
    stream.handle((value) => {
      source.set(value);
      seen.note(end.get());
    });
    for (const value of [1, 2, 3]) stream.send(value);
    await space.idle();
    // A computed value shows the state before the handler's own writes.
    expect(seen.take()).toEqual([10, 11, 12]);
    scheduler.checkInvariants();
  });

  test("[I31] an input behind a closed gate parks the send and all later ones; when it opens they run in order", async () => {
    const { space, host, quiet } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    const slow = space.computed("slow", () => a.get(), { throttleMs: 500 });
    slow.sink(() => {});
    const [first, second] = [space.stream<number>("first"), space.stream<number>("second")];
    const seen = new Calls<string>();
    first.handle(() => seen.note(`first ${slow.get()}`));
    second.handle(() => seen.note("second"));
    await quiet();
    a.set(2);
    first.send(0);
    second.send(0);
    await quiet();
    expect(seen.take()).toEqual([]);
    expect(space.scheduler.getQueues()[0]).toMatchObject({ waiting: 2, head: { waitsFor: "nodes" } });
    // Other work comes and goes meanwhile.
    space.cell("unrelated").set(1);
    await host.advance(300);
    expect(seen.take()).toEqual([]);
    await host.advance(300);
    expect(seen.take()).toEqual(["first 2", "second"]);
  });

  test("[I4] a gate on an unrelated node does not park a send", async () => {
    const { space, quiet } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    const slow = space.computed("slow", () => a.get(), { throttleMs: 500 });
    slow.sink(() => {});
    const other = space.computed("other", () => 7);
    const stream = space.stream<number>("stream");
    const seen = new Calls();
    stream.handle(() => seen.note(other.get()));
    await quiet();
    a.set(2);
    stream.send(0);
    await quiet();
    expect(seen.take()).toEqual([7]);
  });

  test("[I4] idle waits for a send that a gate has parked; removing the gated node lets it go", async () => {
    const { space, host, quiet } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    const slow = space.computed("slow", () => a.get(), { throttleMs: 60_000 });
    slow.sink(() => {});
    const stream = space.stream<number>("stream");
    const seen = new Calls();
    stream.handle(() => seen.note("ran"), { reads: [slow] });
    await quiet();
    a.set(2);
    stream.send(0);
    let idle = false;
    void space.idle().then(() => {
      idle = true;
    });
    await host.advance(1_000);
    expect([idle, seen.count]).toEqual([false, 0]);
    space.scheduler.clearThrottle(slow.node);
    await quiet();
    expect([idle, seen.count]).toEqual([true, 1]);
  });

  test("[I4] a materializer that writes where the handler reads goes first", async () => {
    const { space, scheduler, quiet } = await setup();
    const [a, board] = [space.cell<number>("a"), space.cell<number>("board")];
    a.set(1);
    scheduler.register({
      kind: "computation",
      id: "painter",
      envelope: [board.address],
      run: () => board.set((a.get() ?? 0) * 100),
    });
    await quiet();
    const stream = space.stream<number>("stream");
    const seen = new Calls();
    stream.handle(() => seen.note(board.get()));
    a.set(2);
    stream.send(0);
    await quiet();
    expect(seen.take()).toEqual([200]);
  });

  const behind = {
    synchronous: (a: Cell<number | undefined>, space: Space) => space.computed("c", () => a.get() ?? 0),
    debounced: (a: Cell<number | undefined>, space: Space) =>
      space.computed("c", () => a.get() ?? 0, { debounceMs: 100 }),
    asynchronous: (a: Cell<number | undefined>, space: Space) =>
      space.computed("c", async (run) => {
        await Promise.resolve();
        return run.within(() => a.get() ?? 0);
      }),
  };
  for (const [how, computed] of Object.entries(behind)) {
    test(`[I4] [R14] a handler waits for the inputs of the materializer too: ${how}`, async () => {
      const { space, scheduler, host } = await setup();
      const [a, board] = [space.cell<number>("a"), space.cell<number>("board")];
      a.set(1);
      const c = computed(a, space);
      scheduler.register({
        kind: "computation",
        id: "painter",
        envelope: [board.address],
        run: () => board.set((c.get() as number) * 10),
      });
      await host.advance(1_000);
      const [write, read] = [space.stream<number>("write"), space.stream<number>("read")];
      write.handle((value) => a.set(value));
      read.handle(() => board.get());
      // By another handler, by plain code, and by plain code with informed readers.
      write.send(2);
      expect(await host.run(() => read.send(0).outcome)).toMatchObject({ result: 20 });
      a.set(3);
      expect(await host.run(() => read.send(0).outcome)).toMatchObject({ result: 30 });
      a.set(4);
      space.flush();
      expect(await host.run(() => read.send(0).outcome)).toMatchObject({ result: 40 });
      scheduler.checkInvariants();
    });
  }

  test("[I4] [R14] a value computed from a materializer's writes waits for the inputs of that materializer, over several of them", async () => {
    const { space, scheduler, host } = await setup();
    const [a, low, high] = [space.cell<number>("a"), space.cell<number>("low"), space.cell<number>("high")];
    a.set(1);
    // Readers first, so that heights have to move; no two nodes on the way are both queued from the start.
    const top = space.computed("top", () => high.get());
    const envelope = (id: string, to: Cell<number | undefined>, run: () => void) =>
      scheduler.register({ kind: "computation", id, envelope: [to.address], run });
    const middle = space.computed("middle", () => low.get());
    envelope("upper", high, () => high.set((middle.get() ?? 0) + 1));
    const source = space.computed("source", () => a.get());
    envelope("lower", low, () => low.set((source.get() ?? 0) * 10));
    top.sink(() => {});
    await host.advance(1_000);
    const [write, read] = [space.stream<number>("write"), space.stream<number>("read")];
    write.handle((value) => a.set(value));
    read.handle(() => top.get());
    write.send(2);
    expect(await host.run(() => read.send(0).outcome)).toMatchObject({ result: 21 });
    scheduler.checkInvariants();
  });

  test("[I4] [R14] a send beside the envelope does not wait for a materializer, and runs no node for it", async () => {
    const { space, scheduler, host, quiet } = await setup();
    const [a, board] = [space.cell<number>("a"), space.cell<Record<string, number>>("board")];
    a.set(1);
    board.set({ mine: 7, theirs: 0 });
    const slow = space.computed("slow", () => a.get(), { debounceMs: 60_000 });
    const theirs = board.key("theirs");
    const run = () => theirs.set(slow.get() ?? 0);
    scheduler.register({ kind: "computation", id: "painter", envelope: [theirs.address], run });
    await quiet();
    const stream = space.stream<number>("stream");
    stream.handle(() => board.key("mine").get());
    a.set(2);
    expect(await host.run(() => stream.send(0).outcome)).toMatchObject({ result: 7 });
    expect(theirs.get()).toBe(1);
  });

  test("[I4] documents that are still being loaded park the send; it runs once when they are here", async () => {
    const { space, open, quiet } = await setup();
    space.cell<number>("far").set(5);
    space.cell<number>("farther").set(6);
    await space.settled();
    const other = await open();
    const gate = new Gate();
    other.line.plan = ({ method }) => (method === "load" ? { answered: gate.opened } : {});
    const [far, farther] = [other.space.cell<number>("far"), other.space.cell<number>("farther")];
    const stream = other.space.stream<number>("stream");
    const seen = new Calls();
    stream.handle(() => seen.note([far.get(), farther.get()]), { reads: () => [far, farther] });
    stream.send(0);
    await quiet();
    expect(seen.count).toBe(0);
    expect(other.scheduler.getQueues()[0]?.head?.waitsFor).toBe("load");
    gate.open();
    await other.space.idle();
    expect(seen.take()).toEqual([[5, 6]]);
  });

  test("[I4] a handler without declared inputs is abandoned and called again; the first call has no effect", async () => {
    const { space, open } = await setup();
    space.cell<number>("far").set(5);
    await space.settled();
    const other = await open();
    const [far, log] = [other.space.cell<number>("far"), other.space.cell<string[]>("log")];
    log.set([]);
    const stream = other.space.stream<number>("stream");
    let calls = 0;
    stream.handle(() => {
      calls++;
      log.push(`call ${calls}`);
      log.push(`far is ${far.get()}`);
    });
    const { outcome } = stream.send(0);
    expect((await outcome).kind).toBe("handled");
    expect(log.get()).toEqual(["call 2", "far is 5"]);
  });

  test("[I34] a load that fails ends the send once, with the error; the handler is not called and the next send is", async () => {
    const { space, open, quiet } = await setup();
    space.cell<number>("far").set(5);
    await space.settled();
    const other = await open();
    other.line.plan = ({ method }) => (method === "load" ? { instead: new Error("the line is down") } : {});
    const stream = other.space.stream<string>("stream");
    const seen = new Calls<string>();
    const outcomes = new Calls<SendOutcome>();
    stream.handle(seen.note, { reads: (value) => (value === "far" ? [other.space.cell<number>("far")] : []) });
    stream.send("far", { onOutcome: outcomes.note });
    stream.send("near", { onOutcome: outcomes.note });
    await quiet();
    expect(seen.take()).toEqual(["near"]);
    expect(outcomes.take().map(({ kind }) => kind)).toEqual(["failed", "handled"]);
  });

  test("[I4] a second load that begins before the first has ended parks the send again; it runs once", async () => {
    const { space, open, quiet } = await setup();
    const first = space.cell<unknown>("first");
    first.set(space.cell("second").asLink());
    space.cell("second").set("here");
    await space.settled();
    const other = await open();
    const gates = [new Gate(), new Gate()];
    let loads = 0;
    other.line.plan = ({ method }) => {
      const gate = method === "load" ? gates[loads++] : undefined;
      return gate ? { answered: gate.opened } : {};
    };
    const stream = other.space.stream<number>("stream");
    const seen = new Calls();
    const cell = other.space.cell<string>("first");
    stream.handle(() => seen.note(cell.get()), { reads: [cell] });
    stream.send(0);
    await quiet();
    gates[0]?.open();
    await quiet();
    expect([seen.count, loads]).toEqual([0, 2]);
    gates[1]?.open();
    await quiet();
    expect(seen.take()).toEqual(["here"]);
  });

  test("[I34] a preflight that throws ends its send with the error, reported; the next goes on", async () => {
    const { space, scheduler, quiet } = await setup();
    const reported = new Calls();
    scheduler.onError(reported.note);
    const stream = space.stream<number>("stream");
    const seen = new Calls();
    stream.handle(seen.note, {
      reads: (value) => {
        if (value === 1) throw new Error("cannot look");
        return [];
      },
    });
    const bad = stream.send(1);
    stream.send(2);
    await quiet();
    expect(await bad.outcome).toMatchObject({ kind: "failed", reason: "preflight", message: "cannot look" });
    expect([seen.take(), reported.count]).toEqual([[2], 1]);
  });

  test("[I4] the handler waits for its presync, and is called even if that fails", async () => {
    const { space, quiet } = await setup();
    const gate = new Gate();
    const stream = space.stream<string>("stream");
    const seen = new Calls<string>();
    stream.handle(seen.note, {
      presync: async (value) => {
        await gate.opened;
        if (value === "fails") throw new Error("not to be had");
      },
    });
    stream.send("fails");
    stream.send("works");
    await quiet();
    expect(seen.count).toBe(0);
    gate.open();
    await space.idle();
    expect(seen.take()).toEqual(["fails", "works"]);
  });

  test("[I33] sends without a handler wait aside, in order and without limit; other sends and idle do not wait for them", async () => {
    const { space, scheduler } = await setup();
    const [a, b] = [space.stream<number>("a"), space.stream<number>("b")];
    const seen = new Calls<string>();
    const said: string[] = [];
    scheduler.onConsole((line) => said.push(line));
    b.handle((value) => seen.note(`b ${value}`));
    const first = a.send(1);
    for (const [stream, value] of [
      [b, 2],
      [a, 3],
      [b, 4],
    ] as const)
      stream.send(value);
    await space.idle();
    expect(seen.take()).toEqual(["b 2", "b 4"]);
    expect(scheduler.getQueues()[0]).toMatchObject({
      waiting: 0,
      unhandled: [{ stream: `${a} of space "s"`, sends: 2 }],
    });
    expect(said).toEqual([`${a} of space "s" has no handler; its sends wait`]);
    b.send(5);
    a.send(6);
    a.handle((value) => seen.note(`a ${value}`));
    await space.idle();
    expect(seen.take()).toEqual(["a 1", "a 3", "b 5", "a 6"]);
    expect((await first.outcome).kind).toBe("handled");
    expect(scheduler.getQueues()[0]?.unhandled).toEqual([]);
  });

  test("[I4] sends that wait aside are dropped when their stream is closed", async () => {
    const { space, scheduler } = await setup();
    const stream = space.stream<number>("stream");
    const sent = stream.send(1);
    await space.idle();
    scheduler.parts.events.closeStream(stream.address, "its piece has stopped");
    expect(scheduler.getQueues()[0]?.unhandled).toEqual([]);
    expect(await sent.outcome).toMatchObject({ kind: "dropped", reason: "closed", message: "its piece has stopped" });
  });

  test("[I33] a bounded number of sends may wait aside; more are refused, and a closed space drops them all", async () => {
    const { space } = await setup();
    const [lost, found] = [space.stream<number>("lost"), space.stream<number>("found")];
    const seen = new Calls<number>();
    found.handle(seen.note);
    const sent = Array.from({ length: SENDS_ASIDE_MAX + 1 }, (_, i) => lost.send(i));
    found.send(1);
    await space.idle();
    expect(seen.take()).toEqual([1]);
    expect(await sent.at(-1)?.outcome).toMatchObject({ kind: "refused", reason: "queue-full" });
    await space.close();
    expect(await sent[0]?.outcome).toMatchObject({ kind: "dropped", reason: "closed" });
  });

  test("[I4] a handler that is being loaded is waited for; where none can exist the send is dropped, once", async () => {
    const { space, scheduler } = await setup();
    const [a, b] = [space.stream<number>("a"), space.stream<number>("b")];
    const seen = new Calls<string>();
    scheduler.parts.events.handlerLoader = async (link) => {
      await Promise.resolve();
      if (link.includes('"a"')) a.handle((value) => seen.note(`a ${value}`));
    };
    const sent = [a.send(1), b.send(2), a.send(3)];
    await space.idle();
    expect(seen.take()).toEqual(["a 1", "a 3"]);
    expect(await sent[1]?.outcome).toMatchObject({ kind: "dropped", reason: "no-handler" });
  });

  test("[I4] many ready sends are handled in one tick, in order; two lists and their lengths agree", async () => {
    const { space, host } = await setup();
    const [left, right] = [space.cell<number[]>("left"), space.cell<number[]>("right")];
    const lengths = space.computed("lengths", () => [left.get()?.length ?? 0, right.get()?.length ?? 0]);
    const seen = new Calls<unknown>();
    lengths.sink(seen.note);
    await space.idle();
    const both = space.stream<number>("both");
    both.handle((value) => {
      left.push(value);
      right.push(value);
    });
    const k = 50;
    const before = host.monotonic();
    for (let i = 0; i < k; i++) both.send(i);
    await space.settled();
    expect(host.monotonic()).toBe(before);
    const all = Array.from({ length: k }, (_, i) => i);
    expect([left.get(), right.get(), lengths.get()]).toEqual([all, all, [k, k]]);
    // Observers see the result of a burst, not each send.
    expect(seen.count).toBeLessThan(5);
  });

  test("[I4] a computation made on the way feeds the next send", async () => {
    const { space } = await setup();
    const source = space.cell<number>("source");
    source.set(3);
    let made: { get(): number | undefined } | undefined;
    const [make, use] = [space.stream<number>("make"), space.stream<number>("use")];
    const seen = new Calls();
    make.handle(() => {
      made = space.computed("made", () => (source.get() ?? 0) * 2);
    });
    use.handle(() => seen.note(made?.get()));
    make.send(0);
    use.send(0);
    await space.idle();
    expect(seen.take()).toEqual([6]);
  });

  test("[I4] an asynchronous handler holds up its queue, not the graph and not other spaces", async () => {
    const { space, quiet } = await setup();
    const { space: elsewhere } = await setup();
    const gate = new Gate();
    const a = space.cell<number>("a");
    const seen = new Calls<string>();
    a.sink((value) => seen.note(`a ${value}`));
    const [slow, quick] = [space.stream<number>("slow"), space.stream<number>("quick")];
    slow.handle(async (value, context) => {
      await gate.opened;
      context.set(a, value);
    });
    quick.handle((value) => seen.note(`quick ${value} after a ${a.get()}`));
    const there = elsewhere.stream<number>("there");
    there.handle(() => seen.note("there"));
    await quiet();
    slow.send(7);
    quick.send(8);
    there.send(0);
    a.set(1);
    await quiet();
    await elsewhere.idle();
    expect(seen.take()).toEqual(["a undefined", "a 1", "there"]);
    gate.open();
    await space.idle();
    expect(seen.take().sort()).toEqual(["a 7", "quick 8 after a 7"]);
  });

  test("[I4] an asynchronous handler may pull, and reads up-to-date values after its awaits", async () => {
    const { space, quiet } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    const twice = space.computed("twice", () => (a.get() ?? 0) * 2);
    const gate = new Gate();
    const stream = space.stream<number>("stream");
    const seen = new Calls();
    stream.handle(async (_, context) => {
      seen.note(await twice.pull());
      await gate.opened;
      seen.note(context.get(twice));
    });
    stream.send(0);
    await quiet();
    a.set(5);
    await quiet();
    gate.open();
    await space.idle();
    expect(seen.take()).toEqual([2, 10]);
  });

  test("[I37] sending from inside a computation is refused with a remedy", async () => {
    const { space } = await setup();
    const stream = space.stream<number>("stream");
    const wrong = space.computed("wrong", () => stream.send(1).id);
    wrong.sink(() => {});
    await space.idle();
    expect(String(wrong.node.error)).toMatch(/computation wrong must not send to stream stream.*send from a handler/);
    expect(space.scheduler.getQueues().every(({ waiting }) => waiting === 0)).toBe(true);
  });

  test("[I37] a second handler is refused by an error that names both; removed, the first makes room", async () => {
    const { space } = await setup();
    const stream = space.stream<number>("stream");
    const remove = stream.handle(function first() {});
    expect(() => stream.handle(function second() {})).toThrow(/"first".*"second"/);
    expect(() => space.stream("stream").handle(() => {}, { name: "third" })).toThrow(/"first".*"third"/);
    remove();
    stream.handle(function second() {});
  });

  test("[I4] a value that does not fit the schema is refused before it is queued", async () => {
    const { space } = await setup();
    const positive = {
      "~standard": {
        version: 1 as const,
        vendor: "test",
        validate: (value: unknown) =>
          typeof value === "number" && value > 0 ? { value } : { issues: [{ message: "not positive" }] },
        types: undefined as { readonly input: number; readonly output: number } | undefined,
      },
    };
    const stream = space.stream("stream", positive);
    expect(() => stream.send(-1)).toThrow("not positive");
    expect(space.scheduler.getQueues().every(({ waiting }) => waiting === 0)).toBe(true);
  });

  test("[I4] a sent value does not change when the sender changes it", async () => {
    const { space } = await setup();
    const stream = space.stream<{ n: number }>("stream");
    const seen = new Calls();
    stream.handle(seen.note);
    const value = { n: 1 };
    stream.send(value);
    value.n = 2;
    await space.idle();
    expect(seen.take()).toEqual([{ n: 1 }]);
  });

  test("[I4] a handler that throws commits and sends nothing; its callback is called once and the queue continues", async () => {
    const { space, line, scheduler, quiet } = await setup();
    const a = space.cell<number>("a");
    const [stream, after] = [space.stream<number>("stream"), space.stream<number>("after")];
    const seen = new Calls();
    const outcomes = new Calls<SendOutcome>();
    const reported = new Calls();
    scheduler.onError(reported.note);
    after.handle(seen.note);
    stream.handle((value) => {
      a.set(value);
      after.send(value);
      if (value === 1) throw new Error("no");
    });
    const before = line.arrived.length;
    stream.send(1, { onOutcome: outcomes.note });
    stream.send(2, { onOutcome: outcomes.note });
    await quiet();
    expect(outcomes.take().map(({ kind }) => kind)).toEqual(["failed", "handled"]);
    expect([a.get(), seen.take(), reported.count]).toEqual([2, [2], 1]);
    // The first one looks up its receipt, and writes no document.
    expect(line.arrived.slice(before).map(({ patches }) => patches.length > 0)).toEqual([false, true, true]);
  });

  test("[I4] a send that comes back goes before one that waits behind it", async () => {
    const { space, line, host, quiet } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    const slow = space.computed("slow", () => a.get(), { throttleMs: 60_000 });
    slow.sink(() => {});
    const stream = space.stream<string>("stream");
    const seen = new Calls<string>();
    stream.handle((value) => seen.note(value === "second" ? `second ${slow.get()}` : value));
    await quiet();
    a.set(2);
    await quiet();
    const gate = new Gate();
    let refusals = 1;
    line.plan = ({ method }) =>
      method === "commit" && refusals-- > 0 ? { instead: STALE, answered: gate.opened } : {};
    const first = stream.send("first");
    stream.send("second");
    await quiet();
    gate.open();
    await host.advance(1_000);
    expect((await first.outcome).kind).toBe("handled");
    expect(seen.take()).toEqual(["first", "first"]);
    await host.advance(60_000);
    expect(seen.take()).toEqual(["second 2"]);
  });

  test("[I4] an asynchronous handler does not commit before an earlier send that came back while it ran", async () => {
    const { space, line, host, quiet } = await setup();
    const log = space.cell<string[]>("log");
    log.set([]);
    await space.settled();
    const stream = space.stream<string>("stream");
    const work = new Gate();
    stream.handle(async (value, { within }) => {
      if (value === "second") await work.opened;
      within(() => log.push(value));
    });
    const answer = new Gate();
    let refusals = 1;
    line.plan = ({ method }) =>
      method === "commit" && refusals-- > 0 ? { instead: STALE, answered: answer.opened } : {};
    stream.send("first");
    stream.send("second");
    await quiet();
    answer.open();
    await quiet();
    work.open();
    await host.advance(1_000);
    expect(log.get()).toEqual(["first", "second"]);
  });

  test("[I4] no send overtakes another at the moment of a rollback", async () => {
    for (let moments = 0; moments < 25; moments++) {
      const { space, line, host, quiet } = await setup();
      const log = space.cell<string[]>("log");
      log.set([]);
      await space.settled();
      const stream = space.stream<string>("stream");
      stream.handle((value) => log.push(value));
      const answer = new Gate();
      let refusals = 1;
      line.plan = ({ method }) =>
        method === "commit" && refusals-- > 0 ? { instead: STALE, answered: answer.opened } : {};
      stream.send("first");
      await quiet();
      answer.open();
      for (let moment = 0; moment < moments; moment++) await Promise.resolve();
      stream.send("second");
      await host.advance(1_000);
      expect(log.get(), `after ${moments} moments`).toEqual(["first", "second"]);
    }
  });

  test("[I4] a handling claims the sources of its reads: a computed value that changed elsewhere is read again", async () => {
    const { space, open, host, line, quiet } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    await space.settled();
    const other = await open();
    const heard = new Gate();
    line.plan = ({ method }) => (method === "changesSince" ? { arrives: heard.opened } : {});
    await other.space.cell<number>("a").pull();
    const twice = space.computed("twice", () => (a.get() ?? 0) * 2);
    const b = space.cell<number>("b");
    const stream = space.stream<number>("stream");
    stream.handle(() => b.set(twice.get() ?? 0));
    // Committed there, and not heard of here yet.
    other.space.cell<number>("a").set(5);
    await other.space.settled();
    expect(a.get()).toBe(1);
    stream.send(0);
    await quiet();
    heard.open();
    await host.advance(1_000);
    expect(b.get()).toBe(10);
  });

  test("[I4] a handler that threw over values of two moments is called again", async () => {
    const { space, host, quiet } = await setup();
    const [a, b] = [space.cell<number>("a"), space.cell<number>("b")];
    await space.transact(() => {
      a.set(1);
      b.set(1);
    });
    const gate = new Gate();
    const stream = space.stream<number>("stream");
    stream.handle(async (_, context) => {
      const first = context.get(a);
      await gate.opened;
      if (first !== context.get(b)) throw new Error("they are always equal");
      return first;
    });
    const sent = stream.send(0);
    await quiet();
    await space.transact(() => {
      a.set(2);
      b.set(2);
    });
    gate.open();
    await host.advance(1_000);
    expect(await sent.outcome).toMatchObject({ kind: "handled", result: 2 });
  });

  test("[I4] many sends that change their own inputs are no circle: none is held back", async () => {
    const { space, host } = await setup();
    const a = space.cell<number>("a");
    const twice = space.computed("twice", () => (a.get() ?? 0) * 2);
    twice.sink(() => {});
    const stream = space.stream<number>("stream");
    const seen = new Calls();
    stream.handle(() => {
      seen.note(twice.get());
      a.update((value = 0) => value + 1);
    });
    const before = host.monotonic();
    for (let i = 0; i < 40; i++) stream.send(i);
    await space.settled();
    expect(seen.take()).toEqual(Array.from({ length: 40 }, (_, i) => i * 2));
    expect([host.monotonic(), space.scheduler.runDiagnosis().nonSettling]).toEqual([before, []]);
  });

  test("[I4] a gated node that is removed does not block a send any more", async () => {
    const { space, scheduler, quiet } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    const slow = space.computed("slow", () => a.get(), { throttleMs: 60_000 });
    slow.sink(() => {});
    const stream = space.stream<number>("stream");
    const seen = new Calls();
    stream.handle(() => seen.note("ran"), { reads: [slow] });
    await quiet();
    a.set(2);
    stream.send(0);
    await quiet();
    expect(seen.count).toBe(0);
    scheduler.remove(slow.node);
    await quiet();
    expect(seen.count).toBe(1);
  });

  test("[I4] a callback that throws is reported, and the queue goes on", async () => {
    const { space, scheduler, quiet } = await setup();
    const reported = new Calls();
    scheduler.onError(reported.note);
    const stream = space.stream<number>("stream");
    const seen = new Calls();
    stream.handle(seen.note);
    stream.send(1, {
      onOutcome: () => {
        throw new Error("in the callback");
      },
    });
    await quiet();
    stream.send(2);
    await quiet();
    expect([seen.take(), reported.take().map(String)]).toEqual([[1, 2], ["Error: in the callback"]]);
  });

  test("[I4] a send by an effect that a handler's read runs is the effect's own", async () => {
    const { space, line } = await setup();
    const [a, b] = [space.cell<number>("a"), space.cell<number>("b")];
    const echo = space.stream<number>("echo");
    echo.handle((value) => b.set(value));
    const twice = space.computed("twice", () => (a.get() ?? 0) * 2);
    space.effect(() => void (twice.get() === 4 && echo.send(4)));
    const stream = space.stream<number>("stream");
    stream.handle((value) => {
      if (value === 0) a.set(2);
      return twice.get() ?? 0;
    });
    stream.send(0);
    stream.send(1);
    await space.settled();
    expect(b.get()).toBe(4);
    const origins = line.arrived.flatMap(({ preconditions }) => preconditions).filter(({ kind }) => kind !== "absent");
    expect(origins).toEqual([]);
  });

  test("[I36] a send above the limit is refused with an outcome", async () => {
    const { space, quiet } = await setup();
    const stream = space.stream<number>("stream");
    stream.handle(() => {}, { presync: () => new Promise(() => {}) });
    const outcomes = new Map<string, number>();
    const count = ({ kind }: SendOutcome) => outcomes.set(kind, (outcomes.get(kind) ?? 0) + 1);
    for (let i = 0; i < 100_010; i++) stream.send(i, { onOutcome: count });
    await quiet();
    expect(outcomes).toEqual(new Map([["refused", 10]]));
  });

  test("[I4] a handler that reads a plain write of before is not in conflict with it", async () => {
    const { space, host } = await setup();
    const a = space.cell<number>("a");
    a.set(0);
    const stream = space.stream<number>("stream");
    const attempts = new Calls<number>();
    stream.handle((_, { attempt }) => void attempts.note((a.get() ?? 0) * 10 + attempt));
    await host.advance(0);
    const outcomes = new Calls<string>();
    // The pass that the first effect asks for comes before the turn's commit.
    space.effect(() => undefined);
    space.effect(() => void stream.send(a.get() ?? 0, { onOutcome: ({ kind }) => outcomes.note(kind) }));
    a.set(1);
    await host.advance(0);
    expect([attempts.seen, outcomes.seen]).toEqual([[11], ["handled"]]);
  });

  test("[I4] an abandoned attempt is not counted", async () => {
    const { space, host, open, quiet } = await setup();
    const { space: other } = await open();
    other.cell<number>("far").set(2);
    await quiet();
    const [stream, child] = [space.stream<number>("stream"), space.stream<string>("child")];
    const seen = new Calls<unknown>();
    let calls = 0;
    stream.handle((_, { attempt, sendTo }) => {
      calls++;
      sendTo(child, "of it");
      seen.note([space.cell("far").get(), attempt]);
    });
    child.handle((value, { attempt }) => void seen.note([value, attempt]));
    stream.send(0);
    await host.advance(0);
    expect(calls).toBe(2);
    expect(seen.seen).toEqual([
      [2, 1],
      ["of it", 1],
    ]);
  });

  test("[I4] waiting sends are dropped when the space is closed, and so are later ones", async () => {
    const { space } = await setup();
    const stream = space.stream<number>("stream");
    const waiting = stream.send(1);
    await space.close();
    expect(await waiting.outcome).toMatchObject({ kind: "dropped", reason: "closed" });
    expect(await stream.send(2).outcome).toMatchObject({ kind: "dropped", reason: "closed" });
  });

  test("[I35] a send with an up-to-date closure changes no index and visits no reader", async () => {
    const { space, scheduler } = await setup();
    const a = space.cell<number>("a");
    const sum = space.computed("sum", () => (a.get() ?? 0) + 1);
    sum.sink(() => {});
    const log = space.cell<number>("log");
    const stream = space.stream<number>("stream");
    stream.handle((value) => log.set(value + (sum.get() ?? 0)), { reads: [sum] });
    stream.send(0);
    await space.idle();
    const before = scheduler.getStats();
    for (let i = 0; i < 100; i++) stream.send(i);
    await space.idle();
    const after = scheduler.getStats();
    expect([after.indexWrites - before.indexWrites, after.readersVisited - before.readersVisited]).toEqual([0, 0]);
    expect(after.runs).toBe(before.runs);
  });
});
