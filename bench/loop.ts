/**
 * Requests and replies: through the kernel's socket beside a bare server that parses and prints each line, and inside
 * one process through lanes, pending table and mailbox. Goals: `design/performance.md`, "Loop and socket".
 */
import { Client } from "millrace/client";
import type { Benchmark, Sample, Scene, Target, Workload } from "./harness/benchmark.ts";
import { exchange, startMoleculer, startServer } from "./loop/client.ts";
import { measureConnections } from "./loop/connections.ts";
import { answersPerSecond, type InProcess, millraceInProcess } from "./loop/in-process.ts";
import { measureIsolation } from "./loop/isolation.ts";
import { type Broker, moleculer } from "./loop/moleculer.ts";
import { nestCqrs } from "./loop/nest-cqrs.ts";
import { bareWorker, workerActor } from "./loop/worker.ts";

const RATE = "per second";
const P50 = "p50 ms";
const P99 = "p99 ms";
const SLOWER = "times slower";
const SLOWER_P50 = "times the p50";
const SLOWER_P99 = "times the p99";
const REQUESTS = { quick: 20_000, full: 100_000, long: 300_000 };
/** The limit of the kernel for one connection. */
const IN_FLIGHT_MAX = 256;
const SINGLE = { quick: 1_000, full: 3_000, long: 10_000 };
/**
 * Requests of every system before the clock starts, while the engine compiles its code; ours has the most. A server
 * runs for days; the cost of its first second is in decision 0007. After these requests the rates have stopped rising.
 */
const WARM_UP = 60_000;
/** The same for one at a time, which runs through other code than many at once. */
const WARM_UP_SINGLE = 2_000;
/** A durable command spends most of its time in SQLite, which is compiled. */
const WARM_UP_DURABLE = 20_000;
const DURABLE = { quick: 10_000, full: 20_000, long: 100_000 };

export const loopBenchmark: Benchmark = {
  name: "loop",
  what: "requests and replies, through a Unix socket and in process",
  systems: [
    { name: "bare", role: "limit" },
    { name: "millrace", role: "ours" },
    { ...moleculer, role: "peer" },
    { ...nestCqrs, role: "peer" },
  ],
  workloads: [
    socketRate("pipelined", IN_FLIGHT_MAX, [
      { of: "limit", atLeast: 0.5 },
      { of: { system: moleculer.name }, atLeast: 2.5 },
    ]),
    socketRate("16 in flight", 16),
    {
      group: "Syscall.Ping through the socket",
      name: "pipelined, by millrace/client",
      metrics: [{ name: RATE, better: "higher" }],
      runs: {
        millrace: clientRate,
        [moleculer.name]: (scene) => moleculerRate(scene, REQUESTS[scene.scale], IN_FLIGHT_MAX),
      },
    },
    {
      group: "Syscall.Ping through the socket",
      name: "one at a time",
      metrics: [
        { name: P50, better: "lower", target: { of: "limit", atMost: 1.5 } },
        { name: P99, better: "lower" },
      ],
      runs: {
        bare: (scene) => oneAtATime("bare", scene),
        millrace: (scene) => oneAtATime("kernel", scene),
        [moleculer.name]: moleculerOneAtATime,
      },
    },
    {
      group: "a durable command (FULL) through the socket",
      name: "Memory.Set, pipelined",
      metrics: [{ name: RATE, better: "higher", target: { of: "itself", atLeast: 15_000 } }],
      runs: { millrace: durableRate },
    },
    {
      group: "how much slower a client is beside one that floods",
      name: "16 in flight, and one at a time",
      metrics: [
        { name: SLOWER, better: "lower", target: { of: "itself", atMost: 2 } },
        { name: SLOWER_P50, better: "lower", target: { of: "itself", atMost: 2 } },
      ],
      runs: { millrace: isolation },
    },
    {
      group: "how much slower a request is with 1,000 connections open",
      name: "one at a time, on each in turn",
      metrics: [{ name: SLOWER_P99, better: "lower", target: { of: "itself", atMost: 3 } }],
      runs: { millrace: connections },
    },
    {
      group: "an actor in a real Worker",
      name: "request and reply, pipelined",
      metrics: [{ name: RATE, better: "higher", target: { of: "limit", atLeast: 0.5 } }],
      runs: { bare: inProcess(bareWorker, 1), millrace: inProcess(workerActor, 1) },
    },
    {
      group: "in process",
      name: "request and reply, pipelined",
      metrics: [{ name: RATE, better: "higher", target: { of: "itself", atLeast: 500_000 } }],
      runs: Object.fromEntries(
        [millraceInProcess, moleculer, nestCqrs].map((system) => [system.name, inProcess(system, 6)]),
      ),
    },
  ],
};

function socketRate(name: string, inFlight: number, target?: readonly Target[]): Workload {
  const pings = { inFlight, warmUp: WARM_UP, line: ping };
  return {
    group: "Syscall.Ping through the socket",
    name,
    metrics: [{ name: RATE, better: "higher", ...(target ? { target } : {}) }],
    runs: {
      bare: (scene) => rate("bare", scene, { ...pings, count: REQUESTS[scene.scale] }),
      millrace: (scene) => rate("kernel", scene, { ...pings, count: REQUESTS[scene.scale] }),
      [moleculer.name]: (scene) => moleculerRate(scene, REQUESTS[scene.scale], inFlight),
    },
  };
}

