/**
 * Resumes nodes (Scheduler v2 §9.2): nodes registered together are looked up together, and no node runs before all are
 * installed. SPEC: I7, R35, R36.
 *
 * | row of the node                                      | state after the look-up                             |
 * |------------------------------------------------------|-----------------------------------------------------|
 * | fits                                                 | clean, with reads, gates and error; loads no data   |
 * | fits, but inputs changed or may differ in memory     | invalid; compared by its digest before it runs      |
 * | fits, but another process has replaced the output    | runs                                                |
 * | none, or one that does not fit                       | fresh                                               |
 */
import type { Replica } from "../store/replica.ts";
import type { RecordedBasis } from "../store/store.ts";
import type { Agenda } from "./agenda.ts";
import { isObservation, readsByDocument, readsDigest } from "./basis-row.ts";
import type { Documents } from "./documents.ts";
import { RowReads } from "./folded-reads.ts";
import type { Gates } from "./gates.ts";
import type { Graph } from "./graph.ts";
import type { NodeAddress, NodeRecord, SchedulerNode } from "./node.ts";
import { enterReads, hasForeignOutput } from "./node-record.ts";
import type { GateSettings, Observation } from "./node-state.ts";

export class Resume {
  readonly #graph: Graph;
  readonly #documents: Documents;
  readonly #agenda: Agenda;
  readonly #gates: Gates;

  constructor(parts: { graph: Graph; documents: Documents; agenda: Agenda; gates: Gates }) {
    this.#graph = parts.graph;
    this.#documents = parts.documents;
    this.#agenda = parts.agenda;
    this.#gates = parts.gates;
  }

  /**
   * Looks up nodes of one space and installs them. If the store cannot answer, they start fresh, and the error is
   * thrown.
   */
  async install(replica: Replica, nodes: readonly SchedulerNode[]): Promise<void> {
    const { position } = replica;
    let rows: readonly RecordedBasis[] = [];
    try {
      rows = await replica.basis(nodes.map(({ id }) => id));
    } finally {
      // Changes that arrived meanwhile may be newer than the answer, and the nodes had no reads yet to be invalidated
      // by.
      const isLate = replica.position !== position;
      const reads = new RowReads({ graph: this.#graph, documents: this.#documents }, replica);
      let next = 0;
      nodes.forEach((node, place) => {
        // Rows come in the order of the request, without gaps for missing ones.
        const row = rows[next]?.node === node.id ? rows[next++] : undefined;
        const { record } = node;
        if (record === undefined || record.phase !== "asked") return;
        record.neighbours = nodes;
        record.place = place;
        this.#installOne(node, record, fitting(row, record), reads, isLate);
      });
    }
  }

  #installOne(
    node: SchedulerNode,
    record: NodeRecord,
    row: Observation | undefined,
    reads: RowReads,
    isLate: boolean,
  ): void {
    record.restoring = true;
    if (row === undefined || !node.registered) {
      record.phase = "missed";
      return;
    }
    record.phase = "restored";
    record.observation = row;
    const { gate, error, creates = false, open = false } = row.settings;
    record.creates = creates;
    if (gate !== undefined) this.#restoreGates(node, gate);
    if (error !== undefined) node.error = new Error(error);
    node.status = "clean";
    const isDoubtful = isLate || open;
    if (reads.fold(record) || isDoubtful) {
      reads.enterDoubtful(node, record, isDoubtful);
      node.status = "invalid";
    } else if (creates) node.status = "invalid";
    if (node.live) enterReads(node);
    if (node.status === "clean") this.#agenda.withdraw(node);
    else if (node.live) this.#agenda.offer(node);
  }

  #restoreGates(node: SchedulerNode, { debounceMs, throttleMs, noAutoDebounce }: GateSettings): void {
    if (debounceMs !== undefined) this.#gates.setDebounce(node, debounceMs);
    if (throttleMs !== undefined) this.#gates.setThrottle(node, throttleMs);
    if (noAutoDebounce !== undefined) this.#gates.setNoAutoDebounce(node, noAutoDebounce);
  }

  // Before the first run
  // -----------------------------------------------------------------------------------------------

  /**
   * The documents that the first run of a resumed node needs and that are not here; requests those of the store. A
   * `hidden` one is the output of a node that waits itself: no load brings it, and the node tells when it has run.
   */
  missing(node: SchedulerNode): "none" | "loading" | "hidden" {
    let missing: "none" | "loading" | "hidden" = "none";
    const need = ({ home }: NodeAddress) => {
      const { document, replica, writers } = home;
      if (document.state === "absent" && document.loadError === undefined) replica.touch(document);
      if (document.state !== "loading" || missing === "loading") return;
      missing = writers.some(({ isHidden }) => isHidden) ? "hidden" : "loading";
    };
    const output = this.#documents.outputOf(node);
    if (output !== undefined) need(output);
    for (let edge = node.reads; edge !== null; edge = edge.next) need(edge.address);
    return missing;
  }

  /** With all inputs loaded: true if the node is unchanged because all its inputs are. */
  verify(node: SchedulerNode, record: NodeRecord): boolean {
    const { observation, phase } = record;
    const output = node.output?.document;
    const isOwn = observation !== undefined && !hasForeignOutput(node);
    record.phase = "here";
    record.observation = undefined;
    if (output?.state === "loaded") record.stored = { value: output.value };
    if (phase !== "restored" || !isOwn || !isAsItWas(node, observation)) {
      // An output that could not be loaded is created anew; a later load is ignored.
      if (output?.state === "absent") output.state = "loaded";
      return false;
    }
    node.status = "clean";
    node.reason = null;
    record.restoring = false;
    return true;
  }
}

function isAsItWas(node: SchedulerNode, { settings: { creates, seen } }: Observation): boolean {
  return !creates && readsDigest(readsByDocument(node), new Map()) === seen;
}

function fitting(row: RecordedBasis | undefined, { fingerprint }: NodeRecord): Observation | undefined {
  return row !== undefined && row.fingerprint === fingerprint && isObservation(row) ? row : undefined;
}
