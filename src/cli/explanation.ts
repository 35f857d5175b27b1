/**
 * The sentences of `millrace why`: for journal rows, waiting requests and nodes.
 */
import { findDocument, findReceipt, lastWriter } from "../kernel/commit-story.ts";
import type {
  CapabilityView,
  GraphView,
  HandlingView,
  PendingView,
  SubscriberView,
  WhyView,
  WorkView,
} from "../kernel/inspect-capability.ts";
import type { KernelStore } from "../kernel/open-store.ts";
import { concerns } from "../kernel/run-log.ts";
import type { Json } from "../message/json.ts";
import { causeChain } from "./conversation.ts";
import { creationTime, type JournalLine, troubleOf } from "./journal-lines.ts";
import { Listeners } from "./listeners.ts";
import { spacesOf } from "./spaces.ts";
import { handlingsOf } from "./story.ts";
import type { VerbCall } from "./verb.ts";

export interface Explanation {
  readonly kind: string;
  readonly name: string;
  /** One sentence about its state. */
  readonly verdict: string;
  /** The reasons, one sentence each, nearest first. */
  readonly because: readonly string[];
}

// Events and requests ------------------------------------------------------------------------------------------------

export async function explainRow(call: VerbCall, store: KernelStore, row: JournalLine): Promise<Explanation> {
  const { message, topic } = row;
  const listeners = await Listeners.of(call);
  const causes = (await causeChain(store, row)).map(
    (cause) => `caused by ${cause.message?.kind ?? "?"} ${cause.topic} (${cause.message?.metadata.id ?? cause.id})`,
  );
  const kind = message?.kind === "command" ? "request" : "event";
  const about = kind === "request" ? await requestLines(call, store, row) : eventLines(row, listeners);
  return {
    ...{ kind, name: `${row.id} ${message?.type ?? topic}` },
    verdict: verdictOn(row, listeners.areKnown),
    because: [...about, ...(await deedLines(call, row)), ...causes],
  };
}

/** The handler and the time, with the sender and durations if a running kernel has them. */
async function deedLines(call: VerbCall, row: JournalLine): Promise<string[]> {
  const { message, source } = row;
  if (message?.kind !== "command") {
    const heard = (message ? await handlingsOf(call, [message.metadata.id]) : []).filter(
      ({ id, outcome }) => id === message?.metadata.id && outcome === "done",
    );
    const durations = heard.map(({ handler, tookMs = 0 }) => `${handler} handled it in ${tookMs.toFixed(1)} ms`);
    return [...durations, `published by ${source} at ${creationTime(row)}`];
  }
  const handling = (await handlingsOf(call, [message.metadata.id])).find(({ id }) => id === message.metadata.id);
  const sent = handling ? [`sent by ${handling.askedBy}`] : [];
  const took = handling?.tookMs === undefined ? "" : `, in ${handling.tookMs.toFixed(1)} ms`;
  return [`handled by ${source} at ${creationTime(row)}${took}`, ...sent];
}

/** A query or a command of a plain handler: it left no row, but a running kernel may have it in memory. */
export function explainHandlings(id: string, handlings: readonly HandlingView[]): Explanation | undefined {
  const own = handlings.filter((handling) => handling.id === id);
  const last = own.at(-1);
  if (!last) return undefined;
  const { kind, type, handler, askedBy, outcome, tookMs, waitedMs, givenAtMs, causation } = last;
  const waited = waitedMs === undefined || waitedMs < 1 ? "" : `, ${waitedMs.toFixed(1)} ms of it in the mailbox`;
  const took = tookMs === undefined ? "" : ` after ${tookMs.toFixed(1)} ms${waited}`;
  const caused = handlings.filter((handling) => handling.causation === id);
  return {
    ...{ kind: "request", name: `${id} ${type}` },
    verdict: outcome === undefined ? `is being handled by ${handler}` : `${outcome}${took}`,
    because: [
      `${kind} of ${askedBy}, given to ${handler} at ${new Date(givenAtMs).toISOString()}`,
      "left no row in the journal: a query, or a command of a plain handler; the running kernel remembers it",
      ...(causation === undefined ? [] : [`caused by ${causation}`]),
      ...caused.map((child) => `caused ${child.kind} ${child.type} (${child.id})`),
    ],
  };
}

