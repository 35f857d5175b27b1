/**
 * Circles of actors that wait for each other: a request that can be handled only after a message which waits, in one or more steps, for the
 * answer to that very request.
 *
 * ```
 *   a handles m, asks b ──r1──> b handles r1, asks a ──r2──> behind m, which waits for r1, which waits for r2
 * ```
 * Told of actors that know what they handle and what they have asked; a worker's do not tell. What was asked counts as waited for as long as its
 * handler runs. Deliberately not here: messages that cross without one having caused the other. Both handlers may have asked and not wait, and
 * work that goes well would then fail by chance; a request timeout ends those that do wait. SPEC: L34.
 */
import { causationOf, type Message } from "../message/envelope.ts";
import type { PendingTable } from "./pending-table.ts";
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
    if (waiting === asked) return [...chain, asked].map(({ name }) => name);
    const entry = pending.get(cause);
    if (entry?.origin.kind !== "actor") return undefined;
    waiting = entry.origin.actor;
    awaited = cause;
    cause = entry.cause;
  }
  return undefined;
}
