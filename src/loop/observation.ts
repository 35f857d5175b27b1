/**
 * What the loop tells about itself (RFC 0032 §17): `Sys.*` events to a side sink. An observation never changes scheduling, is never
 * routed, and is never observed itself. Whoever listens must not throw; if he does, he is told nothing more.
 */
import type { Host } from "../host/host.ts";
import type { Message } from "../message/envelope.ts";
import type { Json } from "../message/json.ts";
import { causedBy, event } from "../message/lineage.ts";

export type ObservationType =
  | "Sys.Routed"
  | "Sys.RoutingError"
  | "Sys.OrphanOutcome"
  | "Sys.ActorFault"
  | "Sys.ActorRestarted"
  | "Sys.ActorUnhealthy"
  | "Sys.MicrotaskFault"
  | "Sys.MicrotaskOverflow"
  | "Sys.TimerSet"
  | "Sys.TimerFired"
  | "Sys.TimerCancelled"
  | "Sys.Overload";

export type Observer = (observation: Message) => void;

export class Observations {
  readonly #host: Host;
  readonly #observers = new Set<Observer>();

  constructor(host: Host) {
    this.#host = host;
  }

  /** Whether anybody listens; what costs something to say is said only then. */
  get wanted(): boolean {
    return this.#observers.size > 0;
  }

  add(observer: Observer): () => void {
    this.#observers.add(observer);
    return () => {
      this.#observers.delete(observer);
    };
  }

  tell(type: ObservationType, data: Json, cause?: Pick<Message, "metadata">): void {
    if (this.#observers.size === 0) return;
    const observation = event(this.#host, type, data, cause && causedBy(cause));
    for (const observer of this.#observers) {
      try {
        observer(observation);
      } catch {
        // An observer that throws must not take part in what it observes; it is let go.
        this.#observers.delete(observer);
      }
    }
  }
}
