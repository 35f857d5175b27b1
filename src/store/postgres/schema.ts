/**
 * The tables and functions of a Postgres store, as one text per schema version. All names are qualified, so that the
 * connection's `search_path` does not matter. Key columns have the collation "C": they are compared as bytes.
 *
 * `apply_v1` checks integers and unique keys only, and applies a batch or raises `MR001` (refused). The decision about
 * a refused batch is made by `decideCommit` in TypeScript. Functions carry a version in their names, so that an older
 * kernel can share the database during a deploy. Reasons: `docs/decisions/0042-postgres.md`.
 */

import { CURRENT_TIMELINE } from "./server-choice.ts";

/** Raise it with every change of the tables; add the steps to `migrations.ts`. */
export const SCHEMA_VERSION = 1;

export const DEFAULT_SCHEMA = "millrace";

/** `n` of a journal id is above these bits, the writer's lane below. */
export const LANE_COUNT = 4_096;

export function tablesOf(m: string): string {
  return `
CREATE TABLE ${m}.meta (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  version integer NOT NULL,
  -- The id of the data's history, and the server that it was seen on: its system id and timeline, and its start.
  history text NOT NULL,
  system text,
  started text,
  consumers_version bigint NOT NULL DEFAULT 0,
  horizon_ms float8 NOT NULL DEFAULT 0,
  last_lease bigint NOT NULL DEFAULT 0,
  -- The greatest journal id that retention has removed.
  last_removed bigint NOT NULL DEFAULT 0
);
INSERT INTO ${m}.meta (version, history) VALUES (${SCHEMA_VERSION}, '');

-- One row per store object. A batch raises its number, so a repeated batch is found and an ended writer is fenced.
CREATE TABLE ${m}.writer (
  incarnation bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  lane integer NOT NULL,
  batch bigint NOT NULL DEFAULT 0,
  moves bigint NOT NULL DEFAULT 0,
  answer text,
  -- The last journal id of this writer; 0 before its first.
  last_id bigint NOT NULL DEFAULT 0,
  ended boolean NOT NULL DEFAULT false,
  about text NOT NULL,
  opened_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  seen_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
CREATE UNIQUE INDEX writer_lane ON ${m}.writer (lane) WHERE NOT ended;
-- The last journal id of a lane, of writers whose rows are removed.
CREATE TABLE ${m}.lane (id integer PRIMARY KEY, last_id bigint NOT NULL);

-- Locked by each batch that touches the space, and rarely updated: it collects no dead rows.
CREATE TABLE ${m}.space (
  name text COLLATE "C" PRIMARY KEY,
  -- The head when the change log has no row, and the log has every commit after feed_start.
  head bigint NOT NULL DEFAULT 0,
  feed_start bigint NOT NULL DEFAULT 0
);
CREATE TABLE ${m}.change (
  space text COLLATE "C" NOT NULL,
  last bigint NOT NULL,
  first bigint NOT NULL,
  commits text NOT NULL,
  PRIMARY KEY (space, last)
);
CREATE TABLE ${m}.document (
  space text COLLATE "C" NOT NULL,
  scope text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  sequence bigint NOT NULL,
  -- The session of the last change, and the sequence of the last change by another one.
  session text COLLATE "C" NOT NULL,
  other_sequence bigint NOT NULL DEFAULT 0,
  -- When its value was last created or removed.
  turned bigint NOT NULL,
  base_sequence bigint NOT NULL,
  -- JSON text as of base_sequence; NULL: a tombstone.
  value text,
  base_bytes bigint NOT NULL,
  bytes bigint NOT NULL,
  patches integer NOT NULL DEFAULT 0,
  -- Of a receipt that may be removed.
  made_at float8,
  PRIMARY KEY (space, scope, id)
) WITH (fillfactor = 80);
CREATE INDEX document_made ON ${m}.document (made_at) WHERE made_at IS NOT NULL;
CREATE TABLE ${m}.patch (
  space text COLLATE "C" NOT NULL,
  scope text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  sequence bigint NOT NULL,
  operations text NOT NULL,
  PRIMARY KEY (space, scope, id, sequence)
);
CREATE TABLE ${m}.label (
  space text COLLATE "C" NOT NULL,
  scope text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  path text COLLATE "C" NOT NULL,
  labels text NOT NULL,
  PRIMARY KEY (space, scope, id, path)
);
CREATE TABLE ${m}.node (
  space text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  fingerprint text NOT NULL,
  settings text,
  output bigint,
  inputs text NOT NULL,
  sequence bigint NOT NULL,
  PRIMARY KEY (space, name)
);
-- The answers that a repeated commit gets, one row for the commits of a session in a batch.
CREATE TABLE ${m}.made (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  session text COLLATE "C" NOT NULL,
  first bigint NOT NULL,
  last bigint NOT NULL,
  base bigint NOT NULL,
  answers text NOT NULL
);
CREATE INDEX made_session ON ${m}.made (session, last);

CREATE TABLE ${m}.journal (
  id bigint PRIMARY KEY,
  message_id text COLLATE "C" NOT NULL UNIQUE,
  kind text NOT NULL,
  type text NOT NULL,
  topic text COLLATE "C" NOT NULL,
  source text NOT NULL,
  payload text NOT NULL,
  correlation_id text COLLATE "C",
  causation_id text COLLATE "C",
  created_at float8 NOT NULL,
  timestamp float8,
  metadata text,
  -- The hash chain of a writer: its rows are numbered from 1.
  writer bigint NOT NULL,
  place bigint NOT NULL,
  hash text,
  -- The id of the row before it in its lane; 0 for the first.
  previous bigint NOT NULL
);
CREATE INDEX journal_topic ON ${m}.journal (topic, id);
CREATE INDEX journal_correlation ON ${m}.journal (correlation_id) WHERE correlation_id IS NOT NULL;
CREATE INDEX journal_causation ON ${m}.journal (causation_id) WHERE causation_id IS NOT NULL;
-- The state of rows that are not done. Small, so that vacuum is quick.
CREATE TABLE ${m}.open (
  id bigint PRIMARY KEY,
  kind text NOT NULL,
  topic text COLLATE "C" NOT NULL,
  status text NOT NULL,
  lease bigint,
  attempts integer NOT NULL DEFAULT 0,
  deaths integer NOT NULL DEFAULT 0,
  said smallint NOT NULL DEFAULT 0,
  next_at float8,
  processed_at float8,
  error text,
  deliveries jsonb,
  awaits text[] COLLATE "C"
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX open_claim ON ${m}.open (kind, id) WHERE status = 'pending' AND next_at IS NULL;
CREATE INDEX open_lease ON ${m}.open (lease) WHERE status = 'processing';
CREATE INDEX open_next ON ${m}.open (next_at) WHERE status = 'pending' AND next_at IS NOT NULL;
CREATE INDEX open_awaits ON ${m}.open USING gin (awaits) WHERE awaits IS NOT NULL;
CREATE TABLE ${m}.done (
  id bigint PRIMARY KEY,
  processed_at float8 NOT NULL,
  attempts integer NOT NULL,
  outcome text,
  reason text,
  error text,
  deliveries jsonb
);
-- Rows that retention removed, so that the hash chain can be checked.
CREATE TABLE ${m}.journal_gap (
  writer bigint NOT NULL,
  first bigint NOT NULL,
  last bigint NOT NULL,
  hash text NOT NULL,
  PRIMARY KEY (writer, first)
);
CREATE TABLE ${m}.lease (
  id bigint PRIMARY KEY,
  expires_at float8 NOT NULL,
  running text[] COLLATE "C" NOT NULL DEFAULT '{}'
) WITH (fillfactor = 50);
CREATE TABLE ${m}.consumer (
  name text COLLATE "C" NOT NULL,
  pattern text COLLATE "C" NOT NULL,
  declared_at float8 NOT NULL,
  PRIMARY KEY (name, pattern)
);
CREATE SEQUENCE ${m}.due_order INCREMENT 100000;
CREATE TABLE ${m}.due (
  kind text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  due_at float8 NOT NULL,
  data text NOT NULL,
  place bigint NOT NULL,
  PRIMARY KEY (kind, key)
);
CREATE INDEX due_at ON ${m}.due (due_at, place);

CREATE VIEW ${m}.event_journal AS
  SELECT j.id, j.correlation_id, j.topic, j.source, j.payload,
    CASE WHEN o.id IS NULL THEN 'done' ELSE o.status END AS status,
    j.created_at, coalesce(o.processed_at, d.processed_at) / 1000 AS processed_at,
    coalesce(o.error, d.error) AS error, d.outcome, d.reason,
    j.message_id, j.kind, j.type, j.causation_id, j.timestamp, j.metadata,
    coalesce(o.attempts, d.attempts, 0) AS attempts, o.next_at / 1000 AS next_attempt_at, o.lease, j.hash,
    coalesce(o.deaths, 0) AS deaths, coalesce(o.deliveries, d.deliveries) AS deliveries,
    j.id % ${LANE_COUNT} AS lane, j.previous
  FROM ${m}.journal j LEFT JOIN ${m}.open o ON o.id = j.id LEFT JOIN ${m}.done d ON d.id = j.id;
`;
}

