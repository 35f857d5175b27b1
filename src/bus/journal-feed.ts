/**
 * The journal by pages, for a reader that follows it on behalf of others: a page after a position, and a wait for
 * growth. It keeps no position. `tail` is the same for one iteration. SPEC: J76, N16.
 */
import type { Host } from "../host/host.ts";
import { POLL_INTERVAL_MS } from "../limits.ts";
import type { JournalPage, JournalPosition } from "../store/journal-position.ts";
import type { Store } from "../store/store.ts";
import type { JournalSignal } from "./journal-signal.ts";

export class JournalFeed {
  readonly #host: Host;
  readonly #store: Store;
  readonly #signal: JournalSignal;

  constructor(parts: { readonly host: Host; readonly store: Store; readonly signal: JournalSignal }) {
    this.#host = parts.host;
    this.#store = parts.store;
    this.#signal = parts.signal;
  }

  /** Grows with every change of the journal that this process knows of. */
  get mark(): number {
    return this.#signal.mark;
  }

  /** The position after all rows. */
  end(): Promise<JournalPosition> {
    return this.#store.journalEnd();
  }

  /** At most `limit` rows after a position. */
  page(after: JournalPosition, limit: number): Promise<JournalPage> {
    return this.#store.follow(after, limit);
  }

  /** Resolves when the mark has moved, the poll interval is over, or the signal is aborted. */
  grown(mark: number, signal: AbortSignal): Promise<void> {
    return this.#signal.after(mark, { host: this.#host, timeoutMs: POLL_INTERVAL_MS, signal });
  }
}
