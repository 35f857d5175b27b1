/**
 * (k) The deepest chain that a system gets through with the stack that a process usually has: cold, when it is first
 * looked at, and hot, when its source changes (built from its beginning, so that no first look is deep). In a process
 * of its own, since an overflow may leave a library in any state.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Graph } from "./graph.ts";
import { openGraph } from "./systems.ts";

export type Temperature = "cold" | "hot";

const DEPTHS = [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 100_000];
const PROCESS_MS_MAX = 60_000;
const HERE = fileURLToPath(import.meta.url);
const known = new Map<string, number>();

/** The result is the same every time, so it is found once. */
export function deepestChain(system: string, temperature: Temperature): number {
  const name = `${system} ${temperature}`;
  const found = known.get(name) ?? climb(system, temperature);
  known.set(name, found);
  return found;
}

function climb(system: string, temperature: Temperature): number {
  const { stdout } = spawnSync(process.execPath, [HERE, system, temperature], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
    timeout: PROCESS_MS_MAX,
  });
  // One line for each depth reached; they count, however the process ends.
  return Math.max(0, ...stdout.split("\n").map(Number).filter(Number.isFinite));
}

async function reaches(system: string, temperature: Temperature, depth: number): Promise<boolean> {
  const graph = await openGraph(system);
  let seen = -1;
  try {
    const source = graph.build(() => {
      const source = graph.source(0);
      const last = chainOf(graph, source.get, depth, temperature);
      graph.effect(() => {
        seen = last();
      });
      return source;
    });
    if (seen !== depth) return false;
    if (temperature === "cold") return true;
    source.set(1);
    graph.settle();
    return seen === depth + 1;
  } catch {
    // A stack overflow, or the library's own error for it.
    return false;
  }
}

function chainOf(graph: Graph, first: () => number, depth: number, temperature: Temperature): () => number {
  let last = first;
  for (let i = 0; i < depth; i++) {
    const before = last;
    const node = graph.computed(() => before() + 1);
    // Looking at each as it is made keeps the first look shallow.
    if (temperature === "hot") graph.effect(() => void node());
    last = node;
  }
  return last;
}

if (process.argv[1] === HERE) {
  const [, , system = "", temperature = "cold"] = process.argv;
  for (const depth of DEPTHS) {
    if (!(await reaches(system, temperature as Temperature, depth))) break;
    process.stdout.write(`${depth}\n`);
  }
  process.exit();
}
