/**
 * The change log: patches in the order of commits, in blocks of several commits of one space (format:
 * `change-block.ts`). SPEC: S20, S21, S87, S92.
 *
 * A batch writes its commits together, about a page per row: one row per patch cost two rows here and one in the commit
 * log for each message. Each line names the document's previous change, so that a document is read by walking back from
 * its newest change. A block is verified when it is read; a missing or altered block ends the walk with an error.
 *
 *   open ──full, end of batch, or the feed is read or trimmed──> written ──the feed passes it──> shortened or removed
 */
import type { PathOperation } from "../path-operation.ts";
import {
  blockText,
  type CommitLine,
  type CommitLines,
  commitLine,
  commitsIn,
  type FoundPatch,
  findPatch,
  lastingIn,
  type PatchLine,
  type PatchPlace,
  patchLine,
  turnedIn,
} from "./change-block.ts";
import { checksum } from "./checksum.ts";
import { AT_MOST, type Row, type SqliteConnection } from "./connection.ts";
import { damaged } from "./damage.ts";
import type { TableCache } from "./table-cache.ts";

/** The location of a document's changes. */
export interface ChangedDocument {
  readonly space: number;
  readonly row: number;
  /** Sequence of its newest change. */
  readonly sequence: number;
}

export interface Patch {
  readonly sequence: number;
  readonly session: number;
  readonly operations: readonly PathOperation[];
}

/** A longer text would not fit a page with the row's other columns. */
const BLOCK_TEXT_MAX = 4_000;
/** Approximate length of the start of a line. */
const LINE_START = 16;
/** Limits how far before a sequence its block can begin. */
const BLOCK_COMMITS_MAX = 100;
/** Blocks read at a time for the feed. */
const FEED_BLOCKS = 64;

interface OpenBlock {
  readonly first: number;
  last: number;
  /** Patches that a load may need after the feed has passed them. */
  needed: number;
  text: string;
}

interface StoredBlock {
  readonly id: number;
  readonly space: number;
  readonly first: number;
  readonly last: number;
  readonly text: string;
}

export class ChangeTable implements TableCache {
  /** Blocks of the current batch, by the row of their space. */
  readonly #open = new Map<number, OpenBlock>();
  /** The last block read: changes that are read together are stored together. */
  #read: StoredBlock | undefined;
  readonly #sql;

  constructor(connection: SqliteConnection) {
    this.#sql = statements(connection);
  }

  /** Begins a commit; `add` adds the patches that are announced here. */
  begin(space: number, commit: CommitLine, patches: readonly { readonly text: string }[]): void {
    const open = this.#open.get(space);
    const line = commitLine(commit);
    const length = patches.reduce((sum, { text }) => sum + LINE_START + text.length, line.length);
    const hasRoom = open && open.text.length + length <= BLOCK_TEXT_MAX;
    if (hasRoom && open.last - open.first < BLOCK_COMMITS_MAX - 1) {
      open.last = commit.sequence;
      open.text += line;
      return;
    }
    if (open) this.#writeBlock(space, open);
    this.#open.set(space, { first: commit.sequence, last: commit.sequence, needed: 0, text: line });
  }

  /** Adds a patch to the commit begun last. `isNeeded`: a load may need it for longer than the feed does. */
  add(space: number, patch: PatchLine, isNeeded: boolean): void {
    const open = this.#open.get(space)!;
    open.text += patchLine(patch);
    if (isNeeded) open.needed++;
  }

  /** The changes after a sequence, oldest first. */
  after(document: ChangedDocument, sequence: number): Patch[] {
    const patches: Patch[] = [];
    for (let at = document.sequence; at > Math.max(sequence, 0); ) {
      const { text, session, previous } = this.patchAt(document, at);
      patches.push({ session, operations: JSON.parse(text), sequence: at });
      at = previous;
    }
    return patches.reverse();
  }

