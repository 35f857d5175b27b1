/**
 * The write-behind cache for derived values (design point 16). Outputs of one space's nodes go to the store with the
 * rows of their inputs: only the last value of each, many nodes in one commit, shortly after they ran. It does not
 * affect scheduling. SPEC: I7, R34.
 *
 * ```
 *   ran ──> unwritten ──after the delay, or on flush──> in flight ──confirmed──> written
 *               ^                                           └──rejected──> unwritten
 *               └── while an input is pending, loading, or unwritten and not in the same commit
 * ```
 * One commit is in flight at a time, so that the position of the replica covers every earlier one. A node that is about
 * to run is not written.
 */
import type { Host, Timer } from "../host/host.ts";
import { WRITE_ATTEMPTS_MAX, WRITE_BEHIND_MS, WRITE_BEHIND_NODES_MAX, WRITE_BEHIND_RETRY_MS } from "../limits.ts";
import type { DocumentRef } from "../store/document.ts";
import type { Rejection } from "../store/rejection.ts";
import type { Replica } from "../store/replica.ts";
import { verdictOn } from "../work/retry-table.ts";
import { DerivedBatch, outputRef } from "./derived-batch.ts";
import type { Introspection } from "./introspection.ts";
import type { SchedulerNode } from "./node.ts";
import type { WriteTurns } from "./turns.ts";

export class WriteBehind {
  /** Nodes whose rows were written, for tests and `getStats`. */
  written = 0;
  readonly #replica: Replica;
  readonly #host: Host;
  readonly #turns: WriteTurns;
  readonly #introspection: Introspection;
  readonly #unwritten = new Set<SchedulerNode>();
  /** Nodes removed for good, by name, with their outputs. */
  readonly #dropped = new Map<string, DocumentRef | undefined>();
  #timer: Timer | undefined;
  /** The last of the commits, which follow one another. */
  #last: Promise<void> = Promise.resolve();
  /** How often in a row the store has failed. */
  #failures = 0;
  #closed = false;

  constructor(replica: Replica, parts: { host: Host; turns: WriteTurns; introspection: Introspection }) {
    this.#replica = replica;
    this.#host = parts.host;
    this.#turns = parts.turns;
    this.#introspection = parts.introspection;
  }

  /** The node's output, reads or settings may differ from the stored ones. */
  add(node: SchedulerNode): void {
    if (node.record === undefined || this.#closed) return;
    node.record.unwritten = true;
    this.#unwritten.add(node);
    this.#dropped.delete(node.id);
    this.#arm(WRITE_BEHIND_MS);
  }

  /** The node is not registered any more; its row and output stay for its next registration. */
  remove(node: SchedulerNode): void {
    this.#unwritten.delete(node);
  }

  /** The node was removed for good; its row and output are removed too. */
  drop(node: SchedulerNode): void {
    this.#unwritten.delete(node);
    if (this.#closed) return;
    this.#dropped.set(node.id, outputRef(node));
    this.#arm(WRITE_BEHIND_MS);
  }

  /** The number of unwritten nodes. */
  get size(): number {
    return this.#unwritten.size;
  }

  /** Writes all rows that can be written now or after those; resolves when the commits have outcomes. */
  async flush(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    for (let before = -1; before !== this.written; ) {
      before = this.written;
      await this.#write();
    }
  }

  /** Stops writing: unwritten values are computed again when they are needed. */
  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
    this.#unwritten.clear();
    this.#dropped.clear();
  }

  #arm(delayMs: number): void {
    if (this.#timer !== undefined || this.#closed) return;
    this.#timer = this.#host.timer(delayMs, () => {
      this.#timer = undefined;
      void this.#write();
    });
  }

  #write(): Promise<void> {
    this.#last = this.#last.then(() => this.#writeOne());
    return this.#last;
  }

  async #writeOne(): Promise<void> {
    if (this.#closed || (this.#unwritten.size === 0 && this.#dropped.size === 0)) return;
    // Plain writes may invalidate nodes that seem clean.
    this.#turns.settle(this.#replica);
    const batch = this.#collect();
    if (!batch.isEmpty) {
      const dropped = [...this.#dropped];
      this.#dropped.clear();
      const outcome = await this.#replica.record(batch.rows()).outcome;
      if (outcome.kind === "rejected") return this.#rejected(batch, dropped, outcome);
      this.#failures = 0;
      this.written += batch.entries.length;
      for (const { node, stored } of batch.entries) if (node.record !== undefined) node.record.stored = stored;
    }
    this.#waitFor(batch);
  }

  /** Writers come before their readers, so that one commit can have both. */
  #collect(): DerivedBatch {
    const batch = new DerivedBatch(this.#replica);
    for (const [name, output] of this.#dropped) batch.drop(name, output);
    for (const node of [...this.#unwritten].sort((a, b) => a.height - b.height)) {
      batch.isFull = batch.entries.length >= WRITE_BEHIND_NODES_MAX;
      if (batch.isFull) break;
      if (batch.add(node) !== "waits") this.#unwritten.delete(node);
    }
    return batch;
  }

  /** Schedules the next commit for the rest. Nodes that wait for other nodes are tried when those are written. */
  #waitFor({ entries, isFull, waitsForCommits, waitsForLoads, waitsForNodes }: DerivedBatch): void {
    const again = () => this.#arm(WRITE_BEHIND_MS);
    if (isFull || (waitsForNodes && entries.length > 0)) this.#arm(0);
    else if (waitsForCommits) void this.#replica.settled().then(again);
    else if (waitsForLoads) void this.#replica.loadsSettled().then(again);
  }

  async #rejected(
    { entries }: DerivedBatch,
    dropped: readonly [string, DocumentRef | undefined][],
    rejection: Rejection,
  ): Promise<void> {
    for (const { node } of entries) {
      if (node.record === undefined || !node.registered) continue;
      // The stored output is unknown now; the next commit writes it whole.
      node.record.stored = undefined;
      node.record.unwritten = true;
      this.#unwritten.add(node);
    }
    for (const [name, output] of dropped) this.#dropped.set(name, output);
    const verdict = verdictOn(rejection);
    if (verdict !== "again" && verdict !== "ask") return this.#giveUp(rejection.message);
    // Derived values are written again unchanged, so the store need not be asked for a commit without answer.
    const isStale = verdict === "again" && rejection.class !== "failed";
    if (!isStale && ++this.#failures >= WRITE_ATTEMPTS_MAX) return this.#giveUp(rejection.message);
    // A feed that cannot be read now is no reason to give up: the next rejection reports it again.
    if (isStale) await this.#replica.catchUp().catch(() => undefined);
    this.#arm(isStale ? 0 : WRITE_BEHIND_RETRY_MS);
  }

  #giveUp(message: string): void {
    this.#failures = 0;
    this.#unwritten.clear();
    this.#dropped.clear();
    this.#introspection.lostDerived(this.#replica.space, message);
  }
}
