/**
 * Resuming a space: 10,000 computations on a SQLite file with unchanged inputs. The limit reads the same rows with
 * hand-written statements from the same file. Counted: runs, documents read, bytes for each input of a node.
 */
import { statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Space, type Store, systemHost } from "millrace/signals";
import { openSqliteStore } from "millrace/sqlite";
import type { Benchmark, Sample, Scene } from "./harness/benchmark.ts";
import { elapsedMs } from "./harness/timing.ts";

const NODES = 10_000;
const SOURCES = 100;
const host = systemHost();

export const restartBenchmark: Benchmark = {
  name: "restart",
  what: `${NODES} computations whose inputs have not changed, on a SQLite file`,
  systems: [
    { name: "bare sqlite", role: "limit" },
    { name: "millrace", role: "ours" },
  ],
  workloads: [
    {
      group: "restart",
      name: `resume ${NODES} nodes`,
      metrics: [
        { name: "ms", better: "lower", target: { of: "itself", atMost: 100 } },
        { name: "runs", better: "lower", target: { of: "itself", atMost: 0 } },
        { name: "documents read", better: "lower", target: { of: "itself", atMost: 0 } },
      ],
      runs: { "bare sqlite": bareRead, millrace: resumed },
    },
    {
      group: "restart",
      name: "rows of what nodes rest on",
      metrics: [{ name: "bytes per input", better: "lower", target: { of: "itself", atMost: 120 } }],
      runs: { millrace: rowBytes },
    },
  ],
};

const open = (directory: string) => openSqliteStore({ path: join(directory, "store.db"), host, durability: "process" });

/** A file with all nodes computed and written; made once. */
function written(scene: Scene): Promise<string> {
  return scene.shared("nodes", async (directory) => {
    const store = await open(directory);
    const space = await Space.open({ store, host, name: "s", persist: { version: "1" } });
    for (let n = 0; n < SOURCES; n++) space.cell(`source ${n}`).set(n);
    const nodes = build(space);
    const stop = space.effect(() => nodes.map((node) => node.get()));
    await space.settled();
    stop();
    await space.close();
    await store.close();
  });
}

/** Chains of a hundred nodes, each of which also reads a source. */
function build(space: Space) {
  const nodes: { get(): number | undefined }[] = [];
  for (let n = 0; n < NODES; n++) {
    const source = space.cell<number>(`source ${n % SOURCES}`);
    const below = nodes[n - SOURCES];
    nodes.push(space.computed(`node ${n}`, () => (source.get() ?? 0) + (below?.get() ?? 0)));
  }
  return nodes;
}

async function resumed(scene: Scene): Promise<Sample> {
  const store = await open(await written(scene));
  let read = 0;
  const counting: Store = new Proxy(store, {
    get(target, name) {
      if (name === "load") {
        return (space: string, refs: Parameters<Store["load"]>[1]) => {
          read += refs.length;
          return target.load(space, refs);
        };
      }
      const member: unknown = Reflect.get(target, name);
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
  const space = await Space.open({ store: counting, host, name: "s", persist: { version: "1" } });
  const ms = await elapsedMs(() => space.restore(() => build(space)));
  const { runs } = space.scheduler.getStats();
  const sample = { ms, runs, "documents read": read };
  await space.close();
  await store.close();
  return sample;
}

async function bareRead(scene: Scene): Promise<Sample> {
  const database = new DatabaseSync(join(await written(scene), "store.db"));
  const rows = ["node", "document", "path_set"].map((table) => database.prepare(`SELECT * FROM ${table}`));
  let met = 0;
  const ms = await elapsedMs(() => {
    for (const table of rows) met += table.all().length;
  });
  database.close();
  if (met < NODES) throw new Error(`only ${met} rows`);
  return { ms, runs: 0, "documents read": 0 };
}

/** The size of nodes and their inputs in the file: rows, their indexes, and the sets of paths that they share. */
async function rowBytes(scene: Scene): Promise<Sample> {
  const path = join(await written(scene), "store.db");
  if (statSync(path).size === 0) throw new Error("nothing was written");
  const database = new DatabaseSync(path);
  const { bytes } = database
    .prepare(
      "SELECT sum(pgsize) AS bytes FROM dbstat WHERE name IN ('node', 'path_set') OR name LIKE 'sqlite_autoindex_path_set%'",
    )
    .get() as { bytes: number };
  const { inputs } = database.prepare("SELECT sum(json_array_length(inputs)) / 3 AS inputs FROM node").get() as {
    inputs: number;
  };
  database.close();
  return { "bytes per input": bytes / inputs };
}
