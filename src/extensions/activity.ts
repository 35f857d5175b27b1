/**
 * Counts open work of extensions: handlers, tasks, agent runs, messages of users. Waiters are called when it is zero.
 */
import { Waiters } from "../host/waiters.ts";
export class Activity {
  #running = 0;
  readonly #waiters = new Waiters();

  get busy(): boolean {
    return this.#running > 0;
  }

  async during<T>(work: () => Promise<T>): Promise<T> {
    this.#running++;
    try {
      return await work();
    } finally {
      this.#running--;
      if (this.#running === 0) this.#waiters.release();
    }
  }

  idle(): Promise<void> {
    if (this.#running === 0) return Promise.resolve();
    return this.#waiters.wait();
  }
}
