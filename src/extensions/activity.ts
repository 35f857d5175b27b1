/** How many pieces of work of extensions are under way: handlers, tasks, agent runs, messages of users. Who waits for none is told. */
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
