/** The history checker finds planted anomalies, and none in histories of one transaction after the other. */
import { describe, expect, test } from "vitest";
import { SeededRandom } from "../../src/host/seeded-random.ts";
import { checkHistory, type Operation, type Run } from "./history-checker.ts";

const append = (key: string, value: number): Operation => ({ op: "append", key, value });
const read = (key: string, ...values: number[]): Operation => ({ op: "read", key, values });

/** Runs at the same time, unless `at` says otherwise. */
function run(id: number, operations: Operation[], parts: Partial<Run> = {}): Run {
  return { id, status: "ok", beganAt: 0, endedAt: 100, operations, ...parts };
}

function kinds(runs: readonly Run[], final: Readonly<Record<string, number[]>>): string[] {
  return [...new Set(checkHistory(runs, new Map(Object.entries(final))).map(({ kind }) => kind))].sort();
}

const PLANTED: readonly [name: string, runs: Run[], final: Record<string, number[]>, found: string[]][] = [
  [
    "G0: two runs append in different orders to two lists",
    [run(1, [append("x", 1), append("y", 2)]), run(2, [append("x", 3), append("y", 4)])],
    { x: [1, 3], y: [4, 2] },
    ["G0"],
  ],
  [
    "G1a: a read of a failed run",
    [run(1, [append("x", 1)], { status: "failed" }), run(2, [read("x", 1)])],
    { x: [1] },
    ["G1a"],
  ],
  [
    "G1b: a read in the middle of a run",
    [run(1, [append("x", 1), append("x", 2)]), run(2, [read("x", 1)])],
    { x: [1, 2] },
    ["G-single", "G1b"],
  ],
  [
    "G1c: two runs that read each other",
    [run(1, [append("x", 1), read("y", 2)]), run(2, [append("y", 2), read("x", 1)])],
    { x: [1], y: [2] },
    ["G1c"],
  ],
  [
    "G-single: a read that is torn over two lists",
    [run(1, [append("x", 1), append("y", 2)]), run(2, [read("x"), read("y", 2)])],
    { x: [1], y: [2] },
    ["G-single"],
  ],
  [
    "lost update: two runs append to a list that both have read as empty",
    [run(1, [read("x"), append("x", 1)]), run(2, [read("x"), append("x", 2)])],
    { x: [1, 2] },
    ["G-single"],
  ],
  [
    "G2: write skew",
    [run(1, [read("x"), append("y", 1)]), run(2, [read("y"), append("x", 2)])],
    { x: [2], y: [1] },
    ["G2"],
  ],
  ["an acknowledged append is lost", [run(1, [append("x", 1)]), run(2, [append("x", 2)])], { x: [2] }, ["lost"]],
  ["an append is there twice", [run(1, [append("x", 1)])], { x: [1, 1] }, ["twice"]],
  ["a value without an append", [run(1, [read("x", 7)])], { x: [7] }, ["phantom"]],
  [
    "two reads of different orders",
    [run(1, [append("x", 1)]), run(2, [append("x", 2)]), run(3, [read("x", 2, 1)])],
    { x: [1, 2] },
    ["incompatible-order"],
  ],
  ["a run does not read its own append", [run(1, [append("x", 1), read("x")])], { x: [1] }, ["internal"]],
  [
    "not strict: a read misses an append of the past",
    [run(1, [append("x", 1)], { endedAt: 10 }), run(2, [read("x")], { beganAt: 20 })],
    { x: [1] },
    ["not-strict"],
  ],
];

describe("the history checker", () => {
  test.for(PLANTED)("[S282] finds %s", ([, runs, final, found]) => {
    expect(kinds(runs, final)).toEqual(found);
  });

  test("[S282] an unknown run may have happened or not, and its reads are ignored", () => {
    const lost = { status: "unknown" } as const;
    for (const list of [[], [1]])
      expect(kinds([run(1, [append("x", 1), read("x", 5)], lost)], { x: list })).toEqual([]);
  });

  test("[S282] a serial history has no anomaly, until two reads are swapped", () => {
    for (let seed = 1; seed <= 50; seed++) {
      const random = new SeededRandom(seed, 0);
      const lists = new Map<string, number[]>([
        ["x", []],
        ["y", []],
        ["z", []],
      ]);
      const runs: Run[] = [];
      for (let id = 1; id <= 60; id++) {
        const operations: Operation[] = [];
        for (let n = 0; n <= random.below(4); n++) {
          const key = ["x", "y", "z"][random.below(3)]!;
          const list = lists.get(key)!;
          if (random.below(2) === 0) operations.push(read(key, ...list));
          else {
            list.push(id * 10 + n);
            operations.push(append(key, id * 10 + n));
          }
        }
        // Some overlap with the next ones, as their moments of commit are in this order anyway.
        runs.push(run(id, operations, { beganAt: id * 10 - random.below(15), endedAt: id * 10 + 5 }));
      }
      expect([seed, ...checkHistory(runs, lists)]).toEqual([seed]);
      const [early, late] = [runs.findIndex(hasShortRead), runs.findLastIndex(hasLongRead)];
      if (early === -1 || late <= early) continue;
      const swapped = runs.with(early, { ...runs[early]!, operations: runs[late]!.operations.filter(isRead) });
      expect(checkHistory(swapped, lists).length).toBeGreaterThan(0);
    }
  });
});

const isRead = (one: Operation) => one.op === "read";
const hasShortRead = ({ operations }: Run) => operations.every((one) => one.op === "read" && one.values.length < 3);
const hasLongRead = ({ operations }: Run) => operations.some((one) => one.op === "read" && one.values.length > 10);
