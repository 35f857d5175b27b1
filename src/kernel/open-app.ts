/** Opens a kernel for apps: the store by its file, and the rest as `Kernel.open` does. SPEC: A23. */
import type { App } from "../app/app.ts";
import { systemHost } from "../host/system-host.ts";
import { memoryStore } from "../store/memory/memory-store.ts";
import type { Store } from "../store/store.ts";
import { OpenKernel } from "./app-kernel.ts";
import { Kernel } from "./kernel.ts";
import type { KernelOptions } from "./kernel-options.ts";
import { isDatabaseUrl, openStore, type StoreDurability } from "./open-store.ts";

/** Options of `open`: the file or store, its durability, and those of the kernel. */
export interface OpenOptions extends Omit<KernelOptions, "store" | "apps" | "space"> {
  /** The SQLite file; it is made if it is not there. Without a file or a store, everything is in memory. */
  readonly file?: string;
  /** `power`, the default: an answer survives a power loss. `process`: it survives the end of the process. */
  readonly durability?: StoreDurability;
  /** Another store in place of a file, or the `postgres://` URL of a database. The kernel closes it. */
  readonly store?: Store | string;
}

export async function openApp(
  apps: App | readonly App[],
  { file, durability, store, ...options }: OpenOptions = {},
): Promise<OpenKernel> {
  if (file !== undefined && store !== undefined) throw new TypeError("open: takes a file or a store, not both");
  const { host = systemHost() } = options;
  const opened = await storeOf(host, { file, durability, store });
  const kernel = await Kernel.open({
    ...options,
    host,
    store: opened,
    apps: Array.isArray(apps) ? apps : [apps as App],
  });
  return new OpenKernel(kernel, host);
}

async function storeOf(
  host: Parameters<typeof openStore>[0],
  { file, durability, store }: { [name in "file" | "durability" | "store"]: OpenOptions[name] | undefined },
): Promise<Store> {
  const given = durability === undefined ? {} : { durability };
  if (file !== undefined) return openStore(host, file, given);
  if (store === undefined) return memoryStore({ host });
  if (typeof store !== "string") return store;
  if (!isDatabaseUrl(store))
    throw new TypeError(
      `open: store takes a store or a postgres:// URL; for a file write file: ${JSON.stringify(store)}`,
    );
  return openStore(host, store, given);
}
