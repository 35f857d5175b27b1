/** Handlers leave no attempt behind: in work that they set off, and in memory. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, test } from "vitest";
import { Space } from "../../src/cells/space.ts";
import type { Host } from "../../src/host/host.ts";
import { systemHost } from "../../src/host/system-host.ts";
import { EventLoop } from "../../src/loop/event-loop.ts";
import { transactional } from "../../src/loop/transactional.ts";
import type { Json } from "../../src/message/json.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import type { Tx } from "../../src/work/tx.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** A transactional capability `Work.Do` in real time. */
async function setup(handle: (parts: { space: Space; host: Host; data: Json; tx: Tx }) => Promise<unknown>) {
  const host = systemHost();
  const store = memoryStore({ host });
  const errors: unknown[] = [];
  const space = await Space.open({ store, host, name: "home", onError: (error) => void errors.push(error) });
  const working = transactional({
    space,
    description: "works",
    commands: { "Work.Do": { handle: async (data, tx) => void (await handle({ space, host, data, tx })) } },
  });
  const loop = await EventLoop.boot({ host, capabilities: { working } });
  const stored = async (id: string) => (await store.load("home", [{ scope: "space", id }])).documents[0]?.value;
  const close = async () => {
    await loop.stop();
    await space[Symbol.asyncDispose]();
  };
  return { host, loop, space, stored, errors, [Symbol.asyncDispose]: close };
}

/** A pool as libraries write them: one asynchronous loop works off the jobs of all callers. */
class Pool {
  readonly #jobs: (() => void)[] = [];
  #wake = Promise.withResolvers<void>();

  constructor() {
    void this.#work();
  }

  run<T>(job: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#jobs.push(() => {
        try {
          resolve(job());
        } catch (error) {
          reject(error);
        }
      });
      this.#wake.resolve();
    });
  }

  async #work(): Promise<never> {
    for (;;) {
      await this.#wake.promise;
      this.#wake = Promise.withResolvers<void>();
      for (const job of this.#jobs.splice(0)) job();
    }
  }
}

describe("work that a handler sets off", () => {
  test("[U39] [U42] a pool that the first handler makes outside of its transaction joins no handler", async () => {
    let pool: Pool | undefined;
    await using all = await setup(async ({ space, data }) => {
      pool ??= space.outside(() => new Pool());
      await pool.run(() => space.cell(`job ${data}`).set(1));
      throw new Error("after the job");
    });
    const { loop, stored, space, errors } = all;
    for (const n of [1, 2, 3]) await expect(loop.command("Work.Do", n)).rejects.toThrow("after the job");
    await pool?.run(() => space.cell("job 4").set(1));
    await space.settled();
    for (const n of [1, 2, 3, 4]) expect([n, await stored(`job ${n}`)]).toEqual([n, 1]);
    expect(errors).toEqual([]);
  });

  test("[U39] timers that handlers leave behind keep no transaction in memory", async () => {
    const COUNT = 20_000;
    const timers: { cancel(): void }[] = [];
    const transactions: WeakRef<object>[] = [];
    await using all = await setup(async ({ space, tx, host }) => {
      transactions.push(new WeakRef(tx));
      await Promise.resolve();
      space.cell("total", 0).update((n) => n + 1);
      timers.push(host.timer(3_600_000, () => space.cell("late").set(1)));
    });
    for (let n = 0; n < COUNT; n++) await all.loop.command("Work.Do", n);
    // A weak reference that was read or made in this turn is held until its end.
    await all.host.yield();
    collectGarbage();
    const kept = transactions.filter((one) => one.deref() !== undefined).length;
    for (const timer of timers) timer.cancel();
    expect(timers.length).toBeGreaterThanOrEqual(COUNT);
    expect(kept).toBeLessThan(COUNT / 100);
  });
});
