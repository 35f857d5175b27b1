/** The benchmarks by name, and the part of one that was asked for. */
import type { Benchmark } from "./harness/benchmark.ts";

/** Loaded only when asked for, so that a benchmark which does not load takes no other with it. */
export const BENCHMARKS: Readonly<Record<string, () => Promise<Benchmark>>> = {
  bus: async () => (await import("./bus.ts")).busBenchmark,
  collection: async () => (await import("./collection.ts")).collectionBenchmark,
  http: async () => (await import("./http.ts")).httpBenchmark,
  kernel: async () => (await import("./kernel.ts")).kernelBenchmark,
  loop: async () => (await import("./loop.ts")).loopBenchmark,
  message: async () => (await import("./message.ts")).messageBenchmark,
  postgres: async () => (await import("./postgres.ts")).postgresBenchmark,
  reactive: async () => (await import("./reactive.ts")).reactiveBenchmark,
  restart: async () => (await import("./restart.ts")).restartBenchmark,
  store: async () => (await import("./store.ts")).storeBenchmark,
  streams: async () => (await import("./streams.ts")).streamsBenchmark,
};

/** Benchmarks that can be run against another build. */
export const AGAINST: readonly string[] = ["loop", "bus", "streams", "kernel", "reactive"];

/** The same workloads, with our own system alone. */
export function ourShare(benchmark: Benchmark): Benchmark {
  const systems = benchmark.systems.filter(({ role }) => role === "ours");
  return { ...benchmark, systems };
}

/** A benchmark with only the workloads that have the text in their group or name; all of them if none has. */
export async function benchmarkOf(name: string, only: string | undefined): Promise<Benchmark> {
  const benchmark = await BENCHMARKS[name]!();
  if (only === undefined) return benchmark;
  const workloads = benchmark.workloads.filter(({ group, name }) => `${group} · ${name}`.includes(only));
  return { ...benchmark, workloads };
}
