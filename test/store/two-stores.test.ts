/** The conformance suite on two store objects: each write goes through one of them at random, each read through the other. */
import { SeededRandom } from "../../src/host/seeded-random.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { describeStore } from "./conformance/describe-store.ts";
import { type OpenStore, storeUnderTest } from "./conformance/store-under-test.ts";
import { twoStores } from "./conformance/two-stores.ts";
import { ControlledHost } from "./controlled-host.ts";

const open: OpenStore = async (options) => {
  const host = new ControlledHost();
  const disk = new MemoryDisk(options);
  return storeUnderTest(host, { open: async () => memoryStore({ host, disk }), remove: async () => {} });
};

const seed = Date.now() % 1_000_000;
describeStore(`two memory stores, seed ${seed}`, twoStores(open, new SeededRandom(seed)), { modelRuns: 60 });
