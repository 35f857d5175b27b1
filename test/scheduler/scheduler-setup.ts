/** A space over a line that a test controls, on simulated time, and its neighbours on the same disk. */
import { Space } from "../../src/cells/space.ts";
import { type SimulatedHost, simulatedHost } from "../../src/host/simulated-host.ts";
import type { Scheduler } from "../../src/scheduler/scheduler.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { FaultyLine } from "../store/faulty-store.ts";

export interface Site {
  readonly line: FaultyLine;
  readonly space: Space;
  readonly scheduler: Scheduler;
}

export interface SiteOptions {
  /** How many unobserved documents a process keeps. */
  readonly residentDocumentsMax?: number;
}

export async function openSite(host: SimulatedHost, disk: MemoryDisk, options: SiteOptions = {}): Promise<Site> {
  const line = new FaultyLine(memoryStore({ host, disk }));
  const space = await Space.open({ store: line.store, host, name: "s", onError: () => undefined, ...options });
  return { line, space, scheduler: space.scheduler };
}

export async function setup({ seed = 1, ...options }: { readonly seed?: number } & SiteOptions = {}) {
  const host = simulatedHost(seed);
  const disk = new MemoryDisk();
  const here = await openSite(host, disk, options);
  return {
    host,
    disk,
    ...here,
    /** Another process on the same disk. */
    open: () => openSite(host, disk, options),
    /** All ready work is done, at both ends of the line; no time has passed. */
    quiet: () => host.advance(0),
  };
}

/** Calls of a function, with their arguments. */
export class Calls<T = unknown> {
  readonly seen: T[] = [];
  readonly note = (value: T): void => {
    this.seen.push(value);
  };

  /** The values seen since the last time. */
  take(): T[] {
    return this.seen.splice(0);
  }

  get count(): number {
    return this.seen.length;
  }
}
