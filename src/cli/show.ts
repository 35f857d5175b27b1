/**
 * `millrace show`: one event, request, document, receipt or timer in full, from the file. Without a kind, all kinds are
 * searched. SPEC: K42.
 */
import { systemHost } from "../host/system-host.ts";
import { findDocument, findReceipt } from "../kernel/commit-story.ts";
import { type KernelStore, openStoreForReading } from "../kernel/open-store.ts";
import type { Json } from "../message/json.ts";
import { existingStore } from "./database-file.ts";
import { spacesOf } from "./spaces.ts";
import { EXIT, type ExitCode, JSON_OPTION, UsageError, type Verb, type VerbCall } from "./verb.ts";

/** The order in which an id without a kind is searched. */
const KINDS = ["event", "request", "timer", "receipt", "document"] as const;
type ShownKind = (typeof KINDS)[number];

interface Place {
  readonly id: string;
  /** Where to look, in this order. */
  readonly spaces: readonly string[];
  readonly scope: string;
}

export const show: Verb = {
  name: "show",
  usage: `[${KINDS.join("|")}] <id> [--space S] [--scope S] [--json]`,
  summary: "show one event, request, document, receipt or timer in full",
  example: "millrace show event 12\nmillrace show document tasks/list",
  options: {
    space: { type: "string", value: "S", about: "the space of the document or receipt; all of them unless given" },
    scope: {
      type: "string",
      value: "S",
      about: "the scope of the document; space, which is shared, by default",
    },
    json: JSON_OPTION,
  },
  wordsMax: 2,
  run,
};

async function run(call: VerbCall): Promise<ExitCode> {
  const { words, options, environment, terminal } = call;
  const [first, second] = words;
  if (first === undefined) throw new UsageError(`name the kind to show: ${KINDS.join(", ")}, and its id`);
  if (second === undefined && isKind(first))
    throw new UsageError(`name the ${first} by its id: millrace show ${first} <id>`);
  const kind = second === undefined ? undefined : KINDS.find((name) => name === first);
  if (second !== undefined && kind === undefined)
    throw new UsageError(`${JSON.stringify(first)} is none of ${KINDS.join(", ")}`);
  const spaces = options["space"] === undefined ? await spacesOf(call) : [String(options["space"])];
  const place: Place = { id: second ?? first, spaces, scope: String(options["scope"] ?? "space") };
  await using store = await openStoreForReading(systemHost(), existingStore(undefined, environment));
  for (const candidate of kind === undefined ? KINDS : [kind]) {
    const value = await FIND[candidate](store, place);
    if (value === undefined) continue;
    if (options["json"]) terminal.line(JSON.stringify({ kind: candidate, value }));
    else {
      terminal.line(terminal.strong(`${candidate} ${place.id}`));
      for (const line of JSON.stringify(value, null, 2).split("\n")) terminal.line(line);
    }
    return EXIT.ok;
  }
  const wanted = kind ?? `${KINDS.slice(0, -1).join(", ")} or ${KINDS.at(-1)}`;
  terminal.complain(`there is no ${wanted} ${place.id}; ${kind === "document" ? DOCUMENT_HINT : LIST_HINT}`);
  return EXIT.failed;
}

const LIST_HINT = '"millrace ls" lists events, requests, timers and documents';
const DOCUMENT_HINT = 'a document has the name of its cell; "millrace ls documents" lists them';

function isKind(word: string): boolean {
  return KINDS.some((name) => name === word);
}

const FIND: Readonly<Record<ShownKind, (store: KernelStore, place: Place) => Promise<unknown>>> = {
  event: async (store, { id }) => {
    if (/^\d{1,15}$/.test(id)) return (await store.query({ id: Number(id), limit: 1 }))[0];
    return (await store.query({ messageId: id, kind: "event", limit: 1 }))[0];
  },
  /** A journaled command with the answer in its receipt. */
  request: async (store, { id, spaces }) => {
    const [row] = await store.query({ messageId: id, kind: "command", limit: 1 });
    return row && { ...row, receipt: (await findReceipt(store, id, spaces)) ?? null };
  },
  timer: async (store, { id }) => {
    const rows = await store.dueRows(Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
    return rows.find(({ key }) => key === id);
  },
  receipt: (store, { id, spaces }) => findReceipt(store, id, spaces),
  document: async (store, { id, scope, spaces }): Promise<Json | undefined> => {
    const document = await findDocument(store, { scope, id }, spaces);
    return document && { sequence: document.sequence, value: document.value as Json };
  },
};
