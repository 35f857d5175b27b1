/**
 * What nodes read in their last run. SPEC: S18, S19. One row per input with the sequence seen; what was read of the
 * document is a set of paths that many rows share, so that a row stays small (five integers).
 *
 * A node's rows are compared with what is stored, and only what differs is written.
 */
import type { Json } from "../../message/json.ts";
import { type BasisInput, type NodeBasis, THIS_COMMIT } from "../commit.ts";
import { SHARED_SCOPE } from "../document.ts";
import { checkName, checkRef } from "../request-check.ts";
import type { RecordedBasis } from "../store.ts";
import type { Connection } from "./connection.ts";
import { jsonText } from "./json-text.ts";
import type { Space } from "./space-table.ts";
import type { TableCache } from "./table-cache.ts";

/** A node's basis with its documents as rows and its reads as text. */
export interface EncodedBasis {
  readonly node: string;
  readonly fingerprint: string;
  readonly settings: string | null;
  readonly inputs: readonly EncodedInput[];
}

export interface EncodedInput {
  readonly scope: string;
  readonly id: string;
  readonly sequence: number;
  readonly reads: string;
}

/** What one node read of one document, beside where that document stands now. */
export interface StoredInput extends BasisInput {
  readonly head: number;
}

/** A node's basis while its inputs are being gathered. */
interface ReadBasis extends RecordedBasis {
  readonly inputs: RecordedBasis["inputs"][number][];
}

export function encodeBasis({ node, fingerprint, settings, inputs }: NodeBasis): EncodedBasis {
  checkName("a node's name", node);
  checkName("a node's fingerprint", fingerprint);
  return {
    node,
    fingerprint,
    settings: settings === undefined ? null : jsonText("a node's settings", settings),
    inputs: inputs.map(encodeInput),
  };
}

function encodeInput(input: BasisInput): EncodedInput {
  checkRef(input);
  const { scope, id, sequence, reads } = input;
  return { scope, id, sequence, reads: jsonText("a read", reads) };
}

interface BasisRow {
  /** Among the node's inputs. */
  readonly position: number;
  readonly document: number;
  readonly sequence: number;
  readonly pathSet: number;
}

const PATH_SETS_REMEMBERED_MAX = 10_000;

export class BasisTable implements TableCache {
  /** Rows of path sets by their text. */
  readonly #pathSets = new Map<string, number>();
  readonly #sql;

  constructor(connection: Connection) {
    this.#sql = statements(connection);
  }

  /** Replaces the node's basis; `documentOf` gives the row of an input's document. */
  write(space: Space, basis: EncodedBasis, documentOf: (input: EncodedInput) => number): void {
    const { node: name, fingerprint, settings } = basis;
    const node = Number(this.#sql.putNode.get(space.id, name, fingerprint, settings)?.["id"]);
    const stored = this.#rowsOf(node);
    basis.inputs.forEach((input, position) => {
      const sequence = input.sequence === THIS_COMMIT ? space.sequence : input.sequence;
      const row = { position, document: documentOf(input), sequence, pathSet: this.#pathSetOf(input.reads) };
      this.#writeRow(node, row, stored[position]);
    });
    for (const row of stored.slice(basis.inputs.length)) this.#removeRow(node, row);
  }

  remove(space: Space, name: string): void {
    const row = this.#sql.node.get(space.id, name);
    if (!row) return;
    const node = Number(row["id"]);
    for (const row of this.#rowsOf(node)) this.#removeRow(node, row);
    this.#sql.dropNode.run(node);
  }

  /**
   * The basis of nodes, in the order asked; those without one, or with one that cannot be read, are left out. `hasMoved` tells of an input
   * whose document others have written since whether they wrote what was read.
   */
  read(space: Space, names: readonly string[], hasMoved: (input: StoredInput) => boolean): readonly RecordedBasis[] {
    const found: ReadBasis[] = [];
    const pathSets = new Map<number, BasisInput["reads"] | undefined>();
    const unreadable = new Set<ReadBasis>();
    let basis: ReadBasis | undefined;
    let of = -1;
    // One row per input, together for each name that was asked for; a node without inputs has one row with none.
    for (const row of this.#sql.read.all(JSON.stringify(names), space.id)) {
      const asked = Number(row[COLUMN.asked]);
      if (basis === undefined || asked !== of) {
        const settings = row[COLUMN.settings] ?? null;
        basis = readBasis(names[asked] as string, row[COLUMN.fingerprint], settings);
        found.push(basis);
        of = asked;
        if (settings !== null && basis.settings === undefined) unreadable.add(basis);
      }
      const pathSet = row[COLUMN.pathSet] ?? null;
      if (pathSet === null) continue;
      const set = Number(pathSet);
      let reads = pathSets.get(set);
      if (reads === undefined && !pathSets.has(set)) {
        reads = this.#readsOf(set);
        pathSets.set(set, reads);
      }
      const id = row[COLUMN.document];
      if (reads === undefined || typeof id !== "string") {
        unreadable.add(basis);
        continue;
      }
      const scope = String(row[COLUMN.scope] ?? SHARED_SCOPE);
      const head = Number(row[COLUMN.head]);
      const sequence = Number(row[COLUMN.sequence]);
      const moved = head > sequence && hasMoved({ scope, id, sequence, reads, head });
      basis.inputs.push({ scope, id, sequence, reads, moved });
    }
    return unreadable.size === 0 ? found : found.filter((one) => !unreadable.has(one));
  }

  #readsOf(pathSet: number): BasisInput["reads"] | undefined {
    return parsed(this.#sql.reads.get(pathSet)?.["reads"]) as BasisInput["reads"] | undefined;
  }

  /** Nothing is held back. */
  flush(): void {
    if (this.#pathSets.size > PATH_SETS_REMEMBERED_MAX) this.#pathSets.clear();
  }

  forget(): void {
    this.#pathSets.clear();
  }

  #rowsOf(node: number): BasisRow[] {
    return this.#sql.rows.all(node).map(({ position, document, sequence, path_set }) => ({
      position: Number(position),
      document: Number(document),
      sequence: Number(sequence),
      pathSet: Number(path_set),
    }));
  }

