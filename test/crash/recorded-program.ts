/** The recorded program. It runs under the shim; its argument is a `WorkloadPlan` as JSON. */
import { mark } from "./shim-orders.ts";
import { Workload, type WorkloadPlan } from "./workload.ts";

const plan = JSON.parse(process.argv[2] ?? "{}") as WorkloadPlan;

await new Workload(plan, {
  told: (text) => mark(JSON.stringify(text)),
  reached: () => undefined,
  refused: (deed, reason) => {
    throw new Error(`nothing is wrong, and the store refused ${JSON.stringify(deed)}: ${reason}`);
  },
}).run();
