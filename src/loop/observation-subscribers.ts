/**
 * Capabilities that subscribe to observations by their exact type, as they do to events: each one is put into their mailbox, and kept nowhere. It
 * takes part in nothing for that: no lane, no turn, no journal. SPEC: L37.
 *
 * What they do about one must not come back to them as another, or two lines of code would turn in a circle for ever. So each copy is the
 * beginning of a conversation of its own, and what is told of such a conversation goes to the side sink alone. Of an observation that names no cause
 * nobody knows what it follows from: of those a subscriber gets few a second. One whose handler fails is let go, as any observer is.
 */
import type { Host } from "../host/host.ts";
import { UNCAUSED_OBSERVATIONS_PER_SECOND_MAX } from "../limits.ts";
import type { Message } from "../message/envelope.ts";
import { copyJson } from "../message/json-copy.ts";
import type { Observations, ObservationType } from "./observation.ts";
import type { RoutingTable } from "./routing-table.ts";
import type { SupervisedActor } from "./supervised-actor.ts";

/** How the correlation of whatever follows from handling an observation begins. */
const OBSERVED = "observed:";

export class ObservationSubscribers {
  readonly #host: Host;
  readonly #table: RoutingTable;
  /** How each is let go, by type and then by capability; undefined once it was. */
  readonly #subscribed = new Map<string, Map<string, (() => void) | undefined>>();
  /** Observations without a cause that each was given in the present second, which began by the monotonic clock. */
  readonly #uncaused = new Map<SupervisedActor, { readonly sinceMs: number; count: number }>();

  constructor(parts: { host: Host; table: RoutingTable }) {
    this.#host = parts.host;
    this.#table = parts.table;
  }

  subscribe(observations: Observations, actors: ReadonlyMap<string, SupervisedActor>): void {
    for (const [type, names] of this.#table.observedTypes()) {
      const letGo = names.map((name) => [name, this.#add(observations, type, actors.get(name)!)] as const);
      this.#subscribed.set(type, new Map(letGo));
    }
  }

  /** Takes note that a handler has failed; false where it was not given an observation. */
  failed({ name }: SupervisedActor, { type }: Message<unknown>, thrown: unknown): boolean {
    const subscribers = this.#subscribed.get(type);
    if (subscribers?.has(name) !== true) return false;
    const letGo = subscribers.get(name);
    // What was in its mailbox then may fail too.
    if (letGo === undefined) return true;
    subscribers.set(name, undefined);
    letGo();
    this.#host.report(thrown);
    return true;
  }

  #add(observations: Observations, type: ObservationType, actor: SupervisedActor): () => void {
    return observations.addFor(type, (observation) => {
      if (this.#isDue(actor, observation)) actor.show(ownCopy(observation));
    });
  }

  #isDue(actor: SupervisedActor, { metadata: { causation, correlation } }: Message): boolean {
    if (causation !== undefined) return correlation?.startsWith(OBSERVED) !== true;
    const nowMs = this.#host.monotonic();
    const second = this.#uncaused.get(actor);
    if (second === undefined || nowMs - second.sinceMs >= 1_000) {
      this.#uncaused.set(actor, { sinceMs: nowMs, count: 1 });
      return true;
    }
    return ++second.count <= UNCAUSED_OBSERVATIONS_PER_SECOND_MAX;
  }
}

function ownCopy({ kind, type, data, metadata }: Message): Message {
  return { kind, type, data: copyJson(data), metadata: { ...metadata, correlation: `${OBSERVED}${metadata.id}` } };
}