  /** The change made by one commit. */
  patchAt({ space, row }: Pick<ChangedDocument, "space" | "row">, sequence: number): FoundPatch {
    const found = findPatch(this.#textAt(space, sequence), sequence, row);
    // A damaged link forward must not cause an endless walk.
    if (!found || found.previous >= sequence) throw damaged(`document row ${row}, sequence ${sequence}`);
    return found;
  }

  /** Commits after a sequence, oldest first. */
  commitsAfter(space: number, sequence: number, limit: number): CommitLines[] {
    this.#writeOpen();
    const commits: CommitLines[] = [];
    let after = sequence;
    while (commits.length < limit) {
      const rows = this.#sql.blocksAfter.all(space, after - BLOCK_COMMITS_MAX, after, FEED_BLOCKS);
      for (const row of rows) {
        const block = readBlock(row);
        for (const commit of commitsIn(block.text)) {
          if (commit.sequence <= sequence) continue;
          // A reader of the feed must not skip a missing commit.
          if (commit.sequence !== sequence + commits.length + 1)
            throw damaged(`sequence ${commit.sequence - 1} is missing`);
          commits.push(commit);
        }
        after = block.last;
      }
      if (rows.length < FEED_BLOCKS) break;
    }
    return commits.slice(0, limit);
  }

  /** Rows of the documents that commits after a sequence created or removed. */
  turnedAfter(space: number, sequence: number): Set<number> {
    const turned = new Set<number>();
    let after = sequence;
    for (;;) {
      const rows = this.#sql.blocksAfter.all(space, after - BLOCK_COMMITS_MAX, after, FEED_BLOCKS);
      for (const row of rows) {
        const block = readBlock(row);
        for (const document of turnedIn(block.text, sequence)) turned.add(document);
        after = block.last;
      }
      if (rows.length < FEED_BLOCKS) break;
    }
    const open = this.#open.get(space);
    if (open) for (const document of turnedIn(open.text, sequence)) turned.add(document);
    return turned;
  }

  /** Drops one change of a document that the feed has passed; the feed begins after `floor`. */
  drop({ space, row }: ChangedDocument, sequence: number, floor: number): void {
    const block = this.#blockAt(space, sequence);
    if (block) this.#keep(block, (commit, { document }) => commit.sequence !== sequence || document !== row, floor);
  }

  /**
   * Drops the changes of commits in a range, except those that a load of a document needs, according to the document
   * table.
   */
  dropUnneeded(space: number, after: number, upTo: number): void {
    this.#writeOpen();
    this.#read = undefined;
    const range = [space, after - BLOCK_COMMITS_MAX, after, upTo] as const;
    this.#sql.dropFree.run(...range);
    // Damaged blocks stay for `verify` to find.
    const blocks = this.#sql.leftBehind
      .all(...range)
      .filter(isSound)
      .map(readBlock);
    const lasting = blocks.map(({ text }) => lastingIn(text));
    const starts = this.#startsOf(lasting.flat());
    const isNeeded = (sequence: number, document: number) => sequence > (starts.get(document) ?? sequence);
    blocks.forEach((block, at) => {
      const isLeft = lasting[at]!.some(({ sequence, document }) => isNeeded(sequence, document));
      if (isLeft) this.#keep(block, ({ sequence }, { document }) => isNeeded(sequence, document));
      else this.#sql.drop.run(block.id);
    });
  }

  flush(): void {
    this.#writeOpen();
  }

  forget(): void {
    this.#open.clear();
    this.#read = undefined;
  }

  /** The sequences after which documents need their changes; 0 (all changes) if a document's row is missing. */
  #startsOf(places: readonly PatchPlace[]): ReadonlyMap<number, number> {
    const starts = new Map<number, number>(places.map(({ document }) => [document, 0]));
    const rows = JSON.stringify([...starts.keys()]);
    for (const { id, start } of this.#sql.starts.all(rows)) starts.set(Number(id), Number(start));
    return starts;
  }

  /** Commits within the feed stay, even those with only labels. */
  #keep(
    block: StoredBlock,
    stays: (commit: CommitLine, patch: PatchLine) => boolean,
    floor = Number.POSITIVE_INFINITY,
  ): void {
    this.#read = undefined;
    const kept = commitsIn(block.text)
      .map((commit) => ({ ...commit, patches: commit.patches.filter((patch) => stays(commit, patch)) }))
      .filter(({ patches, sequence }) => patches.length > 0 || sequence > floor);
    if (kept.length === 0) {
      this.#sql.drop.run(block.id);
      return;
    }
    const text = blockText(kept);
    const needed = kept.reduce((sum, { patches }) => sum + patches.length, 0);
    this.#sql.rewrite.run(needed, text, checksum(text, block.space, block.first), block.id);
  }

