/**
 * Loads documents for a replica: reads of one turn become one request. Every request starts a new generation, so that a
 * caller can wait for the loads that its reads started. A failed load of a held document is retried later, because its
 * holder may never read it again. SPEC: S63, S64.
 */
import { Waiters } from "../host/waiters.ts";
import { LOAD_RETRY_MAX_MS, LOAD_RETRY_MS } from "../limits.ts";
import { type LoadHome, type LoadSource, loadApart } from "./load-apart.ts";
import type { ReplicaDocument } from "./replica-document.ts";
import { RetryTimer } from "./retry-timer.ts";
import type { LoadResult } from "./store.ts";

export class DocumentLoader implements LoadHome {
  /** Increases with every request for a document that is not in memory. */
  generation = 0;
  readonly #source: LoadSource;
  readonly #home: Pick<LoadHome, "arrived">;
  /** Requested in this turn. */
  #wanted: ReplicaDocument[] = [];
  /** Requests whose answer is outstanding. */
  #inFlight = 0;
  readonly #waiting = new Waiters();
  /** Documents whose last load failed, until the next attempt. */
  readonly #failed = new Set<ReplicaDocument>();
  readonly #retry: RetryTimer;

  constructor(source: LoadSource, home: Pick<LoadHome, "arrived">) {
    this.#source = source;
    this.#home = home;
    const backoff = { startMs: LOAD_RETRY_MS, maxMs: LOAD_RETRY_MAX_MS };
    this.#retry = new RetryTimer(source.host, () => this.#tryAgain(), backoff);
  }

  get idle(): boolean {
    return this.#inFlight === 0 && this.#wanted.length === 0;
  }

  request(document: ReplicaDocument): void {
    document.state = "loading";
    this.generation++;
    this.#wanted.push(document);
    if (this.#wanted.length === 1) this.#source.host.microtask(() => void this.#send());
  }

  /** Resolves when no load is outstanding. Never rejects: a failed load leaves its error on the document. */
  settled(): Promise<void> {
    if (this.idle) return Promise.resolve();
    return this.#waiting.wait();
  }

  /** Ends the retries of failed loads. */
  close(): void {
    this.#retry.close();
    this.#failed.clear();
  }

  #tryAgain(): void {
    const failed = [...this.#failed];
    this.#failed.clear();
    for (const document of failed) if (document.isHeldAbsent) this.request(document);
  }

  async #send(): Promise<void> {
    const documents = this.#wanted;
    this.#wanted = [];
    this.#inFlight++;
    try {
      await loadApart(this.#source, documents, this);
    } finally {
      this.#inFlight--;
      if (this.idle) this.#waiting.release();
    }
  }

  arrived(documents: readonly ReplicaDocument[], result: LoadResult): void {
    for (const document of documents) this.#failed.delete(document);
    if (this.#failed.size === 0) this.#retry.succeeded();
    this.#home.arrived(documents, result);
  }

  failed(documents: readonly ReplicaDocument[], error: unknown): void {
    for (const document of documents) if (document.state === "loading") this.#fail(document, error);
    this.#retry.failed(error);
  }

  #fail(document: ReplicaDocument, error: unknown): void {
    document.loadFailed(error);
    this.#failed.add(document);
  }

  /** A loaded document could not be loaded again. */
  lost(document: ReplicaDocument, error: unknown): void {
    this.#failed.add(document);
    this.#retry.failed(error);
  }
}
