/**
 * The journal for tools: `Kernel.Journal` finds rows by a filter, page by page. Bulk actions use the same filter. SPEC:
 * W80-W83.
 */
import { journalFilter } from "../bus/journal-filter.ts";
import { scanJournal } from "../bus/journal-scan.ts";
import type { Host } from "../host/host.ts";
import { BULK_ROWS_MAX, JOURNAL_ROWS_TOLD_MAX } from "../limits.ts";
import { dataSchema } from "../loop/message-schema.ts";
import { Failure } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import type { JournalQuery, JournalRow } from "../store/journal.ts";
import type { Store } from "../store/store.ts";

/** Whose journal. */
export interface JournalViewParts {
  readonly host: Host;
  readonly store: Store;
}

export interface JournalAsk {
  readonly filter?: string;
  /** `next` or `scannedTo` of the page before. */
  readonly cursor?: string;
  /** Default: the newest rows first. */
  readonly order?: "ascending" | "descending";
  readonly limit?: number;
  /** `line` leaves out the data of the messages. */
  readonly fields?: "row" | "line";
}

/** The page of `Kernel.Journal`. */
export interface JournalView {
  readonly rows: readonly JournalRow[];
  readonly next?: string;
  readonly scannedTo?: string;
  /** The newest row. */
  readonly head: string;
}

const PAGE_ROWS = 100;

export async function journalView(parts: JournalViewParts, asked: JournalAsk): Promise<JournalView> {
  const { order = "descending", limit = PAGE_ROWS, fields = "row" } = asked;
  const filter = journalFilter(asked.filter ?? "", parts.host.now());
  const [newest] = await parts.store.query({ order: "descending", limit: 1 });
  const { rows, next, scannedTo } = await scanJournal(parts, { filter, order, limit, ...cursorIn(asked.cursor) });
  return {
    rows: fields === "line" ? rows.map(withoutData) : rows,
    ...(next === undefined ? {} : { next: String(next) }),
    ...(scannedTo === undefined ? {} : { scannedTo: String(scannedTo) }),
    head: String(newest?.id ?? 0),
  };
}

function withoutData(row: JournalRow): JournalRow {
  const { message } = row;
  return message === undefined ? row : { ...row, message: { ...message, data: null } };
}

export function cursorIn(cursor: string | undefined): { readonly cursor?: number } {
  if (cursor === undefined) return {};
  const id = Number(cursor);
  if (Number.isSafeInteger(id) && id >= 0 && cursor !== "") return { cursor: id };
  throw new Failure(422, "cursor: must be next or scannedTo of an earlier answer");
}

// Bulk actions ------------------------------------------------------------------------------------------------------

export interface BulkAsk {
  readonly filter: string;
  /** Counts, and changes nothing. */
  readonly dryRun?: boolean;
  /** `next` of the step before. */
  readonly cursor?: string;
  /** `upTo` of the first step: rows that came later stay. */
  readonly upTo?: string;
}

/** One step of a bulk action. The caller goes on with `next` and `upTo`, and stops by not going on. */
export interface BulkStep {
  readonly ids: readonly number[];
  readonly next?: string;
  readonly upTo: string;
}

/** The failed rows of one step. */
export async function failedRows(
  parts: JournalViewParts,
  asked: BulkAsk,
  kind: JournalQuery["kind"] | undefined,
): Promise<BulkStep> {
  const upTo = asked.upTo ?? (await journalView(parts, { limit: 1 })).head;
  const { query, bounds, matches } = journalFilter(asked.filter, parts.host.now());
  const { cursor: toId = 0 } = cursorIn(upTo);
  const filter = {
    query: { ...query, status: "failed" },
    bounds: { ...bounds, toId: Math.min(bounds.toId ?? toId, toId) },
    matches: (row: JournalRow) => (kind === undefined || row.message?.kind === kind) && matches(row),
  } as const;
  const { rows, next, scannedTo } = await scanJournal(parts, {
    ...{ filter, order: "ascending", limit: BULK_ROWS_MAX },
    ...cursorIn(asked.cursor),
  });
  const further = next ?? scannedTo;
  return { ids: rows.map(({ id }) => id), upTo, ...(further === undefined ? {} : { next: String(further) }) };
}

/** The queries of the journal. */
export function journalQueries(parts: JournalViewParts) {
  return {
    "Kernel.Journal": {
      description: "rows of the journal that a filter finds, like type:Order.* status:failed since:1h",
      input: journalAsk,
      handle: async (asked: JournalAsk | null) =>
        JSON.parse(JSON.stringify(await journalView(parts, asked ?? {}))) as Json,
    },
  };
}

const journalAsk = dataSchema<JournalAsk | null>(
  (data) => {
    const { filter, cursor, order, limit, fields } = (data ?? {}) as { readonly [name: string]: unknown };
    for (const [name, value] of Object.entries({ filter, cursor }))
      if (value !== undefined && typeof value !== "string") return `${name}: must be a text`;
    if (order !== undefined && order !== "ascending" && order !== "descending")
      return "order: must be ascending or descending";
    if (fields !== undefined && fields !== "row" && fields !== "line") return "fields: must be row or line";
    if (limit === undefined || (Number.isInteger(limit) && Number(limit) > 0 && Number(limit) <= JOURNAL_ROWS_TOLD_MAX))
      return undefined;
    return `limit: must be a whole number from 1 to ${JOURNAL_ROWS_TOLD_MAX}`;
  },
  {
    type: ["object", "null"],
    properties: {
      filter: { type: "string" },
      cursor: { type: "string" },
      order: { enum: ["ascending", "descending"] },
      limit: { type: "integer", minimum: 1, maximum: JOURNAL_ROWS_TOLD_MAX },
      fields: { enum: ["row", "line"] },
    },
  },
);
