/**
 * Tells readers that the journal may have grown, by this process or another. A counter tells whether a change came
 * between reading and waiting, so that no change is missed. SPEC: J76.
 */
import type { Host } from "../host/host.ts";
import type { Store } from "../store/store.ts";

export class JournalSignal {
  readonly #store: Store;
  readonly #waiting = new Set<() => void>();
  #mark = 0;
  #unwatch: (() => void) | undefined;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Grows with every change. */
  get mark(): number {
    return this.#mark;
  }

  raise(): void {
    this.#mark++;
    if (this.#waiting.size === 0) return;
    for (const wake of [...this.#waiting]) wake();
  }

  /** Resolves when a change has come since the mark, the time is over, or the signal is aborted. */
  after(
    mark: number,
    { host, timeoutMs, signal }: { host: Host; timeoutMs: number; signal: AbortSignal | undefined },
  ): Promise<void> {
    if (this.#mark !== mark || signal?.aborted) return Promise.resolve();
    this.#unwatch ??= this.#store.watch(({ journal }) => journal && this.raise());
    return new Promise((resolve) => {
      const timer = host.timer(timeoutMs, () => wake(), { keepAlive: false });
      const wake = () => {
        timer.cancel();
        signal?.removeEventListener("abort", wake);
        this.#waiting.delete(wake);
        this.#rest();
        resolve();
      };
      this.#waiting.add(wake);
      signal?.addEventListener("abort", wake);
    });
  }

  /** No reader waits any more. */
  #rest(): void {
    if (this.#waiting.size > 0) return;
    this.#unwatch?.();
    this.#unwatch = undefined;
  }
}
