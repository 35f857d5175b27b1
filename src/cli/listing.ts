/**
 * A kind of `ls`: how its items are found and printed.
 */
import { readNumber, UsageError, type VerbCall } from "./verb.ts";

const LIMIT_DEFAULT = 20;
const LIMIT_MAX = 10_000;
export const STATUSES = ["pending", "processing", "done", "failed"] as const;
export type RowStatus = (typeof STATUSES)[number];

export interface Listing<Item> {
  readonly head: readonly string[];
  /** Options that apply to this kind. */
  readonly takes: readonly string[];
  find(call: VerbCall): Promise<readonly Item[]>;
  /** A suggestion if no item was found; undefined if there is none. */
  meant?(call: VerbCall): Promise<string | undefined>;
  cells(item: Item): string[];
}

export function readLimit({ options }: VerbCall): number {
  return readNumber("limit", options["limit"], { min: 1, max: LIMIT_MAX }) ?? LIMIT_DEFAULT;
}

export function readStatus({ options }: VerbCall): RowStatus | undefined {
  const value = options["status"];
  if (value === undefined) return undefined;
  const status = STATUSES.find((name) => name === value);
  if (!status) throw new UsageError(`--status is one of ${STATUSES.join(", ")}, not ${JSON.stringify(value)}`);
  return status;
}
