/**
 * Whether the thread has a core of its own. Two processors of a machine are often two hyperthreads of one core. While
 * the other half is busy, the same code takes up to twice as long, depending on its use of the core. A loop that uses
 * the whole core takes half as long again then; a loop with dependent steps does not.
 */

const ROUNDS = 20_000;
/** How much longer than ever the loop may take. */
const SHARED = 1.2;
const WARM_UPS = 200;

let shortest = Number.POSITIVE_INFINITY;

export function hasCoreAlone(): boolean {
  const start = performance.now();
  useWhole(ROUNDS);
  const ms = performance.now() - start;
  shortest = Math.min(shortest, ms);
  return ms < shortest * SHARED;
}

/** As much as a core can do at a time: sums that do not wait for each other. */
function useWhole(rounds: number): number {
  let [a, b, c, d, e, f, g, h] = [0, 1, 2, 3, 4, 5, 6, 7];
  for (let i = 0; i < rounds; i++) {
    a = (a + i) | 0;
    b = (b ^ i) | 0;
    c = (c + i) | 0;
    d = (d ^ i) | 0;
    e = (e + i) | 0;
    f = (f ^ i) | 0;
    g = (g + i) | 0;
    h = (h ^ i) | 0;
  }
  return a ^ b ^ c ^ d ^ e ^ f ^ g ^ h;
}

// Until the engine has compiled it for good.
for (let i = 0; i < WARM_UPS; i++) hasCoreAlone();
shortest = Number.POSITIVE_INFINITY;
