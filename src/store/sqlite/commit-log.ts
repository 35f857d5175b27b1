/**
 * The commits that were made and their answers, for the replay check. SPEC: S7, S8. Their changes are in
 * `change-table.ts`.
 *
 * Commits of one session are numbered consecutively, so those of a batch mostly form one row, a _run_. A run has no
 * gaps and runs of a session do not overlap, so at most one run can contain a commit.
 *
 *   open ──full, another number or space, end of batch──> written ──a million commits later──> removed
 */
import type { CommitIdentity } from "../commit.ts";
import type { StoredCommit } from "../commit-rules.ts";
import type { SqliteConnection } from "./connection.ts";
import type { TableCache } from "./table-cache.ts";

interface Session {
  readonly id: number;
  /** The greatest local sequence of its commits; greater ones were never made. */
  last: number;
  /** Every local sequence from here to the last was made, so a dependency on a recent one needs no lookup. */
  unbrokenFrom: number;
  /** Commits of the current batch that are not written yet. */
  run: Run | undefined;
}

interface Run {
  readonly space: number;
  /** The local sequence of its first answer. */
  readonly first: number;
  /** The local sequence of its last answer. */
  last: number;
  /** JSON of the answers, each followed by a comma: built incrementally, at half the cost of serializing the list. */
  text: string;
  /** Whether one of them changed the space's sequence. */
  moves: boolean;
}

/** Digest, sequence, and journal ids if there are any. */
type Answer = readonly [digest: string, sequence: number, journalIds?: readonly number[]];

/** The logged data of a commit. */
export interface CommitRecord extends CommitIdentity, StoredCommit {
  readonly space: number;
  readonly moves: boolean;
}

/** Text length from which a run is full: with its other columns it should fit a page. */
const RUN_TEXT_MAX = 3_800;
/** There are many sessions over time and few at once. */
const SESSIONS_REMEMBERED_MAX = 1_000;

export class CommitLog implements TableCache {
  readonly #sessions = new Map<string, Session>();
  /** Sessions with an unwritten run. */
  readonly #running = new Set<Session>();
  /**
   * The number of commits ever made: the id of a run is the number of its last commit. Undefined if it must be read.
   */
  #count: number | undefined;
  readonly #sql;

  constructor(connection: SqliteConnection) {
    this.#sql = statements(connection);
  }

  commitOf({ session, localSequence }: CommitIdentity): StoredCommit | undefined {
    const known = this.#findSession(session);
    if (!known || localSequence > known.last) return undefined;
    this.#writeRun(known);
    const run = this.#sql.runOf.get(known.id, localSequence);
    if (!run || Number(run["last"]) < localSequence) return undefined;
    const answers: Answer[] = JSON.parse(String(run["answers"]));
    const [digest, sequence, journalIds = []] = answers[localSequence - Number(run["first"])]!;
    return { digest, sequence, journalIds };
  }

  wasMade(identity: CommitIdentity): boolean {
    const known = this.#findSession(identity.session);
    if (!known || identity.localSequence > known.last) return false;
    return identity.localSequence >= known.unbrokenFrom || this.commitOf(identity) !== undefined;
  }

  /** The number that changes use for the session; undefined if it has no commit. */
  findSessionId(name: string): number | undefined {
    return this.#findSession(name)?.id;
  }

  sessionId(name: string): number {
    return this.#makeSession(name).id;
  }