/** The plan must use the indexes also with old statistics: a claim took 100 ms otherwise. */
const PLAN =
  "SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan";

export function functionsOf(m: string): string {
  return `
CREATE OR REPLACE FUNCTION ${m}.head_v1(p_space text) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT coalesce((SELECT last FROM ${m}.change WHERE space = p_space ORDER BY last DESC LIMIT 1),
                  (SELECT head FROM ${m}.space WHERE name = p_space), 0)
$$;

CREATE OR REPLACE FUNCTION ${m}.refuse_v1(p_why text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'millrace: refused: %', p_why USING ERRCODE = 'MR001';
END $$;

-- Takes the writer's turn. NULL: this batch is new. Otherwise the answer that it got.
CREATE OR REPLACE FUNCTION ${m}.fence_v1(p_incarnation bigint, p_batch bigint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE w record;
BEGIN
  SELECT batch, answer, ended INTO w FROM ${m}.writer WHERE incarnation = p_incarnation FOR NO KEY UPDATE;
  IF FOUND AND w.batch = p_batch THEN RETURN w.answer; END IF;
  IF NOT FOUND OR w.ended OR w.batch <> p_batch - 1 THEN
    RAISE EXCEPTION 'millrace: fenced: writer % is not at batch %', p_incarnation, p_batch USING ERRCODE = 'MR002';
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION ${m}.answer_v1(p_incarnation bigint, p_batch bigint, p_answer text, p_moves integer, p_last bigint)
RETURNS void LANGUAGE sql AS $$
  UPDATE ${m}.writer SET batch = p_batch, answer = p_answer, moves = moves + p_moves, seen_at = clock_timestamp(),
    last_id = coalesce(p_last, last_id)
  WHERE incarnation = p_incarnation
$$;

CREATE OR REPLACE FUNCTION ${m}.lock_v1(p_names text[]) RETURNS void LANGUAGE plpgsql ${PLAN} AS $$
DECLARE n integer;
BEGIN
  PERFORM 1 FROM ${m}.space WHERE name = ANY (p_names) ORDER BY name FOR NO KEY UPDATE;
  GET DIAGNOSTICS n = ROW_COUNT;
  IF n = cardinality(p_names) THEN RETURN; END IF;
  INSERT INTO ${m}.space (name) SELECT name FROM unnest(p_names) AS name ORDER BY name ON CONFLICT DO NOTHING;
  PERFORM 1 FROM ${m}.space WHERE name = ANY (p_names) ORDER BY name FOR NO KEY UPDATE;
END $$;

CREATE OR REPLACE FUNCTION ${m}.settle_v1(p_settles jsonb, p_now float8) RETURNS bigint[] LANGUAGE plpgsql ${PLAN} AS $$
DECLARE
  went bigint[];
  kept bigint[];
  lost bigint[];
BEGIN
  WITH gone AS (
    DELETE FROM ${m}.open o USING jsonb_to_recordset(p_settles) AS x (
      id bigint, lease bigint, att integer, op text, out text, rsn text, del jsonb, own boolean)
    WHERE x.op = 'd' AND o.id = x.id AND o.status = 'processing' AND o.lease = x.lease AND o.attempts = x.att
    RETURNING o.id, o.attempts, x.out, x.rsn,
      CASE WHEN x.del IS NULL THEN o.deliveries ELSE coalesce(o.deliveries, '{}') || x.del END AS deliveries
  ), put AS (
    INSERT INTO ${m}.done (id, processed_at, attempts, outcome, reason, deliveries)
    SELECT id, p_now, attempts, out, rsn, deliveries FROM gone RETURNING id
  ) SELECT array_agg(id) INTO went FROM put;
  WITH moved AS (
    UPDATE ${m}.open o SET
      status = CASE x.op WHEN 'f' THEN 'failed' WHEN 'r' THEN 'pending' WHEN 'w' THEN 'pending' WHEN 'x' THEN 'pending' ELSE o.status END,
      lease = CASE WHEN x.op IN ('f', 'r', 'w', 'x') THEN NULL ELSE o.lease END,
      attempts = CASE WHEN x.op = 'x' THEN o.attempts - 1 ELSE o.attempts END,
      deaths = CASE WHEN x.op IN ('f', 'r') THEN 0 ELSE o.deaths END,
      said = CASE WHEN x.op = 'b' THEN 1 WHEN x.op = 'l' THEN 2 WHEN x.op IN ('f', 'r', 'w') THEN 0 ELSE o.said END,
      next_at = CASE WHEN x.op IN ('r', 'w') THEN x.at WHEN x.op = 'f' THEN NULL ELSE o.next_at END,
      processed_at = CASE WHEN x.op = 'f' THEN p_now WHEN x.op IN ('r', 'w') THEN NULL ELSE o.processed_at END,
      error = CASE WHEN x.op IN ('f', 'r', 'w') THEN x.err ELSE o.error END,
      deliveries = CASE WHEN x.del IS NULL THEN o.deliveries ELSE coalesce(o.deliveries, '{}') || x.del END,
      awaits = CASE WHEN x.op IN ('r', 'w', 'x') THEN ${m}.awaits_v1(coalesce(o.deliveries, '{}') || coalesce(x.del, '{}')) ELSE NULL END
    FROM jsonb_to_recordset(p_settles) AS x (
      id bigint, lease bigint, att integer, op text, at float8, err text, del jsonb, own boolean)
    WHERE x.op <> 'd' AND o.id = x.id AND o.status = 'processing' AND o.lease = x.lease AND o.attempts = x.att
    RETURNING o.id
  ) SELECT array_agg(id) INTO kept FROM moved;
  went := coalesce(went, '{}') || coalesce(kept, '{}');
  IF cardinality(went) = jsonb_array_length(p_settles) THEN RETURN '{}'; END IF;
  SELECT array_agg(x.id) FILTER (WHERE x.own) INTO lost
  FROM jsonb_to_recordset(p_settles) AS x (id bigint, own boolean) WHERE x.id <> ALL (went);
  IF EXISTS (SELECT FROM jsonb_to_recordset(p_settles) AS x (id bigint, own boolean) WHERE x.id <> ALL (went) AND NOT x.own) THEN
    PERFORM ${m}.refuse_v1('lease');
  END IF;
  RETURN coalesce(lost, '{}');
END $$;

CREATE OR REPLACE FUNCTION ${m}.awaits_v1(p_deliveries jsonb) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
  SELECT array_agg(DISTINCT value ->> 'awaits') FROM jsonb_each(p_deliveries) WHERE value ? 'awaits'
$$;

-- Checks that no fact has changed that the batch depends on, and applies all of it or raises MR001.
CREATE OR REPLACE FUNCTION ${m}.apply_v1(p jsonb, p_writer bigint, p_now float8) RETURNS text LANGUAGE plpgsql ${PLAN} AS $$
DECLARE
  names text[] := ARRAY(SELECT jsonb_array_elements_text(p -> 'spaces'));
  heads bigint[];
  starts bigint[];
  lost bigint[] := '{}';
  fold json;
  n bigint;
  v record;
BEGIN
  IF cardinality(names) > 0 THEN
    PERFORM ${m}.lock_v1(names);
    -- A new statement: its snapshot shows the commits that the lock waited for.
    SELECT array_agg(${m}.head_v1(x.name) ORDER BY x.at), array_agg(s.feed_start ORDER BY x.at) INTO heads, starts
    FROM unnest(names) WITH ORDINALITY AS x (name, at) JOIN ${m}.space s ON s.name = x.name;
  END IF;
  IF p -> 'oldest' IS NOT NULL OR p -> 'consumers' IS NOT NULL THEN
    IF p -> 'oldest' IS NOT NULL THEN PERFORM pg_advisory_xact_lock_shared(hashtext('${m}.horizon')); END IF;
    SELECT horizon_ms, consumers_version INTO v FROM ${m}.meta;
    IF (p ->> 'oldest')::float8 < v.horizon_ms THEN PERFORM ${m}.refuse_v1('horizon'); END IF;
    IF (p ->> 'consumers')::bigint <> v.consumers_version THEN PERFORM ${m}.refuse_v1('consumers'); END IF;
  END IF;
  IF p -> 'sessions' IS NOT NULL AND EXISTS (
    SELECT FROM jsonb_to_recordset(p -> 'sessions') AS x (w text, lo bigint)
    JOIN ${m}.made r ON r.session = x.w AND r.last >= x.lo
  ) THEN PERFORM ${m}.refuse_v1('session'); END IF;
  IF p -> 'origins' IS NOT NULL AND EXISTS (
    SELECT FROM jsonb_to_recordset(p -> 'origins') AS x (w text, n bigint)
    WHERE NOT EXISTS (
      SELECT FROM ${m}.made r WHERE r.session = x.w AND r.last >= x.n AND r.first <= x.n
      AND EXISTS (SELECT FROM json_array_elements(r.answers::json) a WHERE (a ->> 0)::bigint = x.n))
  ) THEN PERFORM ${m}.refuse_v1('origin'); END IF;
  IF p -> 'reads' IS NOT NULL AND EXISTS (
    SELECT FROM jsonb_to_recordset(p -> 'reads') AS x (s integer, c text, i text, q bigint, w text)
    LEFT JOIN ${m}.document d ON d.space = names[x.s] AND d.scope = x.c AND d.id = x.i
    WHERE CASE WHEN d.id IS NULL THEN x.q >= 0 AND x.q < starts[x.s]
      WHEN d.sequence <= greatest(x.q, 0) THEN false
      WHEN x.q < 0 OR d.session <> x.w THEN true
      ELSE d.other_sequence > x.q END
  ) THEN PERFORM ${m}.refuse_v1('read'); END IF;
  IF p -> 'members' IS NOT NULL AND EXISTS (
    SELECT FROM jsonb_to_recordset(p -> 'members') AS x (s integer, c text, f text, q bigint)
    WHERE x.q < greatest(starts[x.s], heads[x.s] - (p ->> 'kept')::bigint) OR EXISTS (
      SELECT FROM ${m}.document d WHERE d.space = names[x.s] AND d.scope = x.c AND d.id >= x.f
      AND starts_with(d.id, x.f) AND d.turned > x.q)
  ) THEN PERFORM ${m}.refuse_v1('members'); END IF;
  IF p -> 'absent' IS NOT NULL AND EXISTS (
    SELECT FROM jsonb_to_recordset(p -> 'absent') AS x (s integer, c text, i text)
    JOIN ${m}.document d ON d.space = names[x.s] AND d.scope = x.c AND d.id = x.i
  ) THEN PERFORM ${m}.refuse_v1('absent'); END IF;

  IF p -> 'settles' IS NOT NULL THEN lost := ${m}.settle_v1(p -> 'settles', p_now); END IF;
  IF p -> 'births' IS NOT NULL THEN
    INSERT INTO ${m}.document (space, scope, id, sequence, session, turned, base_sequence, value, base_bytes, bytes, made_at)
    SELECT names[x.s], x.c, x.i, heads[x.s] + x.k, x.w, CASE WHEN x.v IS NULL THEN 0 ELSE heads[x.s] + x.k END,
      heads[x.s] + x.k, x.v, x.b, x.b, x.m
    FROM jsonb_to_recordset(p -> 'births') AS x (s integer, c text, i text, k bigint, w text, v text, b bigint, m float8)
    ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS n = ROW_COUNT;
    IF n < jsonb_array_length(p -> 'births') THEN PERFORM ${m}.refuse_v1('absent'); END IF;
  END IF;
  IF p -> 'docs' IS NOT NULL THEN
    INSERT INTO ${m}.document AS d (space, scope, id, sequence, session, turned, base_sequence, value, base_bytes, bytes)
    SELECT names[x.s], x.c, x.i, heads[x.s] + x.k, x.w, CASE WHEN x.v IS NULL THEN 0 ELSE heads[x.s] + x.k END,
      heads[x.s] + x.k, x.v, x.b, x.b
    FROM jsonb_to_recordset(p -> 'docs') AS x (s integer, c text, i text, k bigint, w text, v text, b bigint)
    ORDER BY x.s, x.c, x.i
    ON CONFLICT (space, scope, id) DO UPDATE SET
      other_sequence = CASE WHEN d.session = excluded.session THEN d.other_sequence ELSE d.sequence END,
      session = excluded.session, sequence = excluded.sequence,
      turned = CASE WHEN (d.value IS NULL) = (excluded.value IS NULL) THEN d.turned ELSE excluded.sequence END,
      base_sequence = excluded.base_sequence, value = excluded.value,
      base_bytes = excluded.base_bytes, bytes = excluded.bytes, patches = 0;
  END IF;
  IF p -> 'patches' IS NOT NULL THEN
    WITH changed AS (
      UPDATE ${m}.document d SET
        other_sequence = CASE WHEN d.session = x.w THEN d.other_sequence ELSE d.sequence END,
        session = x.w, sequence = heads[x.s] + x.k, bytes = d.bytes + x.b, patches = d.patches + 1
      FROM jsonb_to_recordset(p -> 'patches') AS x (s integer, c text, i text, k bigint, w text, b bigint, most bigint)
      WHERE d.space = names[x.s] AND d.scope = x.c AND d.id = x.i AND d.value IS NOT NULL AND d.bytes + x.b <= x.most
      RETURNING d.space, d.scope, d.id, d.bytes - d.base_bytes > d.base_bytes + 8192 OR d.patches >= 500 AS folds
    ) SELECT count(*), json_agg(json_build_array(space, scope, id)) FILTER (WHERE folds) INTO n, fold FROM changed;
    IF n < jsonb_array_length(p -> 'patches') THEN PERFORM ${m}.refuse_v1('patch'); END IF;
    INSERT INTO ${m}.patch (space, scope, id, sequence, operations)
    SELECT names[x.s], x.c, x.i, heads[x.s] + x.k, x.o
    FROM jsonb_to_recordset(p -> 'patches') AS x (s integer, c text, i text, k bigint, o text);
  END IF;
  IF p -> 'labels' IS NOT NULL THEN
    DELETE FROM ${m}.label l USING jsonb_to_recordset(p -> 'labels') AS x (s integer, c text, i text, p text, l text)
    WHERE l.space = names[x.s] AND l.scope = x.c AND l.id = x.i AND l.path = x.p;
    INSERT INTO ${m}.label (space, scope, id, path, labels) SELECT names[x.s], x.c, x.i, x.p, x.l
    FROM jsonb_to_recordset(p -> 'labels') AS x (s integer, c text, i text, p text, l text) WHERE x.l IS NOT NULL;
  END IF;
  IF p -> 'changes' IS NOT NULL THEN
    INSERT INTO ${m}.change (space, last, first, commits)
    SELECT names[x.s], heads[x.s] + x.l, heads[x.s] + x.f, x.t
    FROM jsonb_to_recordset(p -> 'changes') AS x (s integer, f bigint, l bigint, t text);
  END IF;
  IF p -> 'made' IS NOT NULL THEN
    INSERT INTO ${m}.made (session, first, last, base, answers)
    SELECT x.w, x.f, x.l, heads[x.s], x.t
    FROM jsonb_to_recordset(p -> 'made') AS x (s integer, w text, f bigint, l bigint, t text);
  END IF;
  IF p -> 'forgotten' IS NOT NULL THEN
    DELETE FROM ${m}.node USING jsonb_to_recordset(p -> 'forgotten') AS x (s integer, n text)
    WHERE space = names[x.s] AND name = x.n;
  END IF;
  IF p -> 'nodes' IS NOT NULL THEN
    INSERT INTO ${m}.node (space, name, fingerprint, settings, output, inputs, sequence)
    SELECT names[x.s], x.n, x.f, x.g, x.o, x.t, heads[x.s] + x.k
    FROM jsonb_to_recordset(p -> 'nodes') AS x (s integer, n text, f text, g text, o bigint, t text, k bigint)
    ON CONFLICT (space, name) DO UPDATE SET fingerprint = excluded.fingerprint, settings = excluded.settings,
      output = excluded.output, inputs = excluded.inputs, sequence = excluded.sequence;
  END IF;
  IF p -> 'entries' IS NOT NULL THEN
    INSERT INTO ${m}.journal (id, message_id, kind, type, topic, source, payload, correlation_id, causation_id,
      created_at, timestamp, metadata, writer, place, hash, previous)
    SELECT x.id, x.m, x.kind, x.type, x.topic, x.source, x.payload, x.corr, x.caus, x.at, x.ts, x.meta, p_writer, x.place, x.hash, x.prev
    FROM jsonb_to_recordset(p -> 'entries') AS x (id bigint, m text, kind text, type text, topic text, source text,
      payload text, corr text, caus text, at float8, ts float8, meta text, place bigint, hash text, prev bigint)
    ON CONFLICT (message_id) DO NOTHING;
    GET DIAGNOSTICS n = ROW_COUNT;
    IF n < jsonb_array_length(p -> 'entries') THEN PERFORM ${m}.refuse_v1('message'); END IF;
    INSERT INTO ${m}.open (id, kind, topic, status, lease, attempts, processed_at, error)
    SELECT x.id, x.kind, x.topic, CASE x.st WHEN 'p' THEN 'pending' WHEN 'c' THEN 'processing' ELSE 'failed' END,
      x.lease, CASE x.st WHEN 'c' THEN 1 ELSE 0 END, CASE x.st WHEN 'f' THEN p_now END, x.err
    FROM jsonb_to_recordset(p -> 'entries') AS x (id bigint, kind text, topic text, st text, lease bigint, err text)
    WHERE x.st <> 'd';
    INSERT INTO ${m}.done (id, processed_at, attempts, outcome, reason)
    SELECT x.id, p_now, 0, x.out, x.rsn
    FROM jsonb_to_recordset(p -> 'entries') AS x (id bigint, st text, out text, rsn text) WHERE x.st = 'd';
  END IF;
  IF p -> 'due' IS NOT NULL THEN
    DELETE FROM ${m}.due d USING jsonb_to_recordset(p -> 'due') AS x (o text, k text, y text, was text)
    WHERE x.o = 'take' AND d.kind = x.k AND d.key = x.y AND (x.was IS NULL OR d.data::jsonb = x.was::jsonb);
    GET DIAGNOSTICS n = ROW_COUNT;
    IF n < (SELECT count(*) FROM jsonb_to_recordset(p -> 'due') AS x (o text) WHERE x.o = 'take') THEN
      PERFORM ${m}.refuse_v1('due');
    END IF;
    DELETE FROM ${m}.due d USING jsonb_to_recordset(p -> 'due') AS x (o text, k text, y text)
    WHERE x.o = 'cancel' AND d.kind = x.k AND d.key = x.y;
    n := nextval('${m}.due_order');
    WITH added AS (
      INSERT INTO ${m}.due (kind, key, due_at, data, place) SELECT x.k, x.y, x.at, x.d, n + x.z
      FROM jsonb_to_recordset(p -> 'due') AS x (o text, k text, y text, at float8, d text, z bigint) WHERE x.o = 'add'
      ON CONFLICT DO NOTHING RETURNING 1
    ) SELECT count(*) AS added, (SELECT count(*) FROM jsonb_to_recordset(p -> 'due') AS x (o text) WHERE x.o = 'add') AS asked
      INTO v FROM added;
    IF v.added < v.asked THEN PERFORM ${m}.refuse_v1('due'); END IF;
    INSERT INTO ${m}.due (kind, key, due_at, data, place) SELECT x.k, x.y, x.at, x.d, n + x.z
    FROM jsonb_to_recordset(p -> 'due') AS x (o text, k text, y text, at float8, d text, z bigint) WHERE x.o = 'put'
    ON CONFLICT (kind, key) DO UPDATE SET due_at = excluded.due_at, data = excluded.data, place = excluded.place;
  END IF;
  RETURN json_build_object('heads', coalesce(to_json(heads), '[]'), 'lost', to_json(lost), 'fold', coalesce(fold, '[]'))::text;
END $$;

-- One batch: the only call of the hot path.
CREATE OR REPLACE FUNCTION ${m}.run_v1(p_incarnation bigint, p_batch bigint, p jsonb, p_now float8)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE answer text := ${m}.fence_v1(p_incarnation, p_batch);
BEGIN
  IF answer IS NOT NULL THEN RETURN answer; END IF;
  answer := ${m}.apply_v1(p, p_incarnation, coalesce(p_now, ${m}.now_ms()));
  PERFORM ${m}.answer_v1(p_incarnation, p_batch, answer, 1, (p ->> 'last')::bigint);
  RETURN answer;
END $$;

CREATE OR REPLACE FUNCTION ${m}.now_ms() RETURNS float8 LANGUAGE sql VOLATILE AS $$
  SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8
$$;

CREATE OR REPLACE FUNCTION ${m}.claim_v1(p_incarnation bigint, p_batch bigint, p jsonb, p_now float8)
RETURNS text LANGUAGE plpgsql ${PLAN} AS $$
DECLARE
  answer text := ${m}.fence_v1(p_incarnation, p_batch);
  ids bigint[];
  kinds text[] := ARRAY(SELECT jsonb_array_elements_text(p -> 'kinds'));
  topics text[] := ARRAY(SELECT jsonb_array_elements_text(p -> 'except'));
  awaited text[] := ARRAY(SELECT jsonb_array_elements_text(p -> 'consumers'));
  low bigint := coalesce((p ->> 'low')::bigint, 0);
  most integer := (p ->> 'limit')::integer;
  suspect integer := coalesce((p ->> 'from')::integer, 2147483647);
  suspects integer := coalesce((p ->> 'suspects')::integer, 0);
BEGIN
  IF answer IS NOT NULL THEN
    ids := ARRAY(SELECT json_array_elements_text(answer::json)::bigint);
  ELSE
    PERFORM 1 FROM ${m}.lease WHERE id = (p ->> 'lease')::bigint AND expires_at > coalesce(p_now, ${m}.now_ms());
    IF FOUND THEN
      -- Each part is in the order of ids and takes no row that another claim holds.
      WITH plain AS MATERIALIZED (
        SELECT id FROM ${m}.open WHERE status = 'pending' AND next_at IS NULL AND id >= low AND kind = ANY (kinds)
          AND deaths < suspect AND topic <> ALL (topics)
        ORDER BY id LIMIT most FOR UPDATE SKIP LOCKED
      ), dangerous AS MATERIALIZED (
        SELECT id FROM ${m}.open WHERE suspects > 0 AND status = 'pending' AND next_at IS NULL AND kind = ANY (kinds)
          AND deaths >= suspect AND topic <> ALL (topics)
        ORDER BY id LIMIT suspects FOR UPDATE SKIP LOCKED
      ), waiting AS MATERIALIZED (
        SELECT id FROM ${m}.open WHERE cardinality(awaited) > 0 AND awaits && awaited AND status = 'pending'
          AND kind = ANY (kinds) AND topic <> ALL (topics) AND deaths < suspect
        ORDER BY id LIMIT most FOR UPDATE SKIP LOCKED
      )
      SELECT array_agg(id) INTO ids FROM (
        SELECT id FROM plain UNION SELECT id FROM dangerous UNION SELECT id FROM waiting ORDER BY id LIMIT most
      ) x;
      UPDATE ${m}.open o SET status = 'processing', lease = (p ->> 'lease')::bigint, attempts = attempts + 1, said = 0,
        next_at = NULL, awaits = NULL, deliveries = CASE WHEN awaits IS NULL THEN deliveries ELSE (
          SELECT jsonb_object_agg(key, value - 'awaits') FROM jsonb_each(deliveries)) END
      WHERE id = ANY (ids);
    END IF;
    PERFORM ${m}.answer_v1(p_incarnation, p_batch, coalesce(to_json(ids)::text, '[]'), 0, NULL);
  END IF;
  RETURN (SELECT coalesce(json_agg(r ORDER BY r.id), '[]') FROM ${m}.event_journal r WHERE r.id = ANY (ids))::text;
END $$;

-- A lane for a new writer. A writer that was silent for an hour loses its lane and registers again.
CREATE OR REPLACE FUNCTION ${m}.register_v1(
  p_about text, OUT incarnation bigint, OUT lane integer, OUT n bigint, OUT last_id bigint
) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(hashtext('${m}.writer'));
  UPDATE ${m}.writer w SET ended = true WHERE NOT w.ended AND w.seen_at < clock_timestamp() - interval '1 hour';
  WITH gone AS (
    DELETE FROM ${m}.writer w WHERE w.ended AND w.seen_at < clock_timestamp() - interval '1 day' RETURNING w.lane, w.last_id
  ) INSERT INTO ${m}.lane AS l (id, last_id) SELECT g.lane, max(g.last_id) FROM gone g WHERE g.last_id > 0 GROUP BY g.lane
    ON CONFLICT (id) DO UPDATE SET last_id = greatest(l.last_id, excluded.last_id);
  SELECT min(x) INTO lane FROM generate_series(0, ${LANE_COUNT - 1}) x
  WHERE NOT EXISTS (SELECT FROM ${m}.writer w WHERE w.lane = x AND NOT w.ended);
  IF lane IS NULL THEN RAISE EXCEPTION 'millrace: all ${LANE_COUNT} lanes are taken' USING ERRCODE = '53300'; END IF;
  INSERT INTO ${m}.writer AS w (lane, about) VALUES (lane, p_about) RETURNING w.incarnation INTO incarnation;
  SELECT greatest((SELECT max(j.id) FROM ${m}.journal j), last_removed) / ${LANE_COUNT} INTO n FROM ${m}.meta;
  last_id := coalesce((SELECT e.last_id FROM ${m}.lanes_v1() e WHERE e.lane = register_v1.lane), 0);
END $$;

-- The last journal id of each lane, also where its row was removed.
CREATE OR REPLACE FUNCTION ${m}.lanes_v1(OUT lane integer, OUT last_id bigint) RETURNS SETOF record LANGUAGE sql STABLE AS $$
  SELECT x.lane, max(x.last_id) FROM (
    SELECT id AS lane, last_id FROM ${m}.lane UNION ALL SELECT lane, last_id FROM ${m}.writer
  ) x WHERE x.last_id > 0 GROUP BY x.lane
$$;

-- Compares the server with the one on which the history was seen. Another timeline or system id (a failover, a restore)
-- is another history; with p_start, a restart too, because commits that were not flushed are lost.
CREATE OR REPLACE FUNCTION ${m}.timeline_v1() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  RETURN ${CURRENT_TIMELINE};
EXCEPTION WHEN feature_not_supported OR insufficient_privilege OR undefined_function OR object_not_in_prerequisite_state THEN
  RETURN (SELECT timeline_id FROM pg_control_checkpoint());
END $$;

-- p_lost: the history whose end is missing. Of several kernels that find it so, the first begins the next one.
CREATE OR REPLACE FUNCTION ${m}.history_v1(p_fresh text, p_start boolean, p_lost text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  now_system text := (SELECT system_identifier FROM pg_control_system()) || '/' || ${m}.timeline_v1();
  now_started text := pg_postmaster_start_time()::text;
  was record;
BEGIN
  SELECT history, system, started INTO was FROM ${m}.meta;
  IF was.history <> '' AND was.system = now_system AND (was.started = now_started OR NOT p_start) AND was.history IS DISTINCT FROM p_lost THEN
    RETURN was.history;
  END IF;
  PERFORM pg_advisory_xact_lock(hashtext('${m}.history'));
  SELECT history, system, started INTO was FROM ${m}.meta;
  IF was.history <> '' AND was.system = now_system AND (was.started = now_started OR NOT p_start) AND was.history IS DISTINCT FROM p_lost THEN
    RETURN was.history;
  END IF;
  UPDATE ${m}.meta SET history = p_fresh, system = now_system, started = now_started;
  RETURN p_fresh;
END $$;
`;
}
