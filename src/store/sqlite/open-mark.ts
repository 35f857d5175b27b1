/**
 * A mark in the file while a process has it open for writing. Then the last commits are in the log beside it, so a copy
 * of the file alone lacks them although it is consistent. SPEC: S133. Of several processes, the last to open owns the
 * mark; a killed process leaves it.
 */
import { existsSync } from "node:fs";
import type { Host } from "../../host/host.ts";
import type { SqliteConnection } from "./connection.ts";
import { engineTrouble } from "./sqlite-error.ts";

export class OpenMark {
  readonly #connection: SqliteConnection;
  readonly #name: string;

  constructor(connection: SqliteConnection, host: Host) {
    this.#connection = connection;
    this.#name = host.id();
  }

  /**
   * The log with the mark is copied into the file afterwards. With a full disk the file stays readable, without a mark.
   */
  set(): void {
    try {
      this.#connection.prepare("UPDATE store_file SET opened_by = ?").run(this.#name);
    } catch (error) {
      const trouble = engineTrouble(error);
      if (trouble !== "busy" && trouble !== "full") throw error;
    }
  }

  clear(): void {
    this.#connection.prepare("UPDATE store_file SET opened_by = NULL WHERE opened_by = ?").run(this.#name);
  }
}

export function hasLog(path: string): boolean {
  return existsSync(`${path}-wal`);
}

/** One sentence about a file that was opened without its log; undefined if it is complete. */
export function incomplete(connection: SqliteConnection): string | undefined {
  const { opened_by } = connection.prepare("SELECT opened_by FROM store_file").get() ?? {};
  if (opened_by === null || opened_by === undefined) return undefined;
  return (
    "The last commits may be missing: the file was copied from a store that was open, or its process was killed, and its log (-wal) is not " +
    'beside it. Take copies with "millrace backup". If the log was copied into the file by another program, start the kernel and stop it once.'
  );
}
