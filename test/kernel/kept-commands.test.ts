/** Journaled commands: which, when, and with which outcomes; on a memory store, in one process. */
import { describe, expect, onTestFinished, test } from "vitest";
import { systemHost } from "../../src/host/system-host.ts";
import { Kernel } from "../../src/kernel/kernel.ts";
import type { KernelOptions, KernelParts } from "../../src/kernel/kernel-options.ts";
import type { Capability } from "../../src/loop/capability.ts";
import { capability } from "../../src/loop/define-capability.ts";
import { transactional } from "../../src/loop/transactional.ts";
import type { Message } from "../../src/message/envelope.ts";
import { Failure } from "../../src/message/error-data.ts";
import type { Json } from "../../src/message/json.ts";
import { commandMessage } from "../../src/message/lineage.ts";
import type { JournalRow } from "../../src/store/journal.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";

type Capabilities = (parts: KernelParts) => Record<string, Capability>;

async function open(
  capabilities: Capabilities,
  options: Pick<KernelOptions, "limits" | "observeFaults"> = {},
): Promise<Kernel> {
  const host = systemHost();
  const kernel = await Kernel.open({
    host,
    store: memoryStore({ host }),
    capabilities,
    observeFaults: () => undefined,
    ...options,
  });
  onTestFinished(() => kernel.close({ graceMs: 0 }));
  return kernel;
}

const say = (type: string, id: string, data: Json = null): Message => ({
  ...{ kind: "command", type, data },
  metadata: { id, timestamp: 1 },
});

/** A capability that does one thing. */
function worker(
  handle: (data: Json) => Json | undefined | Promise<Json | undefined>,
  options: Pick<Capability, "durable" | "idempotent"> = {},
): Record<string, Capability> {
  return { worker: capability({ description: "works", commands: { "Work.Do": { handle } }, ...options }) };
}

async function rowsOf(kernel: Kernel): Promise<Pick<JournalRow, "topic" | "source" | "status" | "error">[]> {
  const rows = await kernel.bus.query({ kind: "command", limit: 100 });
  return rows.map(({ topic, source, status, error }) => ({ topic, source, status, ...(error ? { error } : {}) }));
}

