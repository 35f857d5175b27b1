/**
 * The workload that all crash tests share, and its traces. One commit handles an event of topic `work`, and must leave
 * all of its traces or none: a receipt document (absent before), an increment of a counter, an effect in the journal, a
 * due row, and the settled event. So at any moment the receipts of a counter equal its count.
 */
import type { Message } from "../../src/message/envelope.ts";
import type { Json, JsonObject } from "../../src/message/json.ts";
import type { CommitOutcome, CommitRequest, DocumentPatch } from "../../src/store/commit.ts";
import type { DocumentRef } from "../../src/store/document.ts";
import type { Claim, JournalEntry, JournalRow } from "../../src/store/journal.ts";
import type { Store } from "../../src/store/store.ts";

export const SPACE = "crash";
export const TIMER = "timer";
/** Counters that are counted on side by side. */
export const LANES = 3;
/** Handled with a receipt, or settled by a bare `settle`. */
export type Topic = "work" | "plain";

export interface Published {
  readonly id: string;
  readonly topic: Topic;
  /** Unique in the run, so that its bytes can be found again. */
  readonly text: string;
}

export function entryOf(event: Published): JournalEntry {
  return {
    message: messageOf("event", event.id, { text: event.text }),
    topic: event.topic,
    source: "crash-test",
    as: { status: "pending" },
  };
}

/** The published event, from its journal row. */
export function publishedIn(row: JournalRow): Published {
  const id = row.message?.metadata.id;
  if (id === undefined) throw new Error(`journal row ${row.id} is unreadable: ${row.unreadable}`);
  return { id, topic: row.topic === "plain" ? "plain" : "work", text: String(textOf(row)) };
}

export function textOf(row: JournalRow): Json | undefined {
  return (row.message?.data as JsonObject | undefined)?.["text"];
}

export function receiptOf(eventId: string): DocumentRef {
  return { scope: "space", id: `receipt/${eventId}` };
}

export function counterOf(lane: number): DocumentRef {
  return { scope: "space", id: `counter:${lane}` };
}

export function effectIdOf(eventId: string): string {
  return `effect-of-${eventId}`;
}

/** The traces of a due row that came due: its own commit takes the row and writes both. */
export function firedOf(eventId: string): DocumentRef {
  return { scope: "space", id: `fired:${eventId}` };
}
export function firedIdOf(eventId: string): string {
  return `fired-${eventId}`;
}

export function countIn(value: Json | undefined): number {
  return value === undefined ? 0 : ((value as JsonObject)["count"] as number);
}

/** Numbers the commits of one session. */
export class Author {
  readonly session: string;
  #made = 0;

  constructor(session: string) {
    this.session = session;
  }

  request(parts: Partial<CommitRequest>): CommitRequest {
    const localSequence = ++this.#made;
    return {
      session: this.session,
      localSequence,
      digest: `${this.session}/${localSequence}`,
      space: SPACE,
      reads: [],
      patches: [],
      preconditions: [],
      dependsOn: [],
      entries: [],
      settlements: [],
      due: [],
      basis: [],
      basisRemoved: [],
      labels: [],
      ...parts,
    };
  }
}

/** Handles a claimed event. Callers that share a lane must expect `stale`, and try again. */
export async function handle(
  store: Store,
  author: Author,
  claim: Claim,
  event: Published,
  lane: number,
): Promise<CommitOutcome> {
  return store.commit(await handlingOf(store, author, claim, event, lane));
}

/** The commit that `handle` makes, for a test that needs the moment between. */
export async function handlingOf(
  store: Store,
  author: Author,
  claim: Claim,
  event: Published,
  lane: number,
): Promise<CommitRequest> {
  const counter = counterOf(lane);
  const loaded = await store.load(SPACE, [counter]);
  const count = countIn(loaded.documents[0]?.value) + 1;
  const counted: DocumentPatch =
    count === 1
      ? { ...counter, operations: [{ op: "set", path: [], value: { count, last: event.text } }] }
      : {
          ...counter,
          operations: [
            { op: "set", path: ["count"], value: count },
            { op: "set", path: ["last"], value: event.text },
          ],
        };
  const receipt = receiptOf(event.id);
  return author.request({
    reads: [{ ...counter, path: ["count"], depth: "deep", sequence: loaded.sequence }],
    preconditions: [{ kind: "absent", ...receipt }],
    patches: [
      { ...receipt, operations: [{ op: "set", path: [], value: { event: event.id, lane, text: event.text } }] },
      counted,
    ],
    // A command, so that claims of events do not take it, and its presence is conclusive.
    entries: [
      {
        message: messageOf("command", effectIdOf(event.id), { text: event.text }),
        topic: "effect",
        source: "crash-test",
        as: { status: "pending" },
      },
    ],
    due: [{ op: "put", kind: TIMER, key: event.id, dueAtMs: 1_000, data: { text: event.text } }],
    settlements: [{ id: claim.row.id, lease: claim.lease, attempt: claim.attempt, outcome: { kind: "done" } }],
  });
}

/** Acts on the due row that handling left. */
export function firingOf(author: Author, eventId: string, text: string): CommitRequest {
  return author.request({
    patches: [{ ...firedOf(eventId), operations: [{ op: "set", path: [], value: { text } }] }],
    entries: [
      {
        message: messageOf("command", firedIdOf(eventId), { text }),
        topic: "fired",
        source: "crash-test",
        as: { status: "pending" },
      },
    ],
    due: [{ op: "take", kind: TIMER, key: eventId }],
  });
}

export function ledgerOf(half: "a" | "b"): DocumentRef {
  return { scope: "space", id: `ledger:${half}` };
}

function messageOf(kind: Message["kind"], id: string, data: Json): Message {
  return { kind, type: "Crash.Tested", data, metadata: { id, timestamp: 1 } };
}
