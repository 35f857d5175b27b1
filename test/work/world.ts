/** A disk that outlives processes, on simulated time: the start of every case of `describeOnce`. */
import { Space } from "../../src/cells/space.ts";
import { type SimulatedHost, simulatedHost } from "../../src/host/simulated-host.ts";
import type { Json } from "../../src/message/json.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import type { Store } from "../../src/store/store.ts";
import { FaultyLine } from "../store/faulty-store.ts";

export const SPACE = "test";

/** Opens the store of a world once more, as another process would. */
export type OpenStore = (host: SimulatedHost) => Promise<Store>;

/** A new disk for each world. */
export type MakeDisk = () => OpenStore;

export const memoryWorlds: MakeDisk = () => {
  const disk = new MemoryDisk({ changesKept: 2 });
  return async (host) => memoryStore({ host, disk });
};

/** One process: a store behind a line that may fail, and a space on it. */
export interface Process {
  readonly host: SimulatedHost;
  readonly line: FaultyLine;
  readonly store: Store;
  readonly space: Space;
  readonly errors: unknown[];
}

export class World {
  readonly host = simulatedHost(1);
  readonly #open: OpenStore;
  readonly #processes: Process[] = [];

  constructor(makeDisk: MakeDisk) {
    this.#open = makeDisk();
  }

  /** Starts a process on the disk. */
  async process(): Promise<Process> {
    const { host } = this;
    const line = new FaultyLine(await this.#open(host));
    const { store } = line;
    const errors: unknown[] = [];
    const onError = (error: unknown) => void errors.push(error);
    const space = await host.run(() => Space.open({ store, host, name: SPACE, onError }));
    const process = { host, line, store, space, errors };
    this.#processes.push(process);
    return process;
  }

  /** Runs an action, and the simulation until it has ended. */
  run<T>(action: () => Promise<T>): Promise<T> {
    return this.host.run(action);
  }

  /** Runs all work that is due within a second. */
  settle(): Promise<void> {
    return this.host.advance(1_000);
  }

  /** The stored value of a document, past every replica. */
  async stored(id: string): Promise<Json | undefined> {
    const process = this.#processes.at(-1) as Process;
    const { documents } = await this.run(() => process.store.load(SPACE, [{ scope: "space", id }]));
    return documents[0]?.value;
  }

  /** The journal's rows as `type status`. */
  async rows(): Promise<string[]> {
    const process = this.#processes.at(-1) as Process;
    const rows = await this.run(() => process.store.query({ limit: 1_000 }));
    return rows.map(({ message, status }) => `${message?.type} ${status}`);
  }
}
