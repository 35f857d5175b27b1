/**
 * `--filter`: rows of the journal by the grammar of `Kernel.Journal`. SPEC: W80, W82.
 */
import type { Host } from "../host/host.ts";
import { type JournalFilter, journalFilter } from "../kernel/filtered-rows.ts";
import { isFailure } from "../message/error-data.ts";
import { UsageError } from "./verb.ts";

export const FILTER_OPTION = {
  type: "string",
  value: "F",
  about: "rows like 'type:Order.* status:failed data.price>10 since:1h'",
} as const;

/** Without the option every row matches. */
export function readFilter(value: string | boolean | undefined, host: Host): JournalFilter {
  try {
    return journalFilter(typeof value === "string" ? value : "", host.now());
  } catch (error) {
    if (isFailure(error)) throw new UsageError(`--${error.message}`);
    throw error;
  }
}
