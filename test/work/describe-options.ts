/** One suite for the options of handlers, at every entry point that has them, on every store. SPEC: U101-U112, U114. */
import { describe, expect, test } from "#test";
import { EVENT_DEATHS_MAX } from "../../src/limits.ts";
import type { Json } from "../../src/message/json.ts";
import { rejected } from "../../src/store/rejection.ts";
import type { HandlerFailure } from "../../src/work/handler-options.ts";
import type { Tx } from "../../src/work/tx.ts";
import { type CaseOptions, caseMessage, type OptionEntry, type OptionEntryPoint, TYPE } from "./option-entries.ts";
import { type MakeDisk, type Process, World } from "./world.ts";

const LEASE_MS = 10_000;
const HOUR_MS = 3_600_000;

interface Trial {
  readonly world: World;
  readonly process: Process;
  readonly entry: OptionEntry;
  /** When the handler was called, in simulated time, and with which number of the attempt, if it has a `tx`. */
  readonly calls: { readonly atMs: number; readonly attempt: number | undefined }[];
  /** Calls of `onFailed`. */
  readonly failures: HandlerFailure[];
  /** Sends one message and lets an hour pass. */
  run(data?: Json): Promise<void>;
  /** Rows of the case's type. */
  rows(): Promise<{ readonly status: string; readonly error: string | undefined }[]>;
}

interface Plan {
  readonly handler: (call: number, data: Json, tx: Tx | undefined, process: Process) => unknown;
  readonly options?: (process: Process) => CaseOptions;
}

async function begin(world: World, point: OptionEntryPoint, { handler, options }: Plan): Promise<Trial> {
  const process = await world.process();
  const { host, space } = process;
  await world.run(() => space.cell("failures", 0).pull());
  const calls: { atMs: number; attempt: number | undefined }[] = [];
  const failures: HandlerFailure[] = [];
  const { onFailed, ...rest } = options?.(process) ?? {};
  const noted: CaseOptions = {
    ...rest,
    ...(onFailed === undefined ? {} : { onFailed }),
    ...(typeof onFailed !== "function"
      ? {}
      : {
          onFailed: (failure, tx, data) => {
            failures.push(failure);
            return onFailed(failure, tx, data);
          },
        }),
  };
  const entry = await point.open(
    process,
    (data, tx) => {
      calls.push({ atMs: host.monotonic(), attempt: tx?.attempt });
      return handler(calls.length, data, tx, process);
    },
    noted,
  );
  return {
    ...{ world, process, entry, calls, failures },
    async run(data = null) {
      entry.send("0199a3f2-0000-7000-8000-000000000001", data);
      await host.advance(HOUR_MS);
    },
    async rows() {
      const rows = await world.run(() => process.store.query({ limit: 100 }));
      return rows
        .filter(({ message }) => message?.type === TYPE)
        .map(({ status, deliveries, ...row }) => ({
          status,
          error: ("error" in row ? String(row.error) : undefined) ?? deliveries.find(({ error }) => error)?.error,
        }));
    },
  };
}

const boom = () => {
  throw new Error("boom");
};

const forEver = () => new Promise<never>(() => undefined);

/** Counts failures in a document, by a transaction if there is one. */
const countFailure = ({ space }: Process) => {
  const failures = space.cell("failures", 0);
  return (_: HandlerFailure, tx: Tx | undefined) => tx?.update(failures, (n = 0) => n + 1);
};

const BAD_OPTIONS: Readonly<Record<keyof CaseOptions, unknown>> = {
  ...{ retry: -1, timeoutMs: -1, concurrency: 0, serialBy: "key", onFailed: "tell" },
};
const PARALLEL_OPTIONS: readonly string[] = ["concurrency", "serialBy"] satisfies (keyof CaseOptions)[];
const GOOD_OPTIONS = { concurrency: 2, serialBy: () => "key" };

