/**
 * Reports unfinished work by name when a scheduler is closed: runs, sends, and other work that it waited for. It has no
 * state. SPEC: R48.
 */
import type { Replica } from "../store/replica.ts";
import type { Components } from "./components.ts";
import type { QueueSnapshot } from "./events.ts";
import { isUnsettling } from "./gates.ts";
import type { SchedulerNode } from "./node.ts";
import { SchedulerError } from "./scheduler-error.ts";

export function tellUnfinished(components: Components, { space }: Replica, graceMs: number): void {
  const { runner, events, gates, introspection, quiescence } = components;
  if (quiescence.isIdle) return;
  const when = `when space "${space}" closed after a grace of ${graceMs} ms`;
  const queue = events.snapshot().find((one) => one.space === space && one.waiting > 0);
  for (const node of runner.awaited.keys()) {
    introspection.report(gaveUp(`its run had not ended ${when}; its further effects are dropped`), node);
  }
  if (queue !== undefined) introspection.report(gaveUp(textOf(queue, when, gates.held)), undefined);
  if (runner.awaited.size > 0 || queue !== undefined) return;
  introspection.report(gaveUp(`documents were being loaded, or work went on in the background, ${when}`), undefined);
}

/** Removes the nodes of awaited runs, so that these have no effect. */
export function letGoOfRuns({ lifecycle, runner, settle }: Components): void {
  for (const node of [...runner.awaited.keys()]) lifecycle.remove(node);
  settle.letGo();
}

function textOf({ waiting, head }: QueueSnapshot, when: string, held: ReadonlySet<SchedulerNode>): string {
  const sends = waiting === 1 ? "1 send was" : `${waiting} sends were`;
  const wait = head?.waitsFor === undefined ? "its handler had not ended" : `it waited for ${head.waitsFor}`;
  // A node that does not converge blocks no send.
  const gated = [...held].filter((node) => !isUnsettling(node)).map(({ id }) => id);
  const names = head?.waitsFor === "nodes" && gated.length > 0 ? ` (gated: ${gated.join(", ")})` : "";
  return `${sends} not handled ${when}; the first is ${head?.id} to ${head?.stream}: ${wait}${names}`;
}

export function gaveUp(message: string): SchedulerError {
  return new SchedulerError("SCHEDULER_GAVE_UP", message);
}
