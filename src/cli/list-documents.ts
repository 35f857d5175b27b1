/**
 * `ls documents`: documents of one space by name, with their values, from the file. Receipts only by their prefix.
 */

import { systemHost } from "../host/system-host.ts";
import { KERNEL_SPACE } from "../kernel/commit-story.ts";
import { openDocumentNames } from "../kernel/document-names.ts";
import { type KernelStore, openStoreForReading } from "../kernel/open-store.ts";
import { pathText } from "../message/path.ts";
import { existingStore } from "./database-file.ts";
import { type Listing, readLimit } from "./listing.ts";
import { UsageError, type VerbCall } from "./verb.ts";

/** Longer values are cut. */
const VALUE_CHARACTERS_MAX = 60;

type Loaded = Awaited<ReturnType<KernelStore["load"]>>["documents"][number];

export const documents: Listing<Loaded> = {
  head: ["document", "scope", "sequence", "value", ""],
  takes: ["space", "prefix", "limit"],
  find,
  cells: ({ id, scope, sequence, value, labels }) => [
    ...[id, scope, String(sequence), cut(JSON.stringify(value))],
    labels.map(({ path, labels: names }) => `${pathText(path) || "all of it"} labelled ${names.join(", ")}`).join("; "),
  ],
};

async function find(call: VerbCall): Promise<readonly Loaded[]> {
  const file = existingStore(undefined, call.environment);
  const limit = readLimit(call);
  const space = String(call.options["space"] ?? KERNEL_SPACE);
  await using store = await openStoreForReading(systemHost(), file);
  await using names = await openDocumentNames(file);
  const spaces = await names.spaces();
  if (!spaces.includes(space) && spaces.length > 0)
    throw new UsageError(`there is no space "${space}"; there are: ${spaces.join(", ")}`);
  const found: Loaded[] = [];
  const query = { space, prefix: String(call.options["prefix"] ?? ""), limit };
  for (let page = await names.page({ ...query, after: undefined }); page.length > 0 && found.length < limit; ) {
    const { documents: loaded } = await store.load(space, page);
    // A deleted document still has its name.
    found.push(...loaded.filter(({ value }) => value !== undefined));
    page = await names.page({ ...query, after: page.at(-1) });
  }
  return found.slice(0, limit);
}

function cut(text: string): string {
  return text.length <= VALUE_CHARACTERS_MAX ? text : `${text.slice(0, VALUE_CHARACTERS_MAX - 1)}…`;
}
