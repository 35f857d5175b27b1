/**
 * The SQL statements of the journal's writer, and the columns and the head that readers share with it.
 * `journal-table.ts` uses them.
 */
import { EVENT_SUSPECT_DEATHS } from "../../limits.ts";
import { AT_MOST, type SqliteConnection } from "./connection.ts";

/** The columns that `journalRow` reads. */
export const ROW_COLUMNS =
  "id, correlation_id, topic, source, payload, status, created_at, processed_at, error, outcome, reason, message_id, kind, " +
  "type, causation_id, timestamp, metadata, attempts, deaths, next_attempt_at, lease, hash";

const JOINED_COLUMNS = ROW_COLUMNS.split(", ")
  .map((column) => `j.${column} AS ${column}`)
  .join(", ");

/** The last signed row: its id, a blank and its hash. */
export const READ_HEAD =
  "SELECT CAST(seq AS INTEGER) AS last_id, substr(seq, instr(seq, ' ') + 1) AS hash FROM sqlite_sequence WHERE name = 'journal_head'";

/** Claimed by this lease for the attempt-th time and not settled since. */
const HELD = "id = ? AND status = 'processing' AND lease = ? AND attempts = ?";

/** Not of one of the topics, which are given as a JSON list. */
const NOT_AMONG = "topic NOT IN (SELECT value FROM json_each(?))";

