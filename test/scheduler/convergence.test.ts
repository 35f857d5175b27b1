import { describe, expect, test } from "#test";
import type { Space } from "../../src/cells/space.ts";
import { PASS_RUN_BUDGET } from "../../src/limits.ts";
import { Calls, setup } from "./scheduler-setup.ts";

/** Two computations that chase each other for ever while `on`. */
async function chase() {
  const parts = await setup();
  const { space } = parts;
  const on = space.cell<boolean>("on");
  on.set(true);
  const b = space.cell<number>("b");
  const a = space.computed("a", () => (on.get() ? (b.get() ?? 0) + 1 : 0));
  const bNode = space.computed("b", () => (on.get() ? (a.get() ?? 0) + 1 : 0));
  const said: string[] = [];
  space.scheduler.onConsole((line) => said.push(line));
  return { ...parts, on, a, b: bNode, said };
}

describe("nodes that do not converge are bounded", () => {
  test("[I6] a circle is gated after its budget, idle is reached, and the rest of the graph is right", async () => {
    const { space, scheduler, a, b, said, host } = await chase();
    const source = space.cell<number>("source");
    source.set(1);
    const other = space.computed("other", () => (source.get() ?? 0) * 2);
    const seen = new Calls();
    other.sink(seen.note);
    a.sink(() => undefined);
    await space.idle();
    expect(host.monotonic()).toBeLessThan(1_000);
    expect(a.node.runs).toBeLessThanOrEqual(3 * PASS_RUN_BUDGET);
    expect(b.node.runs).toBeLessThanOrEqual(3 * PASS_RUN_BUDGET);
    source.set(4);
    await space.idle();
    expect(seen.take()).toEqual([2, 8]);
    expect(said).toHaveLength(1);
    expect(said[0]).toMatch(/^not settling: circle (a -> b -> a|b -> a -> b); next try in 250 ms$/);
    expect(scheduler.runDiagnosis().nonSettling.length).toBeGreaterThan(0);
    scheduler.checkInvariants();
  });

  test("[I6] the waits of a circle are 250, 500, 1000, 2000, 2000 ms, and it is reported once", async () => {
    const { space, scheduler, a, b, said, host } = await chase();
    a.sink(() => undefined);
    await space.idle();
    const waits: number[] = [];
    const pass = () => a.node.runs + b.node.runs;
    for (let i = 0; i < 5; i++) {
      const [runs, from] = [pass(), host.monotonic()];
      while (pass() === runs) await host.advance(50);
      waits.push(host.monotonic() - from);
      await space.idle();
      scheduler.checkInvariants();
    }
    expect(waits).toEqual([250, 500, 1_000, 2_000, 2_000]);
    expect(said).toHaveLength(1);
  });

  test("[I6] when the circle is gone it converges, and the next episode starts at 250 ms", async () => {
    const { space, scheduler, on, a, b, said, host } = await chase();
    a.sink(() => undefined);
    await space.idle();
    await host.advance(800);
    on.set(false);
    await host.advance(2_500);
    expect(a.get()).toBe(0);
    expect(b.node.live).toBe(false);
    expect(scheduler.runDiagnosis().nonSettling).toEqual([]);
    expect(scheduler.getStats().gated).toBe(0);
    scheduler.checkInvariants();
    on.set(true);
    await space.idle();
    expect(said).toHaveLength(2);
    expect(said[1]).toContain("next try in 250 ms");
  });

  test("[I6] nodes of a former circle run in order again", async () => {
    const { space, scheduler } = await setup();
    const [turned, source] = [space.cell<boolean>("turned"), space.cell<number>("source")];
    source.set(1);
    const q = space.cell<number>("q");
    const runs = new Calls<string>();
    const p = space.computed("p", () => {
      runs.note("p");
      return turned.get() ? (q.get() ?? 0) + 1 : (source.get() ?? 0);
    });
    const qNode = space.computed("q", () => {
      runs.note("q");
      return turned.get() ? (source.get() ?? 0) : (p.get() ?? 0) + 1;
    });
    p.sink(() => undefined);
    qNode.sink(() => undefined);
    await space.idle();
    turned.set(true);
    await space.idle();
    scheduler.checkInvariants();
    source.set(2);
    await space.idle();
    runs.take();
    source.set(3);
    await space.idle();
    expect(runs.take()).toEqual(["q", "p"]);
    expect([p.get(), qNode.get()]).toEqual([4, 3]);
    scheduler.checkInvariants();
  });

  test("[I6] order returns to a node of the circle with unchanged reads of its own", async () => {
    const { space, scheduler } = await setup();
    const [source, joins, leaves] = [space.cell<number>("source"), space.cell("joins"), space.cell("leaves")];
    source.set(1);
    const q = space.cell<number>("q");
    const runs = new Calls<string>();
    const p = space.computed("p", () => {
      runs.note("p");
      if (joins.get()) q.get();
      return source.get();
    });
    const qNode = space.computed("q", () => {
      runs.note("q");
      if (!leaves.get()) p.get();
      return source.get();
    });
    p.sink(() => undefined);
    qNode.sink(() => undefined);
    space.flush();
    joins.set(true);
    space.flush();
    leaves.set(true);
    space.flush();
    runs.take();
    source.set(2);
    space.flush();
    expect(runs.take()).toEqual(["q", "p"]);
    scheduler.checkInvariants();
  });

  test("[I6] a chain of 12 that declares its reads settles in one pass with one run each", async () => {
    const { space, scheduler, host } = await setup();
    const source = space.cell<number>("c0");
    source.set(0);
    // Registered last link first, so that only the declared reads can tell the order.
    for (let i = 12; i > 0; i--) {
      const below = space.cell<number>(`c${i - 1}`);
      space.computed(`c${i}`, () => (below.get() ?? 0) + 1, { reads: [below as never] });
    }
    const seen = new Calls();
    space.cell("c12").sink(seen.note);
    await space.idle();
    expect(seen.take()).toEqual([12]);
    expect(scheduler.getActionStats().every(({ runs }) => runs === 1)).toBe(true);
    expect(host.monotonic()).toBe(0);
  });

  test("[I6] a chain of 8 with undeclared reads settles within one idle", async () => {
    const { space, host } = await setup();
    space.cell("c0").set(0);
    for (let i = 8; i > 0; i--) {
      const below = space.cell<number>(`c${i - 1}`);
      space.computed(`c${i}`, () => (below.get() ?? 0) + 1);
    }
    const seen = new Calls();
    space.cell("c8").sink(seen.note);
    await space.idle();
    expect(seen.take()).toEqual([8]);
    expect(host.monotonic()).toBe(0);
  });

  test("[I6] a node that has not run is not gated with the circle beside it", async () => {
    const { space, a, host } = await chase();
    a.sink(() => undefined);
    const fresh = space.computed("fresh", () => 1);
    const seen = new Calls();
    space.flush();
    fresh.sink(seen.note);
    await space.idle();
    expect(seen.take()).toEqual([1]);
    expect(host.monotonic()).toBe(0);
  });

  test("[I6] [I32] a send with a handler that reads a value in a circle gets the present value, and idle resolves", async () => {
    const { space, scheduler, host, quiet, a } = await chase();
    a.sink(() => undefined);
    await space.idle();
    const stream = space.stream<number>("stream");
    stream.handle(() => typeof a.get(), { reads: [a] });
    const seen = new Calls<unknown>();
    for (let i = 0; i < 3; i++) stream.send(i, { onOutcome: ({ kind }) => seen.note(kind) });
    void space.idle().then(() => seen.note("idle"));
    // Only behind its own gate does the circle go on.
    await quiet();
    expect(seen.take().sort()).toEqual(["handled", "handled", "handled", "idle"]);
    await host.advance(10_000);
    stream.send(3, { onOutcome: (outcome) => seen.note(outcome) });
    await quiet();
    expect(seen.take()).toMatchObject([{ kind: "handled", result: "number" }]);
    scheduler.checkInvariants();
  });

  test("[I6] [R28] [R29] a transaction does not take a value in a circle for up to date", async () => {
    const { space, host, a } = await chase();
    a.sink(() => undefined);
    await space.idle();
    using open = space.begin();
    expect(() => open.get(a)).toThrow(expect.objectContaining({ code: "COMPUTED_BEHIND" }));
    const ended = space.transact(() => a.get()).catch((error: Error) => error.message);
    await host.advance(60_000);
    expect(await ended).toMatch(/in 10000 ms: a is not up to date/);
  });

  /** Another two that chase each other, observed. */
  function another(space: Space, [left, right]: readonly [string, string]): () => void {
    const one = space.computed(left, () => (space.cell<number>(right).get() ?? 0) + 1);
    space.computed(right, () => (one.get() ?? 0) + 1);
    return one.sink(() => undefined);
  }

  test("[I6] [R18] each of two circles is reported, once, with its own path", async () => {
    const { space, scheduler, a, said, host } = await chase();
    a.sink(() => undefined);
    await host.advance(5_000);
    another(space, ["c", "d"]);
    await host.advance(20_000);
    expect(said).toHaveLength(2);
    expect(said[0]).toMatch(/circle (a -> b -> a|b -> a -> b);/);
    expect(said[1]).toMatch(/circle (c -> d -> c|d -> c -> d);/);
    expect(scheduler.runDiagnosis().nonSettling).toHaveLength(2);
  });

  test("[I6] [R18] a circle that is not observed any more is over, and does not hide the next", async () => {
    const { space, scheduler, a, said, host } = await chase();
    const stop = a.sink(() => undefined);
    await host.advance(100);
    expect(scheduler.runDiagnosis().nonSettling).not.toEqual([]);
    stop();
    expect(scheduler.runDiagnosis().nonSettling).toEqual([]);
    another(space, ["c", "d"]);
    await host.advance(100);
    expect(said).toHaveLength(2);
  });

  test("[I6] a node that reads a place which it keeps changing through another is bounded too", async () => {
    const { space, scheduler, quiet } = await setup();
    const [ping, pong] = [space.cell<number>("ping"), space.cell<number>("pong")];
    ping.set(0);
    pong.set(0);
    await quiet();
    space.effect(() => pong.set((ping.get() ?? 0) + 1), { id: "left" });
    space.effect(() => ping.set((pong.get() ?? 0) + 1), { id: "right" });
    const said = new Calls<string>();
    scheduler.onConsole(said.note);
    await space.idle();
    expect(said.take()).toHaveLength(1);
    for (const id of ["left", "right"]) {
      expect(scheduler.find(id)?.runs).toBeLessThanOrEqual(3 * PASS_RUN_BUDGET);
    }
    scheduler.dispose();
  });
});
