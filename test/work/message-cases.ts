/** Cases of `describeOnce` about messages, labels and refusals of handlers (SPEC: U9, U70-U82). */
import { expect } from "#test";
import { rejected } from "../../src/store/rejection.ts";
import { TIMER_KIND, type TimerData } from "../../src/work/timer-row.ts";
import type { Tx } from "../../src/work/tx.ts";
import { ASKED, can, EMITTED, SENT } from "./entry-points.ts";
import { add, adds, atFirst, type Case, done, ID, tick } from "./trial.ts";
import type { Process, World } from "./world.ts";

const LATER_MS = 1_000_000;

/** Sends one message of each kind; the ids of those that have one. */
function sendAll(tx: Tx): string[] {
  tx.setTimer({ name: "timer", delayMs: LATER_MS, send: { type: SENT, data: "timer" } });
  return [
    tx.emit(EMITTED, "emit"),
    tx.publish(EMITTED, "publish"),
    tx.send(SENT, "send"),
    tx.send(SENT, "later", { at: tx.now + LATER_MS, key: "later" }),
  ];
}

/** The messages of handlers that are journaled, and those that wait in timers, as `type data`. */
async function sentIn(world: World, { store }: Process): Promise<string[][]> {
  const rows = await world.run(() => store.query({ limit: 100 }));
  const journaled = rows.flatMap(({ message }) => (message === undefined ? [] : [message]));
  const timers = await world.run(() => store.dueRows(Number.MAX_SAFE_INTEGER, 100, TIMER_KIND));
  const waiting = timers.map(({ data }) => (data as never as TimerData).template);
  return [journaled, waiting].map((messages) =>
    messages
      .filter(({ type }) => type === EMITTED || type === SENT)
      .map(({ type, data }) => `${type} ${JSON.stringify(data)}`)
      .sort(),
  );
}

const ALL = [
  [`${EMITTED} "emit"`, `${EMITTED} "publish"`, `${SENT} "send"`],
  [`${SENT} "later"`, `${SENT} "timer"`],
];

const secretOf = ({ space }: Process) => space.cell<number>("secret", 7);

/** Stores the secret and its label. */
const labelled = async (world: World, process: Process) => {
  const secret = secretOf(process);
  await world.run(() => process.space.transact(() => secret.set(7)));
  await world.run(() => secret.label(["secret"]));
  await world.settle();
};

