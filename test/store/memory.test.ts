import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { describeStore } from "./conformance/describe-store.ts";
import { type OpenStore, storeUnderTest } from "./conformance/store-under-test.ts";
import { ControlledHost } from "./controlled-host.ts";

const open: OpenStore = async (options) => {
  const host = new ControlledHost();
  const disk = new MemoryDisk(options);
  return storeUnderTest(host, { open: async () => memoryStore({ host, disk }), remove: async () => {} });
};

describeStore("memory store", open, { modelRuns: 300 });
