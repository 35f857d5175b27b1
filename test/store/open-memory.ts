/** Opens memory stores for the conformance suite, each on a fresh disk. */
import type { MemoryDiskOptions } from "../../src/store/memory/document-disk.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { type OpenStore, storeUnderTest } from "./conformance/store-under-test.ts";
import { ControlledHost } from "./controlled-host.ts";

export function openMemory(disks: MemoryDiskOptions = {}): OpenStore {
  return async (options) => {
    const host = new ControlledHost();
    const disk = new MemoryDisk({ ...disks, ...options });
    return storeUnderTest(host, { open: async () => memoryStore({ host, disk }), remove: async () => {} });
  };
}
