/**
 * Introspection of a kernel, for the command and for tools: `Kernel.Graph`, `Kernel.Why`, `Kernel.Runs`,
 * `Kernel.Requests`, `Kernel.Work`, and the queries of `journal-views.ts`,
 * `state-views.ts` and `metrics.ts`.
 * It only reads; actions of operators are in `operator-capability.ts`. SPEC: K40.
 *
 * Data in the store file (events, timers, documents) is read from the file instead.
 */
import type { EventBus } from "../bus/event-bus.ts";
import type { HandlingRing, HandlingView } from "../bus/handling-ring.ts";
import type { Space } from "../cells/space.ts";
import type { Host } from "../host/host.ts";
import {
  GRAPH_NODES_MAX,
  GRAPH_READS_MAX,
  HANDLINGS_ASKED_MAX,
  HANDLINGS_TOLD_MAX,
  RUNS_ASKED_MAX,
  WORK_TOLD_MAX,
} from "../limits.ts";
import type { Capability } from "../loop/capability.ts";
import { capability } from "../loop/define-capability.ts";
import type { EventLoop } from "../loop/event-loop.ts";
import { dataSchema } from "../loop/message-schema.ts";
import { senderText } from "../loop/pending-request.ts";
import { findHandledTypes } from "../loop/schema-types.ts";
import { Failure } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import { isWildcard, matchesTopic } from "../message/topic-pattern.ts";
import type { NodeSnapshot, WhyNot, WhyStep } from "../scheduler/introspection.ts";
import type { CommitIdentity } from "../store/commit.ts";
import type { Store } from "../store/store.ts";
import type { WorkBoard, WorkView } from "../work/work-board.ts";

export { KERNEL_NAMES } from "../app/app-name.ts";

import { journalQueries } from "./journal-views.ts";
import type { KernelHealth } from "./kernel-options.ts";
import { metricsQueries } from "./metrics.ts";
import type { RequestStatus } from "./request-status.ts";
import type { RunLog, TracedCommit } from "./run-log.ts";
import { stateQueries } from "./state-views.ts";

export type { HandlingView, WorkView };

/** Handlings reported for one handler. */
const HANDLINGS_OF_ONE = 5;
/** Limit of the explanation's steps. */
const WHY_STEPS_MAX = 200;

/** The sources of the answers. */
export interface Inspected {
  readonly host: Host;
  readonly bus: EventBus;
  readonly store: Store;
  readonly space: Space;
  readonly runs: RunLog | undefined;
  readonly handlings: HandlingRing | undefined;
  readonly board: WorkBoard;
  /** The topic under which events of a type are journaled. */
  topicOf(type: string): string;
  /** Known only after the loop has booted. */
  loop(): EventLoop;
  requestStatus(id: string): Promise<RequestStatus>;
}

export interface CapabilityView {
  readonly name: string;
  readonly description: string;
  readonly state: string;
  /** `command Shop.Order` */
  readonly handles: readonly string[];
  readonly sends: readonly string[];
  readonly emits: readonly string[];
  readonly subscribes: readonly string[];
  /** Messages that wait in its mailbox. */
  readonly waiting: number;
}

/** Code that subscribes to events directly: `bus.subscribe`, and extensions. */
export interface SubscriberView {
  readonly name: string;
  /** The topic, or the pattern of topics. */
  readonly pattern: string;
  /** Types of events emitted by capabilities that match it. */
  readonly hears: readonly string[];
  /** The name of its delivery in the journal. */
  readonly subscriber: string;
}

export interface GraphView {
  readonly capabilities: readonly CapabilityView[];
  readonly subscribers: readonly SubscriberView[];
  /** The requested page of nodes, with a limited number of reads each. */
  readonly nodes: readonly NodeSnapshot[];
  /** The total number of nodes. */
  readonly nodeCount: number;
}

export interface WhyView {
  readonly node: NodeSnapshot;
  readonly why: readonly WhyStep[];
  readonly whyNot: WhyNot;
}

