/**
 * Records journal rows that were removed by hand, so that `verify` no longer reports them. Each missing range gets a
 * gap row, as with retention. The hash of the last removed row is unknown, so the chain restarts after the gap
 * (`UNKNOWN_HASH`). `journal_gap` shows that these rows were not removed by retention.
 */
import type { RemovedRange } from "../journal.ts";
import type { Connection } from "./connection.ts";
import { UNKNOWN_HASH } from "./journal-hash.ts";
import { READ_HEAD } from "./journal-statements.ts";

/** Runs inside a transaction. Returns the ranges that were missing. */
export function acceptRemoved(connection: Connection): RemovedRange[] {
  const head = connection.prepare(READ_HEAD).get();
  const lastId = Number(head?.["last_id"] ?? 0);
  const missing = connection
    .prepare(
      "WITH known (first, last) AS (SELECT id, id FROM event_journal UNION ALL SELECT first_id, last_id FROM journal_gap " +
        "UNION ALL SELECT ?1 + 1, ?1 + 1), " +
        "step (first, before) AS (SELECT first, lag(last, 1, 0) OVER (ORDER BY first) FROM known WHERE first <= ?1 + 1) " +
        "SELECT before + 1 AS first, first - 1 AS last FROM step WHERE first > before + 1",
    )
    .all(lastId)
    .map(({ first, last }) => ({ first: Number(first), last: Number(last) }));
  const put = connection.prepare("INSERT INTO journal_gap (first_id, last_id, hash) VALUES (?, ?, ?)");
  for (const { first, last } of missing) put.run(first, last, last === lastId ? String(head?.["hash"]) : UNKNOWN_HASH);
  return missing;
}
