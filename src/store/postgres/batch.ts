/**
 * Jobs of one batch as the argument of `apply_v1`. SPEC: S5-S13.
 *
 * The function checks the facts as they were before the batch. So a batch must not have two jobs of which one decides
 * on a fact that the other changes: `add` answers `full` for such a job, and it begins the next batch. Per space, only
 * one session writes in a batch, because its commits do not conflict with each other.
 */
import { DOCUMENT_BYTES_MAX } from "../../limits.ts";
import { timeInId } from "../../message/id-time.ts";
import type { Json } from "../../message/json.ts";
import type { CommitRequest, Committed, NodeBasis, Precondition } from "../commit.ts";
import { type DocumentRef, documentKey } from "../document.ts";
import { presenceAfter } from "../document-list.ts";
import type { JournalEntry, Settlement } from "../journal.ts";
import type { SizedPatch } from "../memory/space-table.ts";
import { applyOperations, PatchError } from "../patch.ts";
import type { PathOperation } from "../path-operation.ts";
import type { SqlStatement } from "../sql-statement.ts";
import type { EncodedEntry } from "../sqlite/journal-entry.ts";
import { GENESIS, type RowHasher } from "../sqlite/journal-hash.ts";
import { jsonText } from "../sqlite/json-text.ts";
import type { AppendOutcome, SettleResult } from "../store.ts";
import type { BatchedJob, CommitJob } from "./jobs.ts";
import { LANE_COUNT } from "./schema.ts";

/** Commits, appends and settlements in one batch. More make the statement long while it holds its locks. */
const BATCH_JOBS_MAX = 500;
const BATCH_BYTES_MAX = 4_194_304;

/** Where the writer's next journal row goes. */
export interface RowPlace {
  readonly lane: number;
  /** The greatest `n` of a journal id that this process has seen. */
  n: number;
  /** The number and the hash of the writer's last row. */
  place: number;
  hash: string;
  /** The last id of the lane; 0 if it has none. */
  lastId: number;
}

export function firstPlace(lane: number, n: number, lastId = 0): RowPlace {
  return { lane, n, place: 0, hash: GENESIS, lastId };
}

export interface BatchContext {
  readonly hasher: RowHasher;
  /** Of the data, as last known. */
  readonly history: string;
  /** Commits of a space that the feed reaches back to. */
  readonly feedCommits: number;
  /** Whether this process made a commit; false if it does not remember it. */
  wasMade(session: string, localSequence: number): boolean;
}

/** What has been checked against the facts already, by a decision inside the same transaction. */
export interface Decided {
  /** Values that the documents have now, to be written as a whole. */
  readonly bases: ReadonlyMap<string, Json | undefined>;
}

export interface BatchAnswer {
  readonly heads: readonly number[];
  readonly lost: readonly number[];
  /** Documents with many patches: space, scope, id. */
  readonly fold: readonly (readonly [string, string, string])[];
}

export type Added = "added" | "full" | "alone";

interface DocumentChange extends DocumentRef {
  offset: number;
  /** Operations since an unknown base; undefined if the value is known. */
  operations: PathOperation[] | undefined;
  value: Json | undefined;
  growth: number;
  /** Whether it has a value after the batch; undefined if no operation decides it. */
  presence: boolean | undefined;
  readonly birth: { readonly madeAtMs: number | null } | undefined;
}

interface SpaceChange {
  readonly index: number;
  /** The only session that writes to it in this batch. */
  session: string | undefined;
  moves: number;
  readonly documents: Map<string, DocumentChange>;
  readonly scopes: Set<string>;
  readonly commits: [number, unknown, unknown][];
  readonly reads: Map<string, DocumentRef & { sequence: number; session: string }>;
  readonly absent: Map<string, DocumentRef>;
  readonly members: { scope: string; prefix: string; sequence: number }[];
  readonly labels: Map<string, DocumentRef & { path: string; labels: string | null }>;
  readonly nodes: Map<string, { basis: NodeBasis; offset: number } | undefined>;
}

interface MadeRun {
  readonly space: number;
  readonly session: string;
  readonly answers: [number, string, number, readonly number[]][];
}

