/**
 * Error for stored bytes that differ from those written.
 */
import { StoreError } from "../store.ts";

export function damaged(where: string): StoreError {
  return new StoreError("STORE_CORRUPT", `Stored bytes have changed (${where}). Run verify, then restore a copy.`);
}
