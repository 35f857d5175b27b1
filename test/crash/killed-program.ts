/**
 * The program that is killed. It tells its deeds on stdout, line by line, and ends itself at the moment that its plan
 * names. Where that moment lies inside a call of the store, the shim ends it, so that the store needs no hook.
 */
import { arm } from "./shim-orders.ts";
import { tell } from "./tell.ts";
import { type Probe, Workload, type WorkloadPlan } from "./workload.ts";

export interface KilledPlan extends WorkloadPlan {
  /** Absent: the program goes on until it is killed, or all rounds are done. */
  readonly end?: {
    readonly probe: Probe;
    /** The number of earlier passes of the probe. */
    readonly passes: number;
    /** By its own hand at the probe, or by the shim after the nth sync, or nth call of any kind, from there. */
    readonly by:
      | { readonly kind: "self" }
      | { readonly kind: "shim"; readonly calls: "sync" | "any"; readonly nth: number };
  };
}

const { end, ...plan } = JSON.parse(process.argv[2] ?? "{}") as KilledPlan;
let passes = end?.passes ?? 0;

await new Workload(plan, {
  told: (mark) => tell(JSON.stringify(mark)),
  reached: (probe) => {
    if (probe !== end?.probe || passes-- > 0) return;
    if (end.by.kind === "self") process.kill(process.pid, "SIGKILL");
    else if (passes === -1) arm(end.by.calls, end.by.nth, "kill");
  },
  refused: (deed, reason) => {
    throw new Error(`nothing is wrong, and the store refused ${JSON.stringify(deed)}: ${reason}`);
  },
}).run();
