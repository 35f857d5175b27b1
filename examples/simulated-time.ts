/** Time from a seed: a year passes in an instant, and two runs of one seed are the same run. */
import type { Host } from "millrace/loop";
import { simulate } from "millrace/testing";

const DAY_MS = 86_400_000;

/** Asks again with growing pauses, until it is answered. */
async function ask(host: Host): Promise<string> {
  let pauseMs = DAY_MS;
  for (let tries = 1; ; tries++) {
    if (host.random() < 0.1) return `answered at try ${tries}, on ${new Date(host.now()).toISOString().slice(0, 10)}`;
    await new Promise<void>((resolve) => host.timer(pauseMs, resolve));
    pauseMs = Math.min(pauseMs * 2, 30 * DAY_MS);
  }
}

const one = await simulate(7, (host) => host.run(() => ask(host)));
const same = await simulate(7, (host) => host.run(() => ask(host)));
const other = await simulate(8, (host) => host.run(() => ask(host)));
console.log("seed 7:", one.value);
console.log("seed 7 again, the same trace:", one.traceHash === same.traceHash);
console.log("seed 8:", other.value);

// prints:
// seed 7: answered at try 9, on 2026-05-02
// seed 7 again, the same trace: true
// seed 8: answered at try 5, on 2026-01-16
