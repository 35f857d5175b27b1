/**
 * Circles of actors that wait for each other: a request that can be handled only after a message that waits, in one or
 * more steps, for the answer to the same request. SPEC: L34, L36.
 *
 * ```
 *   a handles m, asks b ──r1──> b handles r1, asks a ──r2──> behind m, which waits for r1, which waits for r2
 * ```
 * `circleClosedBy` finds such a circle at once. A request counts as waited for while its handler runs.
 *
 * Or requests cross without one having caused the other:
 * ```
 *   a handles m, asks b ──r1──> behind n         b handles n, asks a ──r2──> behind m
 * ```
 * Both handlers may have asked without waiting, so a refusal could fail valid work. `crossedCircles` finds these
 * circles, and `CircleWatch` measures how long they last. Actors that do not tell their messages and requests, such as
 * workers, count as free.
 */
import { causationOf, type Message } from "../message/envelope.ts";
import type { PendingRequest, RequestingActor } from "./pending-request.ts";
import type { PendingTable } from "./pending-table.ts";

/**
 * The names along the circle that a request would close, from the asked actor back to it; undefined if it closes none.
 */
export function circleClosedBy(
  request: Message,
  asker: RequestingActor,
  asked: RequestingActor,
  pending: PendingTable,
): readonly string[] | undefined {
  const chain: RequestingActor[] = [];
  let waiting = asker;
  let awaited = request.metadata.id;
  let cause = causationOf(request);
  // The loop ends, because each step leads to a request that was made earlier.
  while (cause !== undefined && waiting.waitsFor(awaited, cause)) {
    chain.unshift(waiting);
    // With several places or keys, the request may be handled beside its cause.
    if (waiting === asked && asked.waitsBehind(request, cause)) return [...chain, asked].map(({ name }) => name);
    const entry = pending.get(cause);
    if (entry?.origin.kind !== "actor") return undefined;
    waiting = entry.origin.actor;
    awaited = cause;
    cause = entry.cause;
  }
  return undefined;
}

/** Requests each of which is asked by the actor that the one before waits for. */
export interface Circle {
  /** The one that was made last, and so has closed it; the first of `requests`. */
  readonly last: PendingRequest;
  readonly requests: readonly PendingRequest[];
  /** The names along it, from the actor that made the last request back to it. */
  readonly actors: string[];
}

/** Whether a request may be part of a circle: its sender and its receiver have both asked a request. */
export function isSuspect({ origin, actor }: PendingRequest): boolean {
  return origin.kind === "actor" && origin.actor.isAsking && actor.isAsking;
}

/** The circles among actors none of which can go on before another of them does, as far as can be seen. */
export function crossedCircles(pending: PendingTable): readonly Circle[] {
  const awaited = awaitedByStuck(pending);
  const circles: Circle[] = [];
  const seen = new Set<RequestingActor>();
  for (const start of awaited.keys()) {
    const path: PendingRequest[] = [];
    let actor = start;
    for (let next = awaited.get(actor); next !== undefined && !seen.has(actor); next = awaited.get(actor)) {
      seen.add(actor);
      path.push(next);
      actor = next.actor;
    }
    // The path has returned to one of its own actors, or to one of an earlier path, whose circle is known.
    const from = path.findIndex(({ origin }) => origin === actor.origin);
    if (from >= 0) circles.push(circleOf(path.slice(from)));
  }
  return circles;
}

/**
 * One awaited request of each actor that cannot continue. Actors that may continue are removed, one after the other. A
 * handler with several requests may need only one of the answers, so one answer from outside is enough.
 */
function awaitedByStuck(pending: PendingTable): ReadonlyMap<RequestingActor, PendingRequest> {
  const asked = new Map<RequestingActor, PendingRequest[]>();
  for (const request of pending) {
    if (request.origin.kind !== "actor" || !request.origin.actor.isAsking) continue;
    const { actor } = request.origin;
    const requests = asked.get(actor);
    if (requests === undefined) asked.set(actor, [request]);
    else requests.push(request);
  }
  const given = new Map([...asked.keys()].map((actor) => [actor, actor.given()]));
  // A request that the actor has finished is answered in another way.
  const isBehind = ({ actor, id }: PendingRequest) => asked.has(actor) && given.get(actor)?.has(id) === true;
  const isStuck = (actor: RequestingActor, requests: readonly PendingRequest[]) =>
    requests.every(isBehind) && requests.some((request) => isAwaitedBy(actor, request));
  for (let size = -1; size !== asked.size; ) {
    size = asked.size;
    for (const [actor, requests] of asked) if (!isStuck(actor, requests)) asked.delete(actor);
  }
  const first = ([actor, requests]: [RequestingActor, PendingRequest[]]) =>
    [actor, requests.find((request) => isAwaitedBy(actor, request)) as PendingRequest] as const;
  return new Map([...asked].map(first));
}

/** Whether the actor has asked the request for a message that it handles now; messages of `send` do not count. */
function isAwaitedBy(actor: RequestingActor, { id, cause }: PendingRequest): boolean {
  return cause !== undefined && actor.waitsFor(id, cause);
}

/** Told from the request on that was made last: ids of one host grow. */
function circleOf(path: readonly PendingRequest[]): Circle {
  const last = path.reduce((latest, request) => (request.id > latest.id ? request : latest));
  const at = path.indexOf(last);
  const requests = [...path.slice(at), ...path.slice(0, at)];
  const names = requests.map(({ actor }) => actor.name);
  return { last, requests, actors: [names.at(-1) as string, ...names] };
}
