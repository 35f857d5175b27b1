/**
 * `millrace ls <kind>`: lists items, one line each. Kinds in the store file are read from it, also without a kernel;
 * the others are asked from the running kernel. SPEC: K41.
 */

import { nearWord } from "../message/near-word.ts";
import { FILTER_OPTION } from "./filter-option.ts";
import { table } from "./journal-lines.ts";
import { consumerListing, kernels } from "./list-database.ts";
import { events, failureGroupList, failureListing, requests } from "./list-journal.ts";
import { actors, extensions, nodes, types, work } from "./list-kernel.ts";
import { documents, timers } from "./list-stored.ts";
import type { Listing } from "./listing.ts";
import { EXIT, type ExitCode, JSON_OPTION, UsageError, type Verb, type VerbCall } from "./verb.ts";

// Each listing has its own item type, which only its own `cells` reads.
// biome-ignore lint/suspicious/noExplicitAny: a list of listings can only say "some listing"
const KINDS: Readonly<Record<string, Listing<any>>> = {
  events,
  requests,
  documents,
  actors,
  nodes,
  work,
  timers,
  failures: failureListing,
  "failure-groups": failureGroupList,
  extensions,
  types,
  consumers: consumerListing,
  kernels,
};
const NAMES = Object.keys(KINDS);

export const ls: Verb = {
  name: "ls",
  usage: `${NAMES.join("|")} [--status S] [--topic T] [--filter F] [--space S] [--prefix P] [--limit N] [--json]`,
  summary: "list rows of the store, or parts of the running kernel",
  example: "millrace ls events --status failed --limit 5\nmillrace ls documents --prefix tasks/\nmillrace ls nodes",
  options: {
    status: { type: "string", value: "S", about: "events at this status: pending, processing, done or failed" },
    topic: { type: "string", value: "T", about: "events and failures of this topic" },
    filter: FILTER_OPTION,
    space: { type: "string", value: "S", about: "documents of this space; kernel unless given" },
    prefix: {
      type: "string",
      value: "P",
      about: "documents with this start of their name; receipts only by theirs",
    },
    limit: { type: "string", value: "N", about: "at most N rows; 20 unless given" },
    json: JSON_OPTION,
  },
  wordsMax: 1,
  run,
};

async function run(call: VerbCall): Promise<ExitCode> {
  const { words, options, terminal } = call;
  const [kind] = words;
  const listing = kind === undefined ? undefined : KINDS[kind];
  if (!listing) {
    const near = kind === undefined ? undefined : nearWord(kind, NAMES);
    throw new UsageError(
      `${near === undefined ? "" : `did you mean ${near}? `}name the kind to list: ${NAMES.join(", ")}`,
    );
  }
  for (const name of ["status", "topic", "filter", "space", "prefix", "limit"])
    if (options[name] !== undefined && !listing.takes.includes(name))
      throw new UsageError(`--${name} says nothing about ${kind}; usage: millrace ls ${kind} [--json]`);
  const items = await listing.find(call);
  if (options["json"]) for (const item of items) terminal.line(JSON.stringify(item));
  else if (items.length === 0) {
    const meant = await listing.meant?.(call);
    terminal.line(meant === undefined ? `no ${kind}` : `no ${kind}; did you mean ${meant}?`);
  } else for (const line of table([listing.head, ...items.map((item) => listing.cells(item))])) terminal.line(line);
  return EXIT.ok;
}
