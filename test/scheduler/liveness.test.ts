/**
 * Demand on random graphs. Documents decide which nodes read each other, so that a write rewires the graph; computed
 * values are constant, so that only demand moves. `checkInvariants` derives liveness anew and compares, after every
 * mutation.
 */
import { describe, expect, test } from "#test";
import { SeededRandom } from "../../src/host/seeded-random.ts";
import type { SchedulerNode } from "../../src/scheduler/node.ts";
import { type LongPart, rounds, timeoutMs } from "../portable/long-run.ts";
import { setup } from "./scheduler-setup.ts";

const PART: LongPart = { name: "demand on random graphs", short: 150, long: 5_000, minutes: 1 };
const STEPS = 40;
const NODES = 12;

interface Met {
  rootless: number;
  circles: number;
  slept: number;
}

async function wander(seed: number, met: Met): Promise<void> {
  const random = new SeededRandom(seed, 3);
  const { space, scheduler } = await setup({ seed });
  const wiring = space.cell<Record<string, number[]>>("wiring");
  wiring.set(Object.fromEntries(Array.from({ length: NODES }, (_, i) => [String(i), []])));
  const roots: (() => void)[] = [];
  const nodes: (SchedulerNode | undefined)[] = [];
  const compute = (i: number) =>
    space.computed(`n${i}`, () => {
      for (const below of wiring.key(String(i)).get() ?? []) space.cell(`n${below}`).get();
      return i;
    }).node;
  for (let i = 0; i < NODES; i++) nodes.push(compute(i));
  const liveBefore = () => nodes.filter((node) => node?.live).length;
  for (let step = 0; step < STEPS; step++) {
    const before = liveBefore();
    const i = random.below(NODES);
    switch (random.below(6)) {
      case 0:
        roots.push(space.cell(`n${i}`).sink(() => undefined));
        break;
      case 1:
        roots.splice(random.below(Math.max(1, roots.length)), 1)[0]?.();
        break;
      case 2: {
        // A node goes and comes back, or the other way round.
        const node = nodes[i];
        if (node) scheduler.remove(node);
        nodes[i] = node ? undefined : compute(i);
        break;
      }
      default: {
        const reads = Array.from({ length: random.below(4) }, () => random.below(NODES));
        wiring.key(String(i)).set(reads.filter((read) => read !== i));
      }
    }
    scheduler.checkInvariants();
    space.flush();
    scheduler.checkInvariants();
    if (roots.length === 0) met.rootless++;
    if (liveBefore() < before) met.slept++;
    if (nodes.some((node) => node && scheduler.find(node.id)?.live && hasCircle(node))) met.circles++;
    if (roots.length === 0) expect([seed, step, liveBefore()]).toEqual([seed, step, 0]);
  }
}

function hasCircle(start: SchedulerNode): boolean {
  const seen = new Set<SchedulerNode>();
  const open = [start];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    for (let edge = node.reads; edge !== null; edge = edge.next) {
      for (const writer of edge.address.home.writers) {
        if (writer === start) return true;
        if (!seen.has(writer)) open.push(writer);
        seen.add(writer);
      }
    }
  }
  return false;
}

describe("demand on random graphs", () => {
  test(
    "[R31] [I2] liveness equals a fresh derivation after every mutation, with roots and without",
    async () => {
      const met: Met = { rootless: 0, circles: 0, slept: 0 };
      let seeds = 0;
      for (const seed of rounds(PART)) {
        seeds = seed;
        try {
          await wander(seed, met);
        } catch (error) {
          throw new Error(`seed ${seed}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
        }
      }
      expect(met.rootless).toBeGreaterThan(seeds * STEPS * 0.2);
      expect(met.circles).toBeGreaterThan(seeds);
      expect(met.slept).toBeGreaterThan(seeds);
    },
    timeoutMs(PART),
  );
});
