import fc from "fast-check";
import { describe, expect, test } from "#test";
import { type CausalTree, causalTrees } from "../../src/message/causal-trees.ts";

interface Row {
  readonly message?: {
    readonly kind: "event";
    readonly type: string;
    readonly data: null;
    readonly metadata: { readonly id: string; readonly timestamp: number; readonly causation?: string };
  };
}

/** A row with that id, caused by the row with the other one. */
function rowOf(id: number, cause: number | undefined): Row {
  const metadata = { id: `m${id}`, timestamp: 0, ...(cause === undefined ? {} : { causation: `m${cause}` }) };
  return { message: { kind: "event", type: "Some.Thing", data: null, metadata } };
}

function* rowsIn(trees: readonly CausalTree<Row>[]): Generator<Row> {
  for (const { row, children } of trees) {
    yield row;
    yield* rowsIn(children);
  }
}

describe("causal trees", () => {
  test("[J77] for any causes each row appears once, under its cause unless that makes a cycle", () => {
    fc.assert(
      fc.property(fc.array(fc.option(fc.nat(12), { nil: undefined }), { maxLength: 12 }), (causes) => {
        const rows = causes.map((cause, id) => rowOf(id, cause));
        const trees = causalTrees(rows);
        expect(new Set(rowsIn(trees))).toEqual(new Set(rows));
        expect([...rowsIn(trees)]).toHaveLength(rows.length);
        // A root has no cause here, or is the first of the circle that it is in.
        for (const { row } of trees) {
          const start = rows.indexOf(row);
          let at = causes[start];
          const passed = new Set<number>();
          while (at !== undefined && at < rows.length && at !== start && !passed.has(at)) {
            passed.add(at);
            at = causes[at];
          }
          const isRoot = causes[start] === undefined || causes[start] >= rows.length;
          expect(isRoot || (at === start && [...passed].every((id) => id > start))).toBe(true);
        }
      }),
    );
  });

  test("[J77] an unreadable row is its own tree", () => {
    const rows: Row[] = [{}, rowOf(1, undefined)];
    expect(causalTrees(rows)).toEqual(rows.map((row) => ({ row, children: [] })));
  });
});
