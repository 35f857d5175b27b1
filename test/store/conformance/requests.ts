/** Requests of the suite: all parts are empty except the part under test. */
import { expect } from "#test";
import type { Message } from "../../../src/message/envelope.ts";
import type { Json } from "../../../src/message/json.ts";
import type { Path } from "../../../src/message/path.ts";
import type { CommitOutcome, CommitRequest, Committed, DocumentPatch, ReadClaim } from "../../../src/store/commit.ts";
import { type DocumentRef, SHARED_SCOPE } from "../../../src/store/document.ts";
import type { Claim, JournalEntry, JournalRow, Settlement } from "../../../src/store/journal.ts";
import type { ReadDepth } from "../../../src/store/path-operation.ts";
import type { AppendOutcome, Store } from "../../../src/store/store.ts";
import { START_MS } from "../controlled-host.ts";

export const SPACE = "home";

export function ref(id: string): DocumentRef {
  return { scope: SHARED_SCOPE, id };
}

export function commitBy(session: string, localSequence: number, parts: Partial<CommitRequest> = {}): CommitRequest {
  return {
    space: SPACE,
    session,
    localSequence,
    digest: JSON.stringify(parts),
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

export function set(id: string, path: Path, value: Json): DocumentPatch {
  return { ...ref(id), operations: [{ op: "set", path, value }] };
}

export function remove(id: string, path: Path): DocumentPatch {
  return { ...ref(id), operations: [{ op: "delete", path }] };
}

export function splice(id: string, path: Path, index: number, removed: number, insert: Json[]): DocumentPatch {
  return { ...ref(id), operations: [{ op: "splice", path, index, remove: removed, insert }] };
}

export function read(id: string, path: Path, sequence: number, depth: ReadDepth = "deep"): ReadClaim {
  return { ...ref(id), path, depth, sequence };
}

/** Commits patches as a session of their own, so that they are foreign to every other session. */
export async function write(store: Store, ...patches: DocumentPatch[]): Promise<Committed> {
  return committed(await store.commit(commitBy(`writer ${uniqueNumber()}`, 1, { patches })));
}

export async function currentValue(store: Store, id: string, space = SPACE): Promise<Json | undefined> {
  const { documents } = await store.load(space, [ref(id)]);
  return documents[0]?.value;
}

export function committed(outcome: CommitOutcome): Committed {
  expect(outcome).toMatchObject({ kind: "committed" });
  return outcome as Committed;
}

let lastNumber = 0;

/** Names need not repeat from run to run: they are compared with themselves only. */
function uniqueNumber(): number {
  return ++lastNumber;
}

export interface MessageParts {
  readonly id?: string;
  readonly kind?: Message["kind"];
  readonly data?: Json;
  readonly correlation?: string;
  readonly causation?: string;
}

export function message({ id, kind = "event", data = null, correlation, causation }: MessageParts = {}): Message {
  return {
    kind,
    type: "Test.Happened",
    data,
    metadata: {
      id: id ?? `message ${uniqueNumber()}`,
      timestamp: START_MS,
      ...(correlation === undefined ? {} : { correlation }),
      ...(causation === undefined ? {} : { causation }),
    },
  };
}

export function entry(parts: MessageParts = {}, as: JournalEntry["as"] = { status: "pending" }): JournalEntry {
  return { message: message(parts), topic: "test.happened", source: "suite", as };
}

export function entries(count: number): JournalEntry[] {
  return Array.from({ length: count }, () => entry());
}

export async function append(store: Store, ...list: JournalEntry[]): Promise<readonly number[]> {
  return idsOf(await store.append(list));
}

export function idsOf(outcome: AppendOutcome): readonly number[] {
  expect(outcome).toMatchObject({ kind: "appended" });
  return outcome.kind === "appended" ? outcome.ids : [];
}

export async function rowOf(store: Store, id: number): Promise<JournalRow> {
  const rows = await store.query({ id, limit: 10 });
  expect(rows.length).toBe(1);
  return rows[0]!;
}

/** A lease that outlives every test, and claims of events under it. */
export async function claimUnderNewLease(store: Store, limit: number): Promise<readonly Claim[]> {
  const { lease } = await store.openLease(1_000_000);
  return store.claim({ lease, limit, kinds: ["event"] });
}

export function claimedIds(claims: readonly Claim[]): number[] {
  return claims.map((claim) => claim.row.id);
}

export function settlement({ row, lease, attempt }: Claim, outcome: Settlement["outcome"]): Settlement {
  return { id: row.id, lease, attempt, outcome };
}
