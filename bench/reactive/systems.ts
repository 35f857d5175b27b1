/**
 * The systems of the benchmark. The code of the workloads is loaded once for each of them: shared code would see
 * objects of eight libraries at every call, and the engine would compile it for none of them.
 */
import type { System } from "../harness/benchmark.ts";
import { whyPeerMissing } from "../harness/peers.ts";
import type { DocumentGraph, Graph } from "./graph.ts";

export const OURS = "millrace";
/** The one that the graph workloads are compared with. */
export const FASTEST = "alien-signals";

interface Listed {
  /** Its adapter, here; the same as its column. */
  readonly name: string;
  readonly package?: string;
  readonly documentsOnly?: true;
}

const LISTED: readonly Listed[] = [
  { name: OURS },
  { name: FASTEST, package: "alien-signals" },
  { name: "preact-signals", package: "@preact/signals-core" },
  { name: "vue", package: "@vue/reactivity" },
  { name: "solid", package: "solid-js" },
  { name: "mobx", package: "mobx" },
  { name: "tldraw-state", package: "@tldraw/state" },
  { name: "valtio", package: "valtio", documentsOnly: true },
];

export const SYSTEMS: readonly System[] = LISTED.map(({ name, package: needed }) => ({
  name,
  role: needed === undefined ? "ours" : "peer",
  ...(needed !== undefined && { unavailable: async () => whyPeerMissing(needed) }),
}));

export const DOCUMENT_SYSTEMS: readonly string[] = LISTED.map(({ name }) => name);
export const GRAPH_SYSTEMS: readonly string[] = LISTED.filter((one) => !one.documentsOnly).map(({ name }) => name);

/** Opens a system that has values of all kinds. */
export async function openGraph(system: string): Promise<Graph> {
  return (await adapter(system)).open() as Promise<Graph>;
}

export async function openDocuments(system: string): Promise<DocumentGraph> {
  return (await adapter(system)).open();
}

async function adapter(system: string): Promise<{ open(): Promise<DocumentGraph> }> {
  // Users do not run the peers' development mode (checks, names, warnings).
  process.env["NODE_ENV"] = "production";
  return await import(`./${system}.ts`);
}

export async function workloadsFor(system: string): Promise<typeof import("./workloads.ts")> {
  return await import(`./workloads.ts?${system}`);
}

export async function shapesFor(system: string): Promise<typeof import("./shapes.ts")> {
  return await import(`./shapes.ts?${system}`);
}
