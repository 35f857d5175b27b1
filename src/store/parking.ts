/**
 * Writes that wait for a database server which cannot be reached: their bounds, and the error of a call that cannot
 * wait. SPEC: S237, S238.
 */
import { STORE_PARKED_BYTES_MAX, STORE_PARKED_JOBS_MAX } from "../limits.ts";
import { type Rejection, rejected } from "./rejection.ts";
import { StoreError } from "./store.ts";

/** The refusal of a write beyond the bounds; undefined if it may be parked. */
export function refusalToPark(jobs: number, bytes: number): Rejection | undefined {
  if (jobs < STORE_PARKED_JOBS_MAX && bytes <= STORE_PARKED_BYTES_MAX) return undefined;
  return rejected("failed", "store-busy", `${jobs} writes wait for the database already; send it again later`);
}

/** Whether a call failed because the server cannot be reached. No part of it was done. */
export function isAway(error: unknown): boolean {
  return error instanceof StoreError && error.code === "STORE_AWAY";
}
