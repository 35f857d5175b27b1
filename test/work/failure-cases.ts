/**
 * Cases of `describeOnce` about commits without an answer, lost leases, crashes and timeouts (SPEC: U4, U10, U17-U36).
 */
import { expect } from "#test";
import { HANDLER_TIMEOUT_MS } from "../../src/limits.ts";
import { rejected } from "../../src/store/rejection.ts";
import type { Fault, LineCall } from "../store/faulty-store.ts";
import { can, EMITTED } from "./entry-points.ts";
import { add, adds, atFirst, type Case, done, ID, type Trial, tick, totalOf } from "./trial.ts";

const NO_ANSWER = rejected("unknown", "no-answer", "the line went dead");
const NEVER = new Promise<never>(() => undefined);
const DAY_MS = 86_400_000;

/** An empty commit that asks whether another one was made. */
function isQuestion({ request }: LineCall): boolean {
  return request?.preconditions.some(({ kind }) => kind === "originCommitted") ?? false;
}

/** Ends the process at the first commit that writes the total; `fault` decides how far that commit comes. */
async function crashAt({ world, process, entry, restart }: Trial, fault: Fault): Promise<void> {
  const plan = atFirst(fault);
  process.line.plan = (call) => {
    const planned = plan(call);
    if (planned === fault) process.line.cut();
    return planned;
  };
  entry.begin(ID, null);
  await world.settle();
  const after = await restart();
  expect(await after.handle()).toEqual(done(1));
  expect(await world.stored("total")).toBe(1);
}

