/**
 * The cost of parsing a message: `parseLine` and `checkMessage` beside a bare `JSON.parse` of the same line of about
 * 200 bytes. The goal is at most 3x the bare parse (SPEC M11).
 */
import { checkMessage, parseLine } from "millrace/message";
import type { Benchmark, Sample, Scene, Workload } from "./harness/benchmark.ts";
import { elapsedMs } from "./harness/timing.ts";

const LINE = JSON.stringify({
  kind: "command",
  type: "Memory.Set",
  data: { key: "/users/42", value: { name: "Ada", age: 36 } },
  metadata: {
    id: "0198f0c2-7b3a-7c11-9d55-1f2e3d4c5b6a",
    timestamp: 1_757_000_000_000,
    correlation: "req-7f3a",
  },
});
const BYTES = new TextEncoder().encode(LINE);
const VALUE: unknown = JSON.parse(LINE);
const CALLS = { quick: 100_000, full: 300_000, long: 300_000 };
const NS = "ns per message";

export const messageBenchmark: Benchmark = {
  name: "message",
  what: `checking one message of ${BYTES.length} bytes`,
  systems: [
    { name: "JSON.parse", role: "limit" },
    { name: "millrace", role: "ours" },
  ],
  workloads: [
    beside("a line of bytes", () => parseLine(BYTES)),
    beside("a line that is a string already", () => parseLine(LINE)),
    beside("a value in memory", () => checkMessage(VALUE)),
  ],
};

/** Every way in is compared with parsing the same line from a string, the least that a message from outside costs. */
function beside(name: string, ours: () => unknown): Workload {
  return {
    group: "at the door",
    name,
    metrics: [{ name: NS, better: "lower", target: { of: "limit", atMost: 3 } }],
    runs: { "JSON.parse": repeated(() => JSON.parse(LINE)), millrace: repeated(ours) },
  };
}

/** The last result; kept so that the optimiser does not remove the computation. */
export let last: unknown;

function repeated(run: () => unknown): (scene: Scene) => Promise<Sample> {
  return async ({ scale }) => {
    const calls = CALLS[scale];
    const ms = await elapsedMs(() => {
      for (let i = 0; i < calls; i++) last = run();
    });
    return { [NS]: (ms * 1e6) / calls };
  };
}