describe("commands without a waiting requester", () => {
  test("[L41] a kept command is in the journal before its handler is called, and done after it", async () => {
    let seen: unknown;
    const kernel: Kernel = await open(() =>
      worker(async () => {
        seen = await rowsOf(kernel);
      }),
    );
    kernel.loop.enqueue(say("Work.Do", "one"));
    await kernel.idle();
    expect(seen).toEqual([{ topic: "Work.Do", source: "worker", status: "processing" }]);
    expect(await rowsOf(kernel)).toEqual([{ topic: "Work.Do", source: "worker", status: "done" }]);
  });

  test('[L41] [L82] with durable: "unawaited", commands that an actor sends and timers\' commands have a row; those it asks have none', async () => {
    const done: Json[] = [];
    const kernel = await open(() => ({
      ...worker((data) => void done.push(data), { durable: "unawaited" }),
      boss: capability({
        ...{ description: "has others work", durable: "unawaited" },
        sends: { "Work.Do": "command" },
        commands: {
          "Boss.Send": {
            handle: (_, { send, host }, { metadata }) =>
              send(commandMessage(host, "Work.Do", "sent", { causation: metadata.id })),
          },
          "Boss.Ask": { handle: (_, context) => context.command("Work.Do", "asked") },
        },
      }),
    }));
    await kernel.command("Boss.Ask", null);
    await kernel.idle();
    expect(await rowsOf(kernel)).toEqual([]);
    await kernel.command("Boss.Send", null);
    await kernel.idle();
    const template = { kind: "command", type: "Work.Do", data: "timed" };
    await kernel.command("Timer.Set", { delayMs: 1, message: template });
    while (done.length < 3) await systemHost().yield();
    await kernel.idle();
    expect(done).toEqual(["asked", "sent", "timed"]);
    expect(await rowsOf(kernel)).toEqual(Array(2).fill({ topic: "Work.Do", source: "worker", status: "done" }));
  });

  test("[L41] a failed kept command is a dead letter with its reason; requeued, it is handled again", async () => {
    let works = false;
    const kernel = await open(() =>
      worker(() => {
        if (!works) throw new Failure(422, "not today");
      }),
    );
    kernel.loop.enqueue(say("Work.Do", "one"));
    await kernel.idle();
    const { rows } = await kernel.bus.failures();
    expect(rows).toMatchObject([{ topic: "Work.Do", status: "failed", error: "worker: not today" }]);
    works = true;
    expect(await kernel.bus.requeue({})).toEqual([]);
    await kernel.bus.requeue(rows.map(({ id }) => id));
    await kernel.idle();
    expect(await rowsOf(kernel)).toMatchObject([{ status: "done" }]);
  });

  test("[L41] a kept command whose actor is full is retried later", async () => {
    let tries = 0;
    const kernel = await open(() =>
      worker(() => {
        if (++tries < 3) throw new Failure(503, "later");
      }),
    );
    kernel.loop.enqueue(say("Work.Do", "one"));
    while (tries < 3) await systemHost().yield();
    await kernel.idle();
    expect(await rowsOf(kernel)).toMatchObject([{ status: "done" }]);
  });

  test("[L41] [T9] timers that are due together lose no command to a full mailbox", async () => {
    const done: Json[] = [];
    const isFree = Promise.withResolvers<void>();
    const kernel = await open(
      () =>
        worker(async (data) => {
          await isFree.promise;
          done.push(data);
        }),
      { limits: { mailboxMax: 1 } },
    );
    for (const data of [1, 2, 3])
      await kernel.command("Timer.Set", { delayMs: 1, message: { kind: "command", type: "Work.Do", data } });
    while ((await rowsOf(kernel)).length < 3) await systemHost().yield();
    isFree.resolve();
    const isOver = ({ status }: Pick<JournalRow, "status">) => status === "done" || status === "failed";
    while (!(await rowsOf(kernel)).every(isOver)) await systemHost().yield();
    expect(done.toSorted()).toEqual([1, 2, 3]);
  });

  test("[L41] a command refused before its actor has no row", async () => {
    const kernel = await open(() => worker(() => null));
    kernel.loop.enqueue(say("Nobody.Does", "one"));
    await kernel.idle();
    expect(await rowsOf(kernel)).toEqual([]);
  });

  test("[L41] a transactional kept command takes effect once and has one row", async () => {
    const kernel = await open(({ space }) => ({
      counter: transactional({
        ...{ space, description: "counts" },
        commands: {
          "Counter.Add": {
            handle: (_, tx) => {
              const count = space.cell<number>("count");
              tx.set(count, (tx.get(count) ?? 0) + 1);
            },
          },
        },
      }),
    }));
    kernel.loop.enqueue(say("Counter.Add", "one"));
    await kernel.idle();
    kernel.loop.enqueue(say("Counter.Add", "one"));
    await kernel.idle();
    expect(kernel.space.cell("count").get()).toBe(1);
    expect(await rowsOf(kernel)).toEqual([{ topic: "Counter.Add", source: "counter", status: "done" }]);
  });
});

