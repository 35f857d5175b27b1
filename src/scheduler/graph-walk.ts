/**
 * Walks through the graph along live reads: readers of a node's outputs, writers of its inputs. Iterative, so that long
 * chains cannot overflow the stack.
 */

import type { DocumentIndex, Edge, NodeAddress, SchedulerNode } from "./node.ts";
import { enterReads } from "./node-record.ts";

/** All linked edges in the trie below an address. */
export function* linkedEdges(root: NodeAddress): Iterable<Edge> {
  const open = [root];
  for (let address = open.pop(); address !== undefined; address = open.pop()) {
    for (let edge = address.readers; edge !== null; edge = edge.newer) yield edge;
    // One by one: spreading a hundred thousand children into a call overflows the stack.
    if (address.children !== null) for (const child of address.children.values()) open.push(child);
  }
}

/** The live nodes that read one of the node's outputs. */
export function readersOf(node: SchedulerNode): SchedulerNode[] {
  const readers: SchedulerNode[] = [];
  for (const output of node.outputs) {
    if (output.home.liveAddresses === 0) continue;
    for (const edge of linkedEdges(output.home.root)) if (edge.node !== node) readers.push(edge.node);
  }
  return readers;
}

/** The writers of a node's inputs, once per read. */
export function* writersRead(node: SchedulerNode): Iterable<SchedulerNode> {
  for (let edge = node.reads; edge !== null; edge = edge.next) {
    if (!edge.linked) continue;
    for (const writer of edge.address.home.writers) if (writer !== node) yield writer;
  }
}

/** A node and all live nodes upstream of it. */
export function upstream(start: SchedulerNode): Set<SchedulerNode> {
  const found = new Set([start]);
  const open = [start];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    for (const writer of writersRead(node)) {
      if (found.has(writer) || !writer.live) continue;
      found.add(writer);
      open.push(writer);
    }
  }
  return found;
}

/** Whether the document is a computation's own output: recomputable, and in no commit. */
export function isDerived({ writers, root }: DocumentIndex): boolean {
  return writers.some((writer) => writer.output === root);
}

/** The reads of source documents from which a derived document follows. */
export function sourceReads(derived: DocumentIndex): Iterable<Edge> {
  return sourcesOf(new Set([derived]));
}

/** The sources of several derived documents, each visited once; derived documents on the way are added to the set. */
export function* sourcesOf(derived: Set<DocumentIndex>): Iterable<Edge> {
  for (const index of derived) {
    for (const writer of index.writers) {
      enterReads(writer);
      for (let edge = writer.reads; edge !== null; edge = edge.next) {
        if (isDerived(edge.address.home)) derived.add(edge.address.home);
        else yield edge;
      }
    }
  }
}

/** A path from the node back to itself along live reads; only the node if there is none. */
export function circleThrough(start: SchedulerNode): SchedulerNode[] {
  const from = new Map<SchedulerNode, SchedulerNode>();
  const open = [start];
  for (const node of open) {
    for (const reader of readersOf(node)) {
      if (reader === start) return wayTo(node, from);
      if (from.has(reader)) continue;
      from.set(reader, node);
      open.push(reader);
    }
  }
  return [start];
}

function wayTo(last: SchedulerNode, from: ReadonlyMap<SchedulerNode, SchedulerNode>): SchedulerNode[] {
  const way = [last];
  for (let node = from.get(last); node !== undefined; node = from.get(node)) way.push(node);
  return way.reverse();
}
