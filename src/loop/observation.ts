/**
 * Observations of the loop itself (RFC 0032 §17): `Sys.*` events to a side sink. An observation never changes
 * scheduling, is never routed, and is never observed itself. An observer that throws is removed. Capabilities can
 * listen to some (`observation-subscribers.ts`).
 */
import { guarded } from "../host/hook.ts";
import type { Host } from "../host/host.ts";
import type { Message } from "../message/envelope.ts";
import { Failure } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import { causedBy, eventMessage } from "../message/lineage.ts";

const OBSERVATION_TYPES = [
  "Sys.Routed",
  "Sys.RoutingError",
  "Sys.OrphanOutcome",
  "Sys.ActorFault",
  "Sys.ActorRestarted",
  "Sys.ActorUnhealthy",
  "Sys.BusFault",
  "Sys.SubscriberFault",
  "Sys.NodeFault",
  "Sys.MicrotaskFault",
  "Sys.MicrotaskOverflow",
  "Sys.TimerSet",
  "Sys.TimerFired",
  "Sys.TimerCancelled",
  "Sys.Overload",
  "Sys.WaitingCircle",
] as const;

/** The types of the loop's observations. */
export type ObservationType = (typeof OBSERVATION_TYPES)[number];

/** Whether a type is an observation of the loop, such as `Sys.ActorFault`. */
export function isObservationType(type: string): type is ObservationType {
  return (OBSERVATION_TYPES as readonly string[]).includes(type);
}

/** Faults; the other types report ordinary work. */
const FAULTS: ReadonlySet<ObservationType> = new Set([
  ...(["Sys.ActorFault", "Sys.ActorUnhealthy", "Sys.BusFault", "Sys.SubscriberFault", "Sys.NodeFault"] as const),
  ...(["Sys.MicrotaskFault", "Sys.Overload", "Sys.WaitingCircle"] as const),
]);

/** Gets the observations of a loop, each as a message. */
export type Observer = (observation: Message) => void;

export class Observations {
  readonly #host: Host;
  readonly #observers = new Set<Observer>();
  /** Observers of faults only. */
  readonly #faultObservers = new Set<Observer>();
  /** Observers of one type only; a type without observers has no entry. */
  readonly #byType = new Map<ObservationType, Set<Observer>>();

  constructor(host: Host) {
    this.#host = host;
  }

  /** Whether there are observers of ordinary work; costly observations are made only then. */
  get wanted(): boolean {
    return this.#observers.size > 0 || this.#byType.has("Sys.Routed");
  }

  add(observer: Observer): () => void {
    return this.#add(this.#observers, observer);
  }

  addForFaults(observer: Observer): void {
    this.#add(this.#faultObservers, observer);
  }

  addFor(type: ObservationType, observer: Observer): () => void {
    const observers = this.#byType.get(type) ?? new Set();
    this.#byType.set(type, observers);
    return this.#add(observers, observer, () => {
      if (observers.size === 0 && this.#byType.get(type) === observers) this.#byType.delete(type);
    });
  }

  /** An observer that throws is removed, because it would throw again for every message. */
  #add(observers: Set<Observer>, observer: Observer, gone = () => {}): () => void {
    const letGo = () => {
      observers.delete(own);
      gone();
    };
    const report = (thrown: unknown) => {
      letGo();
      this.#host.report(thrown);
    };
    const own = guarded({ report }, observer);
    observers.add(own);
    return letGo;
  }

  tell(type: ObservationType, data: Json, cause?: Pick<Message, "metadata">): void {
    const isFault = this.#faultObservers.size > 0 && FAULTS.has(type);
    const ofType = this.#byType.size > 0 ? this.#byType.get(type) : undefined;
    if (this.#observers.size === 0 && !isFault && ofType === undefined) return;
    const observation = eventMessage(this.#host, type, data, cause && causedBy(cause));
    for (const observe of this.#observers) observe(observation);
    if (isFault) for (const observe of this.#faultObservers) observe(observation);
    if (ofType !== undefined) for (const observe of ofType) observe(observation);
  }
}

/** Characters of a stack: as much as helps to find the line. */
const STACK_LENGTH_MAX = 4_096;

/**
 * The stack of an error, except of a `Failure`, which is intended. An observation stays in the process, so a stack is
 * allowed.
 */
export function stackOf(thrown: unknown): { readonly stack?: string } {
  if (!(thrown instanceof Error) || thrown instanceof Failure || typeof thrown.stack !== "string") return {};
  return { stack: thrown.stack.slice(0, STACK_LENGTH_MAX).toWellFormed() };
}
