import { describe, expect, test } from "#test";
import type { Cell } from "../../src/cells/cell.ts";
import { Space } from "../../src/cells/space.ts";
import type { Frozen } from "../../src/cells/value-types.ts";
import { SeededRandom } from "../../src/host/seeded-random.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { Calls, setup } from "../scheduler/scheduler-setup.ts";

type Bag = { x: number; list: number[] };

/** Writes and throws: none of the writes may be visible. */
function failing(
  space: Space,
  cells: { a: Cell<number | undefined>; bag: Cell<Frozen<Bag> | undefined>; made: Cell<number | undefined> },
): Promise<void> {
  return space.transact(() => {
    cells.a.set(9);
    cells.made.set(9);
    cells.bag.key("x").set(9);
    cells.bag.key("list").push(9);
    cells.bag.set({ x: 8, list: [8] });
    cells.bag.delete();
    throw new Error("given up");
  });
}

async function nested() {
  const site = await setup();
  const { space, host } = site;
  const [a, made] = [space.cell<number>("a"), space.cell<number>("made")];
  const bag = space.cell<Bag>("bag");
  a.set(0);
  bag.set({ x: 0, list: [0] });
  await host.run(() => space.settled());
  const errors = new Calls<string>();
  /** A nested transaction that fails, between two writes. */
  const code = (after: () => void = () => undefined) => {
    a.set(1);
    bag.key("x").set(1);
    failing(space, { a, bag, made }).catch((error: Error) => errors.note(error.message));
    bag.key("list").push(1);
    after();
  };
  const stored = async () => {
    const there = (await site.open()).space;
    return host.run(() => Promise.all(["a", "bag", "made"].map((id) => there.cell(id).pull())));
  };
  return { ...site, a, bag, made, code, errors, stored };
}

const AFTER = [1, { x: 1, list: [0, 1] }, undefined];

