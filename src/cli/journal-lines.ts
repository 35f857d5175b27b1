/**
 * Journal rows as lines for people.
 */
import type { KernelStore } from "../kernel/open-store.ts";
import { visibleLine } from "../message/visible-text.ts";

export type JournalLine = Awaited<ReturnType<KernelStore["query"]>>[number];
export type RowOutcome = NonNullable<JournalLine["outcome"]>;

export function creationTime({ createdAtMs }: JournalLine): string {
  return new Date(createdAtMs).toISOString();
}

/** Why a row failed or ended without being handled; empty for others. */
export function troubleOf({ error, reason, unreadable }: JournalLine): string {
  if (reason !== undefined) return error === undefined ? reason : `${reason} (failed with: ${error})`;
  return error ?? unreadable ?? "";
}

/** `1 event`, `2 events`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** Columns as wide as their widest shown cell. */
export function table(texts: readonly (readonly string[])[]): string[] {
  const rows = texts.map((cells) => cells.map(visibleLine));
  const columns = Math.max(0, ...rows.map((cells) => cells.length));
  const widths = Array.from({ length: columns }, (_, i) => Math.max(...rows.map((cells) => cells[i]?.length ?? 0)));
  return rows.map((cells) =>
    cells
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join("  ")
      .trimEnd(),
  );
}
