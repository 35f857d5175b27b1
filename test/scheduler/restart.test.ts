import { describe, expect, test } from "#test";
import type { Cell } from "../../src/cells/cell.ts";
import type { Computed } from "../../src/cells/computed.ts";
import { Gate, type LineCall } from "../store/faulty-store.ts";
import { type Life, setup } from "./restart-setup.ts";

interface Shop {
  readonly prices: Cell<Readonly<Record<string, number>> | undefined>;
  readonly sum: Computed<number>;
  readonly label: Computed<string>;
  readonly other: Computed<number>;
}

/** Two computations in a chain, and one beside them with the same code as the first. */
function shop(life: Life, totalCode = "total"): Shop {
  const { space } = life;
  const prices = space.cell<Record<string, number>>("prices");
  const stock = space.cell<Record<string, number>>("stock");
  const total = (name: string, cell: Cell<Readonly<Record<string, number>> | undefined>) =>
    space.computed(
      name,
      life.noting(name, () => Object.values(cell.get() ?? {}).reduce((a, b) => a + b, 0)),
      { fingerprint: name === "sum" ? totalCode : "total" },
    );
  const sum = total("sum", prices);
  const other = total("other", stock);
  const label = space.computed(
    "label",
    life.noting("label", () => `sum ${sum.get()}`),
    { fingerprint: "label" },
  );
  return { prices, sum, label, other };
}

async function firstLife(at: ReturnType<typeof setup>) {
  const life = await at.begin();
  const { space } = life;
  space.cell("prices").set({ a: 1, b: 2 });
  space.cell("stock").set({ x: 5 });
  const parts = shop(life);
  await at.host.run(() => Promise.all([parts.label.pull(), parts.other.pull()]));
  await at.host.run(() => space.settled());
  expect(life.takeRan().sort()).toEqual(["label", "other", "sum"]);
  return life;
}

