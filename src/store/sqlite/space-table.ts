/**
 * Spaces: the sequence of each, and how far back its feed goes. SPEC: S4, S21. Their commits are in `commit-log.ts`.
 */
import type { SqliteConnection } from "./connection.ts";
import type { TableCache } from "./table-cache.ts";

export interface SpaceRow {
  readonly id: number;
  readonly name: string;
  /** Sequence of its last commit. */
  sequence: number;
  /** Commits up to this sequence may have lost their patches. */
  floor: number;
}

/** The feed has every commit after this sequence. A process with a smaller limit may have trimmed it further. */
export function feedStart({ sequence, floor }: SpaceRow, feedCommits: number): number {
  return Math.max(sequence - feedCommits, floor);
}

export class SpaceTable implements TableCache {
  readonly #spaces = new Map<string, SpaceRow>();
  /** Spaces to be written before the batch ends. */
  readonly #moved = new Set<SpaceRow>();
  readonly #sql;

  constructor(connection: SqliteConnection) {
    this.#sql = statements(connection);
  }

  /** Undefined if it has no commit. */
  find(name: string): SpaceRow | undefined {
    const known = this.#spaces.get(name);
    if (known) return known;
    const row = this.#sql.space.get(name);
    if (!row) return undefined;
    return this.#remember(name, Number(row["id"]), Number(row["sequence"]), Number(row["floor"]));
  }

  make(name: string): SpaceRow {
    const found = this.find(name);
    if (found) return found;
    return this.#remember(name, Number(this.#sql.makeSpace.get(name)?.["id"]), 0, 0);
  }

  all(): SpaceRow[] {
    return this.#sql.names.all().flatMap(({ name }) => this.find(String(name)) ?? []);
  }

  move(space: SpaceRow): void {
    space.sequence++;
    this.#moved.add(space);
  }

  raiseFloor(space: SpaceRow, floor: number): void {
    space.floor = Math.max(space.floor, floor);
    this.#moved.add(space);
  }

  flush(): void {
    for (const { sequence, floor, id } of this.#moved) this.#sql.writeSpace.run(sequence, floor, id);
    this.#moved.clear();
  }

  forget(): void {
    this.#spaces.clear();
    this.#moved.clear();
  }

  #remember(name: string, id: number, sequence: number, floor: number): SpaceRow {
    const space: SpaceRow = { id, name, sequence, floor };
    this.#spaces.set(name, space);
    return space;
  }
}

function statements(connection: SqliteConnection) {
  const prepare = (sql: string) => connection.prepare(sql);
  return {
    space: prepare("SELECT id, sequence, floor FROM space WHERE name = ?"),
    names: prepare("SELECT name FROM space ORDER BY id"),
    makeSpace: prepare("INSERT INTO space (name, sequence, floor) VALUES (?, 0, 0) RETURNING id"),
    writeSpace: prepare("UPDATE space SET sequence = ?, floor = ? WHERE id = ?"),
  };
}
