/** A rolling deploy: an old process without a new subscriber and a new process with it share a store. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { EventBus } from "../../src/bus/event-bus.ts";
import { systemHost } from "../../src/host/system-host.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { openSqliteStore } from "../../src/store/sqlite/index.ts";
import type { Store } from "../../src/store/store.ts";
import { scratchDirectory } from "./bus-processes.ts";

const host = systemHost();
/** Batches that the old process publishes, and the one before which the new process is started. */
const BATCHES = 40;
const STARTED_AT = 15;
const EVENTS = 5;

for (const backend of ["memory", "SQLite"] as const) {
  test(`[J100] ${backend}: once the new subscriber is declared, no event is settled without it, and each is handled once`, async () => {
    using directory = scratchDirectory();
    const disk = new MemoryDisk();
    const open = async (): Promise<Store> =>
      backend === "memory"
        ? memoryStore({ host, disk })
        : openSqliteStore({ path: join(directory.path, "store.db"), host, durability: "process" });
    const [oldStore, newStore] = [await open(), await open()];
    const heard = { old: [] as number[], new: [] as number[] };
    const [oldBus, newBus] = [new EventBus({ store: oldStore, host }), new EventBus({ store: newStore, host })];
    const subscribe = (bus: EventBus, name: keyof typeof heard) =>
      bus.subscribe("job", ({ id }) => void heard[name].push(id), { subscriberId: name });
    subscribe(oldBus, "old");
    await oldBus.start();
    const before: number[] = [];
    const after: number[] = [];
    let isDeclared = false;
    let starting: Promise<void> | undefined;
    for (let batch = 0; batch < BATCHES; batch++) {
      if (batch === STARTED_AT) {
        subscribe(newBus, "old");
        subscribe(newBus, "new");
        starting = newBus.start().then(() => {
          isDeclared = true;
        });
      }
      // The last batches come from the new process.
      const bus = batch % 2 === 1 && isDeclared ? newBus : oldBus;
      if (batch === BATCHES / 2) await starting;
      const list = isDeclared ? after : before;
      const events = Array.from({ length: EVENTS }, (_, n) => ({
        topic: "job",
        source: "test",
        payload: { batch, n },
      }));
      list.push(...(await bus.publishMany(events)));
    }
    const { promise: settled, resolve } = Promise.withResolvers<void>();
    const look = async () => {
      const { pending, processing } = await oldStore.count();
      if (pending + processing === 0) resolve();
    };
    const unwatch = oldStore.watch(() => void look());
    await look();
    await settled;
    unwatch();
    expect(after.length).toBeGreaterThanOrEqual((EVENTS * BATCHES) / 2);
    expect(heard.old.toSorted((a, b) => a - b)).toEqual([...before, ...after].toSorted((a, b) => a - b));
    const heardByNew = new Set(heard.new);
    expect(after.filter((id) => !heardByNew.has(id))).toEqual([]);
    expect(heardByNew.size).toBe(heard.new.length);
    await Promise.all([oldBus.stop(), newBus.stop()]);
    await Promise.all([oldStore.close(), newStore.close()]);
  });
}
