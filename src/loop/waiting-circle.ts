/**
 * Circles of actors that wait for each other: a request that can be handled only after a message which waits, in one or more steps, for the
 * answer to that very request.
 *
 * ```
 *   a handles m, asks b ──r1──> b handles r1, asks a ──r2──> behind m, which waits for r1, which waits for r2
 * ```
 * That is told at once (`circleClosedBy`). What was asked counts as waited for as long as its handler runs.
 *
 * Or requests cross without one having caused the other:
 * ```
 *   a handles m, asks b ──r1──> behind n         b handles n, asks a ──r2──> behind m
 * ```
 * Both handlers may have asked and not wait, and work that goes well would fail by chance if it was refused. Whether such a circle stands can be
 * asked (`crossedCircles`); for how long is its watcher's to know.
 *
 * Of actors that do not say what they handle and what they have asked, such as a worker's, nothing is assumed. SPEC: L34, L36.
 */
import { causationOf, type Message } from "../message/envelope.ts";
import type { PendingRequest, PendingTable } from "./pending-table.ts";
import type { SupervisedActor } from "./supervised-actor.ts";

/** The names along the circle that a request would close, from the actor that is asked back to it; undefined where it closes none. */
export function circleClosedBy(
  request: Message,
  asker: SupervisedActor,
  asked: SupervisedActor,
  pending: PendingTable,
): readonly string[] | undefined {
  const chain: SupervisedActor[] = [];
  let waiting = asker;
  let awaited = request.metadata.id;
  let cause = causationOf(request);
  // It ends: what was asked while a message was handled has a new id, so each step leads to a request that was made earlier.
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

/** Whether a request may be part of a circle: who asks it and who is asked have both asked something. */
export function isSuspect({ origin, actor }: PendingRequest): boolean {
  return origin.kind === "actor" && origin.actor.isAsking && actor.isAsking;
}

/** The circles among actors none of which can go on before another of them does, as far as can be seen. */
export function crossedCircles(pending: PendingTable): readonly Circle[] {
  const awaited = awaitedByStuck(pending);
  const circles: Circle[] = [];
  const seen = new Set<SupervisedActor>();
  for (const start of awaited.keys()) {
    const path: PendingRequest[] = [];
    let actor = start;
    for (let next = awaited.get(actor); next !== undefined && !seen.has(actor); next = awaited.get(actor)) {
      seen.add(actor);
      path.push(next);
      actor = next.actor;
    }
    // It has come back to an actor of this path, or to one of an earlier path, whose circle is known.
    const from = path.findIndex(({ origin }) => origin === actor.origin);
    if (from >= 0) circles.push(circleOf(path.slice(from)));
  }
  return circles;
}

/**
 * What is awaited by actors that cannot go on, one request of each. Those are left out, one after the other, that may: a handler which has asked several
 * things may need only one of the answers, so one that can come from outside is enough.
 */
function awaitedByStuck(pending: PendingTable): ReadonlyMap<SupervisedActor, PendingRequest> {
  const asked = new Map<SupervisedActor, PendingRequest[]>();
  for (const request of pending) {
    if (request.origin.kind !== "actor" || !request.origin.actor.isAsking) continue;
    const { actor } = request.origin;
    const requests = asked.get(actor);
    if (requests === undefined) asked.set(actor, [request]);
    else requests.push(request);
  }
  const given = new Map([...asked.keys()].map((actor) => [actor, actor.given()]));
  // What an actor was given and has handled is answered by other ways.
  const isBehind = ({ actor, id }: PendingRequest) => asked.has(actor) && given.get(actor)?.has(id) === true;
  const isStuck = (actor: SupervisedActor, requests: readonly PendingRequest[]) =>
    requests.every(isBehind) && requests.some((request) => isAwaitedBy(actor, request));
  for (let size = -1; size !== asked.size; ) {
    size = asked.size;
    for (const [actor, requests] of asked) if (!isStuck(actor, requests)) asked.delete(actor);
  }
  const first = ([actor, requests]: [SupervisedActor, PendingRequest[]]) =>
    [actor, requests.find((request) => isAwaitedBy(actor, request)) as PendingRequest] as const;
  return new Map([...asked].map(first));
}

/** Whether the actor has asked it for what it handles now; what was put into the loop by `send` was not asked. */
function isAwaitedBy(actor: SupervisedActor, { id, cause }: PendingRequest): boolean {
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
