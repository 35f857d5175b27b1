/** One round of a benchmark, in a process of its own; `harness/apart.ts` starts it and gets the result. */
import { setFlagsFromString } from "node:v8";
import { benchmarkOf, ourShare } from "./benchmarks.ts";
import type { RoundMessage, RoundOrder } from "./harness/apart.ts";
import { measure } from "./harness/measure.ts";
import { leaveOutPeers } from "./harness/peers.ts";

// The exit handler removes the data of the runs; being stopped alone would not call it.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));

const { name, only, scale, peers, onlyOurs = false } = JSON.parse(process.argv[2]!) as RoundOrder;
setFlagsFromString("--expose-gc");
if (!peers) leaveOutPeers();
const whole = await benchmarkOf(name, only);
const benchmark = onlyOurs ? ourShare(whole) : whole;
const { rows } = await measure(benchmark, { scale, rounds: 1, onProgress: (text) => tell({ kind: "step", text }) });
const taken = new Map(rows.map(({ workload, cells }) => [workload, cells]));
// Open handles of a system do not keep the process alive.
tell({ kind: "done", rows: benchmark.workloads.map((workload) => taken.get(workload) ?? new Map()) }, () =>
  process.exit(),
);

function tell(message: RoundMessage, whenTold?: () => void): void {
  process.send?.(message, undefined, undefined, whenTold);
}
