/**
 * Why a node has to run (I8): the addresses whose changes made it invalid, each once. What makes a node run mostly does so again, in the
 * same order, so that adding a cause makes nothing: a single one stands for itself, and several follow the list of the last time as long
 * as it says the same.
 *
 * ```
 *   none ──> one address ──> the last list, as far as it was met ──something else──> a list of its own
 *                └───────────────────something else──────────────────────────────────────^
 * ```
 * A list that a run has taken is never changed again.
 */
import type { Address } from "./address.ts";

export type Reason = Address | readonly Address[] | null;

/** The part of a node that is owned here. */
interface Reasoned {
  /** Why it has to run: taken by the run, given back when it is repeated. */
  reason: Reason;
  /** Why it ran last. */
  lastReason: Reason;
  /** While the reason is the last list: how many of it were met. */
  met: number;
}

/** Causes that are looked through one by one. */
const LISTED_MAX = 16;
/** What is in longer lists: a node that reads a hundred thousand places may be told of each. */
const members = new WeakMap<readonly Address[], Set<Address>>();

const NONE: readonly Address[] = Object.freeze([]);

/** Why a node has to run now. */
export function causesOf(node: Reasoned): readonly Address[] {
  return causesIn(metOf(node));
}

export function causesIn(reason: Reason): readonly Address[] {
  if (reason === null) return NONE;
  return isList(reason) ? reason : reason.alone;
}

/** The reason without what only the last run had. */
function metOf({ reason, lastReason, met }: Reasoned): Reason {
  if (reason === null || reason !== lastReason || !isList(reason) || reason.length === met) return reason;
  return reason.slice(0, met);
}

/** One more reason to run. */
export function addCause(node: Reasoned, cause: Address): void {
  if (node.reason === null) node.reason = cause;
  else if (node.reason !== cause) addAnother(node, node.reason, cause);
}

function addAnother(node: Reasoned, reason: Address | readonly Address[], cause: Address): void {
  if (!isList(reason)) addSecond(node, reason, cause);
  else if (reason !== node.lastReason) addToList(reason as Address[], cause);
  else if (reason[node.met] === cause) node.met++;
  else leaveLast(node, reason, cause);
}

function addSecond(node: Reasoned, first: Address, second: Address): void {
  const last = node.lastReason;
  const isAsLast = last !== null && isList(last) && last[0] === first && last[1] === second;
  node.reason = isAsLast ? last : [first, second];
  node.met = 2;
}

/** Something else than the last time, or once more what was met. */
function leaveLast(node: Reasoned, last: readonly Address[], cause: Address): void {
  const own = last.slice(0, node.met);
  addToList(own, cause);
  if (own.length > node.met || own.length > LISTED_MAX) node.reason = own;
}

function addToList(causes: Address[], cause: Address): void {
  if (causes.length > LISTED_MAX) addToLongList(causes, cause);
  else if (!causes.includes(cause)) causes.push(cause);
}

function addToLongList(causes: Address[], cause: Address): void {
  const known = members.get(causes) ?? new Set(causes);
  if (!known.has(cause)) causes.push(cause);
  members.set(causes, known.add(cause));
}

/** Takes the causes for a run. */
export function takeCauses(node: Reasoned): void {
  const { reason } = node;
  if (reason !== null && isList(reason)) return takeList(node, reason);
  node.lastReason = reason;
  node.reason = null;
}

function takeList(node: Reasoned, list: readonly Address[]): void {
  node.lastReason = metOf(node);
  node.reason = null;
  if (list.length > LISTED_MAX) members.delete(list);
}

/** Gives back the causes that a run took, because it is repeated. */
export function restoreCauses(node: Reasoned, reason: Reason): void {
  const causes = new Set([...causesIn(reason), ...causesOf(node)]);
  node.reason = causes.size === 0 ? null : [...causes];
}

/** Takes one back; true if there is no other. */
export function dropCause(node: Reasoned, cause: Address): boolean {
  const others = causesOf(node).filter((one) => one !== cause);
  node.reason = others.length === 0 ? null : others;
  return others.length === 0;
}

export function isList(reason: Address | readonly Address[]): reason is readonly Address[] {
  return Array.isArray(reason);
}
