/**
 * One journal row in memory: its constant fields and its state. `docs/decisions/0002-the-store.md` has the state
 * diagram; each transition is one function here that returns the next state. SPEC: J13, J17, J22-J27.
 */
import { EVENT_SUSPECT_DEATHS } from "../../limits.ts";
import { causationOf, type Message } from "../../message/envelope.ts";
import type {
  Conclusion,
  Delivery,
  Ending,
  JournalEntry,
  JournalQuery,
  JournalRow,
  JournalStatus,
  Settlement,
} from "../journal.ts";

/** Never reached: the row waits for consumers. */
export const PARKED_MS = Number.POSITIVE_INFINITY;

export interface JournalState {
  readonly status: JournalStatus;
  /** Number of claims; a release subtracts its own. */
  readonly attempts: number;
  /**
   * How often a lease expired while it held the row, since it was last settled or requeued; for a suspect, only after
   * its handling had begun.
   */
  readonly deaths: number;
  /**
   * Reported by its holder: handling of a suspect begins (`begun`), or graceful shutdown with a running handler
   * (`left`).
   */
  readonly said: "nothing" | "begun" | "left";
  /** Set while `processing`. */
  readonly lease: number | undefined;
  /**
   * Set while `pending` after a retry; not claimable until it is released. `PARKED_MS`: only for consumers in its
   * deliveries.
   */
  readonly nextAttemptAtMs: number | undefined;
  /** Set while `done` or `failed`. */
  readonly processedAtMs: number | undefined;
  /** The error of a failure or of a pending retry. */
  readonly error: string | undefined;
  /** Set for a done row that was not simply handled. */
  readonly ending: Ending | undefined;
}

/** The place of a row: its id, its lane, and the id of the row that the lane had before it; 0 for the first. */
interface RowPlace {
  readonly id: number;
  readonly lane: number;
  readonly previous: number;
}

export interface JournalRecord extends RowPlace {
  readonly topic: string;
  readonly source: string;
  /** The message as JSON text. */
  text: string;
  readonly messageId: string;
  readonly kind: Message["kind"];
  readonly type: string;
  readonly correlation: string | undefined;
  readonly causation: string | undefined;
  readonly createdAtMs: number;
  state: JournalState;
  /** By subscriber. */
  readonly deliveries: Map<string, Delivery>;
}

/** Whether a settled row may have missed a consumer: it failed, or it is done as unheard. */
export function isRequeueable({ status, ending }: JournalState, even: "done" | undefined): boolean {
  return status === "failed" || (status === "done" && (ending?.outcome === "unheard" || even === "done"));
}

export function newRecord({ id, lane, previous }: RowPlace, entry: JournalEntry, nowMs: number): JournalRecord {
  const { message, topic, source } = entry;
  return {
    id,
    lane,
    previous,
    topic,
    source,
    text: JSON.stringify(message),
    messageId: message.metadata.id,
    kind: message.kind,
    type: message.type,
    correlation: message.metadata.correlation,
    causation: causationOf(message),
    createdAtMs: nowMs,
    state: initialState(entry.as, nowMs),
    deliveries: new Map(),
  };
}

export function messageOf(record: JournalRecord): Message {
  return JSON.parse(record.text);
}

export function rowOf(record: JournalRecord): JournalRow {
  const { id, lane, topic, source, createdAtMs, state } = record;
  const { status, attempts, deaths, lease, nextAttemptAtMs, processedAtMs, error, ending } = state;
  return {
    id,
    ...(lane === 0 ? {} : { lane }),
    topic,
    source,
    message: messageOf(record),
    status,
    createdAtMs,
    attempts,
    ...(deaths === 0 ? {} : { deaths }),
    ...(processedAtMs === undefined ? {} : { processedAtMs }),
    ...(error === undefined ? {} : { error }),
    ...ending,
    ...(nextAttemptAtMs === undefined || nextAttemptAtMs === PARKED_MS ? {} : { nextAttemptAtMs }),
    ...(lease === undefined ? {} : { lease }),
    deliveries: [...record.deliveries.values()].map((delivery) => ({ ...delivery })),
  };
}

const PENDING: JournalState = {
  status: "pending",
  attempts: 0,
  deaths: 0,
  said: "nothing",
  lease: undefined,
  nextAttemptAtMs: undefined,
  processedAtMs: undefined,
  error: undefined,
  ending: undefined,
};

