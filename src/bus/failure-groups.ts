/**
 * Dead letters in groups of one cause: the same type, subscriber and error, where ids, numbers and quoted texts of the
 * error do not count. SPEC: W85.
 *
 * Reads the newest failed rows, by the index of statuses, within a bound; the journal keeps nothing for it.
 */
import { contentId } from "../message/content-id.ts";
import type { JournalRow } from "../store/journal.ts";
import type { JournalFilter } from "./journal-filter.ts";
import type { JournalReader } from "./journal-pages.ts";
import { scanJournal } from "./journal-scan.ts";

export interface FailureGroup {
  /** The same in each answer, as long as the cause is the same. */
  readonly fingerprint: string;
  readonly type: string;
  /** Absent for commands, and for rows that failed as a whole. */
  readonly subscriber?: string;
  /** The newest error, as it was reported. */
  readonly error: string;
  readonly count: number;
  readonly firstMs: number;
  readonly lastMs: number;
  /** The newest rows. */
  readonly sample: readonly number[];
  readonly correlations: number;
  /** How many failed in each part of `withinMs`, the newest last. */
  readonly buckets: readonly number[];
}

export interface FailureGroups {
  /** The group of the newest failure first. */
  readonly groups: readonly FailureGroup[];
  /** Rows that were read. */
  readonly scanned: number;
  /** Older rows were not read: go on with this cursor. */
  readonly scannedTo?: string;
}

export interface FailureScan {
  readonly filter: JournalFilter;
  readonly cursor?: number;
  /** The time that the buckets divide, up to now. */
  readonly withinMs: number;
  readonly rowsMax: number;
}

const BUCKETS = 24;
const SAMPLES = 5;

interface Growing {
  readonly fingerprint: string;
  readonly type: string;
  readonly subscriber: string | undefined;
  readonly error: string;
  count: number;
  firstMs: number;
  lastMs: number;
  readonly sample: number[];
  readonly correlations: Set<string>;
  readonly buckets: number[];
}

export async function failureGroups(reader: JournalReader, scan: FailureScan): Promise<FailureGroups> {
  const { filter, withinMs, rowsMax } = scan;
  const failed = { ...filter, query: { ...filter.query, status: "failed" } } as const;
  const nowMs = reader.host.now();
  const groups = new Map<string, Growing>();
  let scanned = 0;
  for (let cursor = scan.cursor; ; ) {
    const { rows, next, scannedTo } = await scanJournal(reader, {
      ...{ filter: failed, order: "descending", limit: rowsMax - scanned },
      ...(cursor === undefined ? {} : { cursor }),
    });
    scanned += rows.length;
    for (const row of rows) for (const cause of causesOf(row)) add(groups, row, cause, { nowMs, withinMs });
    cursor = next ?? scannedTo;
    const isOver = cursor === undefined || scanned >= rowsMax || scannedTo !== undefined;
    if (isOver) return answerOf([...groups.values()], scanned, cursor);
    await reader.host.yield();
  }
}

function answerOf(groups: readonly Growing[], scanned: number, cursor: number | undefined): FailureGroups {
  return {
    groups: groups.map(({ subscriber, correlations, ...group }) => ({
      ...group,
      ...(subscriber === undefined ? {} : { subscriber }),
      correlations: correlations.size,
    })),
    scanned,
    ...(cursor === undefined ? {} : { scannedTo: String(cursor) }),
  };
}

interface Cause {
  readonly subscriber: string | undefined;
  readonly error: string;
}

/** One cause for each failed delivery; a command, and an event that was given up, fail as a whole. */
function causesOf({ deliveries, error = "" }: JournalRow): readonly Cause[] {
  const failed = deliveries.filter(({ status }) => status === "failed");
  if (failed.length === 0) return [{ subscriber: undefined, error }];
  return failed.map((delivery) => ({ subscriber: delivery.subscriber, error: delivery.error ?? error }));
}

function add(
  groups: Map<string, Growing>,
  row: JournalRow,
  { subscriber, error }: Cause,
  { nowMs, withinMs }: { readonly nowMs: number; readonly withinMs: number },
): void {
  const type = row.message?.type ?? row.topic;
  const key = JSON.stringify([type, subscriber ?? null, masked(error)]);
  let group = groups.get(key);
  const atMs = row.processedAtMs ?? row.createdAtMs;
  if (group === undefined) {
    const fingerprint = contentId(["failure", key]).slice(0, FINGERPRINT_LENGTH);
    const begun = { count: 0, firstMs: atMs, lastMs: atMs, sample: [], correlations: new Set<string>() };
    group = { fingerprint, type, subscriber, error, ...begun, buckets: new Array<number>(BUCKETS).fill(0) };
    groups.set(key, group);
  }
  group.count++;
  group.firstMs = Math.min(group.firstMs, atMs);
  group.lastMs = Math.max(group.lastMs, atMs);
  if (group.sample.length < SAMPLES) group.sample.push(row.id);
  group.correlations.add(row.message?.metadata.correlation ?? row.message?.metadata.id ?? String(row.id));
  const bucket = BUCKETS - 1 - Math.floor(((nowMs - atMs) * BUCKETS) / withinMs);
  if (bucket >= 0 && bucket < BUCKETS) group.buckets[bucket] = (group.buckets[bucket] ?? 0) + 1;
}

const FINGERPRINT_LENGTH = 16;

/** The text without its ids, quoted parts and numbers. */
export function masked(error: string): string {
  return error
    .replace(/"[^"]*"|'[^']*'|`[^`]*`/g, "…")
    .replace(/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[0-9a-f]{16,}\b/gi, "…")
    .replace(/\d+/g, "…");
}
