/**
 * A caller's job: it keeps the result of its last run and resolves the caller's promise directly.
 */
import type { Rejection } from "../rejection.ts";
import { StoreError, type StoreErrorCode } from "../store.ts";
import type { Job } from "./job-queue.ts";

export class PendingJob<T> implements Job {
  readonly bytes: number;
  readonly isUpkeep = false;
  readonly #work: () => T;
  readonly #resolve: (result: T) => void;
  readonly #fail: (cause: Rejection | Error) => void;
  #result: { readonly value: T } | undefined;

  constructor(bytes: number, work: () => T, resolve: (result: T) => void, fail: (cause: Rejection | Error) => void) {
    this.bytes = bytes;
    this.#work = work;
    this.#resolve = resolve;
    this.#fail = fail;
  }

  run(): void {
    this.#result = { value: this.#work() };
  }

  succeed(): void {
    if (this.#result) this.#resolve(this.#result.value);
  }

  fail(cause: Rejection | Error): void {
    this.#fail(cause);
  }
}

/** The error for a rejection if the method's result has no outcome. */
export function errorOf({ class: rejectionClass, reason, message }: Rejection): StoreError {
  return new StoreError(rejectionClass === "unknown" ? "STORE_STOPPED" : codeOf(reason), message);
}

function codeOf(reason: Rejection["reason"]): StoreErrorCode {
  switch (reason) {
    case "store-full":
      return "STORE_FULL";
    case "store-busy":
      return "STORE_BUSY";
    case "store-stopped":
      return "STORE_STOPPED";
    default:
      return "STORE_IO";
  }
}
