/**
 * Finds the message whose handling last wrote to a place: its commit has a receipt with the message id in its name.
 * Reads the change feed, newest first, so it works on a stopped kernel's file too. SPEC: K73.
 */

import { FEED_PAGE_COMMITS } from "../limits.ts";
import { placeText } from "../message/path.ts";
import type { DocumentPatch } from "../store/commit.ts";
import { type Invocation, invocationOf } from "../store/receipt-name.ts";
import type { KernelStore } from "./open-store.ts";
import { concerns } from "./run-log.ts";

export interface Writer {
  /** The sequence of the commit. */
  readonly sequence: number;
  /** Undefined if plain code wrote it, outside of a transactional handler. */
  readonly invocation?: Invocation;
}

/** Undefined if the place was not written, or the change feed does not reach back. */
export async function lastWriter(
  store: KernelStore,
  address: string,
  spaces: readonly string[],
): Promise<Writer | undefined> {
  for (const space of spaces) {
    const writer = await lastWriterIn(store, address, space);
    if (writer !== undefined) return writer;
  }
  return undefined;
}

async function lastWriterIn(store: KernelStore, address: string, space: string): Promise<Writer | undefined> {
  const { sequence: head } = await store.load(space, []);
  for (let before = head; before > 0; before -= FEED_PAGE_COMMITS) {
    const after = Math.max(0, before - FEED_PAGE_COMMITS);
    const { commits } = await store.changesSince(space, after, FEED_PAGE_COMMITS);
    const writer = commits.findLast(({ patches }) => patches.some((patch) => writes(patch, address)));
    if (writer) {
      const invocation = writer.patches.map(({ id }) => invocationOf(id)).find((found) => found !== undefined);
      return { sequence: writer.sequence, ...(invocation ? { invocation } : {}) };
    }
    if (commits.length === 0) return undefined;
  }
  return undefined;
}

function writes({ scope, id, operations }: DocumentPatch, address: string): boolean {
  const document = scope === "space" ? id : `${scope}:${id}`;
  return operations.some(({ path }) => concerns(placeText(document, path), address));
}
