/** The conformance suite on two store objects: each write goes through one of them, each read through the other. */
import { describeStore } from "./conformance/describe-store.ts";
import { twoStores } from "./conformance/two-stores.ts";
import { openMemory } from "./open-memory.ts";

for (const seed of [1, 2])
  describeStore(`two memory stores on one disk, seed ${seed}`, twoStores(openMemory(), seed), {
    modelRuns: 40,
    isBrief: true,
  });
