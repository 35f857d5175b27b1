/**
 * One suite for every entry point and every store: an invocation takes effect once, in one commit (SPEC: U1-U99).
 *
 * `DIFFERENCES` lists the rules that an entry point does not keep yet. Their cases run too, and must fail: the table
 * only shrinks.
 */
import { describe, expect, test } from "#test";
import type { Json } from "../../src/message/json.ts";
import { rejected } from "../../src/store/rejection.ts";
import { type CaseHandler, can, EMITTED, type EntryPoint, streamEntry } from "./entry-points.ts";
import { FAILURE_CASES } from "./failure-cases.ts";
import { MESSAGE_CASES } from "./message-cases.ts";
import { READING_CASES } from "./reading-cases.ts";
import {
  add,
  adds,
  atFirst,
  type Case,
  done,
  FUTURE_ID,
  ID,
  THEN,
  type Trial,
  tick,
  totalOf,
  writesTotal,
} from "./trial.ts";
import { type MakeDisk, World } from "./world.ts";

/** `entry point: rule` */
export const DIFFERENCES: ReadonlySet<string> = new Set([]);

const CASES: readonly Case[] = [
  {
    title: "[U1] writes, events, receipt and status are one commit",
    needs: ["ids"],
    handler: (process) => (data, tx) => {
      tx.emit(EMITTED, { n: 1 });
      return add(process)(data, tx);
    },
    body: async ({ world, process, handle }) => {
      expect(await handle()).toEqual(done(1));
      const commits = process.line.arrived.filter((request) => writesTotal({ method: "commit", request }));
      expect(commits.length).toBe(1);
      expect(commits[0]?.entries.map(({ message }) => message.type)).toContain(EMITTED);
      expect(commits[0]?.preconditions.some(({ kind }) => kind === "absent")).toBe(true);
      expect((await world.rows()).some((row) => row.startsWith(EMITTED))).toBe(true);
    },
  },
  {
    title: "[U2] a handler that throws leaves no trace",
    handler: (process) => (data, tx) => {
      add(process)(data, tx);
      throw new Error("not today");
    },
    body: async ({ world, handle, total }) => {
      expect(await handle()).toMatchObject({ kind: "failed", message: expect.stringContaining("not today") });
      await world.settle();
      expect([await world.stored("total"), total.get()]).toEqual([undefined, 0]);
      expect((await world.rows()).filter((row) => row.startsWith(EMITTED))).toEqual([]);
    },
  },
  {
    title: "[U3] a throw counts only if the reads behind it were committed",
    needs: ["ids"],
    handler: (process) => {
      let runs = 0;
      return (data, tx) => {
        const sum = add(process)(data, tx);
        if (++runs === 1) throw new Error("read what had moved");
        return sum;
      };
    },
    body: async ({ process, handle, calls }) => {
      process.line.plan = atFirst(
        { instead: rejected("stale", "read-moved", "moved") },
        ({ request }) => (request?.reads.length ?? 0) > 0,
      );
      expect(await handle()).toEqual(done(1));
      expect(calls()).toBe(2);
    },
  },
  {
    title: "[U5] a repeated invocation gets the first result and takes no effect",
    needs: ["ids"],
    handler: adds,
    body: async ({ world, handle, total }) => {
      expect([await handle(), await handle("order-17")]).toEqual([done(1), done(2)]);
      expect([await handle(), await handle("order-17")]).toEqual([done(1), done(2)]);
      expect([await world.stored("total"), total.get()]).toEqual([2, 2]);
    },
  },
  {
    title: "[U6] a repeated invocation calls no handler, whether its id carries a time or not",
    needs: ["ids"],
    handler: adds,
    body: async ({ handle, calls }) => {
      for (const id of [ID, "order-17", FUTURE_ID]) {
        const before = calls();
        const first = await handle(id);
        expect([await handle(id), await handle(id), calls()]).toEqual([first, first, before + 1]);
      }
    },
  },
  {
    title: "[U7] a repeated invocation is hidden from observers",
    needs: ["ids"],
    handler: adds,
    body: async ({ world, process, total, handle }) => {
      const seen: unknown[] = [];
      total.sink((value) => void seen.push(value));
      const { space } = process;
      space.computed("twice", () => (total.get() ?? 0) * 2).sink((value) => void seen.push(value));
      await handle();
      await world.settle();
      const before = [...seen];
      await handle();
      await world.settle();
      expect(seen).toEqual(before);
    },
  },
  {
    title: "[U8] after a restart a repeated invocation is answered from its receipt",
    needs: ["ids"],
    handler: adds,
    body: async ({ world, handle, restart }) => {
      expect([await handle(), await handle("order-17")]).toEqual([done(1), done(2)]);
      const after = await restart();
      expect([await after.handle("order-17"), await after.handle()]).toEqual([done(2), done(1)]);
      expect([after.calls(), await world.stored("total")]).toEqual([0, 2]);
    },
  },
  {
    title: "[U11] an invocation below the horizon fails and calls no handler",
    needs: ["ids", "callers"],
    handler: adds,
    body: async ({ world, process, handle, calls }) => {
      const late = world.host.id();
      world.host.stepClock(86_400_000);
      await world.run(() => process.store.forgetReceipts({ madeBeforeMs: world.host.now(), limit: 100 }));
      expect(await handle(late)).toMatchObject({ kind: "failed", message: expect.stringContaining("was made at") });
      expect([calls(), await world.stored("total")]).toEqual([0, undefined]);
    },
  },
  {
    title: "[U12] of two processes that handle one id at once, one commits",
    needs: ["ids"],
    handler: adds,
    body: async ({ world, entry, restart }) => {
      const other = await restart();
      const both = () => Promise.all([entry.handle(ID, null), other.entry.handle(ID, null)]);
      expect(await world.run(both)).toEqual([done(1), done(1)]);
      expect(await world.stored("total")).toBe(1);
    },
  },
  {
    title: "[U13] an invocation with the result null leaves a receipt",
    needs: ["ids"],
    handler: (process) => (data, tx) => {
      add(process)(data, tx);
      return null;
    },
    body: async ({ world, handle, restart }) => {
      await handle();
      await handle();
      await (await restart()).handle();
      expect(await world.stored("total")).toBe(1);
    },
  },
  {
    title: "[U15] a result that is not JSON fails the invocation, and leaves no write",
    needs: ["ids"],
    handler: (process) => (data, tx) => {
      add(process)(data, tx);
      return { at: new Date(0) };
    },
    body: async ({ world, handle }) => {
      expect((await handle()).kind).toBe("failed");
      expect(await world.stored("total")).toBeUndefined();
    },
  },
  {
    title: "[U16] an invocation with moved reads runs again and takes effect once",
    handler: adds,
    body: async ({ world, process, handle, calls }) => {
      process.line.plan = atFirst({ instead: rejected("stale", "read-moved", "moved") });
      expect(await handle()).toEqual(done(1));
      expect([calls(), await world.stored("total")]).toEqual([2, 1]);
    },
  },
  {
    title: "[U18] an invocation that meets a busy store runs again inside its window",
    handler: adds,
    body: async ({ world, process, handle }) => {
      process.line.plan = atFirst({ instead: rejected("failed", "store-busy", "busy") });
      expect(await handle()).toEqual(done(1));
      expect(await world.stored("total")).toBe(1);
    },
  },
  {
    title: "[U20] a commit without an answer that the store has is done, and takes effect once",
    handler: adds,
    body: async ({ world, process, handle }) => {
      process.line.plan = atFirst({ loseAnswer: true });
      expect(await handle()).toEqual(done(1));
      expect(await world.stored("total")).toBe(1);
    },
  },
  {
    title: "[U21] a commit without an answer that the store does not have is made again",
    handler: adds,
    body: async ({ world, process, handle }) => {
      process.line.plan = atFirst({ instead: rejected("unknown", "no-answer", "the line went dead") });
      expect(await handle()).toEqual(done(1));
      expect(await world.stored("total")).toBe(1);
    },
  },
  {
    title: "[U23] a commit that a rule refuses fails the invocation at once",
    handler: adds,
    body: async ({ world, process, handle, calls }) => {
      process.line.plan = (call) =>
        writesTotal(call) ? { instead: rejected("refused", "too-large", "over the limit") } : {};
      expect(await handle()).toMatchObject({ kind: "failed", message: expect.stringContaining("over the limit") });
      expect([calls(), await world.stored("total")]).toEqual([1, undefined]);
    },
  },
  {
    title: "[U28] an invocation that cannot be committed fails when its window ends, with the reason",
    needs: ["window"],
    handler: adds,
    body: async ({ world, process, handle }) => {
      process.line.plan = (call) =>
        writesTotal(call) ? { instead: rejected("stale", "read-moved", "the value has moved") } : {};
      expect(await handle()).toMatchObject({ kind: "failed", message: expect.stringContaining("the value has moved") });
      process.line.plan = () => ({});
      expect(await world.stored("total")).toBeUndefined();
    },
  },
  {
    title: "[U30] a thenable is awaited like a promise where handlers may be asynchronous, and refused where not",
    handler: (process) => (data, tx) => {
      const sum = add(process)(data, tx);
      const later = (resolve: (value: Json) => void) => void process.host.timer(5, () => resolve(sum));
      return { [THEN]: later };
    },
    body: async ({ world, process, handle, isAsync }) => {
      const ended = await handle();
      expect(ended).toEqual(
        isAsync ? done(1) : { kind: "failed", message: expect.stringContaining("must not be asynchronous") },
      );
      expect([await world.stored("total"), process.errors]).toEqual([isAsync ? 1 : undefined, []]);
    },
  },
  {
    title: "[U31] an object with a `then` that throws, called or read, fails only its own invocation",
    needs: ["promises"],
    handler: (process) => (data, tx) => {
      add(process)(data, tx);
      const broken = () => {
        throw new Error("no promise");
      };
      return data === "read" ? Object.defineProperty({}, THEN, { get: broken }) : { [THEN]: broken };
    },
    body: async ({ world, handle }) => {
      for (const data of ["read", "called"])
        expect(await handle(data, data)).toMatchObject({
          kind: "failed",
          message: expect.stringContaining("no promise"),
        });
      expect(await world.stored("total")).toBeUndefined();
    },
  },
  {
    title: "[U33] a handler may throw any value",
    handler: (process) => (data, tx) => {
      add(process)(data, tx);
      throw data === "symbol" ? Symbol("odd") : data === "proxy" ? Proxy.revocable({}, {}) : undefined;
    },
    body: async ({ world, handle }) => {
      for (const data of ["symbol", "proxy", "undefined"]) expect((await handle(data, data)).kind).toBe("failed");
      expect(await world.stored("total")).toBeUndefined();
    },
  },
  {
    title: "[U37] a plain write in a handler is part of its commit",
    handler: (process) => () => {
      totalOf(process).set(7);
      throw new Error("after the write");
    },
    body: async ({ world, handle, total }) => {
      expect(await handle()).toMatchObject({ kind: "failed", message: expect.stringContaining("after the write") });
      await world.settle();
      expect([await world.stored("total"), total.get()]).toEqual([undefined, 0]);
    },
  },
  {
    title: "[U38] a plain write after an await is part of the handler's commit",
    needs: ["promises"],
    handler: (process) => async () => {
      await tick(process);
      totalOf(process).set(7);
      await Promise.all([tick(process), tick(process).then(() => process.space.cell("list").set([1]))]);
      throw new Error("after the writes");
    },
    body: async ({ world, handle, total }) => {
      expect(await handle()).toMatchObject({ kind: "failed", message: expect.stringContaining("after the writes") });
      await world.settle();
      expect([await world.stored("total"), await world.stored("list"), total.get()]).toEqual([undefined, undefined, 0]);
    },
  },
  {
    title: "[U40] a plain read after an await is claimed, so that no update is lost",
    needs: ["promises"],
    handler: (process) => async () => {
      const total = totalOf(process);
      await tick(process);
      const seen = total.get() ?? 0;
      await tick(process);
      total.set(seen + 1);
    },
    body: async ({ world, process, entry, restart }) => {
      const other = await restart();
      await world.run(() => process.space.transact(() => totalOf(process).set(0)));
      await world.settle();
      const twenty = [...Array(10).keys()].flatMap((n) => [
        entry.handle(`a${n}`, null),
        other.entry.handle(`b${n}`, null),
      ]);
      await world.run(() => Promise.all(twenty));
      expect(await world.stored("total")).toBe(20);
    },
  },
  {
    title: "[U41] a write that a handler left behind is refused after its end",
    needs: ["promises"],
    handler: (process) => async () => {
      const total = totalOf(process);
      const left = tick(process).then(() => total.set(99));
      left.catch((error: { code?: string }) => void process.errors.push(error.code));
      await Promise.resolve();
    },
    body: async ({ world, process, handle }) => {
      expect((await handle()).kind).toBe("done");
      await world.settle();
      expect([await world.stored("total"), process.errors]).toEqual([undefined, ["WORK_OVER"]]);
    },
  },
  {
    title: "[U42] code that a handler runs outside of its transaction commits alone, also after an await",
    needs: ["promises"],
    handler: (process) => async () => {
      const { space } = process;
      space.outside(() => space.cell("a").set(1));
      await tick(process);
      await space.outside(() => space.transact(() => totalOf(process).set(7)));
      throw new Error("after both");
    },
    body: async ({ world, handle }) => {
      expect((await handle()).kind).toBe("failed");
      await world.settle();
      expect([await world.stored("a"), await world.stored("total")]).toEqual([1, 7]);
    },
  },
  {
    title: "[U43] a transaction inside a handler is part of its commit, and is taken back alone if it throws",
    needs: ["promises"],
    handler: (process) => async (data) => {
      const { space } = process;
      const [a, b] = [space.cell<number>("a"), space.cell<number>("b")];
      await tick(process);
      await space.transact(() => a.set(1));
      const failed = space.transact(() => {
        b.set(1);
        throw new Error("inner");
      });
      await failed.catch(() => undefined);
      if (data === "throw") throw new Error("outer");
    },
    body: async ({ world, handle }) => {
      expect((await handle("first", "throw")).kind).toBe("failed");
      await world.settle();
      expect([await world.stored("a"), await world.stored("b")]).toEqual([undefined, undefined]);
      expect((await handle("second")).kind).toBe("done");
      expect([await world.stored("a"), await world.stored("b")]).toEqual([1, undefined]);
    },
  },
  {
    title: "[U47] a run that read the default of a document that is not loaded takes no effect",
    handler: (process) => (data, tx) => {
      process.errors.push(tx.get(totalOf(process)));
      return add(process)(data, tx);
    },
    body: async ({ world, process, restart }) => {
      await world.run(() => process.space.transact(() => totalOf(process).set(41)));
      const after = await restart();
      expect(await after.handle()).toEqual(done(42));
      expect(await world.stored("total")).toBe(42);
      // Other entry points find all missing documents in one run, and drop its result; a stream's handler is abandoned.
      if (after.entryPoint === streamEntry) expect(after.process.errors).toEqual([41]);
    },
  },
];