describe("a transaction inside another", () => {
  test("[R28] a nested transact that throws undoes its own writes only", async () => {
    const { space, host, a, bag, made, code, errors, stored } = await nested();
    const seen = new Calls();
    bag.sink(seen.note);
    space.flush();
    seen.take();
    await host.run(() => space.transact(() => code()));
    expect([a.get(), bag.get(), made.get()]).toEqual(AFTER);
    expect([errors.take(), seen.take()]).toEqual([["given up"], [AFTER[1]]]);
    await host.run(() => space.settled());
    expect(await stored()).toEqual(AFTER);
  });

  test("[R28] a nested transact that throws in a handler undoes its own writes, in every space", async () => {
    const { space, scheduler, host, code, errors, stored } = await nested();
    const other = await Space.open({ store: memoryStore({ host }), host, name: "t", scheduler });
    const there = other.cell<number>("there");
    const stream = space.stream<number>("stream");
    stream.handle((_, { emit }) => {
      emit("kept.one", 1);
      code(() => {
        const part = space.transact(() => {
          there.set(1);
          emit("lost.one", 1);
          throw new Error("given up");
        });
        part.catch((error: Error) => errors.note(error.message));
      });
    });
    const { outcome } = stream.send(1);
    expect((await host.run(() => outcome)).kind).toBe("handled");
    expect(errors.take()).toEqual(["given up", "given up"]);
    expect([await stored(), there.get()]).toEqual([AFTER, undefined]);
  });

  test("[R28] a nested transact that throws in a node's run undoes its own writes", async () => {
    const { space, host, a, code, errors, stored, made } = await nested();
    space.effect(() => {
      space
        .transact(() => {
          made.set(1);
          throw new Error("first");
        })
        .catch((error: Error) => errors.note(error.message));
      code();
    });
    await host.run(() => space.settled());
    expect(errors.take()).toEqual(["first", "given up"]);
    expect([a.get(), await stored()]).toEqual([1, AFTER]);
  });

  test("[I10] a nested transact that throws drops its own sends only", async () => {
    const { space, host, quiet } = await setup();
    const [first, second] = [space.stream<number>("first"), space.stream<number>("second")];
    const handled = new Calls();
    second.handle(handled.note);
    const outcomes = new Calls<string>();
    const send = (value: number) => second.send(value, { onOutcome: ({ kind }) => outcomes.note(`${value} ${kind}`) });
    const code = () => {
      send(1);
      const part = space.transact(() => {
        send(2);
        throw new Error("given up");
      });
      part.catch(() => undefined);
      send(3);
    };
    await host.run(() => space.transact(code));
    await quiet();
    first.handle(code);
    first.send(0);
    await quiet();
    expect(handled.take()).toEqual([1, 3, 1, 3]);
    expect(outcomes.take().sort()).toEqual([
      "1 handled",
      "1 handled",
      "2 dropped",
      "2 dropped",
      "3 handled",
      "3 handled",
    ]);
  });

  test("[R28] must not be asynchronous either", async () => {
    const { space, host, quiet } = await setup();
    const a = space.cell<number>("a");
    const codes = new Calls<string>();
    const code = () => {
      space.transact(async () => a.set(1)).catch(({ code }: { code: string }) => codes.note(code));
    };
    await host.run(() => space.transact(code));
    const stream = space.stream("stream");
    stream.handle(code);
    stream.send(1);
    space.effect(code);
    await quiet();
    expect([codes.take(), a.get()]).toEqual([["STORE_MISUSE", "STORE_MISUSE", "STORE_MISUSE"], undefined]);
  });

  test("[R28] [I1] the outer code runs again if a nested transact has to wait for a value", async () => {
    const { space, host, open } = await setup();
    space.cell<number>("far").set(5);
    await host.run(() => space.settled());
    const there = (await open()).space;
    const [far, near, sum] = [there.cell<number>("far"), there.cell<number>("near"), there.cell<number>("sum")];
    near.set(1);
    const same = there.computed("same", () => (near.get() ?? 0) * 0);
    await host.run(() => same.pull());
    near.set(2);
    const stream = there.stream("stream");
    stream.handle(() => {
      // The signal that abandons the attempt is not caught: it is not a failure.
      void there.transact(() => sum.set((far.get() ?? 0) + 1));
    });
    stream.send(1);
    // The effect has written, so its reads cannot run inside it; their value is unchanged.
    const [before, after] = [there.cell<number>("before"), there.cell<number>("after")];
    there.effect(() => {
      before.set(1);
      void there.transact(() => after.set((same.get() ?? 0) + 1));
    });
    await host.run(() => there.settled());
    expect([sum.get(), before.get(), after.get()]).toEqual([6, 1, 1]);
  });

  test("[R28] random nested transactions that throw or not end as a model does", async () => {
    for (let seed = 1; seed <= 90; seed++) {
      const { space, host, scheduler, open } = await setup({ seed });
      let random = new SeededRandom(seed);
      const below = (count: number) => random.below(count);
      const cells = ["p", "q"].map((id) => space.cell<Bag>(id));
      let model: (Bag | undefined)[] = [];
      for (const cell of cells) cell.set({ x: 0, list: [0] });
      await host.run(() => space.settled());
      const write = () => {
        const i = below(2);
        const cell = cells[i] as Cell<Bag>;
        const bag = model[i];
        const value = below(100);
        const how = below(5);
        if (bag === undefined || how === 0) {
          cell.set({ x: value, list: [value] });
          model[i] = { x: value, list: [value] };
        } else if (how === 1) {
          cell.key("x").set(value);
          bag.x = value;
        } else if (how === 2) {
          cell.key("list").push(value);
          bag.list.push(value);
        } else if (how === 3 && bag.list.length > 0) {
          cell.key("list").splice(0, 1);
          bag.list.shift();
        } else if (how === 4 && below(3) === 0) {
          cell.delete();
          model[i] = undefined;
        }
      };
      const part = (depth: number): void => {
        for (let steps = below(6); steps >= 0; steps--) {
          if (depth === 3 || below(3) > 0) {
            write();
            continue;
          }
          const before = structuredClone(model);
          const fails = below(2) === 0;
          const inner = space.transact(() => {
            part(depth + 1);
            if (fails) throw new Error("given up");
          });
          inner.catch(() => undefined);
          if (fails) model = before;
        }
      };
      /** It may be run again, and does the same. */
      const whole = () => {
        random = new SeededRandom(seed);
        model = cells.map(() => ({ x: 0, list: [0] }));
        part(0);
      };
      if (seed % 3 === 0) {
        const stream = space.stream("stream");
        stream.handle(whole);
        stream.send(1);
      } else if (seed % 3 === 1) space.effect(whole);
      else void space.transact(whole);
      await host.run(() => space.settled());
      expect([seed, ...cells.map((cell) => cell.get())]).toEqual([seed, ...model]);
      scheduler.checkInvariants();
      const there = (await open()).space;
      const stored = await host.run(() =>
        Promise.all(cells.map(({ address }) => there.cell(address.document.id).pull())),
      );
      expect([seed, ...stored]).toEqual([seed, ...model]);
    }
  });
});
