/**
 * The bus on a real file, looked at and changed from outside with plain SQL, as the authors of ADR 004 expect to be
 * able to.
 */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { EventBus } from "../../src/bus/event-bus.ts";
import { Space } from "../../src/cells/space.ts";
import type { Host } from "../../src/host/host.ts";
import { systemHost } from "../../src/host/system-host.ts";
import { EVENT_DEATHS_MAX } from "../../src/limits.ts";
import { openSqliteStore } from "../../src/store/sqlite/index.ts";
import type { Store } from "../../src/store/store.ts";
import { HeldTimers } from "../store/held-timers.ts";
import { scratchDirectory } from "./bus-processes.ts";

const host = systemHost();

async function setup(on: Host = host): Promise<AsyncDisposable & { path: string; store: Store; bus: EventBus }> {
  const directory = scratchDirectory();
  const path = join(directory.path, "bus.db");
  const store = await openSqliteStore({ path, host: on });
  const bus = new EventBus({ store, host: on });
  const dispose = async () => {
    await bus.stop();
    await store.close();
    directory[Symbol.dispose]();
  };
  return { path, store, bus, [Symbol.asyncDispose]: dispose };
}

/** Resolves when the journal has no event left to handle. */
async function settled({ store }: { store: Store }): Promise<void> {
  for (;;) {
    const { pending, processing } = await store.count();
    if (pending + processing === 0) return;
    await host.yield();
  }
}

function change(path: string, sql: string, ...values: (string | number)[]): void {
  const database = new DatabaseSync(path, { timeout: 5_000 });
  database.prepare(sql).run(...values);
  database.close();
}

describe("the journal's file", () => {
  test("[J54] a row with corrupt JSON, written by hand, is failed alone", async () => {
    await using all = await setup();
    const { bus, path, store } = all;
    const seen: unknown[] = [];
    bus.subscribe("tick", (event) => void seen.push(event.payload), { subscriberId: "s" });
    await bus.publish("tick", "x", 1);
    change(
      path,
      "INSERT INTO event_journal (topic, source, payload, created_at) VALUES ('tick', 'hand', '{oops', 1.5)",
    );
    change(path, "INSERT INTO event_journal (topic, source, payload, created_at) VALUES ('tick', 'hand', '[3]', 1.5)");
    await bus.start();
    await settled(all);
    expect(seen).toEqual([1, [3]]);
    const [failed] = await store.query({ status: "failed", limit: 9 });
    expect(failed).toMatchObject({ id: 2, source: "hand" });
    expect(failed?.error).toBeTruthy();
  });

  test("[J75] a failed row that is set to pending by hand goes again only to the subscribers that failed", async () => {
    await using all = await setup();
    const { bus, path, store } = all;
    const calls: string[] = [];
    const subscribe = (to: EventBus, broken: boolean) => {
      to.subscribe("tick", () => void calls.push("a"), { subscriberId: "a" });
      const fails = (_event: unknown, { attempt }: { attempt: number }) => {
        calls.push(`b${attempt}`);
        if (broken) throw new Error("no");
      };
      to.subscribe("tick", fails, { subscriberId: "b" });
    };
    subscribe(bus, true);
    await bus.start();
    const id = await bus.publish("tick", "x", 1);
    await settled(all);
    expect((await bus.failures()).count).toBe(1);
    await bus.stop();
    change(path, "UPDATE event_journal SET status = 'pending' WHERE id = ?", id);
    // Later subscribers get it too.
    await using next = new EventBus({ store, host });
    subscribe(next, false);
    next.subscribe("tick", () => void calls.push("c"), { subscriberId: "c" });
    await next.start();
    await settled(all);
    expect(calls).toEqual(["a", "b1", "b1", "c"]);
    expect((await next.query({ id, limit: 1 }))[0]?.status).toBe("done");
  });

  test("[J75] a row that was given up after deaths runs its open steps when it is set to pending by hand", async () => {
    await using all = await setup();
    const { bus, path, store } = all;
    const calls: string[] = [];
    for (const subscriberId of ["a", "b", "c"]) {
      const note = (_event: unknown, { attempt }: { attempt: number }) => void calls.push(`${subscriberId}${attempt}`);
      bus.subscribe("tick", note, { subscriberId });
    }
    const id = await bus.publish("tick", "x", 1);
    // The row after a pause, with one failed and one open step, and later deaths.
    change(
      path,
      "INSERT INTO delivery (event, subscriber, status, attempts, error) VALUES (?, 'a', 'failed', 1, 'no'), (?, 'b', 'retry', 2, 'no')",
      id,
      id,
    );
    change(
      path,
      "INSERT INTO delivery (event, subscriber, status, attempts, error) VALUES (?, 'c', 'done', 1, NULL)",
      id,
    );
    change(path, "UPDATE event_journal SET deaths = ? WHERE id = ?", EVENT_DEATHS_MAX, id);
    await bus.start();
    await settled(all);
    expect([calls, (await store.query({ id, limit: 1 }))[0]?.status]).toEqual([[], "failed"]);
    change(path, "UPDATE event_journal SET status = 'pending' WHERE id = ?", id);
    await bus.idle();
    await settled(all);
    expect(calls).toEqual(["a1", "b1"]);
    expect((await store.query({ id, limit: 1 }))[0]?.status).toBe("done");
  });

  test("[J40] a new bus on the same file goes on where the last one stopped", async () => {
    await using all = await setup();
    const { bus, store } = all;
    await bus.publish("tick", "x", 1);
    await bus.stop();
    const next = new EventBus({ store, host });
    const seen: number[] = [];
    next.subscribe("tick", (event) => void seen.push(event.id), { subscriberId: "s" });
    expect(await next.recover()).toBe(0);
    await next.start();
    await settled({ store });
    expect(seen).toEqual([1]);
    await next.stop();
  });
});

