/**
 * The journal by pages, for a reader that follows it on behalf of others: a page after a position, and a wait for growth.
 * It keeps no position. `tail` is the same for one iteration. SPEC: J76, N16.
 */
import type { Host } from "../host/host.ts";
import { POLL_INTERVAL_MS } from "../limits.ts";
import type { JournalRow } from "../store/journal.ts";
import type { Store } from "../store/store.ts";
import type { JournalSignal } from "./journal-signal.ts";

export interface JournalPage {
  readonly rows: readonly JournalRow[];
  /** The newest id before the page was read: a short page shows that the rows up to this id are gone. */
  readonly lastId: number;
}

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

  lastId(): Promise<number> {
    return this.#store.lastId();
  }

  /** At most `limit` rows after an id, in the order of their ids. */
  async page(after: number, limit: number): Promise<JournalPage> {
    const lastId = await this.#store.lastId();
    return { rows: await this.#store.query({ cursor: after, limit }), lastId };
  }

  /** Resolves when the mark has moved, the poll interval is over, or the signal is aborted. */
  grown(mark: number, signal: AbortSignal): Promise<void> {
    return this.#signal.after(mark, { host: this.#host, timeoutMs: POLL_INTERVAL_MS, signal });
  }
}