export const FAILURE_CASES: readonly Case[] = [
  {
    title: "[U4] a handler that throws while another process handles its message has the result of that process",
    needs: ["ids", "at once", "promises"],
    handler: (process) => async (data, tx) => {
      await tick(process);
      const sum = add(process)(data, tx);
      if (process.errors.length === 0) return sum;
      await new Promise<void>((resolve) => void process.host.timer(1_000, resolve));
      throw new Error("came too late");
    },
    body: async ({ world, process, entry, restart }) => {
      const other = await restart();
      await world.run(() => other.total.pull());
      process.errors.push("this one throws");
      const both = () => Promise.all([entry.handle(ID, null), other.entry.handle(ID, null)]);
      expect(await world.run(both)).toEqual([done(1), done(1)]);
      expect(await world.stored("total")).toBe(1);
    },
  },
  {
    title: "[U10] another message under an id that was handled is refused, and calls no handler",
    needs: ["ids", "content"],
    handler: adds,
    body: async ({ world, entryPoint, entry, handle, calls }) => {
      expect(await handle("order-17", "tea")).toEqual(done(1));
      const again = world.run(() => entry.handle("order-17", "milk"));
      if (can(entryPoint, "callers")) expect(await again).toMatchObject({ kind: "failed", code: 409 });
      else {
        const text = await again.then(JSON.stringify, String);
        expect(text).toMatch(/used before|other content|for something else/);
      }
      expect([calls(), await world.stored("total")]).toEqual([1, 1]);
    },
  },
  {
    title: "[U17] a commit that rests on writes of a rejected one is made again without them",
    handler: adds,
    body: async ({ world, process, entry }) => {
      const refused = rejected("refused", "too-large", "over the limit");
      const later = new Promise<void>((resolve) => void process.host.timer(50, resolve));
      process.line.plan = atFirst({ arrives: later, instead: refused });
      const both = () => Promise.all([entry.handle("first", null), entry.handle("second", null)]);
      const [first, second] = await world.run(both);
      expect(first).toMatchObject({ kind: "failed", message: expect.stringContaining("over the limit") });
      expect(second).toEqual(done(1));
      expect(await world.stored("total")).toBe(1);
    },
  },
  {
    title: "[U22] a commit of which the store cannot tell is not made again, and its caller is told to repeat it",
    handler: adds,
    body: async ({ world, process, entryPoint, handle }) => {
      const lost = atFirst({ loseAnswer: true });
      process.line.plan = (call) => (isQuestion(call) ? { instead: NO_ANSWER } : lost(call));
      const ended = await handle();
      if (!can(entryPoint, "callers")) expect(ended).toEqual(done(1));
      else if (can(entryPoint, "ids") && ended.kind === "failed") expect(await repeated()).toEqual(done(1));
      else if (ended.kind === "failed") expect(ended.message).toContain("the line went dead");
      expect(await world.stored("total")).toBe(1);

      async function repeated() {
        process.line.plan = () => ({});
        return handle();
      }
    },
  },
  {
    title: "[U24] a handler that loses its lease while it runs takes effect once",
    needs: ["leases", "promises"],
    handler: (process) => {
      let runs = 0;
      return async (data, tx) => {
        const sum = add(process)(data, tx);
        if (++runs > 1) return sum;
        process.host.stepClock(DAY_MS);
        await process.store.recover();
        await tick(process);
        return sum;
      };
    },
    body: async ({ world, handle, calls }) => {
      expect(await handle()).toEqual(done(1));
      // A journaled command finds its receipt, an event runs again.
      expect(calls()).toBeLessThanOrEqual(2);
      expect(await world.stored("total")).toBe(1);
    },
  },
  {
    title: "[U25] an invocation fails at once when the store has stopped, and may be repeated",
    needs: ["callers"],
    handler: adds,
    body: async ({ world, process, handle, calls }) => {
      process.line.plan = atFirst({ instead: rejected("failed", "store-stopped", "the store has stopped") });
      expect(await handle()).toMatchObject({ kind: "failed", message: expect.stringContaining("has stopped") });
      expect(calls()).toBe(1);
      expect(await handle()).toEqual(done(1));
      expect(await world.stored("total")).toBe(1);
    },
  },
  {
    title: "[U26] after a crash before the commit is made, the next process handles the message",
    needs: ["ids"],
    handler: adds,
    body: (trial) => crashAt(trial, { arrives: NEVER }),
  },
  {
    title: "[U27] after a crash between the commit and its answer, the next process answers from the receipt",
    needs: ["ids"],
    handler: adds,
    body: (trial) => crashAt(trial, { answered: NEVER }),
  },
  {
    title: "[U29] a synchronous handler's writes are applied before any promise job",
    needs: ["same job"],
    handler: (process) => (data, tx) => {
      const total = totalOf(process);
      const sum = add(process)(data, tx);
      process.space.outside(() => void Promise.resolve().then(() => process.errors.push(total.get())));
      return sum;
    },
    body: async ({ process, handle }) => {
      await handle();
      expect(process.errors).toEqual([1]);
    },
  },
  {
    title:
      "[U34] [U35] [U36] a handler that takes too long fails, its late writes and events are refused, and the next is handled",
    needs: ["timeout"],
    handler: (process) => async (data, tx) => {
      if (data !== "hang") return add(process)(data, tx);
      tx.signal.addEventListener("abort", () => void process.errors.push("aborted"));
      await new Promise<void>((resolve) => void process.host.timer(HANDLER_TIMEOUT_MS + 1_000, resolve));
      for (const late of [
        () => totalOf(process).set(99),
        () => tx.set(totalOf(process), 99),
        () => tx.emit(EMITTED, 1),
      ])
        try {
          late();
        } catch (error) {
          process.errors.push((error as { code: string }).code);
        }
      return null;
    },
    body: async ({ world, process, entry }) => {
      const both = () => Promise.all([entry.handle("first", "hang"), entry.handle("second", null)]);
      const [first, second] = await world.run(both);
      expect(first).toMatchObject({ kind: "failed", message: expect.stringMatching(/timed out|took longer/) });
      expect(second).toEqual(done(1));
      await world.host.advance(HANDLER_TIMEOUT_MS + 2_000);
      const noted = process.errors.filter((error) => typeof error === "string");
      expect(noted).toEqual(["aborted", "WORK_OVER", "WORK_OVER", "WORK_OVER"]);
      expect([await world.stored("total"), await world.rows()]).toEqual([
        1,
        expect.not.arrayContaining([expect.stringContaining(EMITTED)]),
      ]);
    },
  },
  {
    title:
      "[U44] others see the writes of a handler with its commit only, and it sees theirs only before its own reads",
    needs: ["promises"],
    handler: (process) => async (_data, tx) => {
      const { host, space } = process;
      const [own, others] = [space.cell<number>("own", 0), space.cell<number>("others", 0)];
      tx.set(own, 1);
      const seen: number[] = [];
      space.outside(() =>
        host.timer(2, () => {
          seen.push(own.get());
          others.set(5);
        }),
      );
      await tick(process);
      tx.set(own, tx.get(own) + 1);
      return [...seen, tx.get(own)];
    },
    body: async ({ world, handle }) => {
      expect(await handle()).toEqual(done([0, 2]));
      expect([await world.stored("own"), await world.stored("others")]).toEqual([2, 5]);
    },
  },
];
