/**
 * The whole path, end to end, with the default durability: a command comes in through the socket, writes in a
 * transaction, derived state follows, an event is journaled and handled, the reply goes out. The cost of each step is
 * measured in one run on one kernel.
 */
import { fileURLToPath } from "node:url";
import type { Benchmark, Sample, Scene } from "./harness/benchmark.ts";
import { startWorkloads } from "./kernel/start.ts";
import { ask, exchange, type Server, startServer } from "./loop/client.ts";

const RATE = "per second";
const P50 = "p50 ms";
const P99 = "p99 ms";
const COUNT = { quick: 3_000, full: 20_000, long: 200_000 };
const SINGLE = { quick: 500, full: 3_000, long: 10_000 };
const IN_FLIGHT = 256;
/** How often the steps take turns. */
const TURNS = 5;

/** Each step does the work of the step before, and one thing more. */
const STEPS = [
  { name: "socket, lanes, mailbox, reply", kind: "query", type: "Step.Answer" },
  { name: "transactional write, receipt, journal row", kind: "command", type: "Step.Write" },
  { name: "derived state brought up to date", kind: "command", type: "Step.Derive" },
  { name: "event journaled and handled", kind: "command", type: "Step.Event" },
] as const;

const WHOLE = STEPS[3];

export const kernelBenchmark: Benchmark = {
  name: "kernel",
  what: "a command through the whole kernel: socket, transaction, derived state, event, reply",
  systems: [
    { name: "bare", role: "limit" },
    { name: "millrace", role: "ours" },
  ],
  workloads: [
    {
      group: "a durable command (FULL)",
      name: "Memory.Set, pipelined",
      metrics: [{ name: RATE, better: "higher" }],
      runs: {
        bare: (scene) => memorySets(scene, "./kernel/bare-server.ts"),
        millrace: (scene) => memorySets(scene, "./kernel/server.ts"),
      },
    },
    {
      group: "the whole path (FULL)",
      name: "pipelined",
      metrics: [{ name: RATE, better: "higher" }],
      runs: { millrace: pipelined },
    },
    {
      group: "the whole path (FULL)",
      name: "one at a time",
      metrics: [
        { name: P50, better: "lower" },
        { name: P99, better: "lower" },
      ],
      runs: { millrace: oneAtATime },
    },
    {
      group: "what each step adds, us per command, pipelined",
      name: "steps",
      metrics: STEPS.map(({ name }) => ({ name, better: "lower" as const })),
      runs: { millrace: eachStep },
    },
    ...startWorkloads,
  ],
};

async function memorySets({ directory, scale }: Scene, program: string): Promise<Sample> {
  await using server = await open(directory, program);
  const count = COUNT[scale];
  await exchange(server.socket, Math.ceil(count / 10), IN_FLIGHT, (index) => memorySet(-1 - index));
  const began = performance.now();
  await exchange(server.socket, count, IN_FLIGHT, memorySet);
  return { [RATE]: count / ((performance.now() - began) / 1000) };
}

async function pipelined({ directory, scale }: Scene): Promise<Sample> {
  await using server = await open(directory);
  const count = COUNT[scale];
  await run(server, WHOLE, Math.ceil(count / 10), -1);
  const began = performance.now();
  await run(server, WHOLE, count, 1);
  const seconds = (performance.now() - began) / 1000;
  await everythingHappened(server, count + Math.ceil(count / 10));
  return { [RATE]: count / seconds };
}

async function oneAtATime({ directory, scale }: Scene): Promise<Sample> {
  await using server = await open(directory);
  await exchange(server.socket, SINGLE[scale] / 5, 1, (index) => line(WHOLE, -1 - index));
  const times = await exchange(server.socket, SINGLE[scale], 1, (index) => line(WHOLE, index));
  times.sort((a, b) => a - b);
  await everythingHappened(server, SINGLE[scale] * 1.2);
  return { [P50]: times[Math.floor(times.length * 0.5)]!, [P99]: times[Math.floor(times.length * 0.99)]! };
}

/**
 * The time of a step is the difference to the step before it. The steps take turns, so that none has only quiet
 * moments.
 */
async function eachStep({ directory, scale }: Scene): Promise<Sample> {
  await using server = await open(directory);
  const count = Math.ceil(COUNT[scale] / TURNS);
  const spent = STEPS.map(() => 0);
  for (let turn = 0; turn <= TURNS; turn++) {
    for (const [at, step] of STEPS.entries()) {
      const began = performance.now();
      await run(server, step, count, turn);
      if (step === WHOLE) await everythingHappened(server, count * (turn + 1));
      // The first turn warms up.
      if (turn > 0) spent[at]! += performance.now() - began;
    }
  }
  const each = spent.map((ms) => (ms * 1000) / (count * TURNS));
  return Object.fromEntries(STEPS.map(({ name }, at) => [name, each[at]! - (each[at - 1] ?? 0)]));
}

function open(directory: string, program = "./kernel/server.ts"): Promise<Server> {
  return startServer("kernel", directory, fileURLToPath(new URL(program, import.meta.url)));
}

async function run({ socket }: Server, step: Step, count: number, round: number): Promise<void> {
  await exchange(socket, count, IN_FLIGHT, (index) => line(step, index + round * 1_000_000));
}

/** Every event was handled: the whole work was measured, not only the answered part. */
async function everythingHappened({ socket }: Server, events: number): Promise<void> {
  for (let question = 0; ; question++) {
    const { heard } = (await ask(socket, line({ kind: "query", type: "Step.Counts" }, 9e8 + question))) as {
      heard: number;
    };
    if (heard === events) return;
    if (heard > events) throw new Error(`${heard} events were heard, ${events} were emitted`);
  }
}

interface Step {
  readonly kind: string;
  readonly type: string;
}

function memorySet(index: number): string {
  return lineOf({ kind: "command", type: "Memory.Set" }, index, {
    key: `/bench/${Math.abs(index) % 100}`,
    value: index,
  });
}

function line(step: Step, index: number): string {
  return lineOf(step, index, { index, text: "a command of about two hundred bytes, as the others are" });
}

function lineOf({ kind, type }: Step, index: number, data: object): string {
  const metadata = { id: `bench-${process.pid}-${type}-${index}`, timestamp: 1_757_000_000_000 };
  return `${JSON.stringify({ kind, type, data, metadata })}\n`;
}