export interface PendingView {
  readonly id: string;
  readonly kind: string;
  readonly type: string;
  readonly sentAtMs: number;
  /** The capability that has it; undefined before it is routed. */
  readonly capability?: string;
  readonly askedBy: string;
}

export function inspectCapability(inspected: Inspected): Capability {
  return capability({
    description: "the contents of this kernel, and the causes of its actions",
    queries: {
      "Kernel.Graph": {
        description: "capabilities with their messages and subscriptions, and the nodes of the derived state",
        input: pageOfNodes,
        handle: (page: { fromNode?: number } | null) => plain(graph(inspected, page?.fromNode ?? 0)),
      },
      "Kernel.Why": {
        description: "why a node ran last, and why it does not run now",
        input: nodeName,
        handle: ({ node }: { node: string }) => plain(why(inspected.space, node)),
      },
      "Kernel.Runs": {
        description: "the changes of commits, and the nodes that ran because of them",
        input: commitList,
        handle: ({ commits }: { commits: readonly CommitIdentity[] }) => plain({ commits: found(inspected, commits) }),
      },
      ...journalQueries(inspected),
      ...stateQueries(inspected),
      ...metricsQueries(inspected),
      "Kernel.Consumers": {
        description: "declared consumers, where they run, and how many events wait for them",
        handle: async () => plain({ consumers: await inspected.bus.consumers() }),
      },
      "Kernel.Handlings": {
        description: "the last handlings of messages by id, causation or correlation, or of one handler",
        input: handlingQuery,
        handle: (asked: HandlingQuery) => plain({ handlings: handlingsFor(inspected, asked) }),
      },
      "Kernel.Requests": {
        description: "requests that have no answer yet",
        handle: () => plain({ requests: pending(inspected.loop()) }),
      },
      "Kernel.Request": {
        description: "the state of a command by its id, and its answer if a receipt has it",
        input: requestId,
        handle: async ({ id }: { id: string }) => plain(await inspected.requestStatus(id)),
      },
      "Kernel.Work": {
        description: "asynchronous handlers that run, the oldest first",
        handle: () => plain({ work: inspected.board.list(WORK_TOLD_MAX) }),
      },
    },
  });
}

/** Converts read-only data to plain JSON for a message. */
function plain(value: unknown): Json {
  return JSON.parse(JSON.stringify(value));
}

// Answers -----------------------------------------------------------------------------------------------------------

function graph({ loop, space, bus, topicOf }: Inspected, fromNode: number): GraphView {
  const capabilities = [...loop().actors].map(([name, actor]): CapabilityView => {
    const { description, inbound, outbound, subscribes } = actor.capability;
    const out = findHandledTypes(outbound).handles;
    return {
      ...{ name, description, state: actor.state, waiting: actor.mailboxLength },
      handles: findHandledTypes(inbound).handles.map(({ kind, type }) => `${kind} ${type}`),
      sends: out
        .filter(({ kind }) => kind === "command" || kind === "query")
        .map(({ kind, type }) => `${kind} ${type}`),
      emits: out.filter(({ kind }) => kind === "event").map(({ type }) => type),
      subscribes: [...(subscribes ?? [])],
    };
  });
  const all = space.scheduler.getGraphSnapshot();
  const nodes = all.slice(fromNode, fromNode + GRAPH_NODES_MAX).map(readable);
  const emitted = [...new Set(capabilities.flatMap(({ emits }) => emits))];
  const subscribers = bus
    .subscriptions()
    // Subscriptions of capabilities are listed with the capabilities.
    .filter(({ subscriberId }) => !loop().actors.has(subscriberId))
    .slice(0, GRAPH_NODES_MAX)
    .map(({ subscriberId: name, pattern }): SubscriberView => {
      const hears = emitted.filter((type) => matchesTopic(pattern, topicOf(type)));
      return { name, pattern, hears, subscriber: isWildcard(pattern) ? `${name} ${pattern}` : name };
    });
  return { capabilities, subscribers, nodes, nodeCount: all.length };
}

function readable(node: NodeSnapshot): NodeSnapshot {
  return { ...node, reads: node.reads.slice(0, GRAPH_READS_MAX), writes: node.writes.slice(0, GRAPH_READS_MAX) };
}

