/** Kinds of `ls` about the processes on a store: kernels and consumers. SPEC: K95, K192. */
import { systemHost } from "../host/system-host.ts";
import { inspectDatabase, type KernelFacts } from "../kernel/database.ts";
import { isDatabaseUrl, type KernelStore, openStoreForReading } from "../kernel/open-store.ts";
import { existingStore } from "./database-file.ts";
import type { Listing } from "./listing.ts";
import { UsageError, type VerbCall } from "./verb.ts";

/** A kernel renews its leases more often, so a longer silence is one of a dead or cut off process. */
const SILENT_MS = 60_000;

interface KernelItem extends KernelFacts {
  readonly state: "live" | "silent";
}

export const kernels: Listing<KernelItem> = {
  head: ["process", "state", "since", "last write", "batches", "lane"],
  takes: [],
  find: async ({ environment }) => {
    const place = existingStore(undefined, environment);
    if (!isDatabaseUrl(place))
      throw new UsageError("ls kernels lists those of a Postgres database; name it in MILLRACE_STORE");
    await using database = await inspectDatabase(place);
    const found = await database.kernels();
    return found.map((one) => ({ ...one, state: one.silentMs > SILENT_MS ? "silent" : "live" }));
  },
  cells: ({ about, state, openedAtMs, seenAtMs, batches, lane }) => [
    ...[about, state, new Date(openedAtMs).toISOString(), new Date(seenAtMs).toISOString()],
    ...[String(batches), String(lane)],
  ],
};

type Consumer = Awaited<ReturnType<KernelStore["consumers"]>>["consumers"][number];

export const consumerListing: Listing<Consumer> = {
  head: ["consumer", "topic", "state", "waiting", "declared"],
  takes: [],
  find: declaredConsumers,
  cells: ({ name, pattern, leases, waiting, declaredAtMs }) => [
    ...[name, pattern, leases.length > 0 ? "running" : "not running"],
    ...[String(waiting), new Date(declaredAtMs).toISOString()],
  ],
};

export async function declaredConsumers({ environment }: VerbCall): Promise<readonly Consumer[]> {
  await using store = await openStoreForReading(systemHost(), existingStore(undefined, environment));
  return (await store.consumers()).consumers;
}
