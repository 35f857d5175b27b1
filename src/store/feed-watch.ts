/**
 * Follows the commits of other sessions to a space: reads the feed whenever the store reports a write. A failed read is
 * retried later, because no further write may come to trigger one. A damaged feed does not recover by itself and is
 * reported once until it can be read again. SPEC: S67, S69.
 */
import type { Host } from "../host/host.ts";
import { FEED_RETRY_MAX_MS, FEED_RETRY_MS } from "../limits.ts";
import { isDamage } from "./load-apart.ts";
import { RetryTimer } from "./retry-timer.ts";
import type { Store } from "./store.ts";

/** Reads the feed. */
export interface FeedFollower {
  /** The sequence of the last commit that is integrated or confirmed. */
  readonly position: number;
  catchUp(): Promise<void>;
  /** Receives errors that no caller waits for. */
  tell(trouble: unknown): void;
}

export class FeedWatch {
  readonly #follower: FeedFollower;
  readonly #unwatch: () => void;
  readonly #retry: RetryTimer;
  #isTold = false;

  constructor(parts: {
    readonly host: Host;
    readonly store: Store;
    readonly space: string;
    readonly follower: FeedFollower;
  }) {
    const { host, store, space, follower } = parts;
    this.#follower = follower;
    this.#retry = new RetryTimer(host, () => this.#look(), { startMs: FEED_RETRY_MS, maxMs: FEED_RETRY_MAX_MS });
    this.#unwatch = store.watch(({ spaces, own }) => {
      if (spaces !== undefined && !spaces.includes(space)) return;
      const sequence = own?.sequences.get(space) ?? Number.POSITIVE_INFINITY;
      if (sequence > follower.position) this.#look();
    });
  }

  close(): void {
    this.#retry.close();
    this.#unwatch();
  }

  #look(): void {
    this.#follower.catchUp().then(
      () => this.#succeeded(),
      (error: unknown) => this.#failed(error),
    );
  }

  #succeeded(): void {
    this.#isTold = false;
    this.#retry.succeeded();
  }

  #failed(error: unknown): void {
    if (isDamage(error) && !this.#isTold) {
      this.#isTold = true;
      this.#follower.tell(error);
    }
    this.#retry.failed(error);
  }
}
