/** Erases the data of a subject from a memory disk, like `sqlite/erase.ts`. SPEC: S135-S137, S145. */
import { ERASE_LEFT_MAX } from "../../limits.ts";
import type { Message, Metadata } from "../../message/envelope.ts";
import type { JsonObject } from "../../message/json.ts";
import type { DocumentRef } from "../document.ts";
import { digestIn, type Erased, type EraseRequest, mentions, tombstone } from "../erase.ts";
import { invocationOf, isReceiptName } from "../receipt-name.ts";
import type { DocumentDisk } from "./document-disk.ts";
import { type JournalRecord, messageOf } from "./journal-record.ts";
import type { SpaceTable } from "./space-table.ts";

const ERASED = "erased";

interface FoundRows {
  readonly rows: readonly JournalRecord[];
  /** The row of the message that asks for the erasure. */
  readonly asking: JournalRecord | undefined;
  /** Ids of messages whose receipts lose their results. */
  readonly messages: ReadonlySet<string>;
  readonly unsettled: number;
}

export function eraseFrom(disk: DocumentDisk, request: EraseRequest): Erased {
  const { subject, apply } = request;
  const found = findRows(disk, request);
  const left: string[] = [];
  let [documents, receipts] = [0, 0];
  for (const [name, space] of disk.spaces) {
    const inSpace = findDocuments(space, name, subject, found.messages, left);
    documents += inSpace.named.length;
    receipts += inSpace.receipts.length;
    if (apply) space.erase(inSpace.named, inSpace.receipts);
  }
  if (apply) for (const record of [...found.rows, ...(found.asking ? [found.asking] : [])]) eraseRow(record);
  const due = disk.tables.due
    .due(Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)
    .filter(({ key, data }) => mentions(key, subject) || mentions(JSON.stringify(data), subject)).length;
  return { documents, rows: found.rows.length, receipts, left: { unsettled: found.unsettled, due, documents: left } };
}

function findRows(disk: DocumentDisk, { subject, askedBy }: EraseRequest): FoundRows {
  const rows: JournalRecord[] = [];
  const messages = new Set<string>();
  let [asking, unsettled]: [JournalRecord | undefined, number] = [undefined, 0];
  for (const record of disk.tables.journal.records()) {
    const { causation, correlation = "", state, messageId } = record;
    const { data, metadata } = messageOf(record);
    const texts = [JSON.stringify(data), JSON.stringify(furtherOf(metadata)), correlation];
    texts.push(state.error ?? "", state.ending?.reason ?? "");
    const isCaused = causation !== undefined && messages.has(causation);
    if (!isCaused && !texts.some((one) => mentions(one, subject))) continue;
    if (messageId === askedBy) asking = record;
    else if (state.status !== "done" && state.status !== "failed") unsettled++;
    else {
      messages.add(messageId);
      if (digestIn(data) === undefined) rows.push(record);
    }
  }
  return { rows, asking, messages, unsettled };
}

function findDocuments(
  space: SpaceTable,
  name: string,
  subject: string,
  messages: ReadonlySet<string>,
  left: string[],
): { readonly named: readonly DocumentRef[]; readonly receipts: readonly DocumentRef[] } {
  const [named, receipts]: [DocumentRef[], DocumentRef[]] = [[], []];
  for (const [ref, { value }] of space.documents()) {
    const isInValue = () => value !== undefined && mentions(JSON.stringify(value), subject);
    if (isReceiptName(ref.id)) {
      const { id = "" } = invocationOf(ref.id) ?? {};
      if (messages.has(id) || isInValue()) receipts.push(ref);
    } else if (mentions(ref.id, subject) || mentions(ref.scope, subject)) named.push(ref);
    else if (left.length < ERASE_LEFT_MAX && isInValue()) left.push(`${name}/${ref.scope}/${ref.id}`);
  }
  return { named, receipts };
}

function eraseRow(record: JournalRecord): void {
  const { data, metadata, ...message } = messageOf(record);
  const erased: Message = { ...message, data: tombstone(data), metadata: erasedMetadata(metadata) };
  record.text = JSON.stringify(erased);
  const { error, ending } = record.state;
  record.state = {
    ...record.state,
    error: error === undefined ? undefined : ERASED,
    ending: ending && { ...ending, reason: ERASED },
  };
  for (const [subscriber, delivery] of record.deliveries)
    if (delivery.error !== undefined) record.deliveries.set(subscriber, { ...delivery, error: ERASED });
}

/** Id, time and lineage stay; a tombstone takes the place of the other keys. */
function erasedMetadata(metadata: Metadata): Metadata {
  const { id, timestamp, correlation, causation } = metadata;
  const further = furtherOf(metadata);
  const rest = Object.keys(further).length === 0 ? {} : (tombstone(further) as JsonObject);
  return {
    id,
    timestamp,
    ...(correlation === undefined ? {} : { correlation }),
    ...(causation === undefined ? {} : { causation }),
    ...rest,
  };
}

function furtherOf({ id, timestamp, correlation, causation, ...further }: Metadata): JsonObject {
  return further as JsonObject;
}
