/**
 * Why a node has to run (I8): the addresses whose changes made it invalid, each once. Most nodes have one cause, or again the same two as
 * the last time, so that adding to a reason makes nothing and looks at no list: a single address stands for itself.
 *
 * Lists of two are shared, and nobody changes them; a longer one is the node's own until a run takes it.
 */
import type { Address } from "./address.ts";

export type Reason = Address | readonly Address[] | null;

/** The part of a node that is owned here. */
interface Reasoned {
  /** Why it has to run: taken by the run, given back when it is repeated. */
  reason: Reason;
  /** Why it ran last. */
  lastReason: Reason;
}

/** Causes that are looked through one by one. */
const LISTED_MAX = 16;
/** What is in longer lists: a node that reads a hundred thousand places may be told of each. */
const members = new WeakMap<readonly Address[], Set<Address>>();

const NONE: readonly Address[] = Object.freeze([]);

export function causesIn(reason: Reason): readonly Address[] {
  if (reason === null) return NONE;
  return isList(reason) ? reason : reason.alone;
}

/** One more reason to run. */
export function addCause(node: Reasoned, cause: Address): void {
  if (node.reason === null) node.reason = cause;
  else if (node.reason !== cause) addAnother(node, node.reason, cause);
}

function addAnother(node: Reasoned, reason: Address | readonly Address[], cause: Address): void {
  if (!isList(reason)) node.reason = pairOf(reason, cause, node.lastReason);
  else if (reason.length > 2) addToList(reason as Address[], cause);
  else if (reason[0] !== cause && reason[1] !== cause) node.reason = [...reason, cause];
}

/** What runs for two causes mostly runs for the same two the next time. */
function pairOf(first: Address, second: Address, known: Reason): readonly Address[] {
  const isKnown = known !== null && isList(known) && known.length === 2 && known[0] === first && known[1] === second;
  return isKnown ? known : [first, second];
}

function addToList(causes: Address[], cause: Address): void {
  if (causes.length > LISTED_MAX) return addToLongList(causes, cause);
  if (!causes.includes(cause)) causes.push(cause);
}

function addToLongList(causes: Address[], cause: Address): void {
  const known = members.get(causes) ?? new Set(causes);
  if (known.has(cause)) return;
  members.set(causes, known.add(cause));
  causes.push(cause);
}

/** Takes the causes for a run. */
export function takeCauses(node: Reasoned): void {
  const { reason } = node;
  node.lastReason = reason;
  node.reason = null;
  if (reason !== null && isList(reason) && reason.length > LISTED_MAX) members.delete(reason);
}

/** Gives back the causes that a run took, because it is repeated. */
export function restoreCauses(node: Reasoned, reason: Reason): void {
  const causes = new Set([...causesIn(reason), ...causesIn(node.reason)]);
  node.reason = causes.size === 0 ? null : [...causes];
}

/** Takes one back; true if there is no other. */
export function dropCause(node: Reasoned, cause: Address): boolean {
  const others = causesIn(node.reason).filter((one) => one !== cause);
  node.reason = others.length === 0 ? null : others;
  return others.length === 0;
}

function isList(reason: Address | readonly Address[]): reason is readonly Address[] {
  return Array.isArray(reason);
}
