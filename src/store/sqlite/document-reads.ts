/**
 * Reads of documents, the feed and node bases. SPEC: S2, S17-S21. Each runs inside one read transaction.
 */
import type { BasisInput, LabelWrite } from "../commit.ts";
import type { DocumentRef } from "../document.ts";
import { writeTouchesRead } from "../path-operation.ts";
import type {
  FeedCommit,
  FeedPage,
  ListPage,
  ListRequest,
  LoadedDocument,
  LoadResult,
  RecordedBasis,
} from "../store.ts";
import type { CommitLines } from "./change-block.ts";
import { feedStart, type SpaceRow } from "./space-table.ts";
import type { Tables } from "./tables.ts";

/** No session has this row, so no session's writes are left out. */
const NOBODY = 0;
const NO_LABELS: readonly LabelWrite[] = Object.freeze([]);

export class DocumentReads {
  readonly #tables: Tables;
  readonly #feedLength: number;

  constructor(tables: Tables, feedCommits: number) {
    this.#tables = tables;
    this.#feedLength = feedCommits;
  }

  load(spaceName: string, refs: readonly DocumentRef[]): LoadResult {
    const space = this.#tables.spaces.find(spaceName);
    const documents = refs.map((ref) => this.#loadOne(space, ref));
    this.#tables.documents.trim();
    const isLabelled = refs.length === 0 && this.#tables.labels.isAny;
    const { history } = this.#tables;
    return { sequence: space?.sequence ?? 0, history, documents, ...(isLabelled ? { isLabelled } : {}) };
  }

  list(spaceName: string, request: ListRequest): ListPage {
    const space = this.#tables.spaces.find(spaceName);
    if (!space) return { sequence: 0, documents: [] };
    const { documents, labels } = this.#tables;
    const found = documents.list(space, request);
    const { isAny } = labels;
    const labelsOf = (row: number) => (isAny ? labels.of(row) : []);
    return {
      sequence: space.sequence,
      documents: found.map(({ row, id, sequence }) => ({ id, sequence, labels: labelsOf(row) })),
    };
  }

  changesSince(spaceName: string, sequence: number, limit: number): FeedPage {
    const space = this.#tables.spaces.find(spaceName);
    const { history } = this.#tables;
    if (!space) return { commits: [], head: 0, history, gap: false };
    const head = space.sequence;
    if (sequence < feedStart(space, this.#feedLength)) return { commits: [], head, history, gap: true };
    // Replicas with only own commits ask too, after each batch.
    if (sequence >= head) return { commits: [], head, history, gap: false };
    const commits = this.#tables.documents.changes.commitsAfter(space.id, sequence, limit);
    return { commits: this.#feedCommits(commits), head, history, gap: false };
  }

  basis(spaceName: string, nodes: readonly string[]): readonly RecordedBasis[] {
    const space = this.#tables.spaces.find(spaceName);
    if (!space) return [];
    const found = this.#tables.basis.read(space, nodes, (input) => this.#hasMoved(space, input));
    return this.#tables.labels.isAny ? found.map((basis) => this.#withLabelled(space, basis)) : found;
  }

  /** A labelled input counts as changed. */
  #withLabelled(space: SpaceRow, basis: RecordedBasis): RecordedBasis {
    const inputs = basis.inputs.map((input) => ({ ...input, moved: input.moved || this.#isLabelled(space, input) }));
    return { ...basis, inputs };
  }

  #loadOne(space: SpaceRow | undefined, { scope, id }: DocumentRef): LoadedDocument {
    const { documents, labels } = this.#tables;
    const document = space && documents.find(space, { scope, id });
    if (!document) return { scope, id, value: undefined, sequence: 0, labels: [] };
    const { sequence, row } = document;
    return { scope, id, value: documents.value(document), sequence, labels: labels.of(row) };
  }

  #feedCommits(commits: readonly CommitLines[]): FeedCommit[] {
    const rows = new Set(commits.flatMap(({ patches }) => patches.map(({ document }) => document)));
    const refs = this.#tables.documents.refsOf(rows);
    const sessions = new Map<number, string>();
    return commits.map(({ sequence, session: id, localSequence, labels, patches }) => {
      const session = sessions.get(id) ?? this.#tables.commits.sessionName(id);
      sessions.set(id, session);
      return {
        sequence,
        session,
        localSequence,
        patches: patches.map(({ document, text }) => ({ ...refs.get(document)!, operations: JSON.parse(text) })),
        labels: labels === undefined ? NO_LABELS : JSON.parse(labels),
      };
    });
  }

  #isLabelled(space: SpaceRow, ref: DocumentRef): boolean {
    const document = this.#tables.documents.find(space, ref);
    return document !== undefined && this.#tables.labels.of(document.row).length > 0;
  }

  #hasMoved(space: SpaceRow, input: BasisInput): boolean {
    if (input.sequence < feedStart(space, this.#feedLength)) return true;
    const document = this.#tables.documents.find(space, input);
    if (!document) return false;
    const written = this.#tables.documents.writtenSince(document, input.sequence, NOBODY);
    return input.reads.some(({ path, depth }) => written.some((write) => writeTouchesRead(write, path, depth)));
  }
}
