/** Callers that wait for a state, and are all released when it is reached. */
export class Waiters {
  #resolvers: (() => void)[] = [];

  get isEmpty(): boolean {
    return this.#resolvers.length === 0;
  }

  wait(): Promise<void> {
    return new Promise((resolve) => {
      this.#resolvers.push(resolve);
    });
  }

  release(): void {
    if (this.#resolvers.length === 0) return;
    for (const resolve of this.#resolvers.splice(0)) resolve();
  }
}
