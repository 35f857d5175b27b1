/**
 * `document_json`: the current documents for any SQLite connection, without custom functions. SPEC: S130, S132.
 *
 *     sqlite3 kernel.db "SELECT id, value FROM document_json WHERE space = 'kernel'"
 *
 * The view repeats `document-table.ts` in SQL: `found` walks back over the patches of a document to its base,
 * `operation` numbers the operations of base and patches, `folded` applies them in order. A row of `folded` is one path
 * step of one operation. The cost per document is the number of operations times its size: fine for a person, too slow
 * for a program.
 *
 * SQLite before 3.45 finds no keys with quotes, backslashes or control characters. If a patch names one, `value` is
 * NULL.
 */
export const DOCUMENT_VIEW = `
CREATE VIEW document_json (space, scope, id, sequence, value) AS
SELECT space.name, document.scope, document.name, document.sequence, (
  WITH RECURSIVE
  -- Patches of the document, newest first. Four rows for each: its place, its block from its commit on, from its line on, its line.
  found (at, phase, text) AS (
    SELECT document.sequence, 0, NULL
    UNION ALL
    SELECT iif(phase < 3, at, CAST(substr(text, 1, instr(text, ' ') - 1) AS INTEGER)), (phase + 1) % 4,
      CASE phase
        WHEN 0 THEN (
          SELECT substr(commits, instr(commits, char(10) || '@' || at || ' ') + 1) FROM change
          WHERE change.space = document.space AND first <= at ORDER BY first DESC LIMIT 1)
        WHEN 1 THEN substr(text, instr(text, char(10) || document.id || ' ') + length(document.id) + 2)
        WHEN 2 THEN iif(instr(text, char(10)) = 0, text, substr(text, 1, instr(text, char(10)) - 1))
      END
    FROM found WHERE at > document.base_sequence - (document.snapshot_sequence = 0 AND document.base IS NULL)
  ),
  list (made, part, text) AS (
    SELECT 0, 0, document.base WHERE document.base IS NOT NULL
    UNION ALL
    SELECT 0, part, operations FROM snapshot
      WHERE snapshot.document = document.id AND snapshot.sequence = document.snapshot_sequence AND document.snapshot_sequence > 0
    UNION ALL
    SELECT at, 0, substr(text, instr(text, ' ') + 1) FROM found WHERE phase = 3
  ),
  operation (n, op, steps, depth, work) AS (
    SELECT row_number() OVER (ORDER BY made, part, one.key), json_extract(one.value, '$.op'), one.value -> '$.path',
      json_array_length(one.value, '$.path'), one.value
    FROM list, json_each(list.text) AS one
  ),
  -- One row for each step of each operation.
  folded (n, step, place, value) AS (
    SELECT 1, 0, '$', NULL
    UNION ALL
    SELECT iif(step < depth, folded.n, folded.n + 1), iif(step < depth, step + 1, 0),
      CASE WHEN step = depth THEN '$'
        WHEN json_type(value, place) = 'array' THEN place || '[' || json_extract(steps, '$[' || step || ']') || ']'
        ELSE place || '.' || json_quote(json_extract(steps, '$[' || step || ']')) END,
      CASE WHEN step < depth THEN value
        WHEN op = 'set' AND depth = 0 THEN work -> '$.value'
        WHEN op = 'set' THEN json_set(value, place, json(work -> '$.value'))
        WHEN op = 'delete' AND depth = 0 THEN NULL
        WHEN op = 'delete' THEN json_remove(value, place)
        WHEN op = 'append' THEN json_set(value, place, json_extract(value, place) || json_extract(work, '$.value'))
        WHEN op = 'merge' THEN json_set(value, place, json(iif(value -> place = '{}', work -> '$.value',
          substr(value -> place, 1, length(value -> place) - 1) || ',' || substr(work -> '$.value', 2))))
        ELSE json_set(value, place, (
          SELECT json_group_array(CASE WHEN type IN ('object', 'array') THEN json(v) WHEN type IN ('true', 'false') THEN json(type) ELSE v END) FROM (
            SELECT type, value AS v FROM json_each(folded.value, folded.place) WHERE key < json_extract(work, '$.index')
            UNION ALL SELECT type, value FROM json_each(work, '$.insert')
            UNION ALL SELECT type, value FROM json_each(folded.value, folded.place)
              WHERE key >= json_extract(work, '$.index') + json_extract(work, '$.remove')
          ))) END
    FROM folded JOIN operation ON operation.n = folded.n
  )
  SELECT iif(json_extract('{"a\\"b":1}', '$."a\\"b"') = 1 OR NOT EXISTS (
      SELECT 1 FROM operation, json_each(steps) AS named WHERE json_quote(named.value) <> '"' || named.value || '"'
    ), value, NULL) FROM folded ORDER BY n DESC LIMIT 1
)
FROM document JOIN space ON space.id = document.space WHERE document.present = 1;
`;
