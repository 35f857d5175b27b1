/**
 * Spaces, sessions and the log of commits: the sequence of each space, and which commit of which session got which number.
 * SPEC: S4, S7, S8, S20, S21. What a commit changed is in `document-table.ts`; here is only which documents.
 */
import type { CommitIdentity, LabelWrite } from "../commit.ts";
import type { StoredCommit } from "../commit-rules.ts";
import type { Connection, Row } from "./connection.ts";
import type { TableCache } from "./table-cache.ts";

export interface Space {
  readonly id: number;
  readonly name: string;
  /** Of its last commit. */
  sequence: number;
  /** Commits up to here may have lost their patches. */
  floor: number;
  state: "written" | "moved";
}

interface Session {
  readonly id: number;
  /** The greatest local sequence of its commits: whatever is greater was never made. */
  last: number;
  /** Every local sequence from here to the last was made; a commit that stands on a recent one need not look it up. */
  unbrokenFrom: number;
}

/** What the log keeps of a commit. */
export interface CommitRecord extends CommitIdentity {
  readonly digest: string;
  readonly journalIds: readonly number[];
  /** Rows of the documents it changed; undefined when the space's sequence did not move. */
  readonly documents: readonly number[] | undefined;
  /** JSON of its label writes; undefined when there are none. */
  readonly labels: string | undefined;
}

export interface LoggedCommit extends CommitIdentity {
  readonly sequence: number;
  readonly documents: readonly number[];
  readonly labels: readonly LabelWrite[];
}

export class SpaceTable implements TableCache {
  readonly #spaces = new Map<string, Space>();
  readonly #sessions = new Map<string, Session>();
  readonly #sql;

  constructor(connection: Connection) {
    this.#sql = statements(connection);
  }

  /** Undefined when nothing was ever committed to it. */
  find(name: string): Space | undefined {
    const known = this.#spaces.get(name);
    if (known) return known;
    const row = this.#sql.space.get(name);
    if (!row) return undefined;
    return this.#remember(name, Number(row["id"]), Number(row["sequence"]), Number(row["floor"]));
  }

  make(name: string): Space {
    const found = this.find(name);
    if (found) return found;
    return this.#remember(name, Number(this.#sql.makeSpace.get(name)?.["id"]), 0, 0);
  }

  commitOf({ session, localSequence }: CommitIdentity): StoredCommit | undefined {
    const known = this.#findSession(session);
    if (!known || localSequence > known.last) return undefined;
    const row = this.#sql.commit.get(known.id, localSequence);
    return row && { digest: String(row["digest"]), sequence: Number(row["sequence"]), journalIds: idsIn(row) };
  }

  wasMade(identity: CommitIdentity): boolean {
    const known = this.#findSession(identity.session);
    if (!known || identity.localSequence > known.last) return false;
    return identity.localSequence >= known.unbrokenFrom || this.commitOf(identity) !== undefined;
  }

  findSessionId(name: string): number | undefined {
    return this.#findSession(name)?.id;
  }

  /** The number by which rows name the session. */
  sessionId(name: string): number {
    return this.#makeSession(name).id;
  }

