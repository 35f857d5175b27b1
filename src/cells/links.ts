/**
 * Reading through links. A link anywhere along an address is followed. Each hop is a shallow read of the link's place,
 * so that only a change of the link itself runs the reader.
 */

import { LINK_HOPS_MAX } from "../limits.ts";
import type { Json, JsonObject } from "../message/json.ts";
import { MillraceError } from "../message/millrace-error.ts";
import type { NodeAddress, NodeSpec } from "../scheduler/node.ts";
import type { Scheduler } from "../scheduler/scheduler.ts";
import { asLink, LINK_KEY, type Link } from "../store/document.ts";
import type { Replica } from "../store/replica.ts";
import type { Outbox } from "../work/outbox.ts";
import type { LateWrites } from "./late-writes.ts";
import { NotReady } from "./not-ready.ts";

/** Finds the spaces that links lead to. */
export interface LinkTargets {
  readonly scheduler: Scheduler;
  /** The replica of a space by name; throws if it is not open here. */
  replica(space: string): Replica;
  /** The cell for a value that consists of links: a list, the result of a piece. */
  readerOf(address: NodeAddress): { get(): unknown } | undefined;
  /** Whether sinks are called with confirmed state by default. */
  readonly observesConfirmed: boolean;
  /**
   * Whether plain reads of values that are not loaded throw `NotReady`, instead of giving the default or `undefined`.
   */
  readonly refusesUnloaded: boolean;
  /** Writes that depend on documents which are not loaded. */
  readonly late: LateWrites;
  /** The outbox of handlers that `source` names. */
  outbox(source: string): Outbox;
  /** Registers an effect that ends with the space; the returned function ends it before. */
  observe(spec: NodeSpec): () => void;
}

/** The value at an address, through links, registered as read. */
export function readThrough(address: NodeAddress, targets: LinkTargets): Json | undefined {
  // Read before looking for links: the read brings the value up to date.
  return readOn(address, targets.scheduler.parts.runner.read(address), targets);
}

/** The value at the end of the links from an address that was just read; the value itself if there are none. */
export function readOn(address: NodeAddress, value: Json | undefined, targets: LinkTargets): Json | undefined {
  let at = address;
  let found = value;
  for (let hops = 0; hops <= LINK_HOPS_MAX; hops++) {
    const place = firstLink(at, found, targets);
    if (place === undefined) return found;
    at = hop(place, at, targets);
    found = targets.scheduler.parts.runner.read(at);
  }
  throw tooManyHops(address);
}

/** The value at the end of the links, registered as a shallow read: kind, keys, length, or a plain value. */
export function readShape(address: NodeAddress, targets: LinkTargets): Json | undefined {
  let at = address;
  for (let hops = 0; hops <= LINK_HOPS_MAX; hops++) {
    const found = targets.scheduler.parts.runner.read(at, true);
    const place = firstLink(at, found, targets);
    if (place === undefined) return found;
    at = hop(place, at, targets);
  }
  throw tooManyHops(address);
}

/** The address for a write to this one; the same if there is no link on the way. */
export function followLinks(address: NodeAddress, targets: LinkTargets): NodeAddress {
  let at = address;
  for (let hops = 0; hops <= LINK_HOPS_MAX; hops++) {
    const place = firstLink(at, targets.scheduler.parts.runner.glance(at), targets);
    if (place === undefined) return at;
    at = hop(place, at, targets);
  }
  throw tooManyHops(address);
}

function hop({ address, link }: LinkPlace, at: NodeAddress, targets: LinkTargets): NodeAddress {
  targets.scheduler.parts.runner.read(address, true);
  return targetOf(link, address, targets).at(at.path.slice(address.level));
}

/** The target of a link at the given address. */
export function targetOf(link: Link, place: NodeAddress, targets: LinkTargets): NodeAddress {
  const space = link.space === undefined ? place.home.replica : targets.replica(link.space);
  return targets.scheduler.parts.documents.root(space, link).at(link.path);
}

/** Links without an end. */
export class LinkError extends MillraceError<"LINK_CIRCLE"> {
  override readonly name = "LinkError";

  constructor(message: string, options?: ErrorOptions) {
    super("LINK_CIRCLE", message, options);
  }
}

export function tooManyHops(from: { toString(): string }): LinkError {
  return new LinkError(`the links from ${from} go around in a circle, or over more than ${LINK_HOPS_MAX} hops`);
}

interface LinkPlace {
  readonly address: NodeAddress;
  readonly link: Link;
}

/** The outermost link on the way to an address, or at it. `value` is the value at the address. */
function firstLink(address: NodeAddress, value: Json | undefined, targets: LinkTargets): LinkPlace | undefined {
  const { parent } = address;
  if (parent !== null) {
    const above = firstLink(parent, targets.scheduler.parts.runner.glance(parent), targets);
    if (above !== undefined) return above;
  }
  // A quick check first: almost no value is a link.
  if (typeof value !== "object" || value === null || (value as JsonObject)[LINK_KEY] === undefined) return undefined;
  const link = asLink(value);
  return link && { address, link };
}

/** Throws in plain code if a value is absent only because its document is not loaded. */
export function requireReady(address: NodeAddress, targets: LinkTargets): void {
  if (!targets.refusesUnloaded) return;
  const place = followLinks(address, targets);
  if (!place.document.isReadable) refuse(place, targets, place.document.loadError);
}

/** Throws in plain code, in spaces that refuse reads of values which are not loaded. */
export function refuse(place: { toString(): string }, targets: LinkTargets, cause?: unknown): void {
  const { scheduler } = targets;
  if (!targets.refusesUnloaded || scheduler.parts.attempts.isUnderWay || scheduler.parts.runner.isUntracked) return;
  throw new NotReady(
    `${place} is not here yet: await cell.pull(), or read it in a query, a computed value, an effect or a transaction`,
    cause === undefined ? undefined : { cause },
  );
}
