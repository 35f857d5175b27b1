/**
 * The inputs of each node's last run. SPEC: S18, S19. One row per node, with three numbers per input: the document, the
 * sequence seen, and a set of paths read, which many nodes share. Resuming thousands of nodes reads as many rows, and
 * each input document once.
 */
import { isJsonObject, type Json } from "../../message/json.ts";
import { type BasisInput, type NodeBasis, THIS_COMMIT } from "../commit.ts";
import { SHARED_SCOPE } from "../document.ts";
import { checkName, checkRef } from "../request-check.ts";
import type { RecordedBasis } from "../store.ts";
import type { SqliteConnection } from "./connection.ts";
import { jsonText } from "./json-text.ts";
import type { SpaceRow } from "./space-table.ts";
import type { TableCache } from "./table-cache.ts";

/** A node's basis with its documents as rows and its reads as text. */
export interface EncodedBasis {
  readonly node: string;
  readonly fingerprint: string;
  readonly settings: string | null;
  readonly output: number | null;
  readonly inputs: readonly EncodedInput[];
}

export interface EncodedInput {
  readonly scope: string;
  readonly id: string;
  readonly sequence: number;
  readonly reads: string;
}

type RecordedInput = RecordedBasis["inputs"][number];
type Reads = BasisInput["reads"];

/** The current state of an input document. */
interface InputDocument {
  readonly scope: string;
  readonly id: string;
  readonly head: number;
  /** The previous result for this document: most nodes have seen the same of it. */
  last: RecordedInput | undefined;
}

/** Lookups shared by all nodes of one answer. */
interface Shared {
  readonly documents: ReadonlyMap<unknown, InputDocument | undefined>;
  readonly pathSets: Map<unknown, Reads | undefined>;
  readonly hasMoved: (input: BasisInput) => boolean;
}

export function encodeBasis({ node, fingerprint, settings, output, inputs }: NodeBasis): EncodedBasis {
  checkName("a node's name", node);
  checkName("a node's fingerprint", fingerprint);
  return {
    node,
    fingerprint,
    settings: settings === undefined ? null : jsonText("a node's settings", settings),
    output: output ?? null,
    inputs: inputs.map(encodeInput),
  };
}

function encodeInput(input: BasisInput): EncodedInput {
  checkRef(input);
  const { scope, id, sequence, reads } = input;
  return { scope, id, sequence, reads: jsonText("a read", reads) };
}

/** Numbers per input in a row: document, sequence seen, path set. */
const NUMBERS = 3;
const PATH_SET = 2;

const PATH_SETS_REMEMBERED_MAX = 10_000;

export class BasisTable implements TableCache {
  /** Rows of path sets by their text. */
  readonly #pathSets = new Map<string, number>();
  readonly #sql;

  constructor(connection: SqliteConnection) {
    this.#sql = statements(connection);
  }

  /** Replaces the node's basis; `documentOf` returns the row of an input's document. */
  write(space: SpaceRow, basis: EncodedBasis, documentOf: (input: EncodedInput) => number): void {
    const { node, fingerprint, settings } = basis;
    const dated = (sequence: number) => (sequence === THIS_COMMIT ? space.sequence : sequence);
    const output = basis.output === null ? null : dated(basis.output);
    const numbers = basis.inputs.flatMap((input) => [
      documentOf(input),
      dated(input.sequence),
      this.#pathSetOf(input.reads),
    ]);
    const inputs = JSON.stringify(numbers);
    const stored = this.#sql.node.get(space.id, node);
    const isSameCode = stored?.["fingerprint"] === fingerprint && stored["settings"] === settings;
    if (isSameCode && stored["inputs"] === inputs && stored["output"] === output) return;
    this.#sql.put.run(space.id, node, fingerprint, settings, inputs, output);
    this.#recount(pathSetsIn(parsed(stored?.["inputs"])), pathSetsIn(numbers));
  }

