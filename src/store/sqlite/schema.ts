/**
 * The tables, and how a file of an older version becomes one of this version. `user_version` is the number of migrations a
 * file has had; each runs once, in order, in one transaction. What the columns mean: `docs/decisions/0002-the-store.md`.
 *
 * `event_journal` keeps the columns and index names of ADR 004, so that `sqlite3 app.db 'select * from event_journal'` shows
 * what its authors expect, and a row inserted by hand with only those columns is an ordinary pending event. Its indexes are
 * shaped for the hot path: an event that is published, handled and settled enters and leaves one index of unsettled rows and
 * enters the others once (settling costs 2.5 us against 4.9 us with the ADR's own shapes). SPEC: S84, S86.
 */

/** "Mill" in ASCII: marks a file as ours. */
export const APPLICATION_ID = 0x4d696c6c;

const VERSION_1 = `
CREATE TABLE event_journal (
  id              INTEGER PRIMARY KEY AUTOINCREMENT,
  correlation_id  TEXT,
  topic           TEXT    NOT NULL,
  source          TEXT    NOT NULL,
  payload         TEXT    NOT NULL,
  status          TEXT    NOT NULL DEFAULT 'pending',
  created_at      REAL    NOT NULL,
  processed_at    REAL,
  error           TEXT,
  message_id      TEXT    UNIQUE,
  kind            TEXT    NOT NULL DEFAULT 'event',
  type            TEXT,
  causation_id    TEXT,
  timestamp       INTEGER,             -- ms; NULL where it is created_at
  metadata        TEXT,                -- JSON of further metadata; NULL where there is none
  attempts        INTEGER NOT NULL DEFAULT 0,
  next_attempt_at REAL,                -- a pending row that waits is not claimable
  lease           INTEGER,             -- who holds a processing row
  hash            TEXT                 -- over the row before and the columns that never change
);
-- "status <> 'done'" keeps settled rows out: the index stays as small as the backlog.
CREATE INDEX idx_ej_status_created ON event_journal(status, next_attempt_at, kind) WHERE status <> 'done';
CREATE INDEX idx_ej_topic_status   ON event_journal(topic);
CREATE INDEX idx_ej_correlation    ON event_journal(correlation_id) WHERE correlation_id IS NOT NULL;
CREATE INDEX idx_ej_causation      ON event_journal(causation_id) WHERE causation_id IS NOT NULL;

-- The last signed row, so that a removed tail is seen, and one row per range that retention removed.
CREATE TABLE journal_head (one INTEGER PRIMARY KEY CHECK (one = 1), last_id INTEGER NOT NULL, hash TEXT NOT NULL);
INSERT INTO journal_head VALUES (1, 0, '');
CREATE TABLE journal_gap (first_id INTEGER PRIMARY KEY, last_id INTEGER NOT NULL, hash TEXT NOT NULL);

CREATE TABLE delivery (
  event INTEGER NOT NULL, subscriber TEXT NOT NULL, status TEXT NOT NULL, attempts INTEGER NOT NULL, error TEXT,
  PRIMARY KEY (event, subscriber)
) WITHOUT ROWID;

CREATE TABLE lease (id INTEGER PRIMARY KEY AUTOINCREMENT, expires_at_ms INTEGER NOT NULL, holder TEXT);

CREATE TABLE due (
  ord INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, key TEXT NOT NULL, due_at_ms INTEGER NOT NULL,
  data TEXT NOT NULL, UNIQUE (kind, key)
);
CREATE INDEX due_at ON due(due_at_ms);

CREATE TABLE space (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
  sequence INTEGER NOT NULL,           -- of its last commit
  floor    INTEGER NOT NULL            -- the feed has every commit after this one
);
CREATE TABLE document (
  id INTEGER PRIMARY KEY, space INTEGER NOT NULL, scope TEXT NOT NULL, name TEXT NOT NULL,
  sequence          INTEGER NOT NULL,  -- of the last commit that changed it; 0: named by somebody, never written
  base_sequence     INTEGER NOT NULL,  -- loading starts here: a snapshot, or a patch that sets the whole document
  base_bytes        INTEGER NOT NULL,
  patch_bytes       INTEGER NOT NULL,  -- of the patches after the base
  snapshot_sequence INTEGER NOT NULL,  -- 0: no snapshot
  UNIQUE (space, scope, name)
);
CREATE TABLE snapshot (document INTEGER PRIMARY KEY, value TEXT NOT NULL, sum INTEGER NOT NULL);
CREATE TABLE change (
  document INTEGER NOT NULL, sequence INTEGER NOT NULL, session INTEGER NOT NULL, patch TEXT NOT NULL, sum INTEGER NOT NULL,
  PRIMARY KEY (document, sequence)
) WITHOUT ROWID;
CREATE TABLE label (
  document INTEGER NOT NULL, path TEXT NOT NULL, labels TEXT NOT NULL, PRIMARY KEY (document, path)
) WITHOUT ROWID;

CREATE TABLE session (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE commit_log (
  id INTEGER PRIMARY KEY AUTOINCREMENT, session INTEGER NOT NULL, local_sequence INTEGER NOT NULL,
  space INTEGER NOT NULL, sequence INTEGER NOT NULL, digest TEXT NOT NULL,
  journal_ids TEXT,                    -- JSON; NULL where there are none
  documents   TEXT,                    -- JSON of the rows it changed; NULL where the sequence did not move
  UNIQUE (session, local_sequence)
);
CREATE INDEX commit_feed ON commit_log(space, sequence) WHERE documents IS NOT NULL;

CREATE TABLE node (
  id INTEGER PRIMARY KEY, space INTEGER NOT NULL, name TEXT NOT NULL, fingerprint TEXT NOT NULL, settings TEXT,
  UNIQUE (space, name)
);
CREATE TABLE basis (
  node INTEGER NOT NULL, position INTEGER NOT NULL, document INTEGER NOT NULL, sequence INTEGER NOT NULL,
  path_set INTEGER NOT NULL, PRIMARY KEY (node, position)
) WITHOUT ROWID;
-- What nodes read of a document, each distinct set once, with how many basis rows name it.
CREATE TABLE path_set (id INTEGER PRIMARY KEY, reads TEXT NOT NULL UNIQUE, uses INTEGER NOT NULL);
`;

