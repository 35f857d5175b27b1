/**
 * The recorded program: it handles invocations at every entry point of a kernel, and marks the start of each and the
 * answer to its sender. It runs under the shim; its argument is an `EntriesPlan` as JSON.
 */
import { SeededRandom } from "../../src/host/seeded-random.ts";
import { systemHost } from "../../src/host/system-host.ts";
import { Kernel } from "../../src/kernel/kernel.ts";
import { countingCapabilities, ENTRIES, type Invoked, invoke, isAtRest, type Told } from "../kernel/entries.ts";
import { mark } from "./shim-orders.ts";
import { openStore, type StoreSetting } from "./store-setting.ts";

export interface EntriesPlan extends StoreSetting {
  readonly seed: number;
  readonly rounds: number;
}

export type EntryMark = { readonly begin: Invoked } | { readonly ack: Invoked; readonly told: Told };

const { seed, rounds, ...setting } = JSON.parse(process.argv[2] ?? "{}") as EntriesPlan;
const random = new SeededRandom(seed);
const host = systemHost();
const store = await openStore(setting, host);
const kernel = await Kernel.open({ host, store, capabilities: countingCapabilities, observe: () => undefined });

for (let round = 0; round < rounds; round++) {
  const invoked = ENTRIES.map((entry) => ({ entry, id: random.below(2) === 0 ? host.id() : `${entry}-${round}` }));
  await Promise.all(invoked.map(tell));
}
while (!(await isAtRest(store))) await new Promise<void>((resolve) => void host.timer(5, resolve));
await kernel.close();
await store.close();

async function tell(invoked: Invoked): Promise<void> {
  mark(JSON.stringify({ begin: invoked } satisfies EntryMark));
  const told = await invoke(kernel, invoked);
  if (told === undefined)
    throw new Error(`the store has no fault, and ${invoked.entry} ${invoked.id} was not answered`);
  mark(JSON.stringify({ ack: invoked, told } satisfies EntryMark));
}
