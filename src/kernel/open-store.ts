/**
 * Opens the kernel's store: the SQLite file of a data directory, or a database by its `postgres://` URL. The package
 * `pg` is loaded only for a URL.
 */
import type { Host } from "../host/host.ts";
import { openSqliteStore } from "../store/sqlite/index.ts";
import { type Store, StoreError } from "../store/store.ts";
import { omitUndefined } from "./omit-undefined.ts";

/** The default durability; `docs/decisions/0003-crash-proof.md`. */
export const DURABILITY = "power";
export type StoreDurability = "power" | "process";

/** The store as the command sees it. */
export type KernelStore = Store;

export interface StoreChoices {
  readonly durability?: StoreDurability;
  /** Bytes of one message's data in the journal. */
  readonly payloadBytesMax?: number | undefined;
}

/** Opens a store for writing. `place`: a file, or the URLs of a database. */
export async function openStore(host: Host, place: string, choices: StoreChoices = {}): Promise<KernelStore> {
  const { durability = DURABILITY, payloadBytesMax } = choices;
  const tuning = omitUndefined({ payloadBytesMax });
  if (!isDatabaseUrl(place)) return openSqliteStore({ path: place, host, durability, tuning });
  const { openPostgresStore } = await import("../store/postgres/store.ts");
  return openPostgresStore({ url: databaseUrls(place), host, durability, tuning });
}

/** Opens a store read-only, also while kernels have it open. */
export async function openStoreForReading(host: Host, place: string): Promise<KernelStore> {
  if (!isDatabaseUrl(place)) return openSqliteStore({ path: place, host, durability: DURABILITY, readOnly: true });
  const { openPostgresStore } = await import("../store/postgres/store.ts");
  return openPostgresStore({ url: databaseUrls(place), host, readOnly: true });
}

export function isDatabaseUrl(place: string): boolean {
  return /^postgres(ql)?:\/\//.test(place);
}

/** The URLs of a primary and its standbys, separated by commas: the first server that takes writes is used. */
export function databaseUrls(place: string): readonly string[] {
  return place.split(/,(?=postgres(?:ql)?:\/\/)/);
}

/** The place for messages: the password of a URL is left out. */
export function storePlaceText(place: string): string {
  return isDatabaseUrl(place) ? databaseUrls(place).map(urlText).join(",") : place;
}

function urlText(text: string): string {
  if (!URL.canParse(text)) return "the Postgres database";
  const url = new URL(text);
  url.password = "";
  url.search = "";
  return url.href;
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