  remove(space: SpaceRow, node: string): void {
    const stored = this.#sql.drop.get(space.id, node);
    if (stored) this.#recount(pathSetsIn(parsed(stored["inputs"])), []);
  }

  /**
   * The basis of nodes in the order of `names`; missing or unreadable ones are left out. `hasMoved` decides whether
   * later writes to an input's document touch the values that were read.
   */
  read(space: SpaceRow, names: readonly string[], hasMoved: Shared["hasMoved"]): readonly RecordedBasis[] {
    const rows = this.#sql.read.all(JSON.stringify(names), space.id);
    const inputs = parsedAll(rows.map((row) => row[COLUMN.inputs]));
    const settings = parsedAll(rows.map((row) => row[COLUMN.settings] ?? "null"));
    const shared: Shared = { documents: this.#documentsIn(inputs), pathSets: new Map(), hasMoved };
    const found: RecordedBasis[] = [];
    rows.forEach((row, at) => {
      const node = names[Number(row[COLUMN.asked])] as string;
      const fingerprint = String(row[COLUMN.fingerprint]);
      const ofNode = this.#inputs(inputs[at], shared);
      const json = settings[at];
      if (ofNode === undefined || json === undefined) return;
      const output = row[COLUMN.output];
      found.push({
        node,
        fingerprint,
        ...(row[COLUMN.settings] === null ? {} : { settings: json }),
        ...(typeof output === "number" ? { output } : {}),
        inputs: ofNode,
      });
    });
    return found;
  }

  /** Undefined if the numbers are malformed or refer to missing rows. */
  #inputs(numbers: unknown, { documents, pathSets, hasMoved }: Shared): readonly RecordedInput[] | undefined {
    if (!Array.isArray(numbers) || numbers.length % NUMBERS !== 0) return undefined;
    // Exact capacity: thousands of these lists are long-lived.
    const inputs = new Array<RecordedInput>(numbers.length / NUMBERS);
    for (let input = 0, at = 0; at < numbers.length; input++, at += NUMBERS) {
      const document = documents.get(numbers[at]);
      const sequence = Number(numbers[at + 1]);
      const set = numbers[at + PATH_SET];
      if (!pathSets.has(set)) pathSets.set(set, this.#readsOf(Number(set)));
      const reads = pathSets.get(set);
      if (document === undefined || reads === undefined) return undefined;
      const { scope, id, head, last } = document;
      if (last === undefined || last.sequence !== sequence || last.reads !== reads) {
        const moved = head > sequence && hasMoved({ scope, id, sequence, reads });
        document.last = { scope, id, sequence, reads, moved };
      }
      inputs[input] = document.last as RecordedInput;
    }
    return inputs;
  }

  /** The documents that rows refer to, by row number; undefined for a missing one. */
  #documentsIn(rows: readonly unknown[]): Shared["documents"] {
    const documents = new Map<unknown, InputDocument | undefined>();
    for (const numbers of rows)
      if (Array.isArray(numbers))
        for (let at = 0; at < numbers.length; at += NUMBERS) documents.set(numbers[at], undefined);
    for (const row of this.#sql.documents.all(JSON.stringify([...documents.keys()]))) {
      const scope = String(row[DOCUMENT_COLUMN.scope] ?? SHARED_SCOPE);
      const id = String(row[DOCUMENT_COLUMN.name]);
      const head = Number(row[DOCUMENT_COLUMN.head]);
      documents.set(row[DOCUMENT_COLUMN.row], { scope, id, head, last: undefined });
    }
    return documents;
  }

  #readsOf(pathSet: number): Reads | undefined {
    const reads = parsed(this.#sql.reads.get(pathSet)?.["reads"]);
    return isReads(reads) ? reads : undefined;
  }

  /** There are no buffered writes. */
  flush(): void {
    if (this.#pathSets.size > PATH_SETS_REMEMBERED_MAX) this.#pathSets.clear();
  }

  forget(): void {
    this.#pathSets.clear();
  }

  /** Updates the use counts when a row changes its path sets. */
  #recount(before: readonly number[], after: readonly number[]): void {
    if (String(before) === String(after)) return;
    for (const set of after) this.#sql.use.run(set);
    for (const set of before) this.#release(set);
  }

