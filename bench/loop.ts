/**
 * Requests and replies: through the kernel's socket beside a bare server that parses and prints each line, and inside one process
 * through lanes, pending table and mailbox. Goals: `design/performance.md`, "Loop and socket".
 */
import { systemHost } from "../src/host/system-host.ts";
import { capability } from "../src/loop/define-capability.ts";
import { EventLoop } from "../src/loop/event-loop.ts";
import { query } from "../src/message/lineage.ts";
import type { Benchmark, Sample, Scene, Workload } from "./harness/benchmark.ts";
import { exchange, startServer } from "./loop/client.ts";

const RATE = "per second";
const P50 = "p50 ms";
const P99 = "p99 ms";
const REQUESTS = { quick: 20_000, full: 100_000, long: 300_000 };
const SINGLE = { quick: 500, full: 3_000, long: 10_000 };
const DURABLE = { quick: 3_000, full: 20_000, long: 100_000 };

export const loopBenchmark: Benchmark = {
  name: "loop",
  what: "requests and replies, through a Unix socket and in process",
  systems: [
    { name: "bare", role: "limit" },
    { name: "millrace", role: "ours" },
  ],
  workloads: [
    socketRate("pipelined", 256, 0.5),
    socketRate("16 in flight", 16),
    {
      group: "Syscall.Ping through the socket",
      name: "one at a time",
      metrics: [
        { name: P50, better: "lower", target: { of: "limit", atMost: 1.5 } },
        { name: P99, better: "lower" },
      ],
      runs: { bare: (scene) => oneAtATime("bare", scene), millrace: (scene) => oneAtATime("kernel", scene) },
    },
    {
      group: "a durable command (FULL) through the socket",
      name: "Memory.Set, pipelined",
      metrics: [{ name: RATE, better: "higher", target: { of: "itself", atLeast: 15_000 } }],
      runs: { millrace: (scene) => rate("kernel", scene, DURABLE[scene.scale], 256, memorySet) },
    },
    {
      group: "in process",
      name: "request and reply, pipelined",
      metrics: [{ name: RATE, better: "higher", target: { of: "itself", atLeast: 500_000 } }],
      runs: { millrace: inProcess },
    },
  ],
};

function socketRate(name: string, inFlight: number, atLeast?: number): Workload {
  return {
    group: "Syscall.Ping through the socket",
    name,
    metrics: [{ name: RATE, better: "higher", ...(atLeast ? { target: { of: "limit" as const, atLeast } } : {}) }],
    runs: {
      bare: (scene) => rate("bare", scene, REQUESTS[scene.scale], inFlight, ping),
      millrace: (scene) => rate("kernel", scene, REQUESTS[scene.scale], inFlight, ping),
    },
  };
}

async function rate(
  mode: "bare" | "kernel",
  { directory }: Scene,
  count: number,
  inFlight: number,
  line: (index: number) => string,
): Promise<Sample> {
  await using server = await startServer(mode, directory);
  await exchange(server.socket, Math.ceil(count / 10), inFlight, (index) => line(-1 - index));
  const began = performance.now();
  await exchange(server.socket, count, inFlight, line);
  return { [RATE]: count / ((performance.now() - began) / 1000) };
}

async function oneAtATime(mode: "bare" | "kernel", { directory, scale }: Scene): Promise<Sample> {
  await using server = await startServer(mode, directory);
  await exchange(server.socket, SINGLE[scale] / 5, 1, (index) => ping(-1 - index));
  const times = await exchange(server.socket, SINGLE[scale], 1, ping);
  times.sort((a, b) => a - b);
  return {
    [P50]: times[Math.floor(times.length / 2)] as number,
    [P99]: times[Math.floor(times.length * 0.99)] as number,
  };
}

async function inProcess({ scale }: Scene): Promise<Sample> {
  const host = systemHost();
  const echo = capability({ description: "echo", queries: { "Echo.Say": { handle: (data) => data } } });
  const loop = await EventLoop.boot({ host, capabilities: { echo } });
  const count = REQUESTS[scale] * 3;
  const ask = async (requests: number) => {
    for (let index = 0; index < requests; index++) await loop.request(query(host, "Echo.Say", { index }));
  };
  const callers = 256;
  await Promise.all(Array.from({ length: callers }, () => ask(20)));
  const began = performance.now();
  await Promise.all(Array.from({ length: callers }, () => ask(Math.ceil(count / callers))));
  const seconds = (performance.now() - began) / 1000;
  await loop.stop();
  return { [RATE]: count / seconds };
}

function ping(index: number): string {
  return line("query", "Syscall.Ping", { index, text: "a ping of about two hundred bytes, as the others are" }, index);
}

function memorySet(index: number): string {
  return line("command", "Memory.Set", { key: `/bench/${index % 100}`, value: index }, index);
}

function line(kind: string, type: string, data: unknown, index: number): string {
  return `${JSON.stringify({ kind, type, data, metadata: { id: `bench-${process.pid}-${index}`, timestamp: 1_757_000_000_000 } })}\n`;
}
