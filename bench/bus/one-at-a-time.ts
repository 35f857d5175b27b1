/**
 * One event after the other, each waiting for the disk alone: until it is published, and until its handler has been
 * called. Measured as the store is (`../store/one-at-a-time.ts`): with a log of full length, and beside the bare engine
 * by turns.
 */
import { join } from "node:path";
import { EventBus, type Store, systemHost } from "millrace/bus";
import { BULK, publications, publish } from "../bus-runs.ts";
import type { Sample, Scene } from "../harness/benchmark.ts";
import type { BareSqlite } from "../store/bare-sqlite.ts";
import type { Durability } from "../store/durability.ts";
import { TOPIC } from "../store/events.ts";
import { besideBare, latencies, type Publish, TO_BARE, type Turns, warmBare } from "../store/one-at-a-time.ts";
import { warmLog } from "../store/warm-log.ts";

/** Until its answer is there, or until its handler has been called. */
export type Until = "published" | "handled";

export async function bareOneAtATime(bare: BareSqlite, scene: Scene, until: Until): Promise<Sample> {
  await warmBare(bare, scene.directory);
  return await latencies(scene, (entry) => BARE[until](bare, entry));
}

export async function busOneAtATime(store: Store, scene: Scene, durability: Durability, until: Until): Promise<Sample> {
  const bus = new EventBus({ store, host: systemHost() });
  const ours: Publish = until === "published" ? (entry) => publish(bus, entry) : await handling(bus);
  await warmLog(join(scene.directory, "millrace.db"), () => bus.publishMany(publications(BULK)));
  await bus.idle();
  const alone = await latencies(scene, ours);
  const toBare = await besideBare({ scene, durability, ours, bare: BARE[until] });
  await bus.stop();
  return { ...alone, [TO_BARE]: toBare };
}

/** As the bus does it: an event is settled in the transaction that writes the next. */
const BARE: Readonly<Record<Until, Turns["bare"]>> = {
  published: (bare, entry) => bare.append([entry]),
  handled: (bare, entry) => bare.appendClaimedAndSettleLast([entry]),
};

async function handling(bus: EventBus): Promise<Publish> {
  let called: () => void = () => {};
  bus.subscribe(TOPIC, () => called(), { subscriberId: "bench" });
  await bus.start();
  return (entry) => {
    const handled = new Promise<void>((resolve) => {
      called = resolve;
    });
    return Promise.all([publish(bus, entry), handled]);
  };
}
