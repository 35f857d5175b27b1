/** Resumed computations without an access: their reads are only in their rows. */
import { describe, expect, test } from "#test";
import { Space } from "../../src/cells/space.ts";
import { SHARED_SCOPE } from "../../src/store/document.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { Gate } from "../store/faulty-store.ts";
import { double as build, firstLife, type Life, type Setup, setup } from "./restart-setup.ts";
import { Calls } from "./scheduler-setup.ts";

const RESIDENT_MAX = 10;
const INPUT = { scope: SHARED_SCOPE, id: "input" };

async function takenUp(at: Setup): Promise<{ life: Life; double: ReturnType<typeof build> }> {
  await firstLife(at);
  const life = await at.begin();
  return { life, double: await life.space.restore(() => build(life.space)) };
}

/** The next process, with little memory. */
async function takenUpInLittle(at: Setup) {
  await firstLife(at);
  const store = memoryStore({ host: at.host, disk: at.disk });
  const persist = { version: "1" };
  const options = { store, host: at.host, name: "s", persist, residentDocumentsMax: RESIDENT_MAX };
  const space = await Space.open(options);
  return { space, double: await space.restore(() => build(space)) };
}

/** Brings so many documents that others are dropped. */
async function crowd(at: Setup, space: Space): Promise<void> {
  for (let n = 0; n < 3 * RESIDENT_MAX; n++) await at.host.run(() => space.cell(`other ${n}`).pull());
}

describe("a computation that was resumed and is dormant", () => {
  test("[I7] [I2] a dormant resumed computation costs no document and no read before its first access", async () => {
    const at = setup();
    const { life, double } = await takenUp(at);
    const replica = life.space.replica("s");
    expect(replica.residentDocuments).toBe(0);
    expect(life.space.scheduler.getStats().indexWrites).toBe(0);
    expect(await at.host.run(() => double.pull())).toBe(2);
    expect([replica.find(INPUT)?.state, life.ran]).toEqual(["absent", []]);
    life.space.scheduler.checkInvariants();
  });

  test("[I7] a dormant resumed computation finds this process's write to its input, also with little memory", async () => {
    const at = setup();
    const { space, double } = await takenUpInLittle(at);
    space.cell("input").set(5);
    await at.host.run(() => space.settled());
    await crowd(at, space);
    expect(space.replica("s").residentDocuments).toBeLessThan(2 * RESIDENT_MAX);
    expect(await at.host.run(() => double.pull())).toBe(10);
  });

  test("[I7] a dormant resumed computation finds another process's write to its input, which is loaded only then", async () => {
    const at = setup();
    const { life, double } = await takenUp(at);
    const other = await at.begin();
    other.space.cell("input").set(5);
    await at.host.advance(1_000);
    expect([life.loads, life.space.replica("s").residentDocuments]).toEqual([0, 0]);
    expect(await at.host.run(() => double.pull())).toBe(10);
  });

  test("[I12] runs again after its input's document was written while no computation owned it", async () => {
    const at = setup();
    const copy = (space: Space) => space.computed("input", () => space.cell<number>("source").get());
    const first = await at.begin();
    first.space.cell("source").set(1);
    copy(first.space);
    expect(await at.host.run(() => build(first.space).pull())).toBe(2);
    await at.host.run(() => first.space.close());
    const { space } = await at.begin();
    const double = await space.restore(() => build(space));
    // No computation of that name is registered, so plain code may write the document.
    space.cell("input").set(5);
    await at.host.run(() => space.settled());
    expect(await at.host.run(() => double.pull())).toBe(10);
    // The stored 5 is not the output that the row of `input` describes: it is computed again.
    await space.restore(() => copy(space));
    expect(await at.host.run(() => double.pull())).toBe(2);
  });

  for (const isLookedAt of [false, true]) {
    test(`[R44] a removed computation releases its inputs; accessed before: ${isLookedAt}`, async () => {
      const at = setup();
      const { space, double } = await takenUpInLittle(at);
      const replica = space.replica("s");
      await at.host.run(() => space.cell("input").pull());
      if (isLookedAt) await at.host.run(() => double.pull());
      await crowd(at, space);
      expect(replica.find(INPUT)?.value).toBe(1);
      double.dispose();
      await crowd(at, space);
      expect(replica.find(INPUT)).toBe(undefined);
    });
  }

  test("[R28] a transaction that reads a resumed value claims the sources of that value", async () => {
    const at = setup();
    const { life, double } = await takenUp(at);
    const { space } = life;
    await at.host.run(() => space.transact(() => space.cell("copy").set(double.get())));
    const commit = life.line.arrived.find(({ patches }) => patches.some(({ id }) => id === "copy"));
    expect(commit?.reads.map(({ id }) => id)).toEqual(["input"]);
    expect([await at.host.run(() => space.cell("copy").pull()), life.ran]).toEqual([2, []]);
  });

  test("[R37] a resumed computation is written again with a gate that was set, unless another result was stored", async () => {
    const at = setup();
    const { life, double } = await takenUp(at);
    life.space.scheduler.setDebounce(double.node, 30);
    await at.host.run(() => life.space.settled());
    expect(life.derivedCommits.map(({ reads, patches }) => [reads.map(({ id }) => id), patches])).toEqual([
      [["double"], []],
    ]);
  });

  test("[R39] takes its row and its output with it when it is discarded", async () => {
    const at = setup();
    const { life, double } = await takenUp(at);
    double.discard();
    await at.host.run(() => life.space.close());
    const store = memoryStore({ host: at.host, disk: at.disk });
    expect(await store.basis("s", ["double"])).toEqual([]);
    expect((await store.load("s", [{ ...INPUT, id: "double" }])).documents[0]?.value).toBe(undefined);
  });

  test("[R17] a snapshot shows the reads of a dormant resumed computation", async () => {
    const { life } = await takenUp(setup());
    expect(life.space.scheduler.getGraphSnapshot()).toMatchObject([
      { id: "double", status: "clean", reads: ["input"] },
    ]);
    life.space.scheduler.checkInvariants();
  });
});

