/** Cases of `describeOnce` about reads of handlers, their writes, and labels (SPEC: U45, U48-U53, U83). */
import { expect } from "#test";
import { Space } from "../../src/cells/space.ts";
import type { Json } from "../../src/message/json.ts";
import { type Case, done, type Trial, totalOf } from "./trial.ts";
import type { Process } from "./world.ts";

const doubled = ({ space }: Process) =>
  space.computed("doubled", () => (space.cell<number>("total", 0).get() ?? 0) * 2);

/** Handles ten messages in each of two processes at once. */
async function twenty({ world, entry, restart }: Trial): Promise<void> {
  const other = await restart();
  const all = [...Array(10).keys()].flatMap((n) => [entry.handle(`a${n}`, null), other.entry.handle(`b${n}`, null)]);
  await world.run(() => Promise.all(all));
  expect(await world.stored("total")).toBe(20);
}

export const READING_CASES: readonly Case[] = [
  {
    title: "[U45] a computed value that a handler reads shows its value from before the handler's writes",
    handler: (process) => {
      const twice = doubled(process);
      return (_data, tx) => {
        const total = totalOf(process);
        tx.set(total, 10);
        return [tx.get(total), tx.get(twice as never)] as Json;
      };
    },
    body: async ({ handle }) => {
      expect(await handle()).toEqual(done([10, 0]));
    },
  },
  {
    title: "[U48] a computed value that a handler reads is up to date, and its sources are in the read set",
    handler: (process) => {
      const twice = doubled(process);
      return (_data, tx) => {
        const sum = (tx.get(twice as never) as number) / 2 + 1;
        tx.set(totalOf(process), sum);
        return sum;
      };
    },
    body: twenty,
  },
  {
    title: "[U49] a handler cannot write to another space, and none of its effects stays",
    needs: ["one space"],
    handler: (process) => {
      const { host, store, space } = process;
      const opened = Space.open({
        store,
        host,
        name: "elsewhere",
        scheduler: space.scheduler,
        onError: () => undefined,
      });
      let far: Space | undefined;
      void opened.then((other) => {
        far = other;
      });
      return (_data, tx) => {
        totalOf(process).set(1);
        if (far === undefined) throw new Error("the other space is not open");
        tx.set(far.cell<number>("far"), 1);
        return null;
      };
    },
    body: async ({ world, process, handle }) => {
      await world.settle();
      expect(await handle()).toMatchObject({
        kind: "failed",
        message: expect.stringContaining("one commit of one space"),
      });
      await world.settle();
      const { documents } = await world.run(() => process.store.load("elsewhere", [{ scope: "space", id: "far" }]));
      expect([await world.stored("total"), documents[0]?.value]).toEqual([undefined, undefined]);
    },
  },
  {
    title: "[U52] a handler that reads a computed value behind a gate runs when the gate opens",
    handler: (process) => {
      const { space } = process;
      const total = totalOf(process);
      const gated = space.computed("gated", () => (total.get() ?? 0) + 1, { debounceMs: 200 });
      gated.sink(() => undefined);
      return (_data, tx) => {
        const next = tx.get(gated as never) as number;
        tx.set(space.cell<number>("seen"), next);
        return next;
      };
    },
    body: async ({ world, process, handle }) => {
      await world.settle();
      process.space.cell<number>("total", 0).set(40);
      expect(await handle()).toEqual(done(41));
      expect(await world.stored("seen")).toBe(41);
    },
  },
  {
    title: "[U53] the first write below the initial value of a cell stores that value with it",
    handler: (process) => (_data, tx) => {
      const { space } = process;
      const list = space.cell<number[]>("list", [1]);
      const record = space.cell<Record<string, number>>("record", { a: 1 });
      tx.push(list, 2);
      tx.set(record.key("b"), 2);
      return [tx.get(list), tx.get(record)];
    },
    body: async ({ world, handle }) => {
      expect(await handle()).toEqual(done([[1, 2], { a: 1, b: 2 }]));
      expect([await world.stored("list"), await world.stored("record")]).toEqual([[1, 2], { a: 1, b: 2 }]);
    },
  },
  {
    title: "[U83] the receipt of a handler carries the label of its reads",
    needs: ["ids"],
    handler: (process) => (_data, tx) => tx.get(process.space.cell<number>("secret", 7)),
    body: async ({ world, process, handle }) => {
      const secret = process.space.cell<number>("secret", 7);
      await world.run(() => process.space.transact(() => secret.set(7)));
      await world.run(() => secret.label(["secret"]));
      await world.settle();
      await handle();
      const labels = process.line.arrived.flatMap((request) => request.labels);
      const ofReceipts = labels.filter(({ id }) => id.startsWith("receipt"));
      expect(ofReceipts.map((one) => one.labels)).toEqual([["secret"]]);
    },
  },
];