export function journalStatements(connection: SqliteConnection) {
  const prepare = (sql: string) => connection.prepare(sql);
  return {
    insert: prepare(
      "INSERT INTO event_journal (id, correlation_id, topic, source, payload, status, created_at, processed_at, error, " +
        "outcome, reason, message_id, kind, type, causation_id, timestamp, metadata, attempts, lease, hash) " +
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (message_id) DO NOTHING",
    ),
    removeAfter: prepare("DELETE FROM event_journal WHERE id > ?"),
    byMessageId: prepare(`SELECT ${ROW_COLUMNS} FROM event_journal WHERE message_id = ?`),
    readHead: prepare(
      "SELECT last_id, hash, (SELECT max(id) FROM event_journal) AS max_id, " +
        `(SELECT seq FROM sqlite_sequence WHERE name = 'event_journal') AS counter FROM (${READ_HEAD})`,
    ),
    findHead: prepare(
      "INSERT INTO sqlite_sequence (name, seq) SELECT 'journal_head', last_id || ' ' || hash FROM (" +
        "SELECT 0 AS last_id, '' AS hash UNION ALL SELECT last_id, hash FROM journal_gap UNION ALL " +
        "SELECT id, hash FROM event_journal WHERE hash IS NOT NULL) ORDER BY last_id DESC LIMIT 1",
    ),
    writeHead: prepare("UPDATE sqlite_sequence SET seq = ? || ' ' || ? WHERE name = 'journal_head'"),
    resetCounter: prepare("UPDATE sqlite_sequence SET seq = ? WHERE name = 'event_journal'"),
    // SQLite uses a partial index only if its condition is written out.
    claimable: prepare(
      `SELECT ${ROW_COLUMNS} FROM event_journal WHERE status = 'pending' AND next_attempt_at IS NULL ` +
        `AND kind = ? AND deaths < ? AND ${NOT_AMONG} ORDER BY id ${AT_MOST}`,
    ),
    suspects: prepare(
      `SELECT ${ROW_COLUMNS} FROM event_journal WHERE status = 'pending' AND next_attempt_at IS NULL ` +
        `AND kind = ? AND deaths >= ? AND ${NOT_AMONG} ORDER BY id ${AT_MOST}`,
    ),
    // One consumer at a time: the index has its rows in the order of ids.
    awaited: prepare(
      `SELECT ${JOINED_COLUMNS} FROM delivery AS d CROSS JOIN event_journal AS j ON j.id = d.event WHERE d.awaits = ? ` +
        `AND j.status = 'pending' AND j.kind = ? AND j.deaths >= ? AND j.deaths < ? AND ${NOT_AMONG} ORDER BY d.event ${AT_MOST}`,
    ),
    awaitedKeys: prepare(
      "WITH RECURSIVE one(awaits) AS (SELECT min(awaits) FROM delivery WHERE awaits IS NOT NULL UNION ALL " +
        "SELECT (SELECT min(awaits) FROM delivery WHERE awaits > one.awaits) FROM one WHERE one.awaits IS NOT NULL) " +
        "SELECT awaits FROM one WHERE awaits IS NOT NULL",
    ),
    forgetAwaits: prepare("UPDATE delivery SET awaits = NULL WHERE event = ? AND awaits IS NOT NULL"),
    eventsAwaiting: prepare(`SELECT event FROM delivery WHERE awaits = ? ORDER BY event ${AT_MOST}`),
    removeAwaited: prepare(
      "UPDATE delivery SET status = 'removing', awaits = NULL WHERE awaits = ? AND event IN (SELECT value FROM json_each(?))",
    ),
    unpark: prepare(
      // By id: with a bare `status` the engine reads the index of all pending rows.
      "UPDATE event_journal SET next_attempt_at = NULL WHERE +status = 'pending' AND id IN (SELECT value FROM json_each(?))",
    ),
    claim: prepare(
      "UPDATE event_journal SET status = 'processing', lease = ?, attempts = attempts + 1, begun = 0, processed_at = NULL, " +
        "next_attempt_at = NULL WHERE id BETWEEN ? AND ?",
    ),
    begin: prepare(`UPDATE event_journal SET begun = 1 WHERE ${HELD}`),
    leave: prepare(`UPDATE event_journal SET begun = 2 WHERE ${HELD}`),
    held: prepare(`SELECT 1 FROM event_journal WHERE ${HELD}`),
    settle: prepare(
      "UPDATE event_journal SET status = ?, processed_at = ?, error = ?, next_attempt_at = ?, outcome = NULL, reason = NULL, " +
        `lease = NULL, deaths = 0 WHERE ${HELD}`,
    ),
    settleDone: prepare(
      "UPDATE event_journal SET status = 'done', processed_at = ?, error = NULL, outcome = ?, reason = ?, " +
        `next_attempt_at = NULL, lease = NULL, deaths = 0 WHERE ${HELD}`,
    ),
    wait: prepare(
      `UPDATE event_journal SET status = 'pending', error = ?, next_attempt_at = ?, lease = NULL WHERE ${HELD}`,
    ),
    settleRange: prepare(
      "UPDATE event_journal SET status = 'done', processed_at = ?, error = NULL, outcome = ?, reason = ?, " +
        "next_attempt_at = NULL, lease = NULL, deaths = 0 WHERE id BETWEEN ? AND ?",
    ),
    heldAmong: prepare(
      "SELECT count(*) AS held FROM json_each(?) AS one CROSS JOIN event_journal ON event_journal.id = one.value " +
        "WHERE status = 'processing' AND lease = ? AND attempts = ?",
    ),
    settleAmong: prepare(
      "UPDATE event_journal SET status = 'done', processed_at = ?, error = NULL, outcome = ?, reason = ?, " +
        "next_attempt_at = NULL, lease = NULL, deaths = 0 WHERE id IN (SELECT value FROM json_each(?))",
    ),
    giveBack: prepare(
      `UPDATE event_journal SET status = 'pending', attempts = attempts - 1, lease = NULL WHERE ${HELD}`,
    ),
    abandon: prepare(
      "UPDATE event_journal SET status = 'pending', lease = NULL " + "WHERE status = 'processing' AND lease = ?",
    ),
    abandonUnheld: prepare(
      "UPDATE event_journal SET status = 'pending', lease = NULL, " +
        `deaths = CASE begun WHEN 2 THEN max(deaths, 1) ELSE deaths + (begun OR deaths < ${EVENT_SUSPECT_DEATHS}) END ` +
        "WHERE status = 'processing' AND (lease IS NULL OR lease NOT IN (SELECT id FROM lease))",
    ),
    succeedAfterAll: prepare(
      "UPDATE event_journal SET status = 'done', processed_at = ?, error = NULL, outcome = NULL, reason = NULL " +
        "WHERE id = ? AND (status = 'failed' OR (status = 'done' AND outcome = 'refused'))",
    ),
    replaceRefusal: prepare(
      "UPDATE event_journal SET status = ?, processed_at = ?, error = ?, outcome = ?, reason = ? " +
        "WHERE id = ? AND status = 'done' AND outcome = 'refused'",
    ),
    conclude: prepare(
      "UPDATE event_journal SET status = 'done', processed_at = ?, error = CASE status WHEN 'failed' THEN error END, " +
        "outcome = ?, reason = ?, next_attempt_at = NULL, lease = NULL, deaths = 0 WHERE id = ? AND status = ?",
    ),
    requeue: prepare(
      "UPDATE event_journal SET status = 'pending', processed_at = NULL, error = NULL, outcome = NULL, reason = NULL, " +
        "next_attempt_at = NULL, lease = NULL, deaths = 0 " +
        "WHERE id = ? AND (status = 'failed' OR (status = 'done' AND (outcome = 'unheard' OR ?)))",
    ),
    releaseRetries: prepare(
      "UPDATE event_journal SET next_attempt_at = NULL WHERE status = 'pending' AND next_attempt_at <= ?",
    ),
    nextRetry: prepare(
      "SELECT min(next_attempt_at) AS next FROM event_journal " +
        "WHERE status = 'pending' AND next_attempt_at IS NOT NULL",
    ),
    putDelivery: prepare(
      "INSERT INTO delivery (event, subscriber, status, attempts, error, next_attempt_at, awaits) " +
        "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (event, subscriber) DO UPDATE SET status = excluded.status, " +
        "attempts = excluded.attempts, error = excluded.error, next_attempt_at = excluded.next_attempt_at, awaits = excluded.awaits",
    ),
    countAsDone: prepare(
      "INSERT INTO delivery (event, subscriber, status, attempts) VALUES (?, ?, 'done', 0) ON CONFLICT DO NOTHING",
    ),
    forgetDelivery: prepare("DELETE FROM delivery WHERE event = ? AND subscriber = ?"),
    forgetFailures: prepare("DELETE FROM delivery WHERE event = ? AND status <> 'done'"),
  };
}
