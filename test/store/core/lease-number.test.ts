/** Numbers of leases after a restore, when the counter goes on from an earlier number. */
import { describe, expect, test } from "#test";
import { SeededRandom } from "../../../src/host/seeded-random.ts";
import { nextLease } from "../../../src/store/lease-number.ts";

describe("numbers of leases", () => {
  test("[J20] a lease that is given again after a restore has another number, and each is greater than the last", () => {
    const random = new SeededRandom(1, 0);
    const host = { random: () => random.below(2 ** 30) / 2 ** 30 };
    const last = nextLease(nextLease(0, host), host);
    const again = Array.from({ length: 20 }, () => nextLease(last, host));
    expect(new Set(again).size).toBe(20);
    for (const number of again) {
      expect(number).toBeGreaterThan(last);
      expect(Number.isSafeInteger(number)).toBe(true);
    }
  });
});
