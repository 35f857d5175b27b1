/**
 * One simulated run: a fresh host, with the runtime's own time and randomness forbidden meanwhile. SPEC: H16.
 *
 *     const { value, traceHash } = await simulate(7, (host) => host.run(() => program(host)));
 *
 * `drive` is outside of the simulated program: it calls `step`, `advance`, `runUntilIdle` or `run`.
 */

import { forbidRealTime } from "./real-time-guard.ts";
import { type SimulatedHost, simulatedHost } from "./simulated-host.ts";

/** The result of `simulate`, and the hash of its trace. */
export interface Simulated<T> {
  readonly value: T;
  readonly traceHash: string;
}

/** Rejects with the error of `drive`, or with the first forbidden call even if the calling code caught the error. */
export async function simulate<T>(seed: number, drive: (host: SimulatedHost) => T | Promise<T>): Promise<Simulated<T>> {
  const host = simulatedHost(seed);
  const guard = forbidRealTime();
  try {
    const value = await drive(host);
    if (guard.violation !== undefined) throw guard.violation;
    return { value, traceHash: host.traceHash() };
  } finally {
    guard.release();
  }
}
