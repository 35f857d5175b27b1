/**
 * The tables of a store file. `user_version` is the format number: a file with another number is refused.
 * Reasons: `docs/decisions/0043-sqlite.md`.
 *
 * `event_journal` has the columns and index names of ADR 004. A row inserted by hand with only those columns is an
 * ordinary pending event. The indexes are shaped for the hot path: an event that is published, handled and settled
 * enters and leaves one index of unsettled rows and enters the others once (settling costs 2.5 us; 4.9 us with the
 * ADR's own shapes). SPEC: S82, S84, S86.
 */
import { DOCUMENT_VIEW } from "./document-view.ts";

/** "Mill" in ASCII: marks our files. */
export const APPLICATION_ID = 0x4d696c6c;

/**
 * Raise it with every change of `SCHEMA` that an older build cannot read or write. Files of version 0.1 have 1 to 9.
 */
export const SCHEMA_VERSION = 17;

export const SCHEMA = `
CREATE TABLE event_journal (
  id              INTEGER PRIMARY KEY AUTOINCREMENT,
  correlation_id  TEXT,
  topic           TEXT    NOT NULL,
  source          TEXT    NOT NULL,
  payload         TEXT    NOT NULL,
  status          TEXT    NOT NULL DEFAULT 'pending',
  created_at      REAL    NOT NULL,
  processed_at    REAL,
  error           TEXT,                -- why it failed, or will be retried
  outcome         TEXT,                -- of a done row: refused, unheard, cancelled, discarded; NULL where it was handled
  reason          TEXT,                -- and why
  message_id      TEXT    UNIQUE,
  kind            TEXT    NOT NULL DEFAULT 'event',
  type            TEXT,
  causation_id    TEXT,
  timestamp       INTEGER,             -- ms; NULL where it is created_at
  metadata        TEXT,                -- JSON of further metadata; NULL where there is none
  attempts        INTEGER NOT NULL DEFAULT 0,
  next_attempt_at REAL,                -- a pending row that waits is not claimable; Inf: it waits for consumers
  lease           INTEGER,             -- of the process that holds a processing row
  hash            TEXT,                -- over the row before and the columns that never change
  deaths          INTEGER NOT NULL DEFAULT 0,  -- expired leases since the row was last settled or requeued
  begun           INTEGER NOT NULL DEFAULT 0   -- 1: a suspect's handling began under this claim; 2: its holder stopped
);
-- One index for each status that a row leaves again: each stays as small as the backlog, and SQLite uses a partial index only
-- for a query with the same condition, like WHERE status = 'failed'.
CREATE INDEX idx_ej_status_created ON event_journal(status, next_attempt_at, kind) WHERE status = 'pending';
CREATE INDEX idx_ej_processing     ON event_journal(status, lease) WHERE status = 'processing';
CREATE INDEX idx_ej_failed         ON event_journal(status) WHERE status = 'failed';
CREATE INDEX idx_ej_topic_status   ON event_journal(topic);
CREATE INDEX idx_ej_correlation    ON event_journal(correlation_id) WHERE correlation_id IS NOT NULL;
CREATE INDEX idx_ej_causation      ON event_journal(causation_id) WHERE causation_id IS NOT NULL;

-- The last signed row, so that a removed tail is found. It stands in a page that every insert into the journal writes
-- anyway; a page of its own was a seventh of the bytes of a single publish. SQLite ignores rows here that name no table.
INSERT INTO sqlite_sequence (name, seq) VALUES ('journal_head', '0 ');
-- One row for each range that retention removed.
CREATE TABLE journal_gap (first_id INTEGER PRIMARY KEY, last_id INTEGER NOT NULL, hash TEXT NOT NULL);

CREATE TABLE delivery (
  event INTEGER NOT NULL, subscriber TEXT NOT NULL, status TEXT NOT NULL, attempts INTEGER NOT NULL, error TEXT,
  next_attempt_at REAL,                -- of a retry
  awaits          TEXT,                -- of a pending row: the consumer (name, blank, pattern) that it waits for
  PRIMARY KEY (event, subscriber)
) WITHOUT ROWID;
CREATE INDEX delivery_awaits ON delivery(awaits, event) WHERE awaits IS NOT NULL;

-- Subscribers that are owed events, whether a process runs them or not (decision 0022).
CREATE TABLE consumer (
  name TEXT NOT NULL, pattern TEXT NOT NULL, declared_at_ms INTEGER NOT NULL, PRIMARY KEY (name, pattern)
) WITHOUT ROWID;
CREATE TABLE consumer_version (one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER NOT NULL);
INSERT INTO consumer_version VALUES (1, 0);

CREATE TABLE lease (
  id INTEGER PRIMARY KEY AUTOINCREMENT, expires_at_ms INTEGER NOT NULL, holder TEXT,
  running TEXT                         -- JSON: the consumers that its process runs
);

CREATE TABLE due (
  ord INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, key TEXT NOT NULL, due_at_ms INTEGER NOT NULL,
  data TEXT NOT NULL, UNIQUE (kind, key)
);
CREATE INDEX due_at ON due(due_at_ms);

-- The process that has the file open (open-mark.ts), and the id of the data's history: a copy has another.
CREATE TABLE store_file (one INTEGER PRIMARY KEY CHECK (one = 1), opened_by TEXT, history TEXT NOT NULL);
INSERT INTO store_file VALUES (1, NULL, '');

CREATE TABLE space (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
  sequence INTEGER NOT NULL,           -- of its last commit
  floor    INTEGER NOT NULL            -- the feed has every commit after this one
);
-- Small bases stand in the rows of their documents; see document-table.ts.
CREATE TABLE document (
  id INTEGER PRIMARY KEY, space INTEGER NOT NULL, scope TEXT NOT NULL, name TEXT NOT NULL,
  sequence          INTEGER NOT NULL,  -- of the last commit that changed it; 0: referenced, never written
  base_sequence     INTEGER NOT NULL,  -- loading starts here: a snapshot, or a patch that sets the whole document
  base_bytes        INTEGER NOT NULL,
  patch_bytes       INTEGER NOT NULL,  -- of the patches after the base
  snapshot_sequence INTEGER NOT NULL,  -- 0: no snapshot
  base              TEXT,              -- the operations of a small base; NULL where it is elsewhere
  base_sum          INTEGER,
  present           INTEGER NOT NULL,  -- 1: it has a value; 0: a tombstone, or referenced only
  made_at           INTEGER,           -- of a receipt, ms (decision 0014); NULL for other documents and for receipts without an end
  UNIQUE (space, scope, name)
);
CREATE TABLE snapshot (
  id INTEGER PRIMARY KEY, document INTEGER NOT NULL,
  sequence   INTEGER NOT NULL,         -- the document after this commit
  part       INTEGER NOT NULL,         -- 0, 1, 2, …
  last       INTEGER NOT NULL,         -- 1: no part follows
  operations TEXT    NOT NULL,         -- JSON; applied in the order of the parts to no document
  sum        INTEGER NOT NULL,
  UNIQUE (document, sequence, part)
);
-- The feed: blocks of commits, in the order of commits. Keyed by document, a commit touched a page for each.
CREATE TABLE change (
  id INTEGER PRIMARY KEY, space INTEGER NOT NULL,
  first   INTEGER NOT NULL,            -- sequence of its first commit
  last    INTEGER NOT NULL,            -- and of its last
  needed  INTEGER NOT NULL,            -- patches that loading may need when the feed has left them behind
  commits TEXT    NOT NULL,            -- see change-block.ts
  sum     INTEGER NOT NULL,
  UNIQUE (space, first)
);
CREATE TABLE label (
  document INTEGER NOT NULL, path TEXT NOT NULL, labels TEXT NOT NULL, PRIMARY KEY (document, path)
) WITHOUT ROWID;

CREATE TABLE session (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
-- The answers that a replayed commit gets, in runs of commits; see commit-log.ts.
CREATE TABLE commit_run (
  id INTEGER PRIMARY KEY,              -- the number of its last commit, counted over all
  session INTEGER NOT NULL,
  first   INTEGER NOT NULL,            -- local sequence of its first commit
  last    INTEGER NOT NULL,            -- and of its last; there are no holes between
  space   INTEGER NOT NULL,
  moves   INTEGER NOT NULL,            -- whether one of them moved the space
  answers TEXT    NOT NULL,            -- JSON: digest, sequence, and journal ids if there are any, of each
  UNIQUE (session, first)
);

-- Receipts of requests made before this time may be gone (decision 0014).
CREATE TABLE receipt_horizon (one INTEGER PRIMARY KEY CHECK (one = 1), made_before_ms INTEGER NOT NULL);
INSERT INTO receipt_horizon VALUES (1, 0);

-- A node and all its inputs in one row; see basis-table.ts.
CREATE TABLE node (
  space INTEGER NOT NULL, name TEXT NOT NULL, fingerprint TEXT NOT NULL, settings TEXT,
  inputs TEXT NOT NULL,                -- JSON: document, sequence and path set of each, one after another
  output INTEGER,                      -- the sequence as of which its output is the one that the row describes
  PRIMARY KEY (space, name)
) WITHOUT ROWID;
-- The paths that nodes read in a document: each distinct set once, with the number of inputs that name it.
CREATE TABLE path_set (id INTEGER PRIMARY KEY, reads TEXT NOT NULL UNIQUE, uses INTEGER NOT NULL);
${DOCUMENT_VIEW}`;
