/**
 * Tells a handler that its time is over. The signal is made when it is asked for: most handlers never look. SPEC: U34.
 */
export class Cancellation {
  #controller: AbortController | undefined;
  #reason: Error | undefined;

  /** Why; undefined while the handler is waited for. */
  get reason(): Error | undefined {
    return this.#reason;
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#reason) this.#controller.abort(this.#reason);
    return this.#controller.signal;
  }

  cancel(reason: Error): void {
    this.#reason ??= reason;
    this.#controller?.abort(this.#reason);
  }
}
