/**
 * Random histories: two or three replicas of one space over lines that delay, lose, refuse and repeat, transactions held open
 * across each other, documents dropped and loaded again. A run is a function of its seed, which every failure names.
 *
 * Checked after every step: the replica's own invariants; that its value is the confirmed state as of what it has integrated
 * plus what is pending; that a mirror fed by notifications alone equals it; that nothing handed out has changed. At the end:
 * that all replicas equal the store, and that the store equals the committed transactions run one after the other.
 */
import { describe, expect, test } from "#test";
import { SeededRandom } from "../../../src/host/seeded-random.ts";
import { simulate } from "../../../src/host/simulate.ts";
import { runHistory } from "./replica-history.ts";

/** Each of these once found something wrong. */
const FOUND = [1103, 2959, 10248, 10834, 21345];
const SEEDS = [...Array.from({ length: 150 }, (_, i) => i + 1), ...FOUND];

describe("random histories of replicas", () => {
  test("[S75] replicas converge, notifications are complete, commits are serializable", async () => {
    const totals = { committed: 0, rejected: 0, reverts: 0, pulls: 0 };
    for (const seed of SEEDS) {
      try {
        const { value } = await simulate(seed, (host) => runHistory(host, new SeededRandom(seed, 99)));
        for (const key of Object.keys(totals) as (keyof typeof totals)[]) totals[key] += value[key];
      } catch (error) {
        throw new Error(`seed ${seed}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
      }
    }
    // The histories are worth something only if all of this happens in them.
    for (const count of Object.values(totals)) expect(count).toBeGreaterThan(SEEDS.length);
  });
});
