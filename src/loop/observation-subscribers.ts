/**
 * Capabilities that subscribe to observations by their exact type, as they do to events. An observation goes into their
 * mailbox, without a lane, turn or journal. SPEC: L37.
 *
 * The work that follows from an observation must not come back as another one, or two lines of code could run in a
 * circle forever. So each copy begins a conversation of its own, and observations of that conversation go to the side
 * sink only. For an observation without a cause the origin is unknown, so a subscriber gets only few of these per
 * second. A subscriber whose handler fails is removed, as any observer is.
 */
import type { Host } from "../host/host.ts";
import { UNCAUSED_OBSERVATIONS_PER_SECOND_MAX } from "../limits.ts";
import type { Message } from "../message/envelope.ts";
import { copyJson } from "../message/json-copy.ts";
import type { Observations, ObservationType } from "./observation.ts";
import type { RoutingTable } from "./routing-table.ts";
import type { SupervisedActor } from "./supervised-actor.ts";

/** The start of the correlation of all messages that follow from handling an observation. */
const OBSERVED = "observed:";

export class ObservationSubscribers {
  readonly #host: Host;
  readonly #table: RoutingTable;
  /** The functions that remove subscribers, by type and capability; undefined after the call. */
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

  /** Records that a handler has failed; false if it did not handle an observation. */
  failed({ name }: SupervisedActor, { type }: Message<unknown>, thrown: unknown): boolean {
    const subscribers = this.#subscribed.get(type);
    if (subscribers?.has(name) !== true) return false;
    const letGo = subscribers.get(name);
    // Observations that are still in its mailbox may fail too.
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