/** Declared to be read: it is demanded before the store has answered. */
function look(space: Space, seen: Calls<number | undefined>): void {
  const double = build(space);
  space.effect(() => seen.note(double.get()), { reads: [double] });
}

describe("a computation that is accessed while it is resumed", () => {
  test("[I7] a computation accessed during its resumption shows its present input, and later changes", async () => {
    const at = setup();
    await firstLife(at);
    const { space } = await at.begin();
    const seen = new Calls<number | undefined>();
    await at.host.run(() => space.restore(() => look(space, seen)));
    space.cell("input").set(3);
    await at.host.advance(100);
    expect(seen.seen).toEqual([2, 6]);
  });

  test("[I7] a resumed computation is compared with an input that is in memory and not stored", async () => {
    const at = setup();
    await firstLife(at);
    const { space, line } = await at.begin();
    line.plan = ({ method }) => (method === "commit" ? { arrives: new Gate().opened } : {});
    space.cell("input").set(5);
    const seen = new Calls<number | undefined>();
    void space.restore(() => look(space, seen));
    await at.host.advance(100);
    expect(seen.seen.at(-1)).toBe(10);
  });

  test("[R36] the outputs of many resumed computations that are read in sequence are loaded in few steps", async () => {
    const at = setup();
    const many = ({ space }: Life) =>
      Array.from({ length: 100 }, (_, n) =>
        space.computed(`n${n}`, () => (space.cell<number>("input").get() ?? 0) + n, { fingerprint: "n" }),
      );
    const sum = (life: Life) => {
      const nodes = many(life);
      return () => nodes.reduce((total, node) => total + (node.get() ?? 0), 0);
    };
    const first = await at.begin();
    first.space.cell("input").set(1);
    await at.host.run(() => first.space.scheduler.pullOnce(sum(first)));
    await at.host.run(() => first.space.close());
    const life = await at.begin();
    let loads = 0;
    life.line.plan = ({ method }) => {
      if (method === "load") loads++;
      return {};
    };
    const read = await life.space.restore(() => sum(life));
    expect(await at.host.run(() => life.space.scheduler.pullOnce(read))).toBe(5_050);
    expect([loads < 12, life.ran]).toEqual([true, []]);
  });
});