describe("the durable option of a capability", () => {
  test("[L82] with durable: false commands have no rows, with or without a requester", async () => {
    let done = 0;
    const kernel = await open(() => worker(() => ++done, { durable: false }));
    kernel.loop.enqueue(say("Work.Do", "one"));
    await kernel.command("Work.Do", null);
    await kernel.idle();
    expect(done).toBe(2);
    expect(await rowsOf(kernel)).toEqual([]);
  });

  test("[L82] by default a plain handler runs when its command is durable, and the requester is answered", async () => {
    const seen: unknown[] = [];
    for (const durable of [undefined, "before"] as const) {
      const kernel: Kernel = await open(() =>
        worker(
          async () => {
            seen.push(...(await rowsOf(kernel)));
            return "done";
          },
          durable === undefined ? {} : { durable },
        ),
      );
      expect(await kernel.command("Work.Do", null)).toBe("done");
      await kernel.idle();
      expect(await rowsOf(kernel)).toEqual([{ topic: "Work.Do", source: "worker", status: "done" }]);
    }
    expect(seen).toEqual(Array(2).fill({ topic: "Work.Do", source: "worker", status: "processing" }));
  });

  test("[L82] an actor's command to a plain handler is durable before that handler runs", async () => {
    const kernel = await open(() => ({
      ...worker((data) => data),
      boss: capability({
        ...{ description: "has others work", durable: false, sends: { "Work.Do": "command" } },
        commands: { "Boss.Ask": { handle: (_, context) => context.command("Work.Do", "asked") } },
      }),
    }));
    expect(await kernel.command("Boss.Ask", null)).toBe("asked");
    await kernel.idle();
    expect(await rowsOf(kernel)).toEqual([{ topic: "Work.Do", source: "worker", status: "done" }]);
  });

  test("[L83] built-in commands and queries write no journal row before they run; Memory.Set has the row of its commit", async () => {
    const kernel = await open(() => ({}));
    const message = { kind: "command", type: "Memory.Set", data: { key: "/never", value: 1 } };
    const { timerId } = (await kernel.command("Timer.Set", { delayMs: 60_000, message })) as { timerId: string };
    await kernel.command("Timer.Cancel", { timerId });
    await kernel.command("Journal.Publish", { type: "Some.Thing", data: null });
    await kernel.command("Kernel.Requeue", { ids: [] });
    await kernel.command("Kernel.Purge", { before: 0, status: "done" }).catch(() => undefined);
    for (const query of ["Syscall.Ping", "Syscall.List", "Kernel.Health", "Kernel.Graph"])
      await kernel.query(query, null);
    expect(await rowsOf(kernel)).toEqual([]);
    await kernel.command("Memory.Set", { key: "/a", value: 1 });
    expect(await rowsOf(kernel)).toEqual([{ topic: "Memory.Set", source: "memory", status: "done" }]);
    await kernel.command("Syscall.Shutdown", null);
    await kernel.closed();
  });

  test('[L87] [K33] durable: "before" with a mailbox that is full: offered again under its id, each is handled once', async () => {
    const done: Json[] = [];
    const kernel = await open(
      () =>
        worker(
          async (data) => {
            await systemHost().yield();
            done.push(data);
            return data;
          },
          { durable: "before" },
        ),
      { limits: { mailboxMax: 1 } },
    );
    const ask = async (n: number): Promise<Json> => {
      const { kind, data, metadata } = await kernel.request(say("Work.Do", `r${n}`, n));
      if (kind === "error" && metadata["refused"] === true) return ask(n);
      return data;
    };
    expect(await Promise.all([1, 2, 3, 4].map(ask))).toEqual([1, 2, 3, 4]);
    await kernel.idle();
    expect(done.toSorted()).toEqual([1, 2, 3, 4]);
    expect((await rowsOf(kernel)).map(({ status }) => status)).toEqual(Array(4).fill("done"));
  });

  test("[L85] a repeated command runs again only if its capability is idempotent", async () => {
    let done = 0;
    const kernel = await open(() => worker(() => ++done, { durable: "before" }));
    expect(await kernel.request(say("Work.Do", "one"))).toMatchObject({ kind: "reply", data: 1 });
    await kernel.idle();
    expect(await kernel.request(say("Work.Do", "one"))).toMatchObject({ kind: "error", data: { code: 410 } });
    const other = await open(() => worker(() => ++done, { durable: "before", idempotent: true }));
    expect(await other.request(say("Work.Do", "one"))).toMatchObject({ data: 2 });
    await other.idle();
    expect(await other.request(say("Work.Do", "one"))).toMatchObject({ data: 3 });
    expect(other.loop.pending.size + kernel.loop.pending.size).toBe(0);
  });

  test("[L85] a repeated transactional command gets the first answer", async () => {
    let runs = 0;
    const kernel = await open(({ space }) => ({
      worker: transactional({
        ...{ space, description: "works", durable: "before" as const },
        commands: { "Work.Do": { handle: () => ++runs } },
      }),
    }));
    const ask = (data: Json) => kernel.request(say("Work.Do", "one", data));
    expect(await ask("a")).toMatchObject({ kind: "reply", data: 1 });
    await kernel.idle();
    expect(await ask("a")).toMatchObject({ kind: "reply", data: 1 });
    expect(await ask("b")).toMatchObject({ kind: "error", data: { code: 409 } });
    expect(await rowsOf(kernel)).toHaveLength(1);
  });

  test("[L42] a requester of a command that already runs without a requester gets its answer", async () => {
    const { promise: opened, resolve: release } = Promise.withResolvers<Json>();
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    const kernel = await open(() =>
      worker(() => {
        begin();
        return opened;
      }),
    );
    kernel.loop.enqueue(say("Work.Do", "one"));
    await begun;
    const answer = kernel.request(say("Work.Do", "one"));
    expect(await kernel.request(say("Work.Do", "one", "other"))).toMatchObject({ data: { code: 409 } });
    release("at last");
    expect(await answer).toMatchObject({ kind: "reply", data: "at last" });
    await kernel.idle();
    expect(await rowsOf(kernel)).toMatchObject([{ status: "done" }]);
  });

  test("[L82] other values of durable are refused when the capability is defined and at boot", async () => {
    const wrong = { description: "works", durable: "after" as never };
    expect(() => capability(wrong)).toThrow(/durable: must be "before", "unawaited" or false, got "after"/);
    const bare = { ...capability({ description: "works" }), durable: true as never };
    await expect(open(() => ({ bare }))).rejects.toMatchObject({
      problems: [
        'capability bare: durable: must be "before", "unawaited" or false, got true; leave it out for the default',
      ],
    });
  });
});