  #writeRow(node: number, row: BasisRow, stored: BasisRow | undefined): void {
    const { position, document, sequence, pathSet } = row;
    const isSameSet = stored?.pathSet === pathSet;
    if (isSameSet && stored.document === document && stored.sequence === sequence) return;
    this.#sql.putRow.run(node, position, document, sequence, pathSet);
    if (isSameSet) return;
    this.#sql.use.run(pathSet);
    if (stored) this.#release(stored.pathSet);
  }

  #removeRow(node: number, { position, pathSet }: BasisRow): void {
    this.#sql.dropRow.run(node, position);
    this.#release(pathSet);
  }

  #pathSetOf(reads: string): number {
    const known = this.#pathSets.get(reads);
    if (known !== undefined) return known;
    const row = this.#sql.pathSet.get(reads) ?? this.#sql.makePathSet.get(reads);
    const id = Number(row?.["id"]);
    this.#pathSets.set(reads, id);
    return id;
  }

  /** A set that no row names any more goes, and so must what was remembered of it. */
  #release(pathSet: number): void {
    this.#sql.unuse.run(pathSet);
    const gone = this.#sql.dropPathSet.get(pathSet);
    if (gone) this.#pathSets.delete(String(gone["reads"]));
  }
}

function readBasis(node: string, fingerprint: unknown, settings: unknown): ReadBasis {
  const json = settings === null ? undefined : parsed(settings);
  const basis = { node, fingerprint: String(fingerprint), inputs: [] };
  return json === undefined ? basis : { ...basis, settings: json as Json };
}

/** Of `statements().read`. By place: taking a list apart by its iterator costs more than reading it. */
const COLUMN = {
  asked: 0,
  fingerprint: 1,
  settings: 2,
  /** Nothing for the shared one, which nearly all have: no text has to be made of it. */
  scope: 3,
  document: 4,
  head: 5,
  sequence: 6,
  pathSet: 7,
} as const;

/** Undefined for text that is not JSON: a row that cannot be read counts as none, for its node alone. */
function parsed(text: unknown): unknown {
  try {
    return JSON.parse(String(text));
  } catch {
    return undefined;
  }
}

function statements(connection: Connection) {
  const prepare = (sql: string) => connection.prepare(sql);
  return {
    node: prepare("SELECT id FROM node WHERE space = ? AND name = ?"),
    putNode: prepare(
      "INSERT INTO node (space, name, fingerprint, settings) VALUES (?, ?, ?, ?) ON CONFLICT (space, name) " +
        "DO UPDATE SET fingerprint = excluded.fingerprint, settings = excluded.settings RETURNING id",
    ),
    dropNode: prepare("DELETE FROM node WHERE id = ?"),
    rows: prepare("SELECT position, document, sequence, path_set FROM basis WHERE node = ? ORDER BY position"),
    putRow: prepare("REPLACE INTO basis (node, position, document, sequence, path_set) VALUES (?, ?, ?, ?, ?)"),
    dropRow: prepare("DELETE FROM basis WHERE node = ? AND position = ?"),
    // Text of the node with its first input alone: most of the time goes into making strings.
    // `CROSS` fixes the order of the look-ups: the planner may otherwise compare every node of the space with every name.
    read: connection.prepareLists(
      "SELECT asked.key, CASE WHEN ifnull(position, 0) = 0 THEN fingerprint END, " +
        `CASE WHEN ifnull(position, 0) = 0 THEN settings END, nullif(scope, '${SHARED_SCOPE}'), document.name, ` +
        "document.sequence, basis.sequence, basis.path_set " +
        "FROM json_each(?) AS asked CROSS JOIN node ON node.space = ? AND node.name = asked.value " +
        "LEFT JOIN basis ON basis.node = node.id LEFT JOIN document ON document.id = basis.document " +
        "ORDER BY asked.key, basis.position",
    ),
    reads: prepare("SELECT reads FROM path_set WHERE id = ?"),
    pathSet: prepare("SELECT id FROM path_set WHERE reads = ?"),
    makePathSet: prepare("INSERT INTO path_set (reads, uses) VALUES (?, 0) RETURNING id"),
    use: prepare("UPDATE path_set SET uses = uses + 1 WHERE id = ?"),
    unuse: prepare("UPDATE path_set SET uses = uses - 1 WHERE id = ?"),
    dropPathSet: prepare("DELETE FROM path_set WHERE id = ? AND uses <= 0 RETURNING reads"),
  };
}
