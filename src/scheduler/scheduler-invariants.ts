/**
 * What is true of a scheduler whenever nothing of it is running: `Scheduler.checkInvariants` for tests and diagnosis. Walks
 * everything and derives liveness anew, so it is no check for production.
 */
import type { Address, DocumentIndex } from "./address.ts";
import type { Agenda } from "./agenda.ts";
import type { Gates } from "./gates.ts";
import type { Graph } from "./graph.ts";
import { linkedEdges } from "./graph-walk.ts";
import { type Edge, RUNNING, type SchedulerNode } from "./node.ts";
import type { Registry } from "./registry.ts";

interface Parts {
  readonly registry: Registry;
  readonly graph: Graph;
  readonly agenda: Agenda;
  readonly gates: Gates;
}

/** The first contradiction, thrown. */
export function checkScheduler(parts: Parts): void {
  const nodes = [...parts.registry.all()];
  checkEdges(nodes, parts.graph);
  checkDemand(nodes);
  checkOrder(nodes, parts.graph);
  checkAgenda(nodes, parts);
}

/** Every edge stands where it should, and nothing else stands there. */
function checkEdges(nodes: readonly SchedulerNode[], { tick }: Graph): void {
  const edgesAt = new Map<Address, number>();
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
    const addresses = new Set<Address>();
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

/** What is read or written is the replica's own, and held by each place that is read and each node that writes. */
function checkHolds(homes: ReadonlySet<DocumentIndex>, edgesAt: ReadonlyMap<Address, number>): void {
  const needed = new Map([...homes].map((home) => [home, home.writers.length]));
  for (const { home } of edgesAt.keys()) needed.set(home, (needed.get(home) ?? 0) + 1);
  for (const [{ replica, document, root }, count] of needed) {
    ensure(replica.find(document) === document, `${root} is used and was dropped`);
    ensure(document.observers >= count, `${root} is held by ${document.observers}, and needed by ${count}`);
  }
}

/** What lies below has not changed later than what is above it, and nothing after now. */
function checkStamps(root: Address, tick: number): void {
  const open = [root];
  for (const address of open) {
    const { parent, stamp, shape } = address;
    ensure(
      shape <= stamp && stamp <= (parent?.stamp ?? tick),
      `${address} is stamped ${stamp}, after what is above it`,
    );
    for (const child of address.children?.values() ?? []) {
      ensure(child.parent === address, `${child} is not the child of ${address}`);
      open.push(child);
    }
  }
}

/** Liveness and demand are what deriving them anew gives. */
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
    check(node.live === live.has(node), node.live ? "is live and nothing demands it" : "is dormant and demanded");
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
  const queued = new Set([...agenda.primary, ...agenda.idle]);
  for (const node of nodes) {
    const check = checker(node);
    const isHeld = gates.held.has(node);
    // One that runs now (asynchronously) is queued again when it has ended.
    const wantsToRun = node.live && node.status !== "clean" && node.slot !== RUNNING && !node.isWaiting;
    check(isHeld === (node.gate?.held ?? false), "disagrees with the gates about waiting for them");
    check(queued.has(node) === (wantsToRun && !isHeld), `is ${node.status}, ${queued.has(node) ? "" : "not "}queued`);
    check(!isHeld || wantsToRun, `waits for its gate and is ${node.live ? node.status : "dormant"}`);
    check(node.status !== "clean" || node.causes.length === 0, "is clean and has causes");
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
