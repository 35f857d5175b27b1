/** The sentences of `millrace why`: for rows of the journal, for requests that wait, for nodes. */
import { findReceipt, KERNEL_SPACE } from "../kernel/commit-story.ts";
import type { PendingView, WhyView } from "../kernel/inspect-capability.ts";
import type { KernelStore } from "../kernel/open-store.ts";
import { causesOf } from "./conversation.ts";
import { type Row, timeOf, troubleOf } from "./journal-lines.ts";
import { Listeners } from "./listeners.ts";
import type { VerbCall } from "./verb.ts";

export interface Explanation {
  readonly kind: string;
  readonly name: string;
  /** One sentence: where it stands. */
  readonly verdict: string;
  /** Why, one sentence each, the nearest first. */
  readonly because: readonly string[];
}

// Events and requests ----------------------------------------------------------------------------------------------------------

export async function explainRow(call: VerbCall, store: KernelStore, row: Row): Promise<Explanation> {
  const { message, topic } = row;
  const listeners = await Listeners.of(call);
  const causes = (await causesOf(store, row)).map(
    (cause) => `caused by ${cause.message?.kind ?? "?"} ${cause.topic} (${cause.message?.metadata.id ?? cause.id})`,
  );
  const kind = message?.kind === "command" ? "request" : "event";
  const about = kind === "request" ? await requestLines(store, row) : eventLines(row, listeners);
  return {
    ...{ kind, name: `${row.id} ${message?.type ?? topic}` },
    verdict: verdictOn(row, listeners.areKnown),
    because: [...about, `${kind === "event" ? "published" : "handled"} by ${row.source} at ${timeOf(row)}`, ...causes],
  };
}

function verdictOn(row: Row, running: boolean): string {
  const { status, attempts, error, nextAttemptAtMs, lease } = row;
  if (row.unreadable !== undefined) return `cannot be read: ${row.unreadable}`;
  if (status === "failed")
    return `failed after ${times(attempts)}: ${error ?? "no reason was kept"}; put it back with: millrace requeue ${row.id}; or give it up: millrace discard ${row.id} --reason "…"`;
  if (status === "done") return row.outcome === undefined ? "done" : `${row.outcome}: ${troubleOf(row)}`;
  if (status === "processing") {
    return running
      ? `is being handled now, for the ${ordinal(attempts)} time (lease ${lease})`
      : "was in the hands of a kernel that is gone; the next one takes it up when the lease has run out";
  }
  if (nextAttemptAtMs !== undefined) {
    const when = new Date(nextAttemptAtMs).toISOString();
    return `waits for its next attempt at ${when}, after ${times(attempts)}: ${error ?? "no reason was kept"}`;
  }
  const awaited = row.deliveries.filter(({ awaits }) => awaits !== undefined);
  if (awaited.length > 0)
    return `waits for ${awaited.map(({ subscriber }) => subscriber).join(", ")}, which is not running`;
  return running ? "waits for its turn" : "waits for a kernel: none is running here";
}

function eventLines(row: Row, listeners: Listeners): string[] {
  const { deliveries } = row;
  const lines = deliveries.map(({ subscriber, status, attempts, error, awaits }) => {
    const trouble = error === undefined ? "" : `: ${error}`;
    if (awaits !== undefined)
      return `${subscriber}: not running${trouble}; it gets the event when it runs, and "millrace consumers remove ${subscriber.split(" ", 1)[0]}" ends the wait`;
    if (status === "removed") return `${subscriber}: removed before it handled the event`;
    return `${subscriber}: ${status} after ${times(attempts)}${trouble}`;
  });
  if (!listeners.areKnown) return lines;
  // A subscriber by pattern is known in the journal with its pattern.
  const isThere = (name: string) => deliveries.some(({ subscriber }) => subscriber.split(" ", 1)[0] === name);
  const wanted = listeners.names(row).filter((name) => !isThere(name));
  if (wanted.length > 0) return [...lines, `goes to ${wanted.join(", ")}`];
  return lines.length > 0 ? lines : ["nobody subscribes to it"];
}

async function requestLines(store: KernelStore, { message, status }: Row): Promise<string[]> {
  if (status !== "done") return [];
  const receipt = message && (await findReceipt(store, message.metadata.id));
  if (receipt === undefined) return ["left no receipt: its handler is not transactional, or the receipt is gone"];
  const { result = null } = (receipt ?? {}) as { result?: unknown };
  return [`answered ${JSON.stringify(result)}; the same request again gets this answer and does nothing`];
}

export function explainPending({ id, kind, type, sentAtMs, capability, askedBy }: PendingView): Explanation {
  const where = capability === undefined ? "on its way to its actor" : `with ${capability}, which has not answered yet`;
  return {
    ...{ kind: "request", name: `${id} ${type}` },
    verdict: `waits: it is ${where}`,
    because: [`${kind} of ${askedBy}, sent at ${new Date(sentAtMs).toISOString()}`],
  };
}

// Nodes ------------------------------------------------------------------------------------------------------------------------

export function explainNode({ node, why, whyNot }: WhyView): Explanation {
  const ran = why.map((step) => {
    if (step.kind === "first-run") return `${step.node} ran for the first time`;
    if (step.kind === "written") return `${step.address} was written by somebody's commit`;
    return `${step.node} ran because of ${step.because.join(", ")}`;
  });
  const verdict = whyNot.kind === "unknown" ? "is not known" : whyNot.message;
  return {
    ...{ kind: node.kind, name: node.id, verdict },
    because: [
      `ran ${node.runs === 1 ? "once" : `${node.runs} times`}; reads ${node.reads.join(", ") || "nothing"}`,
      ...ran,
      ...(node.error === undefined ? [] : [`its last run failed: ${node.error}`]),
    ],
  };
}

/** Of a stopped kernel: what the node's last recorded run had read, and whether that has moved since. */
export async function explainRecordedNode(store: KernelStore, name: string): Promise<Explanation | undefined> {
  const [basis] = await store.basis(KERNEL_SPACE, [name]);
  if (!basis) return undefined;
  const moved = basis.inputs.filter((input) => input.moved).map(({ id }) => id);
  return {
    ...{ kind: "node", name },
    verdict:
      moved.length === 0
        ? "is up to date: nothing it read has changed since its last run; no kernel is running"
        : `will run when a kernel runs and somebody looks: ${moved.join(", ")} changed since its last run`,
    because: basis.inputs.map(({ id, sequence, moved: isMoved }) => {
      return `read ${id} as of commit ${sequence}${isMoved ? ", which has changed since" : ""}`;
    }),
  };
}

function times(count: number): string {
  return count === 1 ? "one attempt" : `${count} attempts`;
}

function ordinal(count: number): string {
  return count <= 1 ? "first" : `${count}th`;
}