describe("restart", () => {
  test("[I7] clean nodes are resumed without a run and without reading a document", async () => {
    const at = setup();
    (await firstLife(at)).kill();
    const life = await at.begin();
    await life.space.restore(() => shop(life));
    await at.host.advance(1_000);
    expect(life.ran).toEqual([]);
    expect(life.loads).toBe(0);
    expect(life.space.scheduler.getGraphSnapshot().map(({ id, status }) => [id, status])).toEqual([
      ["sum", "clean"],
      ["other", "clean"],
      ["label", "clean"],
    ]);
    life.space.scheduler.checkInvariants();
  });

  test("[I7] an observer of a clean node gets its value, and no node runs", async () => {
    const at = setup();
    (await firstLife(at)).kill();
    const life = await at.begin();
    const { label } = await life.space.restore(() => shop(life));
    const seen: unknown[] = [];
    label.sink((value) => seen.push(value));
    await at.host.advance(1_000);
    expect(seen).toEqual(["sum 3"]);
    expect(life.ran).toEqual([]);
  });

  test("[I7] [R11] an effect's write based on a clean node is confirmed, although the node's inputs are not loaded", async () => {
    const at = setup();
    (await firstLife(at)).kill();
    const life = await at.begin();
    const { label } = await life.space.restore(() => shop(life));
    const note = life.space.cell<string>("note");
    const slow = new Gate();
    const ofPrices = (call: LineCall) => call.refs?.some(({ id }) => id === "prices");
    life.line.plan = (call) => (ofPrices(call) ? { answered: slow.opened } : {});
    life.space.effect(() => note.set(`${label.get()}!`));
    await at.host.advance(1_000);
    slow.open();
    await at.host.advance(1_000);
    expect(note.get()).toBe("sum 3!");
    expect(life.ran).toEqual([]);
    // One that came too early, and was not made again before that was loaded.
    expect(life.line.arrived.filter(({ patches }) => patches.some(({ id }) => id === "note"))).toHaveLength(2);
    life.kill();
    const next = await at.begin();
    expect(await at.host.run(() => next.space.cell("note").pull())).toBe("sum 3!");
  });

  test("[I7] a later change runs exactly the nodes that depend on it, once", async () => {
    const at = setup();
    (await firstLife(at)).kill();
    const life = await at.begin();
    const { label, other, prices } = await life.space.restore(() => shop(life));
    const seen: unknown[] = [];
    label.sink((value) => seen.push(value));
    other.sink(() => undefined);
    await at.host.advance(1_000);
    await at.host.run(() => prices.pull());
    prices.key("a").set(10);
    await at.host.advance(1_000);
    expect(life.ran).toEqual(["sum", "label"]);
    expect(seen).toEqual(["sum 3", "sum 12"]);
  });

  test("[I7] after a restart the readers of a changed input run, and nodes with the same code elsewhere do not", async () => {
    const at = setup();
    (await firstLife(at)).kill();
    const between = await at.begin();
    await at.host.run(() => between.space.cell("prices").pull());
    between.space.cell<Record<string, number>>("prices").key("a").set(7);
    await at.host.run(() => between.space.settled());
    between.kill();
    const life = await at.begin();
    const { label, other } = await life.space.restore(() => shop(life));
    const seen: unknown[] = [];
    label.sink((value) => seen.push(value));
    other.sink(() => undefined);
    await at.host.advance(1_000);
    expect(life.ran).toEqual(["sum", "label"]);
    expect(seen).toEqual(["sum 9"]);
  });

  test("[I7] another process's write to an input that was never loaded reaches its readers, live or dormant", async () => {
    const at = setup();
    (await firstLife(at)).kill();
    const life = await at.begin();
    const { label, other } = await life.space.restore(() => shop(life));
    const seen: unknown[] = [];
    const stop = label.sink((value) => seen.push(value));
    await at.host.advance(1_000);
    const before = life.loads;
    const neighbour = await at.begin();
    const prices = neighbour.space.cell<Record<string, number>>("prices");
    await at.host.run(() => prices.pull());
    prices.key("a").set(7);
    await at.host.advance(1_000);
    expect(seen).toEqual(["sum 3", "sum 9"]);
    expect(life.takeRan()).toEqual(["sum", "label"]);
    // Only the input and the outputs on its way.
    expect(life.loads - before).toBeLessThanOrEqual(3);
    stop();
    await at.host.advance(1_000);
    prices.key("a").set(8);
    await at.host.advance(1_000);
    expect(life.takeRan()).toEqual([]);
    expect(await at.host.run(() => label.pull())).toBe("sum 10");
    expect(await at.host.run(() => other.pull())).toBeDefined();
    neighbour.kill();
  });

  test("[I7] a resumed node without an access is computed anew when its input has changed", async () => {
    const at = setup();
    (await firstLife(at)).kill();
    const life = await at.begin();
    const { label } = await life.space.restore(() => shop(life));
    const neighbour = await at.begin();
    const prices = neighbour.space.cell<Record<string, number>>("prices");
    await at.host.run(() => prices.pull());
    prices.key("a").set(7);
    await at.host.advance(1_000);
    expect(life.ran).toEqual([]);
    expect(await at.host.run(() => label.pull())).toBe("sum 9");
    neighbour.kill();
  });

  test("[I7] a value that was replaced by an equal one, or changed and changed back, runs no node", async () => {
    const at = setup();
    (await firstLife(at)).kill();
    const between = await at.begin();
    between.space.cell("prices").set({ a: 9, b: 9 });
    await at.host.run(() => between.space.settled());
    between.space.cell("prices").set({ b: 2, a: 1 });
    await at.host.run(() => between.space.settled());
    between.kill();
    const life = await at.begin();
    const { label } = await life.space.restore(() => shop(life));
    expect(await at.host.run(() => label.pull())).toBe("sum 3");
    expect(life.ran).toEqual([]);
  });

  test("[R36] a result that equals the stored one wakes no reader", async () => {
    const at = setup();
    (await firstLife(at)).kill();
    const between = await at.begin();
    between.space.cell("prices").set({ a: 2, b: 1 });
    await at.host.run(() => between.space.settled());
    between.kill();
    const life = await at.begin();
    const { label } = await life.space.restore(() => shop(life));
    const seen: unknown[] = [];
    label.sink((value) => seen.push(value));
    await at.host.advance(1_000);
    expect(life.ran).toEqual(["sum"]);
    expect(seen).toEqual(["sum 3"]);
  });

  test("[I7] after a kill before values are stored, no outdated value counts as current", async () => {
    const at = setup();
    const first = await firstLife(at);
    first.line.plan = ({ request }) => (request && request.basis.length > 0 ? { arrives: new Promise(() => {}) } : {});
    first.space.cell<Record<string, number>>("prices").key("a").set(100);
    first.space.cell("label").sink(() => undefined);
    await at.host.advance(1_000);
    expect(first.takeRan()).toEqual(["sum", "label"]);
    first.kill();
    const life = await at.begin();
    const { label } = await life.space.restore(() => shop(life));
    expect(await at.host.run(() => label.pull())).toBe("sum 102");
    expect(life.ran).toEqual(["sum", "label"]);
  });

  test("[I7] other code, or another version, starts fresh: that node, and no other", async () => {
    const at = setup();
    (await firstLife(at)).kill();
    const changed = await at.begin();
    const { label } = await changed.space.restore(() => shop(changed, "another total"));
    expect(await at.host.run(() => label.pull())).toBe("sum 3");
    const runs = () => Object.fromEntries(changed.space.scheduler.getActionStats().map(({ id, runs }) => [id, runs]));
    expect(runs()).toEqual({ sum: 1, other: 0, label: 0 });
    changed.kill();
    const later = await at.begin("2");
    const again = await later.space.restore(() => shop(later));
    await at.host.run(() => again.label.pull());
    expect(new Set(later.ran)).toEqual(new Set(["sum", "label"]));
  });

  test("[I7] [R35] a computation that is registered without restore starts fresh", async () => {
    const at = setup();
    (await firstLife(at)).kill();
    const life = await at.begin();
    const { label } = shop(life);
    expect(await at.host.run(() => label.pull())).toBe("sum 3");
    expect(life.ran.filter((name) => name !== "other")).toContain("label");
  });

  test("[R35] no node runs before all nodes that are restored together are known", async () => {
    const at = setup();
    (await firstLife(at)).kill();
    const life = await at.begin();
    const restored = life.space.restore(() => shop(life));
    const seen: unknown[] = [];
    life.space.effect(() => seen.push(life.space.cell("label").get()));
    life.space.flush();
    expect([seen, life.ran]).toEqual([[], []]);
    await restored;
    await at.host.run(() => life.space.idle());
    expect([seen, life.ran]).toEqual([["sum 3"], []]);
  });

  test("[I7] a row that arrives after its input has changed in memory leaves its node invalid", async () => {
    const at = setup();
    (await firstLife(at)).kill();
    const life = await at.begin();
    await at.host.run(() => life.space.cell("prices").pull());
    const restored = life.space.restore(() => shop(life));
    life.space.cell<Record<string, number>>("prices").key("a").set(50);
    const { label } = await restored;
    expect(await at.host.run(() => label.pull())).toBe("sum 52");
    expect(life.ran).toEqual(["sum", "label"]);
  });

  test("[I7] the rows of two readers that differ only by the user are independent", async () => {
    const at = setup();
    const build = (life: Life) =>
      ["anna", "ben"].map((user) => {
        const cell = life.space.cell<number>("score", undefined, { scope: `user:${user}` });
        const twice = life.noting(user, () => (cell.get() ?? 0) * 2);
        return life.space.computed(`twice ${user}`, twice, { fingerprint: "twice" });
      });
    const first = await at.begin();
    for (const user of ["anna", "ben"]) first.space.cell<number>("score", undefined, { scope: `user:${user}` }).set(1);
    for (const node of build(first)) await at.host.run(() => node.pull());
    await at.host.run(() => first.space.settled());
    first.kill();
    const between = await at.begin();
    between.space.cell<number>("score", undefined, { scope: "user:ben" }).set(5);
    await at.host.run(() => between.space.settled());
    between.kill();
    const life = await at.begin();
    const nodes = await life.space.restore(() => build(life));
    const values = await at.host.run(() => Promise.all(nodes.map((node) => node.pull())));
    expect([values, life.ran]).toEqual([[2, 10], ["ben"]]);
  });

  test("[R37] gates that were set survive, as does an error; settings of the code do not override them", async () => {
    const at = setup();
    const build = (life: Life, throttleMs: number) => {
      const source = life.space.cell<number>("source");
      const slow = life.space.computed("slow", () => source.get(), { throttleMs, fingerprint: "slow" });
      const failing = life.space.computed(
        "failing",
        life.noting("failing", () => refuse(source.get())),
        {
          fingerprint: "failing",
        },
      );
      return { slow, failing };
    };
    const first = await at.begin();
    first.space.cell("source").set(1);
    const { slow, failing } = build(first, 10);
    await at.host.run(() => slow.pull());
    await expect(at.host.run(() => failing.pull())).rejects.toThrow("1 is refused");
    first.space.scheduler.setDebounce(slow.node, 70);
    await at.host.run(() => first.space.settled());
    first.kill();
    const life = await at.begin();
    const again = await life.space.restore(() => build(life, 20));
    expect([again.slow.node.gate?.debounceMs, again.slow.node.gate?.throttleMs]).toEqual([70, 20]);
    expect(String(again.failing.error)).toBe("Error: 1 is refused");
    // Set before it has run here, and kept all the same.
    life.space.scheduler.setDebounce(again.slow.node, 30);
    await at.host.run(() => life.space.settled());
    life.kill();
    const last = await at.begin();
    const { slow: third } = await last.space.restore(() => build(last, 20));
    expect(third.node.gate?.debounceMs).toBe(30);
    expect(life.ran).toEqual([]);
  });

  test("[I7] 10,000 clean nodes are taken up with no run and no document read", async () => {
    const at = setup();
    const build = (life: Life) => {
      const nodes: Computed<number>[] = [];
      for (let n = 0; n < 10_000; n++) {
        const source = life.space.cell<number>(`source ${n % 100}`);
        const below = nodes[n - 100];
        const compute = life.noting("node", () => (source.get() ?? 0) + (below?.get() ?? 0));
        nodes.push(life.space.computed(`node ${n}`, compute, { fingerprint: "node" }));
      }
      return nodes;
    };
    const first = await at.begin();
    for (let n = 0; n < 100; n++) first.space.cell(`source ${n}`).set(n);
    const nodes = build(first);
    const stop = first.space.effect(() => nodes.map((node) => node.get()));
    await at.host.run(() => first.space.settled());
    stop();
    first.kill();
    const life = await at.begin();
    const again = await life.space.restore(() => build(life));
    await at.host.advance(1_000);
    expect([life.ran.length, life.loads]).toEqual([0, 0]);
    expect(life.space.scheduler.getStats()).toMatchObject({ nodes: 10_000, runs: 0, queued: 0, unwritten: 0 });
    // A later change runs its dependents: the chain of one source.
    await at.host.run(() => life.space.cell("source 7").pull());
    life.space.cell("source 7").set(1_000);
    expect(await at.host.run(() => (again[9_907] as Computed<number>).pull())).toBe(100_000);
    expect(life.ran.length).toBe(100);
  });
});

function refuse(value: unknown): never {
  throw new Error(`${value} is refused`);
}