  sessionName(id: number): string {
    return String(this.#sql.sessionName.get(id)?.["name"]);
  }

  add({ session: name, localSequence, digest, sequence, journalIds, space, moves }: CommitRecord): void {
    const session = this.#makeSession(name);
    if (!continues(session, space, localSequence)) this.#writeRun(session);
    session.run ??= { space, first: localSequence, last: localSequence, text: "", moves };
    const { run } = session;
    const ids = journalIds.length === 0 ? "" : `,[${journalIds.join()}]`;
    run.text += `[${JSON.stringify(digest)},${sequence}${ids}],`;
    run.last = localSequence;
    run.moves ||= moves;
    this.#running.add(session);
    if (localSequence > session.last + 1) session.unbrokenFrom = localSequence;
    session.last = Math.max(session.last, localSequence);
  }

  /** The number of commits made. */
  count(): number {
    this.#count ??= Number(this.#sql.count.get()?.["count"] ?? 0);
    return this.#count;
  }

  /** Names of the spaces changed by commits after this number. */
  movedAfter(count: number): string[] {
    return this.#sql.movedAfter.all(count).map(({ name }) => String(name));
  }

  /** No remaining run ends at or before this number. */
  forgottenTo(): number {
    return Number(this.#sql.oldest.get()?.["oldest"] ?? 1) - 1;
  }

  /** Removes runs that ended between two numbers of commits. */
  forgetCommits(from: number, before: number): void {
    this.#sql.forgetCommits.run(from, before);
  }

  flush(): void {
    for (const session of this.#running) this.#writeRun(session);
  }

  forget(): void {
    this.#sessions.clear();
    this.#running.clear();
    this.#count = undefined;
  }

  #writeRun(session: Session): void {
    const { run } = session;
    if (!run) return;
    const { space, first, last, text, moves } = run;
    this.#count = this.count() + last - first + 1;
    this.#sql.insert.run(this.#count, session.id, first, last, space, moves ? 1 : 0, `[${text.slice(0, -1)}]`);
    session.run = undefined;
    this.#running.delete(session);
  }

  #findSession(name: string): Session | undefined {
    const known = this.#sessions.get(name);
    if (known) return known;
    const row = this.#sql.session.get(name);
    if (!row) return undefined;
    const last = Number(row["last"] ?? 0);
    return this.#remember(name, { id: Number(row["id"]), last, unbrokenFrom: last + 1, run: undefined });
  }

  #makeSession(name: string): Session {
    const found = this.#findSession(name);
    if (found) return found;
    const id = Number(this.#sql.makeSession.get(name)?.["id"]);
    return this.#remember(name, { id, last: 0, unbrokenFrom: 1, run: undefined });
  }

  #remember(name: string, session: Session): Session {
    if (this.#sessions.size >= SESSIONS_REMEMBERED_MAX) {
      this.flush();
      this.#sessions.clear();
    }
    this.#sessions.set(name, session);
    return session;
  }
}

/** Whether a commit can be added to the session's run. */
function continues({ run }: Session, space: number, localSequence: number): boolean {
  if (run === undefined || run.text.length >= RUN_TEXT_MAX) return false;
  return run.space === space && localSequence === run.last + 1;
}

function statements(connection: SqliteConnection) {
  const prepare = (sql: string) => connection.prepare(sql);
  return {
    session: prepare(
      "SELECT id, (SELECT last FROM commit_run WHERE commit_run.session = session.id ORDER BY first DESC LIMIT 1) AS last " +
        "FROM session WHERE name = ?",
    ),
    sessionName: prepare("SELECT name FROM session WHERE id = ?"),
    makeSession: prepare("INSERT INTO session (name) VALUES (?) RETURNING id"),
    runOf: prepare(
      "SELECT first, last, answers FROM commit_run WHERE session = ? AND first <= ? ORDER BY first DESC LIMIT 1",
    ),
    insert: prepare(
      "INSERT INTO commit_run (id, session, first, last, space, moves, answers) VALUES (?, ?, ?, ?, ?, ?, ?)",
    ),
    count: prepare("SELECT max(id) AS count FROM commit_run"),
    oldest: prepare("SELECT min(id) AS oldest FROM commit_run"),
    movedAfter: prepare(
      "SELECT DISTINCT space.name AS name FROM commit_run JOIN space ON space.id = commit_run.space " +
        "WHERE commit_run.id > ? AND moves = 1",
    ),
    forgetCommits: prepare("DELETE FROM commit_run WHERE id > ? AND id <= ?"),
  };
}
