/** Kinds of `ls` that the running kernel answers: types, actors, nodes, work, extensions. */
import type { CapabilityView, GraphView, WorkView } from "../kernel/inspect-capability.ts";
import type { KernelHealth } from "../kernel/kernel-options.ts";
import { askGraph, askKernel } from "./connection.ts";
import type { Listing } from "./listing.ts";

/** The answer of `Syscall.Describe`. */
export interface TypeItem {
  readonly type: string;
  readonly kind: string;
  readonly capability: string;
  readonly description: string;
}

export const types: Listing<TypeItem> = {
  head: ["type", "kind", "capability", ""],
  takes: [],
  find: async (call) => {
    const { types: found } = await askKernel<{ types: readonly TypeItem[] }>(call, "Syscall.Describe");
    return [...found].sort((a, b) => (a.type < b.type ? -1 : 1));
  },
  cells: ({ type, kind, capability, description }) => [type, kind, capability, description],
};

export const actors: Listing<CapabilityView> = {
  head: ["actor", "state", "waiting", "handles", "subscribes", ""],
  takes: [],
  find: async (call) => (await askKernel<GraphView>(call, "Kernel.Graph")).capabilities,
  cells: ({ name, state, waiting, handles, subscribes, description }) => [
    ...[name, state, String(waiting), String(handles.length), String(subscribes.length), description],
  ],
};

export const work: Listing<WorkView> = {
  head: ["since", "seconds", "state", "entry point", "handler", "type", "id", "timeout"],
  takes: [],
  find: async (call) => (await askKernel<{ work: readonly WorkView[] }>(call, "Kernel.Work")).work,
  cells: ({ sinceMs, ageMs, state, entryPoint, handler, type, id, timeoutMs }) => [
    ...[new Date(sinceMs).toISOString(), secondsText(ageMs), state, entryPoint, handler, type, id],
    timeoutMs === undefined ? "none" : `${secondsText(timeoutMs)} s`,
  ],
};

export const nodes: Listing<GraphView["nodes"][number]> = {
  head: ["node", "kind", "status", "seen by", "runs", "reads", ""],
  takes: [],
  find: async (call) => (await askGraph(call)).nodes,
  cells: ({ id, kind, status, live, runs, reads, error }) => [
    ...[id, kind, status, live ? "somebody" : "nobody", String(runs), [...new Set(reads)].join(", "), error ?? ""],
  ],
};

export const extensions: Listing<KernelHealth["extensions"][number]> = {
  head: ["extension", "version", "state", "is", ""],
  takes: [],
  find: async (call) => (await askKernel<KernelHealth>(call, "Kernel.Health")).extensions,
  cells: ({ id, version, state, enabled, providers, reason = "" }) => [
    ...[id, version, enabled ? state : "disabled", providers.join(", "), reason],
  ],
};

function secondsText(ms: number): string {
  return (ms / 1_000).toFixed(1);
}