export class Batch {
  readonly jobs: BatchedJob[] = [];
  readonly place: RowPlace;
  readonly #decided: Decided | undefined;
  readonly #context: BatchContext;
  readonly #spaces = new Map<string, SpaceChange>();
  readonly #made = new Map<string, MadeRun>();
  readonly #sessions = new Map<string, Set<number>>();
  readonly #origins: { w: string; n: number }[] = [];
  readonly #entries: object[] = [];
  readonly #messages = new Set<string>();
  readonly #settles = new Map<number, object>();
  readonly #due = new Map<string, object>();
  readonly #results: ((answer: BatchAnswer) => void)[] = [];
  #oldest: number | undefined;
  #consumers: number | undefined;
  #bytes = 0;
  touchesJournal = false;
  /** Statements on the user's tables, in the order of their commits. */
  readonly statements: SqlStatement[] = [];

  /** `decided`: the batch has one job, which was decided with all facts. */
  constructor(place: RowPlace, context: BatchContext, decided?: Decided) {
    this.place = { ...place };
    this.#context = context;
    this.#decided = decided;
  }

  get changedSpaces(): string[] {
    return [...this.#spaces].filter(([, { moves }]) => moves > 0).map(([name]) => name);
  }

  add(job: BatchedJob): Added {
    if (this.jobs.length > 0) {
      if (this.jobs.length >= BATCH_JOBS_MAX || this.#bytes + job.bytes > BATCH_BYTES_MAX) return "full";
    }
    const fit = this.#decided === undefined ? this.#fits(job) : "added";
    if (fit !== "added") return fit;
    if (job.kind === "commit") this.#addCommit(job);
    else if (job.kind === "append") this.#addAppend(job);
    else this.#addSettle(job);
    this.jobs.push(job);
    this.#bytes += job.bytes;
    return "added";
  }

  #fits(job: BatchedJob): Added {
    const version = versionOf(job);
    if (version === "several") return "alone";
    if (version !== undefined && this.#consumers !== undefined && version !== this.#consumers) return "full";
    if (job.kind === "settle") return this.#fitSettlements(job.settlements);
    const entries = this.#fitEntries(job.entries);
    if (entries !== "added" || job.kind === "append") return entries;
    const settlements = this.#fitSettlements(job.request.settlements);
    if (settlements !== "added") return settlements;
    return this.#fitCommit(job);
  }

  #fitSettlements(settlements: readonly Settlement[]): Added {
    const own = new Set<number>();
    for (const { id } of settlements) {
      if (own.has(id)) return "alone";
      own.add(id);
      if (this.#settles.has(id)) return "full";
    }
    return "added";
  }

  #fitEntries(entries: readonly EncodedEntry[]): Added {
    const own = new Set<string>();
    for (const { messageId } of entries) {
      if (own.has(messageId)) return "alone";
      own.add(messageId);
      if (this.#messages.has(messageId)) return "full";
    }
    return "added";
  }

  #fitCommit({ request, patches }: CommitJob): Added {
    const { session, localSequence, history } = request;
    if (history !== undefined && history !== this.#context.history) return "alone";
    if (this.#sessions.get(session)?.has(localSequence)) return "full";
    const due = new Set<string>();
    for (const { kind, key } of request.due) {
      const name = `${kind}\0${key}`;
      if (due.has(name)) return "alone";
      due.add(name);
      if (this.#due.has(name)) return "full";
    }
    const space = this.#spaces.get(request.space);
    const writes = patches.length > 0 || request.labels.length > 0;
    const isOther = space?.session !== undefined && space.session !== session;
    if (isOther && (writes || request.reads.length > 0)) return "full";
    for (const condition of request.preconditions) {
      if (condition.kind === "absent" && space?.documents.has(documentKey(condition))) return "full";
      if (condition.kind === "members" && space?.scopes.has(condition.scope)) return "full";
    }
    for (const read of request.reads) if (read.sequence < 0 && space?.documents.has(documentKey(read))) return "full";
    return this.#fitPatches(request, patches, space);
  }

  #fitPatches(request: CommitRequest, patches: readonly SizedPatch[], space: SpaceChange | undefined): Added {
    for (const patch of patches) {
      if (isWhole(patch.operations) && patch.growth > DOCUMENT_BYTES_MAX) return "alone";
      const earlier = space?.documents.get(documentKey(patch));
      if (earlier === undefined) {
        if (!fitsItself(patch)) return "alone";
        continue;
      }
      const presence = presenceAfter(patch.operations);
      if (earlier.birth !== undefined && request.preconditions.length > 0) return "full";
      if (presence !== undefined && earlier.presence !== presence) return "full";
      if (earlier.growth + patch.growth > DOCUMENT_BYTES_MAX) return "full";
      if (!fitsOnto(earlier, patch.operations)) return "full";
    }
    return "added";
  }

  #addCommit(job: CommitJob): void {
    const { request, patches } = job;
    const { session, localSequence, digest, statements } = request;
    if (statements !== undefined) this.statements.push(...statements);
    const space = this.#space(request.space);
    const moves = patches.length > 0 || request.labels.length > 0;
    if (moves) {
      space.session = session;
      space.moves++;
      space.commits.push([
        localSequence,
        patches.map(({ scope, id, operations }) => ({ scope, id, operations })),
        request.labels,
      ]);
      for (const patch of patches) this.#addPatch(space, patch, request);
      for (const { scope, id, path, labels } of request.labels) {
        const text = jsonText("a path", path);
        const write = { scope, id, path: text, labels: labels.length === 0 ? null : jsonText("a label", labels) };
        space.labels.set(`${documentKey(write)}\0${text}`, write);
      }
    }
    this.#addChecks(space, request);
    for (const node of request.basisRemoved) space.nodes.set(node, undefined);
    for (const basis of request.basis) space.nodes.set(basis.node, { basis, offset: space.moves });
    const ids = this.#addEntries(job.entries);
    for (const settlement of request.settlements) this.#addSettlement(settlement, false);
    for (const change of request.due) {
      const { op, kind, key } = change;
      const set = op === "put" || op === "add" ? { at: change.dueAtMs, d: jsonText("a due row", change.data) } : {};
      const was = op === "take" && change.was !== undefined ? { was: jsonText("a due row", change.was) } : {};
      this.#due.set(`${kind}\0${key}`, { o: op, k: kind, y: key, z: this.#due.size, ...set, ...was });
      this.touchesJournal = true;
    }
    const known = this.#sessions.get(session);
    if (known === undefined) this.#sessions.set(session, new Set([localSequence]));
    else known.add(localSequence);
    const runKey = `${space.index} ${session}`;
    let run = this.#made.get(runKey);
    if (run === undefined) {
      run = { space: space.index, session, answers: [] };
      this.#made.set(runKey, run);
    }
    const offset = space.moves;
    run.answers.push([localSequence, digest, offset, ids]);
    this.#results.push(({ heads }) => {
      const sequence = (heads[space.index - 1] as number) + offset;
      const outcome: Committed = { kind: "committed", sequence, journalIds: ids, replayed: false };
      job.answer(outcome);
    });
  }

