/**
 * Loading documents for a replica: reads of one turn become one request. Every request starts a new generation, so that a
 * caller who needs what he just read can wait until the loads that he started, and those they led to, are over. What could not be
 * loaded and is still held then is tried again after a while: whoever rests on it may never read again by himself. A request that meets
 * stored bytes which have changed is made again in halves, so that only the documents that are damaged stay away. SPEC: S63, S64.
 */
import type { Host } from "../host/host.ts";
import { LOAD_RETRY_MAX_MS, LOAD_RETRY_MS } from "../limits.ts";
import type { ReplicaDocument } from "./replica-document.ts";
import { RetryTimer } from "./retry-timer.ts";
import { type LoadResult, type Store, StoreError } from "./store.ts";

/** What the loader needs of its replica. */
export interface LoadHome {
  arrived(documents: readonly ReplicaDocument[], result: LoadResult): void;
}

export class DocumentLoader {
  /** Grows with every request for a document that was not here. */
  generation = 0;
  readonly #store: Store;
  readonly #space: string;
  readonly #host: Host;
  readonly #home: LoadHome;
  /** Asked for in this turn. */
  #wanted: ReplicaDocument[] = [];
  /** Requests whose answer is outstanding. */
  #inFlight = 0;
  #waiting: (() => void)[] = [];
  /** Documents whose last load failed, until the next try. */
  readonly #failed = new Set<ReplicaDocument>();
  readonly #retry: RetryTimer;

  constructor(store: Store, space: string, host: Host, home: LoadHome) {
    this.#store = store;
    this.#space = space;
    this.#host = host;
    this.#home = home;
    const backoff = { startMs: LOAD_RETRY_MS, maxMs: LOAD_RETRY_MAX_MS };
    this.#retry = new RetryTimer(host, () => this.#tryAgain(), backoff);
  }

  get idle(): boolean {
    return this.#inFlight === 0 && this.#wanted.length === 0;
  }

  request(document: ReplicaDocument): void {
    document.state = "loading";
    this.generation++;
    this.#wanted.push(document);
    if (this.#wanted.length === 1) this.#host.microtask(() => void this.#send());
  }

  /** Resolves when no load is outstanding; never rejects: a failed load leaves its reason on the document. */
  settled(): Promise<void> {
    if (this.idle) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** What has failed is not tried again any more. */
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
      await this.#load(documents);
    } finally {
      this.#inFlight--;
      if (this.idle) for (const resolve of this.#waiting.splice(0)) resolve();
    }
  }

  async #load(documents: readonly ReplicaDocument[]): Promise<void> {
    let result: LoadResult;
    try {
      result = await this.#store.load(this.#space, documents);
    } catch (error) {
      if (documents.length > 1 && isDamage(error)) return this.#loadInHalves(documents);
      for (const document of documents) if (document.state === "loading") this.#fail(document, error);
      this.#retry.failed(error);
      return;
    }
    for (const document of documents) this.#failed.delete(document);
    if (this.#failed.size === 0) this.#retry.succeeded();
    this.#home.arrived(documents, result);
  }

  /** At most two requests for each document, few of them where few are damaged; others get in between. */
  async #loadInHalves(documents: readonly ReplicaDocument[]): Promise<void> {
    const middle = documents.length >> 1;
    for (const half of [documents.slice(0, middle), documents.slice(middle)]) {
      await this.#host.yield();
      await this.#load(half);
    }
  }

  #fail(document: ReplicaDocument, error: unknown): void {
    document.loadFailed(error);
    this.#failed.add(document);
  }
}

/** Of a document, or of what it is read with. Any other error is one of the store, for whatever it is asked. */
function isDamage(error: unknown): boolean {
  return error instanceof StoreError && error.code === "STORE_CORRUPT";
}
