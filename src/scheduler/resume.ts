/**
 * Resuming nodes (Scheduler v2 §9.2): those that are registered together are looked up together; nothing runs before all of them are
 * installed. A node whose row fits gets its reads, gates and error back and is clean without anything being loaded; one whose inputs
 * have moved, or are here in memory where they may be others than those that are stored, is in doubt: it is invalid and compared by
 * its digest before it runs. One without a row that fits starts fresh, alone. SPEC: I7, R35, R36.
 */
import type { Replica } from "../store/replica.ts";
import type { RecordedBasis } from "../store/store.ts";
import type { Address } from "./address.ts";
import type { Agenda } from "./agenda.ts";
import { digestOf, type Observation, observationOf, readsByDocument } from "./basis-row.ts";
import { addCause } from "./causes.ts";
import type { Gates } from "./gates.ts";
import type { Graph } from "./graph.ts";
import type { SchedulerNode } from "./node.ts";
import type { NodeRecord } from "./node-record.ts";

export class Resume {
  readonly #graph: Graph;
  readonly #agenda: Agenda;
  readonly #gates: Gates;

  constructor(parts: { graph: Graph; agenda: Agenda; gates: Gates }) {
    this.#graph = parts.graph;
    this.#agenda = parts.agenda;
    this.#gates = parts.gates;
  }

  /** Looks up nodes of one space and installs them. When the store cannot answer they start fresh, and the error is thrown. */
  async install(replica: Replica, nodes: readonly SchedulerNode[]): Promise<void> {
    const { position } = replica;
    let rows: readonly RecordedBasis[] = [];
    try {
      rows = await replica.basis(nodes.map(({ id }) => id));
    } finally {
      // What has arrived meanwhile may be later than the answer, and nobody was there to be told.
      const isLate = replica.position !== position;
      let next = 0;
      nodes.forEach((node, place) => {
        // They come in the order asked; who has none is left out.
        const row = rows[next]?.node === node.id ? rows[next++] : undefined;
        const { record } = node;
        if (record === undefined || record.phase !== "asked") return;
        record.neighbours = nodes;
        record.place = place;
        this.#installOne(node, record, fitting(row, record), isLate);
      });
    }
  }

  #installOne(node: SchedulerNode, record: NodeRecord, row: Observation | undefined, isLate: boolean): void {
    record.restoring = true;
    if (row === undefined || !node.registered) {
      record.phase = "missed";
      return;
    }
    record.phase = "restored";
    record.observation = row;
    record.creates = row.creates;
    this.#restoreGates(node, row);
    if (row.error !== undefined) node.error = new Error(row.error);
    node.status = "clean";
    if (this.#restoreReads(node, row, isLate || row.open) || row.creates) node.status = "invalid";
    if (node.status === "clean") this.#agenda.withdraw(node);
    else if (node.live) this.#agenda.offer(node);
  }

  /** Registers what the row says was read; true if it may be something else by now. */
  #restoreReads(node: SchedulerNode, { inputs }: Observation, isDoubtful: boolean): boolean {
    const replica = node.output?.home.replica ?? this.#replicaOf(node);
    let inDoubt = false;
    // What was declared at the registration is replaced by what is known.
    this.#graph.dropReads(node, null);
    let tail = null;
    for (const input of inputs) {
      const { reads, moved } = input;
      const { root, document } = this.#graph.index(replica, input);
      // One that this process's code has labelled before it was loaded is known to be another.
      const mayDiffer = isDoubtful || moved || document.isKnown || document.labels !== undefined;
      for (const { path, depth } of reads) {
        const address: Address = root.at(path);
        tail = this.#graph.addRead(node, address, depth === "shallow", tail);
        if (mayDiffer) addCause(node, address);
      }
      inDoubt ||= mayDiffer;
    }
    return inDoubt;
  }

  #replicaOf(node: SchedulerNode): Replica {
    const place = node.outputs[0] ?? node.envelope?.[0];
    if (place === undefined) throw new Error(`node ${node.id} writes nowhere, so there is nothing to resume`);
    return place.home.replica;
  }

  #restoreGates(node: SchedulerNode, { gate }: Observation): void {
    if (gate.debounceMs !== undefined) this.#gates.setDebounce(node, gate.debounceMs);
    if (gate.throttleMs !== undefined) this.#gates.setThrottle(node, gate.throttleMs);
    if (gate.noAutoDebounce !== undefined) this.#gates.setNoAutoDebounce(node, gate.noAutoDebounce);
  }

  // Before the first run -----------------------------------------------------------------------------------------------

  /** Whether everything is here that the first run of a resumed node needs; what is not is asked for. */
  isHere(node: SchedulerNode): boolean {
    let isHere = true;
    const need = ({ home }: Address) => {
      const { document, replica } = home;
      if (document.state === "absent" && document.loadError === undefined) replica.touch(document);
      if (document.state === "loading") isHere = false;
    };
    if (node.output !== undefined) need(node.output);
    for (let edge = node.reads; edge !== null; edge = edge.next) need(edge.address);
    return isHere;
  }

  /** Everything is here: the node is what it was if all that it had read is; true then. */
  verify(node: SchedulerNode, record: NodeRecord): boolean {
    const { observation, phase } = record;
    const output = node.output?.document;
    record.phase = "here";
    record.observation = undefined;
    if (output?.state === "loaded") record.stored = { value: output.value };
    if (phase !== "restored" || observation === undefined || !isAsItWas(node, observation)) {
      // One that could not be loaded is made anew: what is stored comes too late.
      if (output?.state === "absent") output.state = "loaded";
      return false;
    }
    node.status = "clean";
    node.reason = null;
    record.restoring = false;
    return true;
  }
}

function isAsItWas(node: SchedulerNode, { creates, digest }: Observation): boolean {
  return !creates && digestOf(readsByDocument(node), new Map()) === digest;
}

function fitting(row: RecordedBasis | undefined, { fingerprint }: NodeRecord): Observation | undefined {
  return row === undefined || row.fingerprint !== fingerprint ? undefined : observationOf(row);
}
