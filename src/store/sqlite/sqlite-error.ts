/**
 * Classification of engine errors. The engine's result codes appear only here.
 *
 * | engine                  | meaning    | reaction of the store                               |
 * |-------------------------|------------|-----------------------------------------------------|
 * | BUSY, LOCKED            | busy       | tries again a little later                          |
 * | FULL                    | full       | rolls back, fails the batch, goes on                |
 * | IOERR                   | io         | rolls back; stops after a failed flush or COMMIT    |
 * | CORRUPT, NOTADB         | corrupt    | stops                                               |
 * | READONLY, CANTOPEN      | read-only  | fails the batch, goes on                            |
 * | any other               | undefined  | a bug: the job that caused it gets the error        |
 */
import { thrownText } from "../../message/error-data.ts";
import { type Rejection, rejected } from "../rejection.ts";

export type EngineTrouble = "busy" | "full" | "io" | "flush" | "corrupt" | "read-only";

const BUSY = 5;
const LOCKED = 6;
const READONLY = 8;
const IOERR = 10;
const CORRUPT = 11;
const FULL = 13;
const CANTOPEN = 14;
const CONSTRAINT = 19;
const NOTADB = 26;
/** Extended codes: a flush of the file or its directory failed, so the page cache may differ from the disk. */
const IOERR_FSYNC = 1034;
const IOERR_DIR_FSYNC = 1290;

/** Whether a constraint of the user's tables forbids the COMMIT; the transaction is still open then. */
export function isConstraint(error: unknown): boolean {
  return ((engineCode(error) ?? 0) & 0xff) === CONSTRAINT;
}

export function engineTrouble(error: unknown): EngineTrouble | undefined {
  const code = engineCode(error);
  if (code === undefined) return undefined;
  if (code === IOERR_FSYNC || code === IOERR_DIR_FSYNC) return "flush";
  switch (code & 0xff) {
    case BUSY:
    case LOCKED:
      return "busy";
    case FULL:
      return "full";
    case IOERR:
      return "io";
    case CORRUPT:
    case NOTADB:
      return "corrupt";
    case READONLY:
    case CANTOPEN:
      return "read-only";
    default:
      return undefined;
  }
}

/** The rejection for the callers of a batch that was rolled back. */
export function failureOf(error: unknown): Rejection {
  const detail = thrownText(error);
  switch (engineTrouble(error)) {
    case "full":
      return rejected("failed", "store-full", `there is no space left on the device (${detail}); nothing was written`);
    case "busy":
      return rejected("failed", "store-busy", `another process holds the write lock (${detail})`);
    case "read-only":
      return rejected("failed", "io-error", `the database cannot be written (${detail}); check its owner and mode`);
    default:
      return rejected("failed", "io-error", `the database could not be written (${detail}); nothing was written`);
  }
}

/** An engine error from another thread, which passes only its text and code. */
export function engineError(message: string, errcode: number): Error {
  return Object.assign(new Error(message), { errcode });
}

/** The engine's extended result code; undefined for any other error. */
export function engineCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !("errcode" in error)) return undefined;
  return typeof error.errcode === "number" ? error.errcode : undefined;
}

/** The code of a file system error (`ENOENT`, `EACCES`, …), or undefined. */
export function fileErrorCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}
