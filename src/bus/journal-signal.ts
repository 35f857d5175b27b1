/**
 * Tells those who follow the journal that it may have grown: by what is published here, or by others. A counter says whether
 * something came between looking and waiting, so that nothing is missed. SPEC: J76.
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

  /** Resolves when something has come since the mark, the time is over, or the signal is aborted. */
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

  /** Nobody waits: nobody has to be told. */
  #rest(): void {
    if (this.#waiting.size > 0) return;
    this.#unwatch?.();
    this.#unwatch = undefined;
  }
}