  #addChecks(space: SpaceChange, request: CommitRequest): void {
    if (this.#decided !== undefined) return;
    const { session, reads, preconditions, dependsOn, settlements } = request;
    for (const read of reads) {
      const key = `${session}\0${documentKey(read)}`;
      const known = space.reads.get(key);
      if (known === undefined)
        space.reads.set(key, { scope: read.scope, id: read.id, sequence: read.sequence, session });
      else known.sequence = Math.min(known.sequence, read.sequence);
    }
    for (const condition of preconditions) {
      if (condition.kind === "members") {
        const { scope, prefix, sequence } = condition;
        space.members.push({ scope, prefix, sequence });
      } else if (condition.kind === "absent") {
        if (condition.madeAtMs !== undefined && settlements.length === 0) this.#notOlderThan(condition.madeAtMs);
        const key = documentKey(condition);
        if (space.documents.get(key)?.birth === undefined)
          space.absent.set(key, { scope: condition.scope, id: condition.id });
      } else this.#requireMade(condition.session, condition.localSequence);
    }
    for (const localSequence of dependsOn) this.#requireMade(session, localSequence);
  }

  #requireMade(session: string, localSequence: number): void {
    if (this.#sessions.get(session)?.has(localSequence) || this.#context.wasMade(session, localSequence)) return;
    this.#origins.push({ w: session, n: localSequence });
  }

