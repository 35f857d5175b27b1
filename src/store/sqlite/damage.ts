/** Stored bytes that are not as they were written. */
import { StoreError } from "../store.ts";

export function damaged(where: string): StoreError {
  return new StoreError("STORE_CORRUPT", `Stored bytes have changed (${where}). Run verify, then restore a copy.`);
}
