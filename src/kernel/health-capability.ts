/**
 * `Kernel.Health`: the result of `kernel.health()` for clients and the command. SPEC: K29.
 */
import type { Capability } from "../loop/capability.ts";
import { capability } from "../loop/define-capability.ts";
import type { Json } from "../message/json.ts";
import type { KernelHealth } from "./kernel-options.ts";

export function healthCapability(health: () => KernelHealth): Capability {
  return capability({
    description: "how this kernel is",
    queries: {
      "Kernel.Health": {
        description: "state, actors, connections, nodes, and every extension with its state and problem",
        // Drops undefined fields, which a message cannot carry.
        handle: (): Json => JSON.parse(JSON.stringify(health())),
      },
    },
  });
}