export function describeOptions(point: OptionEntryPoint, storeName: string, makeDisk: MakeDisk): void {
  const trial = (plan: Plan) => begin(new World(makeDisk), point, plan);
  const { hasRow } = point;

  describe(`options of a ${point.name} on ${storeName}`, () => {
    for (const [option, bad] of Object.entries(BAD_OPTIONS)) {
      const isTaken = point.isParallel || !PARALLEL_OPTIONS.includes(option);
      test(`[U100] ${isTaken ? `a bad ${option} is refused` : `the option ${option} is refused`}, with its name`, async () => {
        const given = (isTaken ? { [option]: bad } : { [option]: GOOD_OPTIONS[option as never] }) as CaseOptions;
        const opened = trial({ handler: () => null, options: () => given });
        await expect(opened).rejects.toThrow(option);
      });
    }

    if (point.hasTx)
      test("[U34] [U100] the signal of a handler is aborted at its timeout", async () => {
        const aborted: unknown[] = [];
        const { run } = await trial({
          handler: (_, __, tx) => {
            tx?.signal.addEventListener("abort", () => aborted.push((tx.signal.reason as Error).message));
            return forEver();
          },
          options: () => ({ timeoutMs: 100 }),
        });
        await run();
        expect(aborted).toEqual([expect.stringContaining("timed out after 100 ms")]);
      });

    test("[U101] a failed handler is tried again, with growing waits, as often as its policy says", async () => {
      const retry = { attempts: 3, backoff: { startMs: 1_000, factor: 4, maxMs: 60_000 } };
      const { run, calls, entry } = await trial({
        handler: (call) => (call < 3 ? boom() : null),
        options: () => ({ retry }),
      });
      await run();
      expect(calls.length).toBe(3);
      const [first, second] = [1, 2].map((n) => (calls[n]?.atMs ?? 0) - (calls[n - 1]?.atMs ?? 0)) as [number, number];
      expect([first >= 500 && first <= 1_100, second >= 2_000 && second <= 4_100]).toEqual([true, true]);
      if (point.hasTx) expect(calls.map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
      if (point.kind === "command") expect(entry.answers).toEqual(["done"]);
    });

    test("[U101] a number is the attempts in all, and the last failure counts", async () => {
      const { run, calls, entry, rows } = await trial({ handler: boom, options: () => ({ retry: 2 }) });
      await run();
      expect(calls.length).toBe(2);
      if (hasRow) expect((await rows()).map(({ status }) => status)).toEqual(["failed"]);
      if (point.kind === "command") expect(entry.answers).toEqual(["boom"]);
    });

    if (point.hasTx)
      test("[U102] runs again because of a conflict are not attempts", async () => {
        let left = 2;
        const { run, calls, process, rows } = await trial({
          handler: (_, __, tx, { space }) => tx?.update(space.cell("total", 0), (n = 0) => n + 1),
          options: () => ({ retry: 1 }),
        });
        await process.host.run(() => process.space.cell("total", 0).pull());
        process.line.plan = ({ request }) =>
          request?.patches.some(({ id }) => id === "total") && left-- > 0
            ? { instead: rejected("stale", "read-moved", "moved") }
            : {};
        await run();
        expect(calls.map(({ attempt }) => attempt)).toEqual([1, 1, 1]);
        if (hasRow) expect((await rows()).map(({ status }) => status)).toEqual(["done"]);
      });

    test("[U103] `when` gets the thrown value and decides whether it is worth another attempt", async () => {
      const thrown: unknown[] = [];
      const when = (value: unknown) => {
        thrown.push((value as Error).message);
        return (value as Error).message === "once more";
      };
      const { run, calls } = await trial({
        handler: (call) => {
          throw new Error(call === 1 ? "once more" : "enough");
        },
        options: () => ({ retry: { attempts: 5, backoff: { startMs: 10 }, when } }),
      });
      await run();
      expect([calls.length, thrown]).toEqual([2, ["once more", "enough"]]);
    });

    test("[U103] if `when` throws, the message has failed and its error says so", async () => {
      const when = () => {
        throw new Error("cannot tell");
      };
      const { run, calls, rows, entry } = await trial({
        handler: boom,
        options: () => ({ retry: { attempts: 5, when } }),
      });
      await run();
      expect(calls.length).toBe(1);
      const said = point.kind === "command" ? entry.answers[0] : (await rows())[0]?.error;
      expect(said).toContain("retry.when threw: cannot tell");
    });

    test("[U108] onFailed is called once, after the last attempt, with the failure", async () => {
      const { run, failures, rows, calls } = await trial({
        handler: boom,
        options: (process) => ({ retry: { attempts: 2, backoff: { startMs: 5 } }, onFailed: countFailure(process) }),
      });
      await run();
      expect([calls.length, failures.length]).toEqual([2, 1]);
      expect(failures[0]).toMatchObject({ kind: "threw", attempts: 2, message: expect.stringContaining("boom") });
      expect(failures[0]?.thrown).toMatchObject({ message: "boom" });
      if (hasRow) expect((await rows()).map(({ status }) => status)).toEqual(["failed"]);
    });

    if (point.hasTx && hasRow)
      test("[U108] the commit of onFailed carries the failed status", async () => {
        const { run, process, world, rows } = await trial({
          handler: boom,
          options: (one) => ({ onFailed: countFailure(one) }),
        });
        await run();
        const commits = process.line.arrived.filter(({ patches }) => patches.some(({ id }) => id === "failures"));
        expect(commits.length).toBe(1);
        const settled = commits[0]?.settlements?.map(({ outcome }) => outcome.kind) ?? [];
        const noted = commits[0]?.entries.map(({ as }) => as.status) ?? [];
        expect([...settled, ...noted]).toContain("failed");
        expect([await world.stored("failures"), (await rows()).map(({ status }) => status)]).toEqual([1, ["failed"]]);
      });

    test("[U109] if onFailed throws, the message has failed without its effect and the error says so", async () => {
      const { run, world, rows, entry } = await trial({
        handler: boom,
        options: (process) => ({
          onFailed: (failure, tx) => {
            countFailure(process)(failure, tx);
            throw new Error("no mail today");
          },
        }),
      });
      await run();
      const told = [...entry.answers, ...(await rows()).map(({ error }) => error)];
      expect(told.length > 0).toBe(true);
      for (const error of told) expect(error).toContain("no mail today");
      expect(await world.stored("failures")).toBeUndefined();
    });

    test("[U108] a timeout reaches onFailed", async () => {
      const { run, failures, rows } = await trial({
        handler: forEver,
        options: (process) => ({ timeoutMs: 100, onFailed: countFailure(process) }),
      });
      await run();
      expect(failures.map(({ kind }) => kind)).toEqual(["timeout"]);
      if (hasRow) expect((await rows()).map(({ status }) => status)).toEqual(["failed"]);
    });

    if (point.isJournaled)
      test("[U110] a process that ends in onFailed leaves the message to the next, and the effect happens once", async () => {
        const world = new World(makeDisk);
        const first = await begin(world, point, { handler: boom, options: () => ({ onFailed: forEver }) });
        first.entry.send("0199a3f2-0000-7000-8000-000000000001", null);
        await world.host.advance(1_000);
        expect(first.failures.length).toBe(1);
        await world.run(() => first.entry.leave());
        const second = await begin(world, point, {
          handler: boom,
          options: (one) => ({ onFailed: countFailure(one) }),
        });
        await world.host.advance(HOUR_MS);
        expect([second.failures.length, (await second.rows()).map(({ status }) => status)]).toEqual([1, ["failed"]]);
        if (point.hasTx) expect(await world.stored("failures")).toBe(1);
      });

    if (point.isJournaled)
      test("[U111] a message that processes died with is not handled again, and reaches onFailed", async () => {
        const world = new World(makeDisk);
        const { store } = await world.process();
        const message = caseMessage(point.kind, "0199a3f2-0000-7000-8000-000000000001", null);
        await world.run(() => store.append([{ message, topic: TYPE, source: "test", as: { status: "pending" } }]));
        for (let died = 0; died < EVENT_DEATHS_MAX; died++) {
          await world.run(async () => {
            const { lease } = await store.openLease(LEASE_MS);
            const [claim] = await store.claim({ lease, limit: 1, kinds: [point.kind] });
            if (claim === undefined) throw new Error("there is no row to claim");
            const { row, attempt } = claim;
            await store.settle([{ id: row.id, lease, attempt, outcome: { kind: "begun" } }]);
          });
          await world.host.advance(2 * LEASE_MS);
          await world.run(() => store.recover());
        }
        const next = await begin(world, point, {
          handler: () => null,
          options: (one) => ({ onFailed: countFailure(one) }),
        });
        await world.host.advance(HOUR_MS);
        expect([next.calls.length, next.failures.map(({ kind }) => kind)]).toEqual([0, ["died"]]);
        const [row] = await next.rows();
        expect([row?.status, row?.error]).toEqual(["failed", expect.stringContaining("died 5 times")]);
        if (point.hasTx) expect(await world.stored("failures")).toBe(1);
      });

    /** Handlers that take 10 ms each; the log has when which begins and ends. */
    const timed = async (options: CaseOptions, sent: readonly string[]) => {
      const log: string[] = [];
      const made = await trial({
        handler: async (_, data, __, { host }) => {
          log.push(`+${data}`);
          await new Promise<void>((resolve) => void host.timer(10, resolve));
          log.push(`-${data}`);
        },
        options: () => options,
      });
      for (const [n, data] of sent.entries()) made.entry.send(`0199a3f2-0000-7000-8000-00000000000${n}`, data);
      return { ...made, log };
    };

    if (point.isOrdered)
      test("[U105] messages are handled one at a time, in their order, unless the options say otherwise", async () => {
        const { log, world } = await timed({}, ["a", "b", "c"]);
        await world.settle();
        expect(log).toEqual(["+a", "-a", "+b", "-b", "+c", "-c"]);
      });

    if (point.isParallel)
      test("[U106] with serialBy, messages with one key are handled one after the other, and others beside them", async () => {
        const { log, world } = await timed({ serialBy: (data) => String(data)[0] ?? "" }, ["a1", "a2", "b1", "a3"]);
        await world.settle();
        expect(log.length).toBe(8);
        expect(log.filter((one) => one.includes("a"))).toEqual(["+a1", "-a1", "+a2", "-a2", "+a3", "-a3"]);
        expect(log.indexOf("+b1") < log.indexOf("-a1")).toBe(true);
      });

    if (point.isParallel)
      test("[U107] concurrency is how many messages are handled at once", async () => {
        const { log, world } = await timed({ concurrency: 2 }, ["a", "b", "c", "d"]);
        await world.settle();
        let [now, most] = [0, 0];
        for (const one of log) most = Math.max(most, one.startsWith("+") ? ++now : now--);
        expect([log.length, most]).toEqual([8, 2]);
      });

    test("[U114] a message is on the work board while its handler runs", async () => {
      const { entry, world } = await timed({}, ["a"]);
      await world.host.advance(5);
      expect(entry.board.list(10).map(({ state, type }) => `${state} ${type}`)).toEqual([`running ${point.boardType}`]);
      await world.settle();
      expect(entry.board.list(10)).toEqual([]);
    });
  });
}