interface Load {
  readonly count: number;
  readonly inFlight: number;
  /** Requests before those that count. */
  readonly warmUp: number;
  readonly line: (index: number) => string;
}

async function rate(mode: "bare" | "kernel", { directory }: Scene, load: Load): Promise<Sample> {
  const { count, inFlight, warmUp, line } = load;
  await using server = await startServer(mode, directory);
  await exchange(server.socket, warmUp, inFlight, (index) => line(-1 - index));
  // Requests are made before the clock starts: the server is measured, and a client that prints takes as long as a bare
  // server.
  const lines = Array.from({ length: count }, (_, index) => line(index));
  const began = performance.now();
  await exchange(server.socket, count, inFlight, (index) => lines[index] as string);
  return { [RATE]: count / ((performance.now() - began) / 1000) };
}

function durableRate(scene: Scene): Promise<Sample> {
  const count = DURABLE[scene.scale];
  return rate("kernel", scene, { count, inFlight: IN_FLIGHT_MAX, warmUp: WARM_UP_DURABLE, line: memorySet });
}

async function oneAtATime(mode: "bare" | "kernel", { directory, scale }: Scene): Promise<Sample> {
  await using server = await startServer(mode, directory);
  await exchange(server.socket, WARM_UP, IN_FLIGHT_MAX, (index) => ping(-1 - index));
  await exchange(server.socket, WARM_UP_SINGLE, 1, (index) => ping(-1 - WARM_UP - index));
  const times = await exchange(server.socket, SINGLE[scale], 1, ping);
  return percentiles(times);
}

function percentiles(times: number[]): Sample {
  times.sort((a, b) => a - b);
  return {
    [P50]: times[Math.floor(times.length / 2)] as number,
    [P99]: times[Math.floor(times.length * 0.99)] as number,
  };
}

/** The same through Moleculer's own transporter, with as many callers as may be in flight. */
async function moleculerRate(_: Scene, count: number, inFlight: number): Promise<Sample> {
  await using server = await startMoleculer();
  return await callsPerSecond((index) => sayByBroker(server.broker, index), count, inFlight);
}

/** A program that uses our own client, as one that uses Moleculer uses its broker. */
async function clientRate({ directory, scale }: Scene): Promise<Sample> {
  await using server = await startServer("kernel", directory);
  await using client = await Client.connect({ path: server.socketPath });
  return await callsPerSecond((index) => client.query("Syscall.Ping", pingData(index)), REQUESTS[scale], IN_FLIGHT_MAX);
}

async function callsPerSecond(
  call: (index: number) => Promise<unknown>,
  count: number,
  callers: number,
): Promise<Sample> {
  const each = Math.ceil(count / callers);
  await callAll(call, callers, Math.ceil(WARM_UP / callers));
  const began = performance.now();
  await callAll(call, callers, each);
  return { [RATE]: (each * callers) / ((performance.now() - began) / 1000) };
}

/** So many callers that each ask so often. */
async function callAll(call: (index: number) => Promise<unknown>, callers: number, requests: number): Promise<void> {
  const ask = async () => {
    for (let index = 0; index < requests; index++) await call(index);
  };
  await Promise.all(Array.from({ length: callers }, ask));
}

function sayByBroker(broker: Broker, index: number): Promise<unknown> {
  return broker.call("echo.say", pingData(index));
}

async function moleculerOneAtATime({ scale }: Scene): Promise<Sample> {
  await using server = await startMoleculer();
  await callAll((index) => sayByBroker(server.broker, index), IN_FLIGHT_MAX, Math.ceil(WARM_UP / IN_FLIGHT_MAX));
  const times: number[] = [];
  for (let index = -WARM_UP_SINGLE; index < SINGLE[scale]; index++) {
    const began = performance.now();
    await sayByBroker(server.broker, index);
    if (index >= 0) times.push(performance.now() - began);
  }
  return percentiles(times);
}

function inProcess(system: InProcess, times: number): (scene: Scene) => Promise<Sample> {
  return async ({ scale }) => ({ [RATE]: await answersPerSecond(system, REQUESTS[scale] * times) });
}

async function connections({ directory, scale }: Scene): Promise<Sample> {
  return { [SLOWER_P99]: await measureConnections(directory, SINGLE[scale] * 4, ping) };
}

async function isolation({ directory, scale }: Scene): Promise<Sample> {
  const { rate: slower, p50 } = await measureIsolation(directory, REQUESTS[scale], ping);
  return { [SLOWER]: slower, [SLOWER_P50]: p50 };
}

function ping(index: number): string {
  return line("query", "Syscall.Ping", pingData(index), index);
}

function pingData(index: number): { readonly index: number; readonly text: string } {
  return { index, text: "a ping of about two hundred bytes, as the others are" };
}

function memorySet(index: number): string {
  return line("command", "Memory.Set", { key: `/bench/${index % 100}`, value: index }, index);
}

function line(kind: string, type: string, data: unknown, index: number): string {
  return `${JSON.stringify({ kind, type, data, metadata: { id: `bench-${process.pid}-${index}`, timestamp: 1_757_000_000_000 } })}\n`;
}
