/**
 * The invariants of a scheduler between runs, for tests and diagnosis (`Scheduler.checkInvariants`). The check visits
 * all nodes and derives liveness anew, so it is too slow for production.
 */
import type { Agenda } from "./agenda.ts";
import { causesOf } from "./causes.ts";
import type { Gates } from "./gates.ts";
import type { Graph } from "./graph.ts";
import { linkedEdges } from "./graph-walk.ts";
import { type DocumentIndex, type Edge, type NodeAddress, RUNNING, type SchedulerNode } from "./node.ts";
import type { Registry } from "./registry.ts";

interface Parts {
  readonly registry: Registry;
  readonly graph: Graph;
  readonly agenda: Agenda;
  readonly gates: Gates;
}

/** Throws the first violation. */
export function checkScheduler(parts: Parts): void {
  const nodes = [...parts.registry.all()];
  checkEdges(nodes, parts.graph);
  checkDemand(nodes);
  checkOrder(nodes, parts.graph);
  checkAgenda(nodes, parts);
}

/** Every read has its edge in the lists where it belongs, and there are no other edges. */
function checkEdges(nodes: readonly SchedulerNode[], { tick }: Graph): void {
  const edgesAt = new Map<NodeAddress, number>();
  const linked = new Set<Edge>();
  const homes = new Set<DocumentIndex>();
  for (const node of nodes) {
    const check = checker(node);
    for (const output of node.outputs) {
      homes.add(output.home);
      const times = output.home.writers.filter((writer) => writer === node).length;
      check(times === 1, `is ${times} times a writer of its output ${output}`);
    }
    for (let edge = node.reads; edge !== null; edge = edge.next) {
      check(edge.node === node, "has another node's read");
      check(edge.linked === node.live, `is ${node.live ? "live" : "dormant"} and its read of ${edge.address} is not`);
      edgesAt.set(edge.address, (edgesAt.get(edge.address) ?? 0) + 1);
      homes.add(edge.address.home);
      if (edge.linked) linked.add(edge);
    }
  }
  for (const [address, count] of edgesAt) {
    ensure(address.edges === count, `${address} counts ${address.edges} reads, there are ${count}`);
    ensure(!address.gone, `${address} is read and was forgotten`);
  }
  checkHolds(homes, edgesAt);
  let found = 0;
  for (const home of homes) {
    const addresses = new Set<NodeAddress>();
    for (const edge of linkedEdges(home.root)) {
      found++;
      addresses.add(edge.address);
      ensure(linked.has(edge), `${edge.address} lists a read of ${edge.node.id} that is not registered`);
      ensure(edge.newer === null || edge.newer.older === edge, `the readers of ${edge.address} are not one list`);
    }
    const { liveAddresses, root } = home;
    ensure(liveAddresses === addresses.size, `${root} counts ${liveAddresses} read places, not ${addresses.size}`);
    checkStamps(home.root, tick);
  }
  ensure(found === linked.size, "a live read is not listed at its address");
}

/** A document that is read or written is in its replica, with one hold for each read place and each writer. */
function checkHolds(homes: ReadonlySet<DocumentIndex>, edgesAt: ReadonlyMap<NodeAddress, number>): void {
  const needed = new Map([...homes].map((home) => [home, home.writers.length]));
  for (const { home } of edgesAt.keys()) needed.set(home, (needed.get(home) ?? 0) + 1);
  for (const [{ replica, document, root }, count] of needed) {
    ensure(replica.find(document) === document, `${root} is used and was dropped`);
    ensure(document.observers >= count, `${root} is held by ${document.observers}, and needed by ${count}`);
  }
}

/** A stamp is not newer than that of its parent, or than the graph's tick. */
function checkStamps(root: NodeAddress, tick: number): void {
  const open = [root];
  for (const address of open) {
    const { parent, stamp, shape } = address;
    ensure(shape <= stamp && stamp <= (parent?.stamp ?? tick), `${address} is stamped ${stamp}, later than its parent`);
    for (const child of address.children?.values() ?? []) {
      ensure(child.parent === address, `${child} is not the child of ${address}`);
      open.push(child);
    }
  }
}

/** Liveness and demand equal those that are derived anew. */
function checkDemand(nodes: readonly SchedulerNode[]): void {
  const live = new Set(nodes.filter((node) => node.rooted || node.provisional));
  const demand = new Map(nodes.map((node) => [node, Number(node.rooted) + Number(node.provisional)]));
  for (const node of live) {
    for (let edge = node.reads; edge !== null; edge = edge.next) {
      for (const writer of edge.address.home.writers) {
        if (writer === node) continue;
        demand.set(writer, (demand.get(writer) ?? 0) + 1);
        live.add(writer);
      }
    }
  }
  for (const node of nodes) {
    const check = checker(node);
    check(node.live === live.has(node), node.live ? "is live without demand" : "is dormant and demanded");
    check(node.demand === demand.get(node), `counts ${node.demand} demands, there are ${demand.get(node)}`);
  }
}

function checkOrder(nodes: readonly SchedulerNode[], { heights }: Graph): void {
  for (const node of nodes) {
    if (!node.live || heights.isUnordered(node)) continue;
    for (let edge = node.reads; edge !== null; edge = edge.next) {
      for (const writer of edge.address.home.writers) {
        const isAbove = writer === node || writer.height < node.height;
        checker(node)(isAbove, `is not above ${writer.id}, whose output it reads`);
      }
    }
  }
}

function checkAgenda(nodes: readonly SchedulerNode[], { agenda, gates }: Parts): void {
  agenda.primary.checkInvariants();
  agenda.idle.checkInvariants();
  agenda.envelopes.checkInvariants(agenda.idle);
  const queued = new Set([...agenda.primary, ...agenda.idle]);
  for (const node of nodes) {
    const check = checker(node);
    const isHeld = gates.held.has(node);
    // A running (asynchronous) node is queued again when its run ends.
    const wantsToRun = node.live && node.status !== "clean" && node.slot !== RUNNING && !node.isWaiting;
    check(isHeld === (node.gate?.held ?? false), "disagrees with the gates about waiting for them");
    check(queued.has(node) === (wantsToRun && !isHeld), `is ${node.status}, ${queued.has(node) ? "" : "not "}queued`);
    check(!isHeld || wantsToRun, `waits for its gate and is ${node.live ? node.status : "dormant"}`);
    check(node.status !== "clean" || causesOf(node).length === 0, "is clean and has causes");
    queued.delete(node);
  }
  ensure(queued.size === 0, "a node is queued that is not registered");
}

function checker(node: SchedulerNode): (holds: boolean, problem: string) => void {
  return (holds, problem) => ensure(holds, `node ${node.id} ${problem}`);
}

function ensure(holds: boolean, problem: string): void {
  if (!holds) throw new Error(`Scheduler: ${problem}`);
}