  #pathSetOf(reads: string): number {
    const known = this.#pathSets.get(reads);
    if (known !== undefined) return known;
    const row = this.#sql.pathSet.get(reads) ?? this.#sql.makePathSet.get(reads);
    const id = Number(row?.["id"]);
    this.#pathSets.set(reads, id);
    return id;
  }

  /** Removes a path set that no row uses, and its cache entry. */
  #release(pathSet: number): void {
    this.#sql.unuse.run(pathSet);
    const gone = this.#sql.dropPathSet.get(pathSet);
    if (gone) this.#pathSets.delete(String(gone["reads"]));
  }
}

/**
 * Column indexes of `statements().read` and `documents`. Access by index is faster than destructuring with the
 * iterator.
 */
const COLUMN = { asked: 0, fingerprint: 1, settings: 2, inputs: 3, output: 4 } as const;
const DOCUMENT_COLUMN = { row: 0, scope: 1, name: 2, head: 3 } as const;

function pathSetsIn(numbers: unknown): readonly number[] {
  return Array.isArray(numbers) ? numbers.filter((_, at) => at % NUMBERS === PATH_SET) : [];
}

function isReads(json: Json | undefined): json is Json & Reads {
  if (!Array.isArray(json)) return false;
  return json.every((read: Json) => {
    if (!isJsonObject(read)) return false;
    const { path, depth } = read;
    const isPath = Array.isArray(path) && path.every((step) => typeof step === "string");
    return isPath && (depth === "deep" || depth === "shallow");
  });
}

/** Undefined for a text that is not JSON: an unreadable row counts as missing, for its node only. */
function parsedAll(texts: readonly unknown[]): readonly (Json | undefined)[] {
  // Parsing all texts at once takes a third of the time. If that fails or the count differs, each text is parsed alone.
  const all = parsed(`[${texts.join(",")}]`);
  return Array.isArray(all) && all.length === texts.length ? all : texts.map(parsed);
}

function parsed(text: unknown): Json | undefined {
  try {
    return JSON.parse(String(text));
  } catch {
    return undefined;
  }
}

function statements(connection: SqliteConnection) {
  const prepare = (sql: string) => connection.prepare(sql);
  return {
    node: prepare("SELECT fingerprint, settings, inputs, output FROM node WHERE space = ? AND name = ?"),
    put: prepare("REPLACE INTO node (space, name, fingerprint, settings, inputs, output) VALUES (?, ?, ?, ?, ?, ?)"),
    drop: prepare("DELETE FROM node WHERE space = ? AND name = ? RETURNING inputs"),
    // `CROSS` fixes the join order: the planner might compare every node of the space with every name. So names keep
    // their order without a sort.
    read: connection.prepareLists(
      "SELECT asked.key, fingerprint, settings, inputs, output FROM json_each(?) AS asked " +
        "CROSS JOIN node ON node.space = ? AND node.name = asked.value",
    ),
    // Avoids creating a string for the shared scope, which almost all documents have.
    documents: connection.prepareLists(
      `SELECT document.id, nullif(scope, '${SHARED_SCOPE}'), name, sequence FROM json_each(?) AS asked ` +
        "CROSS JOIN document ON document.id = asked.value",
    ),
    reads: prepare("SELECT reads FROM path_set WHERE id = ?"),
    pathSet: prepare("SELECT id FROM path_set WHERE reads = ?"),
    makePathSet: prepare("INSERT INTO path_set (reads, uses) VALUES (?, 0) RETURNING id"),
    use: prepare("UPDATE path_set SET uses = uses + 1 WHERE id = ?"),
    unuse: prepare("UPDATE path_set SET uses = uses - 1 WHERE id = ?"),
    dropPathSet: prepare("DELETE FROM path_set WHERE id = ? AND uses <= 0 RETURNING reads"),
  };
}