/** The feed also says which labels a commit wrote: JSON as in the commit, NULL where it wrote none. */
const VERSION_2 = `ALTER TABLE commit_log ADD COLUMN labels TEXT`;

/**
 * Changes in the order of commits instead of that of documents, each naming the one before it: keyed by document, a commit touched a page
 * for each that it wrote. The sum of a row covers that name: the same arithmetic as in `checksum.ts`.
 */
const VERSION_3 = `
ALTER TABLE change RENAME TO change_by_document;
CREATE TABLE change (
  space INTEGER NOT NULL, sequence INTEGER NOT NULL, document INTEGER NOT NULL,
  previous INTEGER NOT NULL,           -- sequence of the document's change before; 0: it is the first
  session INTEGER NOT NULL, patch TEXT NOT NULL, sum INTEGER NOT NULL,
  PRIMARY KEY (space, sequence, document)
) WITHOUT ROWID;
INSERT INTO change
  SELECT space, sequence, document, previous, session, patch, (sum + previous * 2654435761) % 4294967296 FROM (
    SELECT document.space AS space, old.*, lag(old.sequence, 1, 0) OVER (PARTITION BY old.document ORDER BY old.sequence) AS previous
    FROM change_by_document AS old JOIN document ON document.id = old.document);
DROP TABLE change_by_document;
`;

/** How often a row was taken from a holder whose lease had ended, since it was last settled or requeued. */
const VERSION_4 = `ALTER TABLE event_journal ADD COLUMN deaths INTEGER NOT NULL DEFAULT 0`;

/**
 * Changes in blocks of commits, replay answers in runs of them, and small bases in the rows of their documents; what each is for is in
 * `change-table.ts`, `commit-log.ts` and `document-table.ts`. `checksum` and `checksum4` are our own (`open.ts`). A text whose sum was
 * wrong gets one that is wrong too: damage is not to be healed by moving it.
 */