function verdictOn(row: JournalLine, running: boolean): string {
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

function eventLines(row: JournalLine, listeners: Listeners): string[] {
  const { deliveries } = row;
  const lines = deliveries.map(({ subscriber, status, attempts, error, awaits }) => {
    const trouble = error === undefined ? "" : `: ${error}`;
    if (awaits !== undefined)
      return `${subscriber}: not running${trouble}; it gets the event when it runs, and "millrace consumers remove ${subscriber.split(" ", 1)[0]}" ends the wait`;
    if (status === "removed") return `${subscriber}: removed before it handled the event`;
    return `${subscriber}: ${status} after ${times(attempts)}${trouble}`;
  });
  if (!listeners.areKnown) return lines;
  // The journal names a subscriber by pattern with its pattern.
  const isThere = (name: string) => deliveries.some(({ subscriber }) => subscriber.split(" ", 1)[0] === name);
  const wanted = listeners.names(row).filter((name) => !isThere(name));
  if (wanted.length > 0) return [...lines, `goes to ${wanted.join(", ")}`];
  return lines.length > 0 ? lines : ["nobody subscribes to it"];
}

async function requestLines(call: VerbCall, store: KernelStore, { message, status }: JournalLine): Promise<string[]> {
  if (status !== "done") return [];
  const receipt = message && (await findReceipt(store, message.metadata.id, await spacesOf(call)));
  if (receipt === undefined) return ["left no receipt: its handler is not transactional, or the receipt is gone"];
  const { result = null } = (receipt ?? {}) as { result?: unknown };
  return [`answered ${JSON.stringify(result)}; the same request again gets this answer and does nothing`];
}

/** `command handler gate of Gate.Hold, since 2026-01-01T00:00:00.000Z (34 s)` */
export function workText({ entryPoint, handler, type, sinceMs, ageMs }: WorkView): string {
  const since = new Date(sinceMs).toISOString();
  return `${entryPoint} handler ${handler} of ${type}, since ${since} (${Math.floor(ageMs / 1_000)} s)`;
}

/** A message whose handlers run now. */
export function explainWork(work: readonly WorkView[]): Explanation | undefined {
  const [first] = work;
  if (first === undefined) return undefined;
  const { id, type, entryPoint } = first;
  const kind = entryPoint === "command" || entryPoint === "query" ? "request" : "event";
  return { kind, name: `${id} ${type}`, verdict: "is being handled now", because: workLines(work) };
}

export function workLines(work: readonly WorkView[]): string[] {
  return work.map((one) => `is in the ${workText(one)}${WORK_STATES[one.state]}`);
}

const WORK_STATES: Readonly<Record<WorkView["state"], string>> = {
  running: "",
  stuck: "; the handler is stuck",
  "left-behind": "; the handler has timed out and still runs",
};

export function explainPending({ id, kind, type, sentAtMs, capability, askedBy }: PendingView): Explanation {
  const where = capability === undefined ? "on its way to its actor" : `with ${capability}, which has not answered yet`;
  return {
    ...{ kind: "request", name: `${id} ${type}` },
    verdict: `waits: it is ${where}`,
    because: [`${kind} of ${askedBy}, sent at ${new Date(sentAtMs).toISOString()}`],
  };
}

// Nodes --------------------------------------------------------------------------------------------------------------

export async function explainNode(
  call: VerbCall,
  store: KernelStore,
  { node, why, whyNot }: WhyView,
): Promise<Explanation> {
  const ran: string[] = [];
  for (const step of why) {
    if (step.kind === "first-run") ran.push(`${step.node} ran for the first time`);
    else if (step.kind === "written")
      ran.push(`${step.address} was written by ${await writerText(call, store, step.address)}`);
    else ran.push(`${step.node} ran because of ${step.because.join(", ")}`);
  }
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

/** `command Shop.Order (id) of a client of the socket, handled by shop` */
async function writerText(call: VerbCall, store: KernelStore, address: string): Promise<string> {
  const writer = await lastWriter(store, address, await spacesOf(call));
  if (!writer) return "a commit that the change feed no longer reaches back to";
  const { invocation, sequence } = writer;
  if (!invocation) return `code of the app, outside of a transactional handler (commit ${sequence})`;
  const { id } = invocation;
  const [row] = await store.query({ messageId: id, limit: 1 });
  const handling = (await handlingsOf(call, [id])).find((one) => one.id === id);
  const kind = row?.message?.kind ?? handling?.kind ?? invocation.kind;
  const type = row?.message?.type ?? handling?.type ?? "(its row is gone)";
  const sender = kind === "command" && handling ? ` of ${handling.askedBy}` : "";
  const handler = invocation.kind === "event" ? invocation.subscriber : (row?.source ?? handling?.handler);
  return `${kind} ${type} (${id})${sender}${handler === undefined ? "" : `, handled by ${handler}`}`;
}

/** A cell or document: its value, its last writer, its readers. Undefined if no document has the name. */
export async function explainCell(
  call: VerbCall,
  store: KernelStore,
  name: string,
  graph: GraphView | undefined,
): Promise<Explanation | undefined> {
  const [id = "", path = ""] = name.split(" /");
  const document = await findDocument(store, { scope: "space", id }, await spacesOf(call));
  if (document === undefined) return undefined;
  const value = path === "" ? document.value : valueAt(document.value, path.split("/"));
  const readers = (graph?.nodes ?? []).filter(({ reads }) => reads.some((read) => concerns(read, name)));
  return {
    ...{ kind: "cell", name },
    verdict: value === undefined ? "has no value" : `holds ${shortened(JSON.stringify(value))}`,
    because: [
      `written by ${await writerText(call, store, name)}`,
      ...(graph === undefined ? [] : [`read by ${readers.map((node) => node.id).join(", ") || "no node"}`]),
    ],
  };
}

function valueAt(value: Json | undefined, path: readonly string[]): Json | undefined {
  let at: unknown = value;
  for (const key of path) at = typeof at === "object" && at !== null ? (at as Record<string, unknown>)[key] : undefined;
  return at as Json | undefined;
}

function shortened(text: string): string {
  return text.length <= VALUE_CHARACTERS_MAX ? text : `${text.slice(0, VALUE_CHARACTERS_MAX)}…`;
}

const VALUE_CHARACTERS_MAX = 200;

// Capabilities and subscribers ---------------------------------------------------------------------------------------

export function explainCapability(view: CapabilityView, last: readonly HandlingView[]): Explanation {
  const { name, description, state, waiting, handles, emits, subscribes } = view;
  const listed = (word: string, names: readonly string[]) =>
    names.length === 0 ? [] : [`${word} ${names.join(", ")}`];
  return {
    ...{ kind: "capability", name },
    verdict: `is ${state}; ${waiting} ${waiting === 1 ? "message waits" : "messages wait"}`,
    because: [
      description,
      ...listed("handles", handles),
      ...listed("emits", emits),
      ...listed("hears", subscribes),
      ...last.map(handledText),
    ],
  };
}

export function explainSubscriber(views: readonly SubscriberView[], last: readonly HandlingView[]): Explanation {
  const { name } = views[0] as SubscriberView;
  return {
    ...{ kind: "subscriber", name },
    verdict: `hears ${views.map(({ pattern }) => pattern).join(", ")}`,
    because: last.length === 0 ? ["has handled no event that the kernel remembers"] : last.map(handledText),
  };
}

function handledText({ kind, type, id, outcome = "is being handled", tookMs }: HandlingView): string {
  return `${kind} ${type} (${id}): ${outcome}${tookMs === undefined ? "" : ` in ${tookMs.toFixed(1)} ms`}`;
}

/** For a stopped kernel: the inputs of the node's last recorded run, and whether they have changed since. */
export async function explainRecordedNode(
  call: VerbCall,
  store: KernelStore,
  name: string,
): Promise<Explanation | undefined> {
  const found = await Promise.all((await spacesOf(call)).map((space) => store.basis(space, [name])));
  const [basis] = found.flat();
  if (!basis) return undefined;
  const moved = basis.inputs.filter((input) => input.moved).map(({ id }) => id);
  return {
    ...{ kind: "node", name },
    verdict:
      moved.length === 0
        ? "is up to date: its inputs have not changed since its last run; no kernel is running"
        : `will run when a kernel runs and it is observed: ${moved.join(", ")} changed since its last run`,
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
