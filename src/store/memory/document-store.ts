/**
 * A store of documents alone, for programs that use signals without a kernel: no journal, no timers, no leases. SPEC:
 * K142.
 */
import type { Host } from "../../host/host.ts";
import { systemHost } from "../../host/system-host.ts";
import type { Store } from "../store.ts";
import { DocumentsOnly } from "./document-disk.ts";
import { MemoryStore } from "./memory-store.ts";

/** Documents in memory. Events, timers and consumers throw; `memoryStore` has them. */
export function documentStore({ host = systemHost() }: { readonly host?: Host } = {}): Store {
  return new MemoryStore(host, new DocumentsOnly());
}