describe("counted work", () => {
  const EVENTS = 1_000;
  const events = Array.from({ length: EVENTS }, (_, payload) => ({ topic: "tick", source: "x", payload }));

  /** Publishes the events, waits until all were handled, and then for a write, which comes after their settles. */
  async function pass(bus: EventBus, store: Store, handled: { count: number }): Promise<void> {
    const until = handled.count + EVENTS;
    await bus.publishMany(events);
    while (handled.count < until) await host.yield();
    await store.releaseRetries(host.now());
  }

  async function counted(store: Store, work: () => Promise<void>): Promise<{ perEvent: number; batches: number }> {
    const before = store.stats();
    await work();
    const after = store.stats();
    return { perEvent: (after.statements - before.statements) / EVENTS, batches: after.batches - before.batches };
  }

  test("[J66] publish, handle, done costs two statements for an event and few commits for a thousand", async () => {
    // Held: on a busy machine a timer would settle it alone, and not with the next write.
    await using all = await setup(new HeldTimers());
    const { bus, store } = all;
    const handled = { count: 0 };
    bus.subscribe("tick", () => void handled.count++, { subscriberId: "s" });
    await bus.start();
    for (let i = 0; i < 5; i++) await pass(bus, store, handled);
    const { perEvent, batches } = await counted(store, () => pass(bus, store, handled));
    expect(perEvent).toBeLessThan(2.1);
    expect(batches).toBeLessThanOrEqual(3);
  });

  test("[J90] an event now and then costs one flush: it is settled with the next one, or soon by itself", async () => {
    const held = new HeldTimers();
    await using all = await setup(held);
    const { bus, store } = all;
    const handled: number[] = [];
    bus.subscribe("tick", ({ id }) => void handled.push(id), { subscriberId: "s" });
    await bus.start();
    // All processes look at the first write, this one too; further looks wait for a timer.
    await bus.publish("tick", "x", 0);
    await held.tasks();
    const { batches } = store.stats();
    const statuses: string[] = [];
    for (let i = 1; i < 5; i++) {
      const id = await bus.publish("tick", "x", i);
      await held.tasks();
      statuses.push((await store.query({ id, limit: 1 }))[0]!.status);
    }
    expect([handled.length, store.stats().batches - batches]).toEqual([5, 4]);
    expect(statuses).toEqual(Array.from({ length: 4 }, () => "processing"));
    // The pause between settles, and the wait for a write to go with.
    for (let wait = 0; wait < 2; wait++) {
      held.fire();
      await held.tasks();
    }
    expect(await store.count()).toEqual({ pending: 0, processing: 0, done: 5, failed: 0 });
  });

  test("[J90] an event that failed, and one of a serial key, is settled at once", async () => {
    const held = new HeldTimers();
    await using all = await setup(held);
    const { bus, store } = all;
    bus.subscribe("bad", () => Promise.reject(new Error("no")), { subscriberId: "s" });
    bus.subscribe("tick", () => {}, { subscriberId: "s", serialBy: () => "one" });
    await bus.start();
    for (const topic of ["bad", "tick"]) await bus.publish(topic, "x", 1);
    await held.tasks();
    expect(await store.count()).toEqual({ pending: 0, processing: 0, done: 1, failed: 1 });
  });

  test("[J56] a transactional handling of the last handler is one commit and no further settle", async () => {
    await using all = await setup();
    const { bus, store } = all;
    await using space = await Space.open({ store, host, name: "home" });
    const handled = { count: 0 };
    bus.subscribe(
      "tick",
      (event, tx) => {
        handled.count++;
        tx.set(space.cell(`n${event.payload}`), event.id);
      },
      { subscriberId: "s", space },
    );
    await bus.start();
    for (let i = 0; i < 3; i++) await pass(bus, store, handled);
    const { perEvent } = await counted(store, () => pass(bus, store, handled));
    expect(perEvent).toBeLessThan(14);
  });
});

test("[J85] a process does not end before the events of its own commits were delivered and settled", () => {
  using directory = scratchDirectory();
  const program = fileURLToPath(new URL("last-work-program.ts", import.meta.url));
  for (let n = 0; n < 4; n++) {
    const file = join(directory.path, `last-${n}.db`);
    expect(execFileSync(process.execPath, ["--no-warnings", program, file], { encoding: "utf8" })).toBe("heard 5\n");
    using database = new DatabaseSync(file, { readOnly: true });
    expect(database.prepare("SELECT DISTINCT status FROM event_journal").all()).toEqual([{ status: "done" }]);
  }
});