export const MESSAGE_CASES: readonly Case[] = [
  {
    title: "[U9] a repeated invocation joins the one in flight, also after its sender has left",
    needs: ["ids", "promises"],
    handler: (process) => async (data, tx) => {
      await tick(process);
      return add(process)(data, tx);
    },
    body: async ({ world, process, entry, calls }) => {
      const repeat = async () => {
        entry.begin(ID, null);
        await new Promise<void>((resolve) => void process.host.timer(3, resolve));
        return entry.handle(ID, null);
      };
      expect(await world.run(repeat)).toEqual(done(1));
      expect([calls(), await world.stored("total")]).toEqual([1, 1]);
    },
  },
  {
    title: "[U9] a repeated invocation joins the one with a commit on its way, also after its sender has left",
    needs: ["ids"],
    handler: adds,
    body: async ({ world, process, entry, calls }) => {
      const later = new Promise<void>((resolve) => void process.host.timer(50, resolve));
      process.line.plan = atFirst({ arrives: later });
      const repeat = async () => {
        entry.begin(ID, null);
        await new Promise<void>((resolve) => void process.host.timer(20, resolve));
        return entry.handle(ID, null);
      };
      expect(await world.run(repeat)).toEqual(done(1));
      expect([calls(), await world.stored("total")]).toEqual([1, 1]);
    },
  },
  {
    title: "[U70] [U72] [U79] events, commands and timers of a handler are there if and only if it commits",
    handler: (process) => (data, tx) => {
      sendAll(tx);
      if (data === "throw") throw new Error("not today");
      return add(process)(data, tx);
    },
    body: async ({ world, process, handle }) => {
      expect((await handle("first", "throw")).kind).toBe("failed");
      await world.settle();
      expect(await sentIn(world, process)).toEqual([[], []]);
      expect(await handle("second")).toEqual(done(1));
      await world.settle();
      expect(await sentIn(world, process)).toEqual(ALL);
    },
  },
  {
    title: "[U70] a value for a stream is handled if and only if the handler commits",
    handler: (process) => {
      const stream = process.space.stream<number>("other");
      const seen = process.space.cell<number>("seen", 0);
      stream.handle((value) => seen.set(value));
      return (data, tx) => {
        tx.sendTo(stream, data === "throw" ? 1 : 2);
        if (data === "throw") throw new Error("not today");
        return add(process)(data, tx);
      };
    },
    body: async ({ world, handle }) => {
      expect((await handle("first", "throw")).kind).toBe("failed");
      await world.settle();
      expect(await world.stored("seen")).toBeUndefined();
      expect((await handle("second")).kind).toBe("done");
      await world.settle();
      expect(await world.stored("seen")).toBe(2);
    },
  },
  {
    title: "[U77] a handler that runs again gives its messages the same ids",
    needs: ["ids"],
    handler: (process) => (data, tx) => {
      process.errors.push(sendAll(tx).join());
      return add(process)(data, tx);
    },
    body: async ({ world, process, handle }) => {
      process.line.plan = atFirst({ instead: rejected("stale", "read-moved", "moved") });
      expect(await handle()).toEqual(done(1));
      expect(process.errors.length).toBeGreaterThan(1);
      expect(new Set(process.errors).size).toBe(1);
      await world.settle();
      expect(await sentIn(world, process)).toEqual(ALL);
    },
  },
  {
    title: "[U71] data of a message is copied when it is sent",
    handler: (process) => (data, tx) => {
      const sent = { n: 1 };
      tx.emit(EMITTED, sent);
      tx.send(SENT, sent, { delayMs: LATER_MS });
      sent.n = 2;
      return add(process)(data, tx);
    },
    body: async ({ world, process, handle }) => {
      await handle();
      expect(await sentIn(world, process)).toEqual([[`${EMITTED} {"n":1}`], [`${SENT} {"n":1}`]]);
    },
  },
  {
    title: "[U71] data that is not JSON throws in the handler at once, and is not sent",
    handler: (process) => (data, tx) => {
      const problems = [() => tx.emit(EMITTED, Number.NaN), () => tx.send(SENT, new Date(0) as never)].map(codeOf);
      add(process)(data, tx);
      return problems;
    },
    body: async ({ world, process, handle }) => {
      expect(await handle()).toEqual(done(["WORK_MISUSE", "WORK_MISUSE"]));
      expect(await sentIn(world, process)).toEqual([[], []]);
    },
  },
  {
    title: "[U71] a message that the capability does not declare throws in the handler at once",
    needs: ["requests"],
    handler: (process) => (data, tx) => {
      add(process)(data, tx);
      return [() => tx.emit("Case.Unknown", 1), () => tx.send("Case.Unknown", 1, { delayMs: 1 })].map(codeOf);
    },
    body: async ({ handle }) => {
      expect(await handle()).toEqual(done(["WORK_MISUSE", "WORK_MISUSE"]));
    },
  },
  {
    title: "[U72] a message with `at` is a timer row, due at that time",
    handler: (process) => (data, tx) => {
      tx.emit(EMITTED, "later", { at: 3_999_999_999_999.2 });
      return add(process)(data, tx);
    },
    body: async ({ world, process, handle }) => {
      await handle();
      await world.settle();
      const rows = await world.run(() => process.store.dueRows(Number.MAX_SAFE_INTEGER, 10, TIMER_KIND));
      expect(rows.map(({ dueAtMs }) => dueAtMs)).toEqual([4_000_000_000_000]);
      expect(await sentIn(world, process)).toEqual([[], [`${EMITTED} "later"`]]);
    },
  },
  {
    title: "[U78] a handler that runs again asks under the same id, and its callee runs once",
    needs: ["requests"],
    handler: (process) => async (data, tx) => {
      const sum = add(process)(data, tx);
      const answer = await tx.command(ASKED, null, { key: "ask" });
      return [sum, answer];
    },
    body: async ({ world, process, handle, calls }) => {
      process.line.plan = atFirst({ instead: rejected("stale", "read-moved", "moved") });
      expect(await handle()).toEqual(done([1, 1]));
      expect(calls()).toBeGreaterThan(1);
      expect(await world.stored("answers")).toBe(1);
    },
  },
  {
    title: "[U80] messages of a handler have the label of its reads, those for later too",
    handler: (process) => (_data, tx) => {
      tx.get(secretOf(process));
      sendAll(tx);
      return null;
    },
    body: async ({ world, process, handle }) => {
      await labelled(world, process);
      expect((await handle()).kind).toBe("done");
      await world.settle();
      const rows = await world.run(() => process.store.query({ limit: 100 }));
      const messages = rows.filter(({ message }) => message?.type === EMITTED || message?.type === SENT);
      expect(messages.map(({ message }) => message?.metadata.label)).toEqual([["secret"], ["secret"], ["secret"]]);
      const timers = await world.run(() => process.store.dueRows(Number.MAX_SAFE_INTEGER, 10, TIMER_KIND));
      const labels = timers.map(({ data }) => (data as never as TimerData).lineage["label"]);
      expect(labels).toEqual([["secret"], ["secret"]]);
    },
  },
  {
    title: "[U81] a handler that has read a labelled value cannot write where others could read it",
    handler: (process) => (data, tx) => {
      tx.get(secretOf(process));
      return add(process)(data, tx);
    },
    body: async ({ world, process, handle }) => {
      await labelled(world, process);
      expect((await handle()).kind).toBe("failed");
      expect(await world.stored("total")).toBeUndefined();
    },
  },
  {
    title: "[U82] the clearance of a handler holds after an await",
    needs: ["clearance", "promises"],
    clearance: [],
    handler: (process) => async () => {
      await tick(process);
      return secretOf(process).get();
    },
    body: async ({ world, process, handle }) => {
      await labelled(world, process);
      expect(await handle()).toMatchObject({ kind: "failed", message: expect.stringContaining("clearance") });
    },
  },
  {
    title: "[U74] a refusal is an answer where a caller waits, and a failure where none does; no other effect stays",
    handler: (process) => (data, tx) => {
      add(process)(data, tx);
      sendAll(tx);
      return tx.refuse("SOLD_OUT", { data: { left: 0 }, message: "no tea left" });
    },
    body: async ({ world, process, handle, entryPoint }) => {
      expect(await handle()).toMatchObject({ kind: "failed", message: expect.stringContaining("no tea left") });
      await world.settle();
      expect(await world.stored("total")).toBeUndefined();
      expect(await sentIn(world, process)).toEqual([[], []]);
      const failed = await world.run(() => process.store.query({ status: "failed", limit: 10 }));
      expect(failed).toHaveLength(can(entryPoint, "callers") ? 0 : 1);
    },
  },
];

/** The code of the error that a call throws. */
function codeOf(call: () => unknown): string {
  try {
    call();
    return "none";
  } catch (error) {
    return (error as { code: string }).code;
  }
}