function why({ scheduler }: Space, id: string): WhyView {
  const node = scheduler.getGraphSnapshot().find((candidate) => candidate.id === id);
  if (!node) throw new Failure(404, `no node is called ${id}; ask Kernel.Graph`);
  return { node: readable(node), why: scheduler.why(id).slice(0, WHY_STEPS_MAX), whyNot: scheduler.whyNot(id) };
}

function found({ runs }: Inspected, commits: readonly CommitIdentity[]): TracedCommit[] {
  return commits.flatMap((commit) => runs?.find(commit) ?? []);
}

function handlingsFor({ handlings }: Inspected, { ids, handler }: HandlingQuery): HandlingView[] {
  if (handler !== undefined) return handlings?.lastOf(handler, HANDLINGS_OF_ONE) ?? [];
  return handlings?.find(new Set(ids), HANDLINGS_TOLD_MAX) ?? [];
}

function pending(loop: EventLoop): PendingView[] {
  return [...loop.pending].map(({ kind, type, metadata, origin, actor }) => ({
    ...{ id: metadata.id, kind, type, sentAtMs: metadata.timestamp },
    ...(actor === undefined ? {} : { capability: actor.name }),
    askedBy: senderText(origin),
  }));
}

// Inputs ------------------------------------------------------------------------------------------------------------

const pageOfNodes = dataSchema<{ fromNode?: number } | null>(
  (data) => {
    const { fromNode } = (data ?? {}) as { fromNode?: unknown };
    if (fromNode === undefined || (Number.isSafeInteger(fromNode) && (fromNode as number) >= 0)) return undefined;
    return "fromNode: must be a whole number from 0 on";
  },
  { type: ["object", "null"], properties: { fromNode: { type: "integer", minimum: 0 } } },
);

const requestId = dataSchema<{ id: string }>(
  (data) => (typeof (data as { id?: unknown } | null)?.id === "string" ? undefined : "id: must be the id of a command"),
  { type: "object", properties: { id: { type: "string" } }, required: ["id"] },
);

const nodeName = dataSchema<{ node: string }>(
  (data) => (typeof (data as { node?: unknown } | null)?.node === "string" ? undefined : "node: must be a node's id"),
  { type: "object", properties: { node: { type: "string" } }, required: ["node"] },
);

interface HandlingQuery {
  readonly ids?: readonly string[];
  readonly handler?: string;
}

const handlingQuery = dataSchema<HandlingQuery>(
  (data) => {
    const { ids, handler } = (data ?? {}) as { ids?: unknown; handler?: unknown };
    if (handler !== undefined) return typeof handler === "string" ? undefined : "handler: must be a name";
    if (!Array.isArray(ids) || ids.length > HANDLINGS_ASKED_MAX)
      return `ids: must be a list of at most ${HANDLINGS_ASKED_MAX}`;
    return ids.every((id) => typeof id === "string") ? undefined : "ids: must be ids of messages";
  },
  { type: "object", properties: { ids: { type: "array", items: { type: "string" } }, handler: { type: "string" } } },
);

const commitList = dataSchema<{ commits: readonly CommitIdentity[] }>(
  (data) => {
    const { commits } = (data ?? {}) as { commits?: unknown };
    if (!Array.isArray(commits) || commits.length > RUNS_ASKED_MAX)
      return `commits: must be a list of at most ${RUNS_ASKED_MAX}`;
    return commits.every(isIdentity) ? undefined : "commits: each must have a session and a localSequence";
  },
  {
    type: "object",
    properties: {
      commits: {
        type: "array",
        items: {
          type: "object",
          properties: { session: { type: "string" }, localSequence: { type: "integer" } },
          required: ["session", "localSequence"],
        },
      },
    },
    required: ["commits"],
  },
);

function isIdentity(value: unknown): value is CommitIdentity {
  const { session, localSequence } = (value ?? {}) as Partial<CommitIdentity>;
  return typeof session === "string" && typeof localSequence === "number";
}

/**
 * `Kernel.Health`: the result of `kernel.health()` for clients and the command. SPEC: K29.
 */
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