  /**
   * The text that contains a commit. An open block is read without being written: the current commit still adds to it.
   */
  #textAt(space: number, sequence: number): string {
    const open = this.#open.get(space);
    return (open && open.first <= sequence ? open : this.#blockAt(space, sequence))?.text ?? "";
  }

  #blockAt(space: number, sequence: number): StoredBlock | undefined {
    const known = this.#read;
    if (known && known.space === space && known.first <= sequence && sequence <= known.last) return known;
    const row = this.#sql.blockAt.get(space, sequence);
    if (!row || Number(row["last"]) < sequence) return undefined;
    this.#read = readBlock(row);
    return this.#read;
  }

  #writeOpen(): void {
    if (this.#open.size === 0) return;
    for (const [space, block] of this.#open) this.#writeBlock(space, block);
    this.#open.clear();
  }

  #writeBlock(space: number, { first, last, needed, text }: OpenBlock): void {
    this.#sql.insert.run(space, first, last, needed, text, checksum(text, space, first));
  }
}

/** Throws if the bytes or the location differ from those written. */
export function readBlock(row: Row): StoredBlock {
  if (!isSound(row)) throw damaged(`sequences ${row["first"]} to ${row["last"]}`);
  return blockOf(row);
}

function blockOf(row: Row): StoredBlock {
  const [space, first, last] = [Number(row["space"]), Number(row["first"]), Number(row["last"])];
  return { id: Number(row["id"]), space, first, last, text: String(row["commits"]) };
}

function isSound(row: Row): boolean {
  return checksum(String(row["commits"]), Number(row["space"]), Number(row["first"])) === row["sum"];
}

export const BLOCK_COLUMNS = "id, space, first, last, commits, sum";

function statements(connection: SqliteConnection) {
  const prepare = (sql: string) => connection.prepare(sql);
  // A block that contains sequence s begins after s minus the maximum size of a block.
  const inRange = "space = ?1 AND first > ?2 AND last > ?3 AND first <= ?4 AND last <= ?4";
  return {
    insert: prepare("INSERT INTO change (space, first, last, needed, commits, sum) VALUES (?, ?, ?, ?, ?, ?)"),
    blockAt: prepare(`SELECT ${BLOCK_COLUMNS} FROM change WHERE space = ? AND first <= ? ORDER BY first DESC LIMIT 1`),
    blocksAfter: prepare(
      `SELECT ${BLOCK_COLUMNS} FROM change WHERE space = ? AND first > ? AND last > ? ORDER BY first ${AT_MOST}`,
    ),
    dropFree: prepare(`DELETE FROM change WHERE ${inRange} AND needed = 0`),
    leftBehind: prepare(`SELECT ${BLOCK_COLUMNS} FROM change WHERE ${inRange} ORDER BY first`),
    drop: prepare("DELETE FROM change WHERE id = ?"),
    rewrite: prepare("UPDATE change SET needed = ?, commits = ?, sum = ? WHERE id = ?"),
    starts: prepare(
      "SELECT document.id AS id, base_sequence - (snapshot_sequence = 0 AND base_sum IS NULL) AS start " +
        "FROM json_each(?) AS one CROSS JOIN document ON document.id = one.value",
    ),
  };
}
