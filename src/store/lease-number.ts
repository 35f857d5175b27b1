/**
 * Numbers of leases: a counter and 20 random bits. After a restore the counter repeats, and the random bits keep an old
 * holder from settling under a number that was given again. They increase, and stay below 2^53. SPEC: J20.
 */
import type { Host } from "../host/host.ts";
import { LEASE_RANDOM_BITS } from "../limits.ts";

const RANDOM_VALUES = 2 ** LEASE_RANDOM_BITS;

/** The number of the lease after the last one; 0 if there was none. */
export function nextLease(last: number, host: Pick<Host, "random">): number {
  return (Math.floor(last / RANDOM_VALUES) + 1) * RANDOM_VALUES + Math.floor(host.random() * RANDOM_VALUES);
}
