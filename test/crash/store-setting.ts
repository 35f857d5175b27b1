/** How the crash tests open the real store, in their own process and in the programs that they crash. */
import type { Host } from "../../src/host/host.ts";
import { systemHost } from "../../src/host/system-host.ts";
import { openSqliteStore } from "../../src/store/sqlite/open.ts";
import type { Store } from "../../src/store/store.ts";

export interface StoreSetting {
  readonly path: string;
  readonly durability: "power" | "process";
  /**
   * Whether a thread copies the log. By default it is done between batches, so that the nth call is the same one in
   * each run.
   */
  readonly checkpointThread?: boolean;
}

/** A short log before it is copied into the database, so that this happens often. */
const CHECKPOINT_PAGES = 40;

export function openStore(setting: StoreSetting, host: Host = systemHost()): Promise<Store> {
  const { path, durability, checkpointThread = false } = setting;
  const tuning = { checkpointPages: CHECKPOINT_PAGES, checkpointThread };
  return openSqliteStore({ path, durability, host, tuning });
}

/** A host with a wall clock that is ahead: every lease of the crashed process has expired. */
export function laterHost(byMs: number): Host {
  const host = systemHost();
  return {
    now: () => host.now() + byMs,
    monotonic: () => host.monotonic(),
    timer: (delayMs, fire, options) => host.timer(delayMs, fire, options),
    task: (run) => host.task(run),
    yield: () => host.yield(),
    microtask: (run) => host.microtask(run),
    report: (error) => host.report(error),
    id: () => host.id(),
    random: () => host.random(),
    randomBytes: (length) => host.randomBytes(length),
  };
}
