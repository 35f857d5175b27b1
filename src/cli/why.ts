/**
 * `millrace why <x>`: why a node ran or did not, why an event stands where it stands, what became of a request. Asks the running kernel where
 * one runs, and reads the file in any case: what it knows of a stopped kernel is what the file says. SPEC: K42.
 */
import { systemHost } from "../host/system-host.ts";
import type { GraphView, PendingView, WhyView } from "../kernel/inspect-capability.ts";
import { type KernelStore, openStoreForReading } from "../kernel/open-store.ts";
import { Failure } from "../message/error-data.ts";
import { nearWord } from "../message/near-word.ts";
import { askIfRunning } from "./connection.ts";
import { existingDatabaseFile } from "./database-file.ts";
import { type Explanation, explainNode, explainPending, explainRecordedNode, explainRow } from "./explanation.ts";
import type { Row } from "./journal-lines.ts";
import { EXIT, type ExitCode, JSON_OPTION, UsageError, type Verb, type VerbCall } from "./verb.ts";

export const why: Verb = {
  name: "why",
  usage: "<node | event | request> [--json]",
  summary: "explain why a node ran or did not, where an event stands, what became of a request",
  example: "millrace why totals\nmillrace why 12\nmillrace why 019a8b5c-6d7e-7f80-8a9b-0c1d2e3f4a5b",
  options: { json: JSON_OPTION },
  wordsMax: 1,
  run,
};

async function run(call: VerbCall): Promise<ExitCode> {
  const { words, options, environment, terminal } = call;
  const [name] = words;
  if (name === undefined) throw new UsageError("name a node, the id of an event, or the id of a request");
  await using store = await openStoreForReading(systemHost(), existingDatabaseFile(undefined, environment));
  const explanation = await explain(call, store, name);
  if (!explanation) {
    terminal.complain(
      `nothing is called ${name}: no event or request in the journal, and no node that is known (a stopped kernel's only if their last run was recorded); ${await meantNode(call, name)}see "millrace ls"`,
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
  if (row) return explainRow(call, store, row);
  const waiting = await askIfRunning<{ requests: readonly PendingView[] }>(call, "Kernel.Requests");
  const request = waiting?.requests.find(({ id }) => id === name);
  if (request) return explainPending(request);
  // A running kernel knows its nodes; what it does not know is none.
  const node = waiting && (await askAboutNode(call, name));
  if (waiting) return node && explainNode(node);
  return explainRecordedNode(store, name);
}

async function meantNode(call: VerbCall, name: string): Promise<string> {
  const graph = await askIfRunning<GraphView>(call, "Kernel.Graph");
  const near = nearWord(name, graph?.nodes.map(({ id }) => id) ?? []);
  return near === undefined ? "" : `did you mean ${near}? `;
}

async function findRow(store: KernelStore, name: string): Promise<Row | undefined> {
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
