/**
 * Retries reads that meet a short recovery by another process, for as long as a writer would wait for its lock. Other
 * errors become a `StoreError`.
 */
import type { Host } from "../../host/host.ts";
import { pause } from "../../host/pause.ts";
import { thrownText } from "../../message/error-data.ts";
import { StoreError } from "../store.ts";
import { engineTrouble } from "./sqlite-error.ts";

const RETRY_MS = 1;

export class PatientReads {
  readonly #host: Host;
  readonly #waitMs: number;

  constructor(host: Host, waitMs: number) {
    this.#host = host;
    this.#waitMs = waitMs;
  }

  async read<T>(run: () => T): Promise<T> {
    const startMs = this.#host.monotonic();
    for (;;) {
      try {
        return run();
      } catch (error) {
        const trouble = engineTrouble(error);
        if (trouble === undefined) throw error;
        const waited = this.#host.monotonic() - startMs;
        if (trouble !== "busy" || waited > this.#waitMs) throw readFailed(trouble, error);
        await pause(this.#host, RETRY_MS);
      }
    }
  }
}

function readFailed(trouble: ReturnType<typeof engineTrouble>, error: unknown): StoreError {
  const code = trouble === "corrupt" ? "STORE_CORRUPT" : trouble === "busy" ? "STORE_BUSY" : "STORE_IO";
  return new StoreError(code, `The database could not be read: ${thrownText(error)}.`, { cause: error });
}
