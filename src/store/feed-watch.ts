/**
 * Follows what others commit to a space: looks into the feed whenever the store tells of a write there. A look that fails is made again a
 * while later: whoever wrote may have been the last, and nobody would tell again. SPEC: S67, S69.
 */
import type { Host } from "../host/host.ts";
import { FEED_RETRY_MS } from "../limits.ts";
import { RetryTimer } from "./retry-timer.ts";
import type { Store } from "./store.ts";

export class FeedWatch {
  readonly #catchUp: () => Promise<void>;
  readonly #unwatch: () => void;
  readonly #retry: RetryTimer;

  constructor(parts: { host: Host; store: Store; space: string; catchUp: () => Promise<void> }) {
    const { host, store, space, catchUp } = parts;
    this.#catchUp = catchUp;
    this.#retry = new RetryTimer(host, () => this.#look(), { startMs: FEED_RETRY_MS, maxMs: FEED_RETRY_MS });
    this.#unwatch = store.watch(({ spaces }) => {
      if (spaces === undefined || spaces.includes(space)) this.#look();
    });
  }

  close(): void {
    this.#retry.close();
    this.#unwatch();
  }

  #look(): void {
    this.#catchUp().catch((error: unknown) => this.#retry.failed(error));
  }
}