const VERSION_5 = `
ALTER TABLE document ADD COLUMN base TEXT;          -- the operations of a small base; NULL where it is elsewhere
ALTER TABLE document ADD COLUMN base_sum INTEGER;
UPDATE document SET (base, base_sum) = (
    SELECT patch, iif(checksum4(patch, document, change.sequence, previous) = sum, checksum(patch, document, change.sequence), -1)
    FROM change WHERE change.space = document.space AND change.sequence = base_sequence AND change.document = document.id)
  WHERE snapshot_sequence = 0 AND base_sequence > 0 AND base_bytes <= 512;

ALTER TABLE change RENAME TO change_by_commit;
DELETE FROM change_by_commit
  WHERE sequence <= (SELECT floor FROM space WHERE space.id = change_by_commit.space)
    AND sequence <= (SELECT base_sequence FROM document WHERE document.id = change_by_commit.document AND base IS NOT NULL);
CREATE TABLE change (
  id INTEGER PRIMARY KEY, space INTEGER NOT NULL,
  first   INTEGER NOT NULL,            -- sequence of its first commit
  last    INTEGER NOT NULL,            -- and of its last
  needed  INTEGER NOT NULL,            -- patches that loading may need when the feed has left them behind
  commits TEXT    NOT NULL,            -- see change-block.ts
  sum     INTEGER NOT NULL,
  UNIQUE (space, first)
);
INSERT INTO change (space, first, last, needed, commits, sum)
  SELECT space, sequence, sequence, needed, commits, iif(is_sound, checksum(commits, space, sequence), -1) FROM (
    SELECT place.space AS space, place.sequence AS sequence, count(patch) AS needed,
      ifnull(min(checksum4(patch, document, old.sequence, previous) = sum), 1) AS is_sound,
      char(10) || '@' || place.sequence || ' ' || coalesce(made.session, old.session) || ' ' || coalesce(made.local_sequence, 0) ||
        coalesce(' ' || labels, '') ||
        coalesce(group_concat(char(10) || document || ' ' || previous || ' ' || patch, '' ORDER BY document), '') AS commits
    FROM (
      SELECT space, sequence FROM change_by_commit UNION
      SELECT space, sequence FROM commit_log WHERE documents IS NOT NULL
        AND sequence > (SELECT floor FROM space WHERE space.id = commit_log.space)
    ) AS place
    LEFT JOIN commit_log AS made ON made.space = place.space AND made.sequence = place.sequence AND made.documents IS NOT NULL
    LEFT JOIN change_by_commit AS old ON old.space = place.space AND old.sequence = place.sequence
    GROUP BY place.space, place.sequence);

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
INSERT INTO commit_run
  SELECT id, session, local_sequence, local_sequence, space, documents IS NOT NULL,
    iif(journal_ids IS NULL, json_array(json_array(digest, sequence)), json_array(json_array(digest, sequence, json(journal_ids))))
  FROM commit_log ORDER BY id;
DROP TABLE change_by_commit;
DROP TABLE commit_log;
`;

/**
 * The journal's head in a page that every insert into the journal writes anyway, with the counter of ids: on one of its own it was a seventh of what
 * a single publish wrote. The engine leaves rows there alone that have no table's name.
 */
const VERSION_6 = `
INSERT INTO sqlite_sequence (name, seq) SELECT 'journal_head', last_id || ' ' || hash FROM journal_head;
DROP TABLE journal_head;
`;

/** Receipts with an end: when what they are of was made, and the time before which such receipts may be gone (decision 0014). */
const VERSION_7 = `
ALTER TABLE document ADD COLUMN made_at INTEGER;    -- ms; NULL for what is no receipt, or has no end
CREATE TABLE receipt_horizon (one INTEGER PRIMARY KEY CHECK (one = 1), made_before_ms INTEGER NOT NULL);
INSERT INTO receipt_horizon VALUES (1, 0);
`;

/** A node and all its inputs in one row: `basis-table.ts`. */
const VERSION_8 = `
ALTER TABLE node RENAME TO node_by_input;
CREATE TABLE node (
  space INTEGER NOT NULL, name TEXT NOT NULL, fingerprint TEXT NOT NULL, settings TEXT,
  inputs TEXT NOT NULL,                -- JSON: document, sequence and path set of each, one after another
  PRIMARY KEY (space, name)
) WITHOUT ROWID;
INSERT INTO node
  SELECT space, name, fingerprint, settings, '[' || ifnull((
    SELECT group_concat(document || ',' || sequence || ',' || path_set, ',' ORDER BY position) FROM basis WHERE node = node_by_input.id), '') || ']'
  FROM node_by_input;
DROP TABLE node_by_input;
DROP TABLE basis;
`;

/** 1: the handling of a suspect has begun under its present claim (decision 0005, "Events that kill"). 2: its holder has stopped and left a handler behind. */
const VERSION_9 = `ALTER TABLE event_journal ADD COLUMN begun INTEGER NOT NULL DEFAULT 0`;

/** Forward only. A migration that has been released is never edited: files that had it will not have it again. */
export const MIGRATIONS: readonly string[] = [
  VERSION_1,
  VERSION_2,
  VERSION_3,
  VERSION_4,
  VERSION_5,
  VERSION_6,
  VERSION_7,
  VERSION_8,
  VERSION_9,
];

export const SCHEMA_VERSION = MIGRATIONS.length;
