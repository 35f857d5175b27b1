/**
 * Writes as the writer's queue holds them: checked, copied and encoded when they are asked for.
 *
 * Commits, appends and settlements are batched (`Batch`). A claim is a batch of its own. Other jobs are rare: each runs
 * its statements in a transaction of its own.
 */
import { ADMITTED, type CommitOutcome, type CommitRequest } from "../commit.ts";
import type { Settlement } from "../journal.ts";
import { type SizedPatch, sizedPatches } from "../memory/space-table.ts";
import type { Rejection } from "../rejection.ts";
import { checkCommit, checkPreconditions, checkSettlements } from "../request-check.ts";
import { type EncodedEntry, encodeEntries } from "../sqlite/journal-entry.ts";
import type { AppendOutcome, SettleResult } from "../store.ts";
import type { DatabaseLink } from "./link.ts";

/** Receives the result of a job, or its error. */
export type Answer<T> = (answer: T | Error) => void;

export interface CommitJob {
  readonly kind: "commit";
  readonly request: CommitRequest;
  readonly patches: readonly SizedPatch[];
  readonly entries: readonly EncodedEntry[];
  readonly bytes: number;
  readonly answer: Answer<CommitOutcome>;
}

export interface AppendJob {
  readonly kind: "append";
  readonly entries: readonly EncodedEntry[];
  readonly bytes: number;
  readonly answer: Answer<AppendOutcome>;
}

export interface SettleJob {
  readonly kind: "settle";
  readonly settlements: readonly Settlement[];
  readonly bytes: number;
  readonly answer: Answer<readonly SettleResult[]>;
}

/** A statement whose function takes the writer's turn itself (`claim_v1`). `read` converts its answer. */
export interface CallJob {
  readonly kind: "call";
  readonly call: "claim_v1";
  readonly argument: string;
  readonly parks: false;
  readonly bytes: number;
  readonly answer: Answer<string>;
}

/** Statements in a transaction of their own. Run again if the connection is lost, so they must not touch memory. */
export interface StatementsJob {
  readonly kind: "statements";
  readonly run: (link: DatabaseLink, nowMs: number) => Promise<unknown>;
  /** The kind of change that other kernels are told of. */
  readonly touches: "journal" | "spaces" | "nothing";
  /** Whether it waits while the database is away. The answer of others would be too old: they fail. */
  readonly parks: boolean;
  readonly bytes: number;
  readonly answer: Answer<unknown>;
}

/** Moves events that the user's transactions have published to the journal. Answers whether more rows wait. */
export interface OutboxJob {
  readonly kind: "outbox";
  readonly parks: false;
  readonly bytes: 0;
  readonly answer: Answer<boolean>;
}

export type BatchedJob = CommitJob | AppendJob | SettleJob;
export type Job = BatchedJob | CallJob | StatementsJob | OutboxJob;

/** Throws for data that no backend can hold; returns a rejection if it is too large. */
export function commitJob(
  given: CommitRequest,
  nowMs: number,
  payloadBytesMax: number,
  answer: Answer<CommitOutcome>,
): CommitJob | Rejection {
  if (given.admitted === ADMITTED) {
    checkPreconditions(given.preconditions);
    checkSettlements(given.settlements);
  } else checkCommit(given);
  const encoded = encodeEntries(given.entries, nowMs, payloadBytesMax);
  if (encoded.kind === "rejected") return encoded;
  const request = given.admitted === ADMITTED ? given : ownCopy(given);
  const patches = sizedPatches(request.patches);
  let { bytes } = encoded;
  for (const statement of request.statements ?? []) bytes += JSON.stringify(statement).length;
  for (const patch of patches) bytes += patch.bytes;
  return { kind: "commit", request, patches, entries: encoded.entries, bytes, answer };
}

/** The caller may change its lists afterwards. Entries are encoded already. */
function ownCopy(request: CommitRequest): CommitRequest {
  const { admitted: _, entries: __, preconditions, ...rest } = request;
  const own = structuredClone(rest);
  return { ...own, entries: [], preconditions: preconditions.map((condition) => ({ ...condition })) };
}
