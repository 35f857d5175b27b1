/**
 * Why a node must run (I8): the distinct addresses whose changes made it invalid. Most runs have the causes of the
 * previous run in the same order, so no list is allocated for them: a single cause is stored as itself, and several
 * causes are matched against the list of the last run until one differs.
 *
 * ```
 *   none ──> one address ──> prefix of the last list ──another cause──> a list of its own
 *                 └──────────────another cause──────────────────────────────^
 * ```
 * A list that a run has taken is not changed again.
 */
import type { NodeAddress, Reason } from "./node.ts";

/** The fields of a node that this module owns. */
interface Reasoned {
  /** Why it must run: taken by the run, restored if the run is repeated. */
  reason: Reason;
  /** Why it ran last. */
  lastReason: Reason;
  /** If the reason is the last list: the length of its matched prefix. */
  matched: number;
}

/** Longer lists are searched with a set. */
const LISTED_MAX = 16;
/** The members of longer lists: a node that reads a hundred thousand places may have as many causes. */
const members = new WeakMap<readonly NodeAddress[], Set<NodeAddress>>();

const NONE: readonly NodeAddress[] = Object.freeze([]);

export function causesOf(node: Reasoned): readonly NodeAddress[] {
  return causesIn(matchedOf(node));
}

export function causesIn(reason: Reason): readonly NodeAddress[] {
  if (reason === null) return NONE;
  return isList(reason) ? reason : reason.alone;
}

/** The current reason, without the unmatched rest of the last list. */
function matchedOf({ reason, lastReason, matched }: Reasoned): Reason {
  if (reason === null || reason !== lastReason || !isList(reason) || reason.length === matched) return reason;
  return reason.slice(0, matched);
}

export function addCause(node: Reasoned, cause: NodeAddress): void {
  if (node.reason === null) node.reason = cause;
  else if (node.reason !== cause) addAnother(node, node.reason, cause);
}

function addAnother(node: Reasoned, reason: NodeAddress | readonly NodeAddress[], cause: NodeAddress): void {
  if (!isList(reason)) addSecond(node, reason, cause);
  else if (reason !== node.lastReason) addToList(reason as NodeAddress[], cause);
  else if (reason[node.matched] === cause) node.matched++;
  else leaveLast(node, reason, cause);
}

function addSecond(node: Reasoned, first: NodeAddress, second: NodeAddress): void {
  const last = node.lastReason;
  const isAsLast = last !== null && isList(last) && last[0] === first && last[1] === second;
  node.reason = isAsLast ? last : [first, second];
  node.matched = 2;
}

/** The cause differs from the next one of the last list, or was matched before. */
function leaveLast(node: Reasoned, last: readonly NodeAddress[], cause: NodeAddress): void {
  const own = last.slice(0, node.matched);
  addToList(own, cause);
  if (own.length > node.matched || own.length > LISTED_MAX) node.reason = own;
}

function addToList(causes: NodeAddress[], cause: NodeAddress): void {
  if (causes.length > LISTED_MAX) addToLongList(causes, cause);
  else if (!causes.includes(cause)) causes.push(cause);
}

function addToLongList(causes: NodeAddress[], cause: NodeAddress): void {
  const known = members.get(causes) ?? new Set(causes);
  if (!known.has(cause)) causes.push(cause);
  members.set(causes, known.add(cause));
}

/** Moves the causes from the node to its run. */
export function takeCauses(node: Reasoned): void {
  const { reason } = node;
  if (reason !== null && isList(reason)) return takeList(node, reason);
  node.lastReason = reason;
  node.reason = null;
}

function takeList(node: Reasoned, list: readonly NodeAddress[]): void {
  node.lastReason = matchedOf(node);
  node.reason = null;
  if (list.length > LISTED_MAX) members.delete(list);
}

/** Gives causes back to the node, because the run is repeated. */
export function restoreCauses(node: Reasoned, reason: Reason): void {
  const causes = new Set([...causesIn(reason), ...causesOf(node)]);
  node.reason = causes.size === 0 ? null : [...causes];
}

/** Removes one cause; true if none is left. */
export function dropCause(node: Reasoned, cause: NodeAddress): boolean {
  const others = causesOf(node).filter((one) => one !== cause);
  node.reason = others.length === 0 ? null : others;
  return others.length === 0;
}

export function isList(reason: NodeAddress | readonly NodeAddress[]): reason is readonly NodeAddress[] {
  return Array.isArray(reason);
}
