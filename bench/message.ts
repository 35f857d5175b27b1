/**
 * What a message costs at the door: `parseLine` and `checkMessage` beside a bare `JSON.parse` of the same line of about
 * 200 bytes, interleaved in one run, medians of several rounds. The goal is at most 3x the bare parse (SPEC M11).
 *
 * Run alone: `node bench/message.ts`.
 */
import { checkMessage } from "../src/message/envelope.ts";
import { parseLine } from "../src/message/line.ts";

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

export interface MessageBench {
  readonly lineBytes: number;
  /** Nanoseconds per message, and how many times the bare parse that is. */
  readonly rows: readonly { readonly name: string; readonly ns: number; readonly ratio: number }[];
}

export function benchMessage(rounds = 15, perRound = 50_000): MessageBench {
  const bytes = new TextEncoder().encode(LINE);
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const value: unknown = JSON.parse(LINE);
  const cases: readonly { readonly name: string; readonly run: () => unknown }[] = [
    { name: "limit: bare JSON.parse(string)", run: () => JSON.parse(LINE) },
    { name: "limit: decode + bare JSON.parse", run: () => JSON.parse(decoder.decode(bytes)) },
    { name: "parseLine(bytes)", run: () => parseLine(bytes) },
    { name: "parseLine(string)", run: () => parseLine(LINE) },
    { name: "checkMessage(value in memory)", run: () => checkMessage(value) },
  ];
  const samples = cases.map((): number[] => []);
  for (let round = 0; round < rounds; round++) {
    for (const [i, { run }] of cases.entries()) samples[i]!.push(nsPerCall(run, perRound));
  }
  const medians = samples.map(median);
  const rows = cases.map(({ name }, i) => ({ name, ns: medians[i]!, ratio: medians[i]! / medians[0]! }));
  return { lineBytes: bytes.length, rows };
}

/** What was computed last; kept where the optimiser cannot see that nobody reads it. */
export let last: unknown;

function nsPerCall(run: () => unknown, calls: number): number {
  const start = performance.now();
  for (let i = 0; i < calls; i++) last = run();
  return ((performance.now() - start) * 1e6) / calls;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1]!;
}

if (import.meta.main) {
  const { lineBytes, rows } = benchMessage();
  console.log(`one message of ${lineBytes} bytes`);
  for (const { name, ns, ratio } of rows) {
    console.log(`${name.padEnd(34)} ${ns.toFixed(0).padStart(6)} ns  ${ratio.toFixed(2)}x`);
  }
}
