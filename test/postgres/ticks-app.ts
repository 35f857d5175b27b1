/**
 * An app that notes each event: once in its state, and with each run of a plain handler in the file of `TICKS_FILE`.
 */
import { appendFileSync } from "node:fs";
import { type AppTx, app, on, type } from "../../src/index.ts";

export const BUCKETS = 8;

export const bucketOf = (n: number): string => `bucket${n % BUCKETS}`;

export default app("ticks", ({ cell, event }) => {
  const buckets = Array.from({ length: BUCKETS }, (_, at) => cell<number[]>(bucketOf(at), []));
  const happened = event("Tick.Happened", type<{ n: number }>());
  return {
    queries: { "Ticks.Seen": () => buckets.flatMap((bucket) => bucket.get()) },
    on: {
      note: on(happened, ({ n }, tx: AppTx) => tx.update(buckets[n % BUCKETS]!, (seen) => [...seen, n])),
      run: on(happened, {
        run: async ({ n }) => {
          appendFileSync(process.env["TICKS_FILE"] ?? "/dev/null", `${n}\n`);
          return n;
        },
        commit: () => undefined,
      }),
    },
  };
});