  /** Adds a commit to the log; the space's sequence has been moved before. */
  log(space: Space, commit: CommitRecord): void {
    const session = this.#makeSession(commit.session);
    const { localSequence, digest, journalIds, documents, labels } = commit;
    this.#sql.log.run(
      session.id,
      localSequence,
      space.id,
      space.sequence,
      digest,
      journalIds.length === 0 ? null : JSON.stringify(journalIds),
      documents === undefined ? null : JSON.stringify(documents),
      labels ?? null,
    );
    if (localSequence > session.last + 1) session.unbrokenFrom = localSequence;
    session.last = Math.max(session.last, localSequence);
  }

  move(space: Space): void {
    space.sequence++;
    space.state = "moved";
  }

  raiseFloor(space: Space, floor: number): void {
    space.floor = Math.max(space.floor, floor);
    space.state = "moved";
  }

  /** Commits that moved the space after a sequence, oldest first. */
  loggedAfter(space: Space, sequence: number, limit: number): LoggedCommit[] {
    return this.#sql.feed.all(space.id, sequence, limit).map((row) => ({
      session: String(row["session"]),
      localSequence: Number(row["local_sequence"]),
      sequence: Number(row["sequence"]),
      documents: JSON.parse(String(row["documents"])),
      labels: row["labels"] === null ? NO_LABELS : JSON.parse(String(row["labels"])),
    }));
  }

  /** Names of the spaces whose documents were changed by commits after a row of the log. */
  movedAfter(row: number): string[] {
    return this.#sql.movedAfter.all(row).map(({ name }) => String(name));
  }

  lastRow(): number {
    return Number(this.#sql.lastRow.get()?.["last"] ?? 0);
  }

  /** Forgets commits whose rows of the log lie in a range, but for those that the feed still shows. */
  forgetCommits(from: number, before: number): void {
    this.#sql.forgetCommits.run(from, before);
  }

  flush(): void {
    for (const space of this.#spaces.values()) {
      if (space.state !== "moved") continue;
      this.#sql.writeSpace.run(space.sequence, space.floor, space.id);
      space.state = "written";
    }
  }

  forget(): void {
    this.#spaces.clear();
    this.#sessions.clear();
  }

  #remember(name: string, id: number, sequence: number, floor: number): Space {
    const space: Space = { id, name, sequence, floor, state: "written" };
    this.#spaces.set(name, space);
    return space;
  }

  #findSession(name: string): Session | undefined {
    const known = this.#sessions.get(name);
    if (known) return known;
    const row = this.#sql.session.get(name);
    if (!row) return undefined;
    const last = Number(row["last"] ?? 0);
    return this.#rememberSession(name, { id: Number(row["id"]), last, unbrokenFrom: last + 1 });
  }

  #makeSession(name: string): Session {
    const found = this.#findSession(name);
    if (found) return found;
    const id = Number(this.#sql.makeSession.get(name)?.["id"]);
    return this.#rememberSession(name, { id, last: 0, unbrokenFrom: 1 });
  }

  #rememberSession(name: string, session: Session): Session {
    if (this.#sessions.size >= SESSIONS_REMEMBERED_MAX) this.#sessions.clear();
    this.#sessions.set(name, session);
    return session;
  }
}

const NO_LABELS: readonly LabelWrite[] = Object.freeze([]);

/** Sessions are many over time and few at once. */
const SESSIONS_REMEMBERED_MAX = 1_000;

function statements(connection: Connection) {
  const prepare = (sql: string) => connection.prepare(sql);
  return {
    space: prepare("SELECT id, sequence, floor FROM space WHERE name = ?"),
    makeSpace: prepare("INSERT INTO space (name, sequence, floor) VALUES (?, 0, 0) RETURNING id"),
    writeSpace: prepare("UPDATE space SET sequence = ?, floor = ? WHERE id = ?"),
    session: prepare(
      "SELECT id, (SELECT max(local_sequence) FROM commit_log WHERE commit_log.session = session.id) AS last " +
        "FROM session WHERE name = ?",
    ),
    makeSession: prepare("INSERT INTO session (name) VALUES (?) RETURNING id"),
    commit: prepare("SELECT digest, sequence, journal_ids FROM commit_log WHERE session = ? AND local_sequence = ?"),
    log: prepare(
      "INSERT INTO commit_log (session, local_sequence, space, sequence, digest, journal_ids, documents, labels) " +
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    ),
    feed: prepare(
      "SELECT session.name AS session, local_sequence, sequence, documents, labels FROM commit_log " +
        "JOIN session ON session.id = commit_log.session " +
        "WHERE space = ? AND documents IS NOT NULL AND sequence > ? ORDER BY sequence LIMIT ?",
    ),
    movedAfter: prepare(
      "SELECT DISTINCT space.name AS name FROM commit_log JOIN space ON space.id = commit_log.space " +
        "WHERE commit_log.id > ? AND documents IS NOT NULL",
    ),
    lastRow: prepare("SELECT max(id) AS last FROM commit_log"),
    forgetCommits: prepare(
      "DELETE FROM commit_log WHERE id >= ? AND id < ? AND " +
        "(documents IS NULL OR sequence <= (SELECT floor FROM space WHERE space.id = commit_log.space))",
    ),
  };
}

function idsIn({ journal_ids }: Row): number[] {
  return journal_ids === null ? [] : JSON.parse(String(journal_ids));
}
