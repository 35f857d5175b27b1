/**
 * `Live` over a function that starts a subscription: callbacks, or an async iterator that holds only the newest value.
 * A slow reader skips values and costs no memory. SPEC: A28.
 */
import type { Live } from "./caller.ts";

/** Starts to tell of values; the returned function ends it. */
export type Start<Value> = (listener: (value: Value) => unknown, onError: (error: unknown) => unknown) => () => void;

export class LiveValues<Value> implements Live<Value> {
  readonly #start: Start<Value>;

  constructor(start: Start<Value>) {
    this.#start = start;
  }

  subscribe(listener: (value: Value) => unknown, onError: (error: unknown) => unknown = () => undefined): () => void {
    return this.#start(listener, onError);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Value, void, undefined> {
    let newest: { readonly value: Value } | { readonly error: unknown } | undefined;
    let wake: () => void = () => undefined;
    const note = (next: NonNullable<typeof newest>) => {
      newest = next;
      wake();
    };
    const stop = this.#start(
      (value) => note({ value }),
      (error) => note({ error }),
    );
    try {
      for (;;) {
        const next = newest;
        newest = undefined;
        if (next === undefined) {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        } else if ("error" in next) throw next.error;
        else yield next.value;
      }
    } finally {
      stop();
    }
  }
}
