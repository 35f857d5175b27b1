/**
 * A process that sends the same events as its rival on the same SQLite file, in an order of its own, and prints their
 * outcomes as one line of JSON. Arguments: the file, its name, the number of events. It opens, says "ready", and starts
 * on input.
 */
import { argv, stdin, stdout } from "node:process";
import { Space } from "../../src/cells/space.ts";
import { systemHost } from "../../src/host/system-host.ts";
import type { SendOutcome } from "../../src/scheduler/send.ts";
import { openSqliteStore } from "../../src/store/sqlite/index.ts";

const [path, name, count] = argv.slice(2) as [string, string, string];
/** Sent together, so that the two meet. */
const BUNCH = 50;
/** Every so many events write to one common place, and conflict there. */
const COMMON_EVERY = 10;

const host = systemHost();
const store = await openSqliteStore({ path, host, durability: "process" });
const space = await Space.open({ store, host, name: "race" });
const tally = space.cell<number>("tally");
const jobs = space.stream<number>("jobs");
jobs.handle((job, { newId }) => {
  const effect = space.cell<string[]>(`effect ${job}`);
  effect.push(name);
  space.cell(newId("made")).set(job);
  if (job % COMMON_EVERY === 0) tally.update((sum = 0) => sum + 1);
  return name;
});

stdout.write("ready\n");
await new Promise((resolve) => stdin.once("data", resolve));
const outcomes: SendOutcome[] = [];
const order = shuffled(Number(count));
for (let at = 0; at < order.length; at += BUNCH) {
  const bunch = order.slice(at, at + BUNCH).map((job) => jobs.send(job, { id: `job ${job}`, session: "race" }));
  outcomes.push(...(await Promise.all(bunch.map(({ outcome }) => outcome))));
}
await space.close();
await store.close();
stdout.write(`${JSON.stringify(outcomes.map((outcome, at) => [order[at], ...told(outcome)]))}\n`);
stdin.destroy();

function told(outcome: SendOutcome): [string, string] {
  const result = "result" in outcome ? String(outcome.result) : JSON.stringify(outcome);
  return [outcome.kind, result];
}

/** Bunches in the same order for both, so that they race; inside a bunch each its own. */
function shuffled(length: number): number[] {
  const jobs = Array.from({ length }, (_, job) => job);
  return jobs
    .map((job) => ({ job, at: Math.floor(job / BUNCH) + host.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ job }) => job);
}
