/** The operations of a queue in the benchmark. Each adapter uses the best calls of its queue. */
import type { Json } from "../../src/message/json.ts";
import type { Scene } from "../harness/benchmark.ts";
import type { Durability } from "../store/durability.ts";

export interface Peer {
  readonly name: string;
  /** The rows of the table in which it takes part: those with a promise that it can keep. */
  readonly durabilities: readonly Durability[];
  /** Whether each event waits for the disk by itself when there are many; then a run takes fewer of them. */
  readonly commitsEach: boolean;
  unavailable(): string | undefined;
  open(scene: Scene, durability: Durability): Promise<PeerQueue>;
}

export interface PeerQueue extends AsyncDisposable {
  /** Durable when it resolves, as far as the row promises. */
  publish(payload: Json): Promise<unknown>;
  publishMany(payloads: readonly Json[]): Promise<unknown>;
  /** Starts a worker that reads each payload and reports how many it has handled. */
  work(onHandled: (count: number) => void): Promise<void>;
  /** Events that are stored and not done, whether or not a worker has them. */
  unfinished(): Promise<number>;
}

/**
 * Packages of peers are installed by the first run and not there when types are checked; hence a name that is no
 * literal.
 */
export async function loadPeer<Module>(name: string): Promise<Module> {
  return (await import(name)) as Module;
}
