/**
 * Opens the kernel's store: the SQLite file of a data directory.
 */
import type { Host } from "../host/host.ts";
import { openSqliteStore } from "../store/sqlite/index.ts";
import { type Store, StoreError } from "../store/store.ts";
import { given } from "./given.ts";

/** The default durability; `docs/decisions/0002-the-store.md`. */
export const DURABILITY = "power";
export type Durability = "power" | "process";

/** The store as the command sees it. */
export type KernelStore = Store;

export interface StoreChoices {
  readonly durability?: Durability;
  /** Bytes of one message's data in the journal. */
  readonly payloadBytesMax?: number | undefined;
}

export function openStore(host: Host, path: string, choices: StoreChoices = {}): Promise<KernelStore> {
  const { durability = DURABILITY, payloadBytesMax } = choices;
  return openSqliteStore({ path, host, durability, tuning: given({ payloadBytesMax }) });
}

/** Opens a file read-only, also while a kernel has it open. */
export function openStoreForReading(host: Host, path: string): Promise<KernelStore> {
  return openSqliteStore({ path, host, durability: DURABILITY, readOnly: true });
}

/** Throws if the given value is not a store: the `await` of an opening call is easily forgotten. */
export function requireStore(store: Store): void {
  const { then, recover, close } = (store ?? {}) as Partial<Store> & { then?: unknown };
  if (typeof then === "function")
    throw new StoreError(
      "STORE_MISUSE",
      "store: this is the promise of one; write store: await openSqliteStore({ … })",
    );
  if (typeof recover !== "function" || typeof close !== "function")
    throw new StoreError("STORE_MISUSE", "store: this is none; write store: await openSqliteStore({ … })");
}
