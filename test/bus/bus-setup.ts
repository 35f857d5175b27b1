/** The start of every test of the bus: simulated time, a memory disk that outlives buses, and buses on it. */
import { EventBus, type EventBusOptions } from "../../src/bus/event-bus.ts";
import type { BusObservation } from "../../src/bus/observation.ts";
import { Space } from "../../src/cells/space.ts";
import type { Host } from "../../src/host/host.ts";
import { type SimulatedHost, simulatedHost } from "../../src/host/simulated-host.ts";
import type { JournalRow } from "../../src/store/journal.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { Replica } from "../../src/store/replica.ts";
import type { Store } from "../../src/store/store.ts";

export interface Setup {
  readonly host: SimulatedHost;
  readonly disk: MemoryDisk;
  readonly store: Store;
  readonly bus: EventBus;
  readonly observed: BusObservation[];
  /** Another bus on the same disk, as another process would have it. */
  another(options?: Partial<EventBusOptions>): EventBus;
  /** Runs an action of the test and all work that follows from it without passing of time. */
  act<T>(action: () => Promise<T>): Promise<T>;
  row(id: number): Promise<JournalRow>;
  /** For writes and reads beside the bus. */
  replica(space?: string): Promise<Replica>;
  openSpace(name?: string): Promise<Space>;
}

export function setup(options: Partial<EventBusOptions> = {}, seed = 1): Setup {
  const host = simulatedHost(seed);
  const disk = new MemoryDisk();
  const store = options.store ?? memoryStore({ host, disk });
  const observed: BusObservation[] = [];
  const observe = (observation: BusObservation) => void observed.push(observation);
  const bus = new EventBus({ host, observe, ...options, store });
  const act = async <T>(action: () => Promise<T>): Promise<T> => {
    const result = await host.run(action);
    await host.advance(0);
    bus.checkInvariants();
    return result;
  };
  return {
    host,
    disk,
    store,
    bus,
    observed,
    act,
    another: (other = {}) => new EventBus({ host, observe, store: memoryStore({ host, disk }), ...other }),
    row: async (id) => {
      const [row] = await store.query({ id, limit: 1 });
      if (!row) throw new Error(`there is no row ${id}`);
      return row;
    },
    replica: (space = "home") => host.run(() => Replica.open({ store, host: host as Host, space })),
    openSpace: (name = "home") => host.run(() => Space.open({ store, host, name })),
  };
}

/** A promise to be kept by the test. */
export function deferred<T = void>(): {
  promise: Promise<T>;
  resolve: (value: T) => void;
  reject: (error: Error) => void;
} {
  return Promise.withResolvers<T>();
}

/** The store with some of its methods replaced, as by a fault of the disk or the network. */
export function withFaults(store: Store, faults: Partial<Store>): Store {
  return new Proxy(store, {
    get(target, key) {
      const value: unknown = Reflect.get(faults, key) ?? Reflect.get(target, key);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** A handler that notes which events it was given. */
export function recorder(): { ids: number[]; handler: (event: { id: number }) => void } {
  const ids: number[] = [];
  return { ids, handler: (event) => void ids.push(event.id) };
}