async function begin(world: World, entryPoint: EntryPoint, one: Case, isFirst = true): Promise<Trial> {
  const process = await world.process();
  const total = totalOf(process);
  // So that a first run finds it here. Later processes have it loaded by their handlers.
  if (isFirst) await world.run(() => total.pull());
  let calls = 0;
  const handler = one.handler(process);
  const counted: CaseHandler = (data, tx) => {
    calls++;
    return handler(data, tx);
  };
  const entry = await entryPoint.open(process, counted, one.clearance);
  return {
    ...{ world, process, entryPoint, entry, total, isAsync: can(entryPoint, "promises"), calls: () => calls },
    handle: (id = ID, data = null) => world.run(() => entry.handle(id, data)),
    restart: () => begin(world, entryPoint, one, false),
  };
}

export function describeOnce(entryPoint: EntryPoint, storeName: string, makeDisk: MakeDisk): void {
  describe(`${entryPoint.name} on ${storeName}`, () => {
    for (const one of [...CASES, ...FAILURE_CASES, ...READING_CASES, ...MESSAGE_CASES]) {
      if (one.needs?.some((ability) => !can(entryPoint, ability))) continue;
      const body = async () => one.body(await begin(new World(makeDisk), entryPoint, one));
      const rule = one.title.slice(1, one.title.indexOf("]"));
      if (!DIFFERENCES.has(`${entryPoint.name}: ${rule}`)) test(one.title, body);
      else test(`not yet: ${one.title}`, () => expect(body()).rejects.toThrow());
    }
  });
}
