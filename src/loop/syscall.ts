/** Requests about the kernel itself: `Syscall.Ping`, `List`, `Describe`, and `Syscall.Shutdown`. On in every kernel. */
import { Failure } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import type { Capability } from "./capability.ts";
import { capability } from "./define-capability.ts";
import { dataSchema } from "./message-schema.ts";
import type { Route, RoutingTable } from "./routing-table.ts";

/** The data of the syscalls, known only after the loop has booted. */
export interface SyscallTargets {
  readonly table: RoutingTable;
  readonly descriptions: ReadonlyMap<string, string>;
}

const describeInput = dataSchema<{ name?: string }>(
  (data) => {
    if (data === null) return undefined;
    if (typeof data !== "object" || Array.isArray(data))
      return 'must be an object like {"name": "Memory.Get"}, or null';
    const { name } = data as { name?: unknown };
    return name === undefined || typeof name === "string" ? undefined : "name: must be a string";
  },
  { type: ["object", "null"], properties: { name: { type: "string" } } },
);

export function syscall(targets: () => SyscallTargets): Capability {
  const capable = capability({
    description: "the requests that this kernel handles, and a sign of life",
    queries: {
      "Syscall.Ping": { description: "answers its data unchanged", handle: (data: Json) => data },
      "Syscall.List": {
        description: "the types that can be requested",
        handle: () => ({ types: [...new Set([...targets().table.routes()].map(({ type }) => type))].sort() }),
      },
      "Syscall.Describe": {
        description: "kind, input, output and description of one type, or of all",
        input: describeInput,
        handle: (data: { name?: string } | null) => describe(targets(), data?.name),
      },
    },
  });
  // For routing alone, so that every connection may use it: its handlers read no data of spaces.
  return { ...capable, clearance: [] };
}

/**
 * `Syscall.Shutdown` is a capability of its own, because a connection with a clearance may use the others, but not this
 * one.
 */
export function shutdown(begin: () => void): Capability {
  return {
    ...capability({
      description: "the end of this kernel",
      // In the journal, a shutdown would end the next kernel too.
      durable: false,
      commands: {
        "Syscall.Shutdown": {
          description: "ends the kernel in good order",
          handle: () => {
            begin();
            return { success: true };
          },
        },
      },
    }),
    operates: true,
  };
}

function describe({ table, descriptions }: SyscallTargets, name: string | undefined): Json {
  const routes = [...table.routes()].filter(
    ({ type, capability: owner }) => name === undefined || type === name || owner === name,
  );
  if (routes.length === 0) throw new Failure(404, `no type is called ${name}; ask Syscall.List`);
  return { types: routes.map((route) => described(route, descriptions)) };
}

function described(
  { capability: owner, kind, type, input, output, description }: Route,
  descriptions: ReadonlyMap<string, string>,
): Json {
  return {
    type,
    kind,
    capability: owner,
    description: description ?? descriptions.get(owner) ?? "",
    input: input as Json,
    output: output as Json,
  };
}