describe("a refused command", () => {
  const refuse = () => {
    throw new Failure(409, "sold out");
  };
  const refused = { status: "done", outcome: "refused", reason: "sold out" };

  test("[L51] a 4xx to a waiting requester is no failure: the row is done, refused, with the reason", async () => {
    const kernel = await open(({ space }) => ({
      shop: transactional({ space, description: "sells", commands: { "Shop.Buy": { handle: refuse } } }),
      kept: capability({ description: "sells", durable: "before", commands: { "Shop.Keep": { handle: refuse } } }),
    }));
    for (const type of ["Shop.Buy", "Shop.Keep"])
      expect(await kernel.request(say(type, type))).toMatchObject({ kind: "error", data: { code: 409 } });
    await kernel.idle();
    const rows = await kernel.bus.query({ limit: 10 });
    expect(rows).toMatchObject([
      { ...refused, topic: "Shop.Buy" },
      { ...refused, topic: "Shop.Keep" },
    ]);
    for (const row of rows) expect(row.error).toBeUndefined();
    expect(await kernel.bus.failures()).toMatchObject({ count: 0 });
    expect(await kernel.bus.requeue(rows.map(({ id }) => id))).toEqual([]);
  });

  test("[L51] a 4xx of a command without a requester is a failure, which can be requeued or discarded", async () => {
    const kernel = await open(({ space }) => ({
      shop: transactional({ space, description: "sells", commands: { "Shop.Buy": { handle: refuse } } }),
      kept: capability({ description: "sells", commands: { "Shop.Keep": { handle: refuse } } }),
    }));
    for (const type of ["Shop.Buy", "Shop.Keep"]) kernel.loop.enqueue(say(type, type));
    await kernel.idle();
    const { count, rows } = await kernel.bus.failures();
    expect(count).toBe(2);
    expect(
      await kernel.bus.discard(
        rows.map(({ id }) => id),
        "closed",
      ),
    ).toHaveLength(2);
    expect(await kernel.bus.failures()).toMatchObject({ count: 0 });
  });
});

describe("a failed transactional command", () => {
  test("[L40] a failed transactional command has a row with the reason; a successful repeat makes it done", async () => {
    let works = false;
    const kernel = await open(({ space }) => ({
      worker: transactional({
        ...{ space, description: "works" },
        commands: {
          "Work.Do": {
            handle: () => {
              if (!works) throw new Failure(502, "the bank is away");
              return "paid";
            },
          },
        },
      }),
    }));
    expect(await kernel.request(say("Work.Do", "one"))).toMatchObject({ kind: "error", data: { code: 502 } });
    expect(await rowsOf(kernel)).toEqual([
      { topic: "Work.Do", source: "worker", status: "failed", error: "the bank is away" },
    ]);
    works = true;
    // Sender and time of a repetition are no part of the request.
    const { metadata, ...asked } = say("Work.Do", "one");
    const again = { ...asked, metadata: { ...metadata, timestamp: metadata.timestamp + 60_000, correlation: "retry" } };
    expect(await kernel.request(again)).toMatchObject({ kind: "reply", data: "paid" });
    expect(await rowsOf(kernel)).toEqual([{ topic: "Work.Do", source: "worker", status: "done" }]);
  });
});

describe("a timer's command", () => {
  test("[T9] [K53] a timer's command without a handler is a dead letter, and reported", async () => {
    const told = Promise.withResolvers<Json>();
    const kernel = await open(() => ({}), { observeFaults: ({ data }) => told.resolve(data) });
    await kernel.command("Timer.Set", { delayMs: 0, message: { kind: "command", type: "Work.Undo", data: 1 } });
    const error = "no capability handles command Work.Undo";
    expect(await told.promise).toMatchObject({ capability: "timer", type: "Work.Undo", reason: error });
    await kernel.idle();
    expect(await rowsOf(kernel)).toEqual([{ topic: "Work.Undo", source: "kernel", status: "failed", error }]);
  });
});