  #notOlderThan(timeMs: number): void {
    this.#oldest = Math.min(this.#oldest ?? timeMs, timeMs);
  }

  #addPatch(space: SpaceChange, { scope, id, operations, growth }: SizedPatch, request: CommitRequest): void {
    const key = documentKey({ scope, id });
    const offset = space.moves;
    const presence = presenceAfter(operations);
    space.scopes.add(scope);
    const earlier = space.documents.get(key);
    if (earlier === undefined) {
      const guard = absenceOf(request.preconditions, { scope, id });
      const base = this.#decided?.bases.has(key) ? { value: this.#decided.bases.get(key) } : undefined;
      const isKnown = setsWhole(operations) || base !== undefined;
      const value = isKnown ? applyOperations(base?.value, lastWhole(operations)) : undefined;
      // Only a value that is set can be inserted as new; a tombstone may follow.
      const birth = guard !== undefined && isKnown ? { madeAtMs: guard.madeAtMs ?? null } : undefined;
      const kept = isKnown ? undefined : [...operations];
      space.documents.set(key, { scope, id, offset, operations: kept, value, growth, presence, birth });
      return;
    }
    earlier.offset = offset;
    earlier.growth = setsWhole(operations) ? growth : earlier.growth + growth;
    if (presence !== undefined) earlier.presence = presence;
    if (setsWhole(operations)) {
      earlier.operations = undefined;
      earlier.value = applyOperations(undefined, lastWhole(operations));
    } else if (earlier.operations === undefined) earlier.value = applyOperations(earlier.value, operations);
    else for (const operation of operations) earlier.operations.push(operation);
  }

  #addAppend(job: BatchedJob & { kind: "append" }): void {
    const ids = this.#addEntries(job.entries);
    const outcome: AppendOutcome = { kind: "appended", ids };
    this.#results.push(() => job.answer(outcome));
  }

  #addSettle(job: BatchedJob & { kind: "settle" }): void {
    for (const settlement of job.settlements) this.#addSettlement(settlement, true);
    this.#results.push(({ lost }) => {
      const results = job.settlements.map(({ id }): SettleResult => (lost.includes(id) ? "lease-lost" : "settled"));
      job.answer(results);
    });
  }

  #addEntries(entries: readonly EncodedEntry[]): readonly number[] {
    if (entries.length === 0) return NO_IDS;
    this.touchesJournal = true;
    return entries.map((entry) => {
      const { as, messageId } = entry;
      this.#messages.add(messageId);
      if (entry.kind === "event" && this.#decided === undefined) {
        const madeAtMs = timeInId(messageId);
        if (madeAtMs !== undefined) this.#notOlderThan(madeAtMs);
      }
      if (as.status === "done" && as.consumers !== undefined && this.#decided === undefined)
        this.#consumers = as.consumers;
      const { place } = this;
      const id = ++place.n * LANE_COUNT + place.lane;
      place.hash = this.#context.hasher.hash(place.hash, id, entry);
      this.#entries.push({
        id,
        m: messageId,
        kind: entry.kind,
        type: entry.type,
        topic: entry.topic,
        source: entry.source,
        payload: entry.payload,
        corr: entry.correlation,
        caus: entry.causation,
        at: entry.createdAt,
        ts: entry.timestamp,
        meta: entry.metadata,
        place: ++place.place,
        hash: place.hash,
        prev: place.lastId,
        ...stateOf(as),
      });
      place.lastId = id;
      return id;
    });
  }

  #addSettlement(settlement: Settlement, own: boolean): void {
    const { id, lease, attempt, outcome, deliveries, consumers } = settlement;
    if (consumers !== undefined && this.#decided === undefined) this.#consumers = consumers;
    const del = deliveries && Object.fromEntries(deliveries.map((one) => [one.subscriber, one]));
    this.#settles.set(id, { id, lease, att: attempt, own, ...operationOf(outcome), ...(del && { del }) });
    this.touchesJournal = true;
  }

  #space(name: string): SpaceChange {
    const known = this.#spaces.get(name);
    if (known !== undefined) return known;
    const made: SpaceChange = {
      index: this.#spaces.size + 1,
      session: undefined,
      moves: 0,
      documents: new Map(),
      scopes: new Set(),
      commits: [],
      reads: new Map(),
      absent: new Map(),
      members: [],
      labels: new Map(),
      nodes: new Map(),
    };
    this.#spaces.set(name, made);
    return made;
  }

  /** The argument of `apply_v1`. Empty parts are left out, so that their statements do not run. */
  text(): string {
    const parts: { [part: string]: unknown } = { spaces: [...this.#spaces.keys()] };
    if (this.#entries.length > 0) parts["last"] = this.place.lastId;
    const put = (name: string, list: readonly unknown[]) => {
      if (list.length > 0) parts[name] = list;
    };
    const spaces = [...this.#spaces.values()];
    const isChecked = this.#decided === undefined;
    if (this.#oldest !== undefined) parts["oldest"] = this.#oldest;
    if (this.#consumers !== undefined) parts["consumers"] = this.#consumers;
    if (isChecked)
      put(
        "sessions",
        [...this.#sessions].map(([w, locals]) => ({ w, lo: Math.min(...locals) })),
      );
    parts["kept"] = this.#context.feedCommits;
    put("origins", this.#origins);
    put(
      "reads",
      spaces.flatMap((of) =>
        [...of.reads.values()].map((r) => ({ s: of.index, c: r.scope, i: r.id, q: r.sequence, w: r.session })),
      ),
    );
    put(
      "members",
      spaces.flatMap((of) => of.members.map((m) => ({ s: of.index, c: m.scope, f: m.prefix, q: m.sequence }))),
    );
    put(
      "absent",
      spaces.flatMap((of) => [...of.absent.values()].map((a) => ({ s: of.index, c: a.scope, i: a.id }))),
    );
    put("settles", [...this.#settles.values()]);
    for (const of of spaces) this.#putDocuments(parts, of);
    put(
      "labels",
      spaces.flatMap((of) =>
        [...of.labels.values()].map((l) => ({ s: of.index, c: l.scope, i: l.id, p: l.path, l: l.labels })),
      ),
    );
    put(
      "changes",
      spaces
        .filter(({ moves }) => moves > 0)
        .map((of) => ({ s: of.index, f: 1, l: of.moves, t: jsonText("a commit", [of.session, of.commits]) })),
    );
    put(
      "made",
      [...this.#made.values()].map(({ space, session, answers }) => {
        const locals = answers.map(([local]) => local);
        return {
          s: space,
          w: session,
          f: Math.min(...locals),
          l: Math.max(...locals),
          t: jsonText("an answer", answers),
        };
      }),
    );
    put(
      "nodes",
      spaces.flatMap((of) =>
        [...of.nodes].flatMap(([name, node]) => (node === undefined ? [] : [nodeRow(of.index, name, node)])),
      ),
    );
    put(
      "forgotten",
      spaces.flatMap((of) => [...of.nodes].flatMap(([n, node]) => (node === undefined ? [{ s: of.index, n }] : []))),
    );
    put("entries", this.#entries);
    put("due", [...this.#due.values()]);
    return JSON.stringify(parts);
  }

  #putDocuments(parts: { [part: string]: unknown }, { index, session, documents }: SpaceChange): void {
    const add = (part: string, row: object) => {
      const list = (parts[part] ?? []) as object[];
      list.push(row);
      parts[part] = list;
    };
    for (const { scope, id, offset, operations, value, growth, birth } of documents.values()) {
      const at = { s: index, c: scope, i: id, k: offset, w: session };
      if (operations !== undefined) {
        const most = this.#decided === undefined ? DOCUMENT_BYTES_MAX : Number.MAX_SAFE_INTEGER;
        add("patches", { ...at, b: growth, most, o: jsonText("a path operation", operations) });
        continue;
      }
      const v = value === undefined ? null : jsonText("a document", value);
      const b = v === null ? 0 : Buffer.byteLength(v);
      if (birth !== undefined) add("births", { ...at, v, b, m: birth.madeAtMs });
      else add("docs", { ...at, v, b });
    }
  }

  /** Answers the jobs in their order. */
  answer(answer: BatchAnswer): void {
    for (const result of this.#results) result(answer);
  }
}

const NO_IDS: readonly number[] = Object.freeze([]);

export function isWhole([first]: readonly PathOperation[]): boolean {
  return first !== undefined && first.path.length === 0 && first.op !== "splice";
}

/** Whether one of the operations sets or removes the whole document. */
export function setsWhole(operations: readonly PathOperation[]): boolean {
  return presenceAfter(operations) !== undefined;
}

/** The operations from the last one that sets or removes the whole document on: those that decide the value. */
function lastWhole(operations: readonly PathOperation[]): readonly PathOperation[] {
  for (let at = operations.length - 1; at > 0; at--)
    if (isWhole(operations.slice(at, at + 1))) return operations.slice(at);
  return operations;
}

function fitsItself({ operations }: SizedPatch): boolean {
  return !setsWhole(operations) || canApply(undefined, lastWhole(operations));
}

function fitsOnto(earlier: DocumentChange, operations: readonly PathOperation[]): boolean {
  if (setsWhole(operations)) return canApply(undefined, lastWhole(operations));
  return earlier.operations !== undefined || canApply(earlier.value, operations);
}

function canApply(value: Json | undefined, operations: readonly PathOperation[]): boolean {
  if (operations.length === 1 && isWhole(operations)) return true;
  try {
    applyOperations(value, operations);
    return true;
  } catch (error) {
    if (error instanceof PatchError) return false;
    throw error;
  }
}

function absenceOf(
  preconditions: readonly Precondition[],
  ref: DocumentRef,
): (Precondition & { kind: "absent" }) | undefined {
  for (const one of preconditions) {
    if (one.kind === "absent" && one.id === ref.id && one.scope === ref.scope) return one;
  }
  return undefined;
}

/** The version of the consumer table that the job was decided with. */
function versionOf(job: BatchedJob): number | "several" | undefined {
  let version: number | undefined;
  const settlements = job.kind === "commit" ? job.request.settlements : job.kind === "settle" ? job.settlements : [];
  const entries = job.kind === "settle" ? [] : job.entries;
  const all = [
    ...settlements.map((one) => one.consumers),
    ...entries.map(({ as }) => (as.status === "done" ? as.consumers : undefined)),
  ];
  for (const one of all) {
    if (one === undefined) continue;
    if (version !== undefined && version !== one) return "several";
    version = one;
  }
  return version;
}

function stateOf(as: JournalEntry["as"]): object {
  switch (as.status) {
    case "pending":
      return { st: "p" };
    case "claimed":
      return { st: "c", lease: as.lease };
    case "done":
      return { st: "d", out: as.ending?.outcome, rsn: as.ending?.reason };
    case "failed":
      return { st: "f", err: as.error };
  }
}

function operationOf(outcome: Settlement["outcome"]): object {
  switch (outcome.kind) {
    case "partial":
      return { op: "k" };
    case "begun":
      return { op: "b" };
    case "left":
      return { op: "l" };
    case "done":
      return { op: "d", out: outcome.ending?.outcome, rsn: outcome.ending?.reason };
    case "failed":
      return { op: "f", err: outcome.error };
    case "retry":
      return { op: "r", at: outcome.atMs, err: outcome.error };
    case "waits":
      return { op: "w", at: outcome.atMs ?? "Infinity", err: outcome.error };
    case "release":
      return { op: "x" };
  }
}

function nodeRow(s: number, n: string, { basis, offset }: { basis: NodeBasis; offset: number }): object {
  const { fingerprint, settings, output, inputs } = basis;
  return {
    s,
    n,
    k: offset,
    f: fingerprint,
    g: settings === undefined ? null : jsonText("a node's settings", settings),
    o: output ?? null,
    t: jsonText("a node's inputs", inputs),
  };
}
