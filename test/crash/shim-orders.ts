/**
 * Messages of a program to `shim.c`: marks for the log, and orders to make calls fail. Without the shim they throw,
 * because descriptor 1000 is not open.
 */
import { writeSync } from "node:fs";

const MARK_FD = 1000;

export type FaultClass = "write" | "sync" | "any";
export type FaultAction = "EIO" | "ENOSPC" | "short" | "kill";

const ERRNO: Partial<Record<FaultAction, string>> = { EIO: "5", ENOSPC: "28" };

/** Puts a mark into the log, at its exact place among the writes and syncs. */
export function mark(text: string): void {
  writeSync(MARK_FD, text);
}

/** The nth call of the class from now on fails so, and as many after it as `times` says. */
export function arm(fault: FaultClass, nth: number, action: FaultAction, times = 1): void {
  writeSync(MARK_FD, `!arm ${fault} ${nth} ${ERRNO[action] ?? action} ${times}`);
}

/** No more faults. */
export function disarm(): void {
  writeSync(MARK_FD, "!disarm");
}

/** Whether the armed fault has come. */
export function hasStruck(): boolean {
  try {
    writeSync(MARK_FD, "!struck");
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return false;
    throw error;
  }
}
