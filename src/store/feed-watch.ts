/**
 * Follows what others commit to a space: looks into the feed whenever the store tells of a write there. A look that fails is made again a
 * while later: whoever wrote may have been the last, and nobody would tell again. SPEC: S67, S69.
 */
import type { Host, Timer } from "../host/host.ts";
import { FEED_RETRY_MS } from "../limits.ts";
import { type Store, StoreError } from "./store.ts";

export class FeedWatch {
  readonly #host: Host;
  readonly #catchUp: () => Promise<void>;
  readonly #unwatch: () => void;
  #retry: Timer | undefined;
  #closed = false;

  constructor(parts: { host: Host; store: Store; space: string; catchUp: () => Promise<void> }) {
    const { host, store, space, catchUp } = parts;
    this.#host = host;
    this.#catchUp = catchUp;
    this.#unwatch = store.watch(({ spaces }) => {
      if (spaces === undefined || spaces.includes(space)) this.#look();
    });
  }

  close(): void {
    this.#closed = true;
    this.#retry?.cancel();
    this.#unwatch();
  }

  #look(): void {
    this.#catchUp().catch((error: unknown) => {
      if (!hasEnded(error)) this.#lookLater();
    });
  }

  #lookLater(): void {
    if (this.#closed || this.#retry !== undefined) return;
    const look = () => {
      this.#retry = undefined;
      this.#look();
    };
    this.#retry = this.#host.timer(FEED_RETRY_MS, look, { keepAlive: false });
  }
}

/** Whether the store will tell nothing any more. */
function hasEnded(error: unknown): boolean {
  return error instanceof StoreError && (error.code === "STORE_CLOSED" || error.code === "STORE_STOPPED");
}
