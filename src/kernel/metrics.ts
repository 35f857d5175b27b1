/**
 * `Kernel.Metrics`: counts, gauges and durations of a kernel in one answer, the source of `/metrics`. SPEC: W12.
 */

import type { SeriesView } from "../bus/handling-metrics.ts";
import type { HandlingRing } from "../bus/handling-ring.ts";
import type { Space } from "../cells/space.ts";
import type { Host } from "../host/host.ts";
import type { EventLoop } from "../loop/event-loop.ts";
import type { Json } from "../message/json.ts";
import type { JournalStatus } from "../store/journal.ts";
import type { Store } from "../store/store.ts";
import type { WorkBoard, WorkHealth } from "../work/work-board.ts";

/** Whose metrics. */
export interface MetricsParts {
  readonly host: Host;
  readonly store: Store;
  readonly space: Space;
  readonly handlings: HandlingRing | undefined;
  readonly board: WorkBoard;
  loop(): EventLoop;
}

/** The answer of `Kernel.Metrics`. */
export interface MetricsView {
  readonly atMs: number;
  /** Rows of the journal by status. */
  readonly journal: Readonly<Record<JournalStatus, number>>;
  /** Age of the oldest row that waits; 0 if none waits. */
  readonly oldestPendingMs: number;
  readonly lanes: { readonly system: number; readonly user: number };
  readonly pendingRequests: number;
  /** Messages in the mailbox of each actor. */
  readonly mailboxes: Readonly<Record<string, number>>;
  readonly work: WorkHealth;
  /** Of the kernel's own space and of the apps that share it. */
  readonly scheduler: { readonly nodes: number; readonly runs: number; readonly failures: number };
  /** Since the start, by kind, type and handler. Absent without `trace`. */
  readonly handlings?: readonly SeriesView[];
}

export async function metricsView(parts: MetricsParts): Promise<MetricsView> {
  const { host, store, space, handlings, board, loop } = parts;
  const [journal, [oldest]] = await Promise.all([store.count(), store.query({ status: "pending", limit: 1 })]);
  const { systemLane, userLane, pendingRequests } = loop().liveness;
  const { nodes, runs, failures } = space.scheduler.getStats();
  return {
    ...{ atMs: host.now(), journal },
    oldestPendingMs: oldest === undefined ? 0 : Math.max(0, store.now() - oldest.createdAtMs),
    ...{ lanes: { system: systemLane, user: userLane }, pendingRequests },
    mailboxes: Object.fromEntries([...loop().actors].map(([name, { mailboxLength }]) => [name, mailboxLength])),
    ...{ work: board.health(), scheduler: { nodes, runs, failures } },
    ...(handlings === undefined ? {} : { handlings: handlings.metrics.view() }),
  };
}

export function metricsQueries(parts: MetricsParts) {
  return {
    "Kernel.Metrics": {
      description: "counts, gauges and durations of this kernel since its start",
      handle: async () => JSON.parse(JSON.stringify(await metricsView(parts))) as Json,
    },
  };
}
