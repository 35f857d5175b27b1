/**
 * `millrace why <x>`: explains a node, an event, a request, a cell, a capability or a subscriber. Asks the running
 * kernel and reads the file; for a stopped kernel only the file. SPEC: K42, K73.
 */
import { systemHost } from "../host/system-host.ts";
import type { GraphView, HandlingView, PendingView, WhyView, WorkView } from "../kernel/inspect-capability.ts";
import { type KernelStore, openStoreForReading } from "../kernel/open-store.ts";
import { Failure } from "../message/error-data.ts";
import { nearWord } from "../message/near-word.ts";
import { askIfRunning } from "./connection.ts";
import { existingStore } from "./database-file.ts";
import {
  type Explanation,
  explainCapability,
  explainCell,
  explainHandlings,
  explainNode,
  explainPending,
  explainRecordedNode,
  explainRow,
  explainSubscriber,
  explainWork,
  workLines,
} from "./explanation.ts";
import type { JournalLine } from "./journal-lines.ts";
import { handlingsOf } from "./story.ts";
import { EXIT, type ExitCode, JSON_OPTION, UsageError, type Verb, type VerbCall } from "./verb.ts";

export const why: Verb = {
  name: "why",
  usage: "<node | event | request | cell | capability | subscriber> [--json]",
  summary: "explain a node, an event, a request, a cell, a capability or a subscriber: where it stands, and why",
  example: "millrace why totals\nmillrace why 12\nmillrace why 019a8b5c-6d7e-7f80-8a9b-0c1d2e3f4a5b",
  options: { json: JSON_OPTION },
  wordsMax: 1,
  run,
};

async function run(call: VerbCall): Promise<ExitCode> {
  const { words, options, environment, terminal } = call;
  const [name] = words;
  if (name === undefined)
    throw new UsageError("name a node, a cell, a capability, a subscriber, or the id of an event or request");
  await using store = await openStoreForReading(systemHost(), existingStore(undefined, environment));
  const explanation = await explain(call, store, name);
  if (!explanation) {
    terminal.complain(
      `there is no event, request, cell, capability, subscriber or recorded node ${name}; ${await meantNode(call, name)}see "millrace ls"`,
    );
    return EXIT.failed;
  }
  if (options["json"]) terminal.line(JSON.stringify(explanation));
  else {
    terminal.line(`${terminal.strong(`${explanation.kind} ${explanation.name}`)}   ${explanation.verdict}`);
    for (const line of explanation.because) terminal.line(`  ${line}`);
  }
  return EXIT.ok;
}

async function explain(call: VerbCall, store: KernelStore, name: string): Promise<Explanation | undefined> {
  const row = await findRow(store, name);
  const work = await workOf(call, row?.message?.metadata.id ?? name);
  if (row) return withWork(await explainRow(call, store, row), work);
  const remembered = explainHandlings(name, await handlingsOf(call, [name]));
  const waiting = await askIfRunning<{ requests: readonly PendingView[] }>(call, "Kernel.Requests");
  const request = waiting?.requests.find(({ id }) => id === name);
  if (request) return withWork(explainPending(request), work);
  if (remembered) return withWork(remembered, work);
  if (work.length > 0) return explainWork(work);
  if (!waiting) return (await explainRecordedNode(call, store, name)) ?? explainCell(call, store, name, undefined);
  const node = await askAboutNode(call, name);
  if (node) return explainNode(call, store, node);
  const graph = await askIfRunning<GraphView>(call, "Kernel.Graph");
  const handler = await explainHandler(call, name, graph);
  const cell = await explainCell(call, store, name, graph);
  if (!handler || !cell) return handler ?? cell;
  return { ...handler, because: [...handler.because, `a cell of this name ${cell.verdict}`, ...cell.because] };
}

/** The running handlers of a message. */
async function workOf(call: VerbCall, id: string): Promise<readonly WorkView[]> {
  const answer = await askIfRunning<{ work: readonly WorkView[] }>(call, "Kernel.Work");
  return answer?.work.filter((one) => one.id === id) ?? [];
}

function withWork(explanation: Explanation, work: readonly WorkView[]): Explanation {
  return { ...explanation, because: [...workLines(work), ...explanation.because] };
}

async function explainHandler(
  call: VerbCall,
  name: string,
  graph: GraphView | undefined,
): Promise<Explanation | undefined> {
  const capability = graph?.capabilities.find((view) => view.name === name);
  const subscribers = graph?.subscribers.filter((view) => view.name === name) ?? [];
  if (!capability && subscribers.length === 0) return undefined;
  const answer = await askIfRunning<{ handlings: readonly HandlingView[] }>(call, "Kernel.Handlings", {
    handler: name,
  });
  const last = answer?.handlings ?? [];
  return capability ? explainCapability(capability, last) : explainSubscriber(subscribers, last);
}

async function meantNode(call: VerbCall, name: string): Promise<string> {
  const graph = await askIfRunning<GraphView>(call, "Kernel.Graph");
  const near = nearWord(name, graph?.nodes.map(({ id }) => id) ?? []);
  return near === undefined ? "" : `did you mean ${near}? `;
}

async function findRow(store: KernelStore, name: string): Promise<JournalLine | undefined> {
  const query = /^\d{1,15}$/.test(name) ? { id: Number(name) } : { messageId: name };
  return (await store.query({ ...query, limit: 1 }))[0];
}

async function askAboutNode(call: VerbCall, node: string): Promise<WhyView | undefined> {
  try {
    return await askIfRunning<WhyView>(call, "Kernel.Why", { node });
  } catch (error) {
    if (error instanceof Failure && error.code === 404) return undefined;
    throw error;
  }
}
