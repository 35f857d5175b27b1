/** Events of a command's commit that are handed over during faults: each is handled, and none is held forever. */
import { describe, expect, test } from "vitest";
import { EventBus } from "../../src/bus/event-bus.ts";
import type { Host } from "../../src/host/host.ts";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { simulatedProcess } from "../../src/host/simulated-process.ts";
import type { Json } from "../../src/message/json.ts";
import { eventMessage } from "../../src/message/lineage.ts";
import type { CommitOutcome, CommitRequest } from "../../src/store/commit.ts";
import type { JournalEntry } from "../../src/store/journal.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { rejected } from "../../src/store/rejection.ts";

function entriesAt(host: Host, count: number): JournalEntry[] {
  return Array.from({ length: count }, (_, n) => ({
    ...{ topic: "Order.Placed", source: "shop", as: { status: "pending" } },
    message: eventMessage(host, "Order.Placed", { n }),
  }));
}

/** The commit of the emitter. */
function requestOf(entries: JournalEntry[]): CommitRequest {
  return {
    ...{ space: "s", session: "shop", localSequence: 1, digest: "one", dependsOn: [], entries },
    ...{ reads: [], patches: [], preconditions: [], settlements: [], due: [], basis: [], basisRemoved: [], labels: [] },
  };
}

async function setup() {
  const host = simulatedHost(1);
  const disk = new MemoryDisk();
  const store = memoryStore({ host, disk });
  const heard: number[] = [];
  const openBus = async () => {
    const bus = new EventBus({ store, host, leaseMs: 2_000 });
    bus.subscribe("Order.Placed", ({ payload }) => void heard.push((payload as { n: number }).n), {
      subscriberId: "clerk",
    });
    await bus.start();
    return bus;
  };
  const starting = openBus();
  await host.advance(10);
  const entriesOf = (count: number) => entriesAt(host, count);
  const commit = (entries: JournalEntry[]): Promise<CommitOutcome> => store.commit(requestOf(entries));
  return { host, heard, bus: await starting, openBus, entriesOf, commit };
}

describe("hand-over among faults", () => {
  test("[J86] a rejected commit hands no event over and holds no room", async () => {
    const { host, heard, bus, entriesOf } = await setup();
    const entries = entriesOf(3);
    await bus.commitWith(entries, () => Promise.resolve(rejected("stale", "read-moved", "it moved")));
    await host.advance(10_000);
    expect([heard, bus.busy]).toEqual([[], false]);
  });

  test("[J86] a commit that throws hands no event over and holds no room", async () => {
    const { host, heard, bus, entriesOf } = await setup();
    await expect(bus.commitWith(entriesOf(3), () => Promise.reject(new Error("no line")))).rejects.toThrow("no line");
    await host.advance(10_000);
    expect([heard, bus.busy]).toEqual([[], false]);
  });

  test("[J86] an event committed without an answer is handled after its lease is given up", async () => {
    const { host, heard, bus, entriesOf, commit } = await setup();
    const entries = entriesOf(3);
    await bus.commitWith(entries, async () => {
      await commit(entries);
      return rejected("unknown", "no-answer", "the line went dead");
    });
    await host.advance(30_000);
    expect([heard.toSorted(), bus.busy]).toEqual([[0, 1, 2], false]);
  });

  test("[J86] a bus that stops during the commit leaves its events to the next one", async () => {
    const { host, heard, bus, openBus, entriesOf, commit } = await setup();
    const entries = entriesOf(3);
    const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
    const sending = bus.commitWith(entries, async () => {
      const outcome = await commit(entries);
      await answered;
      return outcome;
    });
    await host.advance(10);
    const stopping = bus.stop({ graceMs: 100 });
    await host.advance(50);
    answer();
    await sending;
    await host.advance(10_000);
    await stopping;
    const opening = openBus();
    await host.advance(30_000);
    await opening;
    expect([...new Set(heard)].toSorted()).toEqual([0, 1, 2]);
  });

  test("[J86] a bus that is paused during the commit handles its events once when it continues", async () => {
    const { host, heard, bus, entriesOf, commit } = await setup();
    const entries = entriesOf(3);
    const sending = bus.commitWith(entries, () => {
      bus.pause();
      return commit(entries);
    });
    await host.advance(10_000);
    await sending;
    expect(heard).toEqual([]);
    bus.resume();
    await host.advance(10_000);
    expect([heard.toSorted(), bus.busy]).toEqual([[0, 1, 2], false]);
  });

  test.each(["before it is there", "after it is there"])(
    "[J86] after a lease is lost during the commit, %s, every event is handled and settled",
    async (when) => {
      const world = simulatedHost(1);
      const disk = new MemoryDisk();
      const heard: string[] = [];
      const openBus = async (name: string) => {
        const process = simulatedProcess(world);
        const store = memoryStore({ host: process, disk });
        const bus = new EventBus({ store, host: process, leaseMs: 2_000 });
        const note = ({ payload }: { payload: Json }) => void heard.push(`${(payload as { n: number }).n} ${name}`);
        bus.subscribe("Order.Placed", note, { subscriberId: "clerk" });
        await world.run(() => bus.start());
        return { process, store, bus };
      };
      const [slow, quick] = [await openBus("slow"), await openBus("quick")];
      const entries = entriesAt(world, 3);
      const { promise: gate, resolve: open } = Promise.withResolvers<void>();
      const sending = slow.bus.commitWith(entries, async () => {
        if (when === "before it is there") await gate;
        const outcome = await slow.store.commit(requestOf(entries));
        await gate;
        return outcome;
      });
      await world.advance(10);
      // It stands still for longer than its lease; the other finds that out.
      slow.process.pause();
      await world.advance(20_000);
      slow.process.resume();
      open();
      await world.advance(30_000);
      await sending;
      expect(new Set(heard.map((line) => line[0]))).toEqual(new Set(["0", "1", "2"]));
      const rows = await world.run(() => quick.store.query({ topic: "Order.Placed", limit: 9 }));
      expect(rows.map(({ status }) => status)).toEqual(["done", "done", "done"]);
      expect([slow.bus.busy, quick.bus.busy]).toEqual([false, false]);
      slow.bus.checkInvariants();
      // Events of a lost lease are handled by the process that took them over, and not again by the other.
      expect(heard.length).toBe(3);
    },
  );
});
