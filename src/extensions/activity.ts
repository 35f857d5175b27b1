/**
 * Counts open work of extensions: handlers, tasks, agent runs, messages of users. Waiters are called when it is zero.
 */
export class Activity {
  #running = 0;
  #waiters: (() => void)[] = [];

  get busy(): boolean {
    return this.#running > 0;
  }

  async during<T>(work: () => Promise<T>): Promise<T> {
    this.#running++;
    try {
      return await work();
    } finally {
      this.#running--;
      if (this.#running === 0) for (const resolve of this.#waiters.splice(0)) resolve();
    }
  }

  idle(): Promise<void> {
    if (this.#running === 0) return Promise.resolve();
    return new Promise((resolve) => this.#waiters.push(resolve));
  }
}
