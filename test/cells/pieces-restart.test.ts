/**
 * Pieces that another process takes up: with the same code, with other code, and with inputs that lie in other spaces.
 */
import { describe, expect, test } from "#test";
import type { Cell } from "../../src/cells/cell.ts";
import { pattern } from "../../src/cells/pattern.ts";
import type { Pattern } from "../../src/cells/piece.ts";
import { Space } from "../../src/cells/space.ts";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { Calls } from "../scheduler/scheduler-setup.ts";

interface Inputs {
  readonly n: number;
}

/** Processes that follow each other on one disk; each has a space and a neighbour that links may lead to. */
function world() {
  const host = simulatedHost(1);
  const disk = new MemoryDisk();
  const done = async <T>(promise: Promise<T>): Promise<T> => {
    void promise.catch(() => {});
    await host.advance(1_000);
    return promise;
  };
  const open = async ({ version = "1", isAlone = false } = {}) => {
    const store = memoryStore({ host, disk });
    const there = await Space.open({ store, host, name: "there" });
    const neighbours = isAlone ? new Map() : new Map([["there", there.replica("there")]]);
    const { scheduler } = there;
    const space = await Space.open({ store, host, name: "here", scheduler, neighbours, persist: { version } });
    const errors = new Calls();
    scheduler.onError((error) => errors.note(String(error)));
    const close = async () => {
      await done(space.close());
      await done(there.close());
    };
    return { space, there, errors, close };
  };
  return { done, open };
}

describe("pieces that are taken up by another process", () => {
  const runs = new Calls<string>();
  const factor = { by: 2 };
  const first = pattern("times", (inputs: Cell<Inputs>, piece) => ({
    product: piece.computed("product", () => {
      runs.note("first");
      return (inputs.get()?.n ?? 0) * factor.by;
    }),
  }));
  const second = pattern("times", (inputs: Cell<Inputs>, piece) => ({
    product: piece.computed("product", () => {
      runs.note("second");
      return (inputs.get()?.n ?? 0) * 10;
    }),
    half: piece.computed("half", () => (inputs.get()?.n ?? 0) / 2),
  }));

  /** One process starts the piece and ends; another takes it up. */
  async function restarted({ version, as }: { version: string; as: Pattern }) {
    const { done, open } = world();
    const before = await open();
    const piece = await done(before.space.run(first, { n: 3 }, { id: "p" }));
    const value = await done(piece.parts.product.pull());
    await before.close();
    runs.take();
    const after = await open({ version });
    const { pieces, left } = await done(after.space.resume([as]));
    const product = await done(after.space.cell<number>("p/product").pull());
    return { done, ...after, pieces, left, value, product };
  }

  test("[P6] [R35] a resumed piece with the same code and version runs no computation", async () => {
    const { value, product, left } = await restarted({ version: "1", as: first });
    expect([value, product, runs.take(), left]).toEqual([6, 6, [], []]);
  });

  test("[P6] [R35] a resumed piece with another version computes again, even with the same code", async () => {
    factor.by = 5;
    const { product } = await restarted({ version: "2", as: first });
    factor.by = 2;
    // The first process had computed with 5 too: the check is that the computation ran.
    expect([product, runs.take()]).toEqual([15, ["first"]]);
  });

  test("[P6] [R35] with other code under the same version it is computed by that, and shows the parts that there are now", async () => {
    const { space, product, done, pieces, errors } = await restarted({ version: "1", as: second });
    expect([product, runs.take(), pieces.map(({ id }) => id)]).toEqual([30, ["second"], ["p"]]);
    const result = await done(space.cell<{ product: number; half: number }>("p").pull());
    expect(Object.keys(result ?? {})).toEqual(["product", "half"]);
    expect(await done(space.cell<{ half: number }>("p").key("half").pull())).toBe(1.5);
    expect(errors.take()).toEqual([]);
  });

  test("[P6] a piece started again in a running process with other code is rebuilt, and its observers go on", async () => {
    const { done, open } = world();
    const { space } = await open();
    const one = await done(space.run(first, { n: 3 }, { id: "p" }));
    const seen = new Calls();
    space.cell<number>("p/product").sink(seen.note);
    await done(Promise.resolve());
    expect(seen.take().at(-1)).toBe(6);
    const two = await done(space.run(second, { n: 4 }, { id: "p" }));
    expect([one.state, two.state, seen.take().at(-1)]).toEqual(["stopped", "running", 40]);
    expect(await done(two.parts.half.pull())).toBe(2);
  });
});

describe("inputs that lie in another space", () => {
  const sum = pattern("sum", (inputs: Cell<{ a: number; b: number }>, piece) => ({
    total: piece.computed("total", () => (inputs.key("a").get() ?? 0) + (inputs.key("b").get() ?? 0)),
  }));

  test("[P1] are followed there, before a restart and after it", async () => {
    const { done, open } = world();
    const before = await open();
    const far = before.there.cell<number>("far");
    far.set(10);
    const piece = await done(before.space.run(sum, { a: far, b: 1 }, { id: "p" }));
    expect(await done(piece.parts.total.pull())).toBe(11);
    far.set(20);
    expect(await done(piece.parts.total.pull())).toBe(21);
    await before.close();

    const between = await open();
    between.there.cell<number>("far").set(30);
    await between.close();

    const after = await open();
    const seen = new Calls();
    await done(after.space.resume([sum]));
    after.space.cell<number>("p/total").sink(seen.note);
    await done(Promise.resolve());
    expect(seen.take().at(-1)).toBe(31);
    after.there.cell<number>("far").set(40);
    await done(Promise.resolve());
    expect([seen.take(), after.errors.take()]).toEqual([[41], []]);
  });

  test("[P1] are refused by name where that space is not open; the piece runs on, and so do the others", async () => {
    const { done, open } = world();
    const before = await open();
    const far = before.there.cell<number>("far");
    far.set(10);
    await done(before.space.run(sum, { a: far, b: 1 }, { id: "far" }));
    await done(before.space.run(sum, { a: 1, b: 1 }, { id: "near" }));
    await before.close();

    const after = await open({ isAlone: true });
    const { pieces } = await done(after.space.resume([sum]));
    expect(pieces.map(({ id }) => id)).toEqual(["far", "near"]);
    expect(await done(after.space.cell("near/total").pull())).toBe(2);
    expect(await done(after.space.cell("far/total").pull())).toBe(undefined);
    expect(after.errors.take()).toEqual([expect.stringContaining('space "there", which is not open here')]);
  });
});
