/**
 * Net changes of a document that a unit wrote at several depths (I3). Each record has the value at its place before its
 * first write, and that value may contain earlier writes of the same unit. Reported one by one, such records would show
 * values that readers never saw. This module undoes the records on a copy, back to the state that readers know, and
 * compares the two states.
 */
import type { Json } from "../message/json.ts";
import { getAt } from "../message/path.ts";
import { applyOperation, type Container, copyOnce } from "../store/patch.ts";
import type { PathOperation } from "../store/path-operation.ts";
import type { NodeAddress } from "./node.ts";

/** A place written since the last report to readers. */
export interface Untold {
  readonly address: NodeAddress;
  /** The value before the first write since then. */
  readonly told: Json | undefined;
}

export interface NetChange {
  readonly address: NodeAddress;
  readonly before: Json | undefined;
}

/** The changes of one document since the last report, outermost places only. `untold` is in the order of the writes. */
export function netChanges(untold: readonly Untold[]): NetChange[] {
  const places = new Set<NodeAddress>();
  // A record below an earlier one adds no place: the earlier one knows the state before both.
  const steps = untold.filter(({ address }) => {
    const isBelow = hasAbove(address, places);
    places.add(address);
    return !isBelow;
  });
  const fresh = new Set<Container>();
  const own = (container: Container) => copyOnce(container, fresh);
  let known = steps[0]?.address.home.document.value;
  for (const { address, told } of steps.toReversed()) {
    const step = inverse(address, told, known);
    if (step !== undefined) known = applyOperation(known, step, own).root;
  }
  const before = (path: NodeAddress["path"]) => (known === undefined ? undefined : getAt(known, path));
  return [...places]
    .filter((address) => !hasAbove(address, places))
    .map((address) => ({ address, before: before(address.path) }));
}

function hasAbove({ parent }: NodeAddress, places: ReadonlySet<NodeAddress>): boolean {
  for (let above = parent; above !== null; above = above.parent) if (places.has(above)) return true;
  return false;
}

/** Restores the earlier value; undefined if the place is absent before and after. */
function inverse(address: NodeAddress, told: Json | undefined, known: Json | undefined): PathOperation | undefined {
  const { path, parent, step } = address;
  if (told !== undefined) return { op: "set", path, value: told };
  if (parent === null) return { op: "delete", path };
  const container = known === undefined ? undefined : getAt(known, parent.path);
  if (Array.isArray(container)) {
    const index = Number(step);
    return index < container.length ? { op: "splice", path: parent.path, index, remove: 1, insert: [] } : undefined;
  }
  const isThere = typeof container === "object" && container !== null && Object.hasOwn(container, step);
  return isThere ? { op: "delete", path } : undefined;
}

/**
 * The records of nested documents at or below a place that a later record sets as a whole. Their operations are not
 * sent: the set is written in place, so the container of an earlier operation may not exist in the store.
 */
export function supersededBy<R extends { readonly address: NodeAddress; readonly operation: PathOperation }>(
  records: readonly R[],
  nested: ReadonlySet<NodeAddress["home"]>,
): Set<R> {
  const superseded = new Set<R>();
  const put = new Set<NodeAddress>();
  for (const record of records.toReversed()) {
    const { address, operation } = record;
    if (!nested.has(address.home)) continue;
    if (put.has(address) || hasAbove(address, put)) superseded.add(record);
    else if (operation.op === "set") put.add(address);
  }
  return superseded;
}