function initialState(as: JournalEntry["as"], nowMs: number): JournalState {
  switch (as.status) {
    case "pending":
      return PENDING;
    case "claimed":
      return claimed(PENDING, as.lease);
    case "done":
      return { ...PENDING, status: "done", processedAtMs: nowMs, ending: as.ending };
    case "failed":
      return { ...PENDING, status: "failed", processedAtMs: nowMs, error: as.error };
  }
}

export function isClaimable(state: JournalState): boolean {
  return state.status === "pending" && state.nextAttemptAtMs === undefined;
}

export function claimed(state: JournalState, lease: number): JournalState {
  return {
    ...state,
    status: "processing",
    attempts: state.attempts + 1,
    said: "nothing",
    lease,
    nextAttemptAtMs: undefined,
  };
}

/** Back to pending because its holder gave it up. The attempt counts, because it may have crashed the holder. */
export function abandoned(state: JournalState): JournalState {
  return { ...state, status: "pending", lease: undefined };
}

/** Back to pending because its holder's lease expired. */
export function orphaned(state: JournalState): JournalState {
  return { ...abandoned(state), deaths: deathsAfter(state) };
}

/**
 * A suspect counts a further death only if its handling had begun. A graceful shutdown is no crash, but the next holder
 * must know that a handler may have begun.
 */
function deathsAfter({ said, deaths }: JournalState): number {
  if (said === "left") return Math.max(deaths, 1);
  return said === "begun" || deaths < EVENT_SUSPECT_DEATHS ? deaths + 1 : deaths;
}

export function requeued(state: JournalState): JournalState {
  return { ...PENDING, attempts: state.attempts };
}

/** A dead letter keeps its error. */
export function concluded(state: JournalState, { from, ending }: Conclusion, nowMs: number): JournalState {
  const error = from === "failed" ? state.error : undefined;
  return { ...PENDING, status: "done", attempts: state.attempts, processedAtMs: nowMs, error, ending };
}

/**
 * The state after the message of the row was appended again. A success replaces a failure or refusal; a refusal or
 * failure replaces a refusal. All other entries leave the row unchanged.
 */
export function repeated(state: JournalState, as: JournalEntry["as"], nowMs: number): JournalState | undefined {
  const isRefused = state.status === "done" && state.ending?.outcome === "refused";
  if (as.status !== "done" && as.status !== "failed") return undefined;
  const isSuccess = as.status === "done" && as.ending === undefined;
  if (!isRefused && !(state.status === "failed" && isSuccess)) return undefined;
  return { ...initialState(as, nowMs), attempts: state.attempts };
}

export function retryReleased(state: JournalState): JournalState {
  return { ...state, nextAttemptAtMs: undefined };
}

export function settled(state: JournalState, outcome: Settlement["outcome"], nowMs: number): JournalState {
  const { attempts } = state;
  switch (outcome.kind) {
    case "partial":
      return state;
    case "begun":
    case "left":
      return { ...state, said: outcome.kind };
    case "done":
      return { ...PENDING, status: "done", attempts, processedAtMs: nowMs, ending: outcome.ending };
    case "failed":
      return { ...PENDING, status: "failed", attempts, processedAtMs: nowMs, error: outcome.error };
    case "retry":
      return { ...PENDING, attempts, nextAttemptAtMs: outcome.atMs, error: outcome.error };
    case "waits": {
      // The holder may not have handled it, so the deaths counted so far stay.
      const { deaths } = state;
      return { ...PENDING, attempts, deaths, nextAttemptAtMs: outcome.atMs ?? PARKED_MS, error: outcome.error };
    }
    case "release":
      return { ...abandoned(state), attempts: attempts - 1 };
  }
}

/**
 * Whether a journal row matches a query: every given field must match. SPEC: J29.
 */
export function matches(record: JournalRecord, query: JournalQuery): boolean {
  return (
    holds(query.id, record.id) &&
    holds(query.messageId, record.messageId) &&
    holds(query.status, record.state.status) &&
    holds(query.topic, record.topic) &&
    (query.named === undefined || query.named === record.topic || query.named === record.type) &&
    holds(query.kind, record.kind) &&
    holds(query.correlation, record.correlation) &&
    holds(query.causation, record.causation) &&
    (query.createdFromMs === undefined || record.createdAtMs >= query.createdFromMs) &&
    (query.createdBeforeMs === undefined || record.createdAtMs < query.createdBeforeMs) &&
    isPastCursor(record.id, query)
  );
}

function holds<T>(asked: T | undefined, found: T | undefined): boolean {
  return asked === undefined || asked === found;
}

function isPastCursor(id: number, { cursor, order }: JournalQuery): boolean {
  if (cursor === undefined) return true;
  return order === "descending" ? id < cursor : id > cursor;
}
