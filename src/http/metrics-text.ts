/**
 * `/metrics` in the text format of Prometheus 0.0.4, from the answer of `Kernel.Metrics` and the counts of this server.
 * SPEC: W89.
 */

/** The part of the answer of `Kernel.Metrics` that is printed. */
export interface MeasuredText {
  readonly journal: Readonly<Record<string, number>>;
  readonly oldestPendingMs: number;
  readonly lanes: Readonly<Record<string, number>>;
  readonly pendingRequests: number;
  readonly mailboxes: Readonly<Record<string, number>>;
  readonly work: { readonly open: number; readonly stuck: number };
  readonly scheduler: { readonly nodes: number; readonly runs: number; readonly failures: number };
  readonly handlings?: readonly MeasuredSeries[];
}

interface Duration {
  readonly count: number;
  readonly sumMs: number;
  readonly atMost: readonly (readonly [ms: number, count: number])[];
}

interface MeasuredSeries {
  readonly kind: string;
  readonly type: string;
  readonly handler: string;
  readonly done: number;
  readonly refused: number;
  readonly failed: number;
  readonly took: Duration;
  readonly waited?: Duration;
}

/** The counts of one server. */
export interface ServerCounts {
  /** Answered requests by route and status. */
  readonly requests: ReadonlyMap<string, { readonly route: string; readonly status: number; readonly count: number }>;
  readonly streams: number;
  readonly webSockets: number;
}

export const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

type Labels = Readonly<Record<string, string | number>>;
type Sample = readonly [labels: Labels, value: number];

export function metricsText(measured: MeasuredText, server: ServerCounts): string {
  const { journal, oldestPendingMs, lanes, pendingRequests, mailboxes, work, scheduler, handlings = [] } = measured;
  const by = (label: string, counts: Readonly<Record<string, number>>): Sample[] =>
    Object.entries(counts).map(([name, count]) => [{ [label]: name }, count]);
  const ended = handlings.flatMap(({ kind, type, handler, done, refused, failed }) =>
    by("outcome", { done, refused, failed }).map(
      ([outcome, count]): Sample => [{ kind, type, handler, ...outcome }, count],
    ),
  );
  return [
    family("millrace_handlings_total", "counter", "Handlings that have ended.", ended),
    histogram(
      "millrace_handling_seconds",
      "Time from being given a message to the end of its handling.",
      handlings,
      "took",
    ),
    histogram("millrace_queue_wait_seconds", "Time of a message in the mailbox.", handlings, "waited"),
    family("millrace_journal_rows", "gauge", "Rows of the journal.", by("status", journal)),
    family("millrace_journal_oldest_pending_seconds", "gauge", "Age of the oldest row that waits.", [
      [{}, oldestPendingMs / 1_000],
    ]),
    family("millrace_lane_depth", "gauge", "Messages that wait to be routed.", by("lane", lanes)),
    family("millrace_mailbox_depth", "gauge", "Messages in the mailbox of an actor.", by("actor", mailboxes)),
    family("millrace_requests_pending", "gauge", "Requests without an answer.", [[{}, pendingRequests]]),
    family("millrace_handlers_running", "gauge", "Asynchronous handlers that run.", [[{}, work.open]]),
    family("millrace_handlers_stuck", "gauge", "Handlers that run for more than half of their timeout.", [
      [{}, work.stuck],
    ]),
    family("millrace_nodes", "gauge", "Nodes of the derived state.", [[{}, scheduler.nodes]]),
    family("millrace_node_runs_total", "counter", "Runs of nodes.", [[{}, scheduler.runs]]),
    family("millrace_node_failures_total", "counter", "Runs of nodes that failed.", [[{}, scheduler.failures]]),
    family(
      "millrace_http_requests_total",
      "counter",
      "Answered requests.",
      [...server.requests.values()].map(({ route, status, count }): Sample => [{ route, status }, count]),
    ),
    family("millrace_clients", "gauge", "Open streams and WebSockets.", [
      [{ adapter: "stream" }, server.streams],
      [{ adapter: "websocket" }, server.webSockets],
    ]),
  ].join("");
}

function family(name: string, kind: string, help: string, samples: readonly Sample[]): string {
  const lines = samples.map(([labels, value]) => `${name}${labelsText(labels)} ${value}\n`);
  return `# HELP ${name} ${help}\n# TYPE ${name} ${kind}\n${lines.join("")}`;
}

function histogram(name: string, help: string, series: readonly MeasuredSeries[], which: "took" | "waited"): string {
  const lines = series.flatMap(({ kind, type, handler, [which]: duration }) => {
    if (duration === undefined) return [];
    const labels = { kind, type, handler };
    return [
      ...duration.atMost.map(([ms, count]) => `${name}_bucket${labelsText({ ...labels, le: ms / 1_000 })} ${count}\n`),
      `${name}_bucket${labelsText({ ...labels, le: "+Inf" })} ${duration.count}\n`,
      `${name}_sum${labelsText(labels)} ${duration.sumMs / 1_000}\n`,
      `${name}_count${labelsText(labels)} ${duration.count}\n`,
    ];
  });
  return `# HELP ${name} ${help}\n# TYPE ${name} histogram\n${lines.join("")}`;
}

function labelsText(labels: Labels): string {
  const all = Object.entries(labels).map(([name, value]) => `${name}="${escaped(String(value))}"`);
  return all.length === 0 ? "" : `{${all.join(",")}}`;
}

function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
