import { expect, test } from "#test";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { commitBy, committed, set } from "./conformance/requests.ts";

test("[S164] the oldest commit is dropped when more commits exist than are kept for replay", async () => {
  const disk = new MemoryDisk({ commitsRemembered: 2 });
  const store = memoryStore({ host: simulatedHost(1), disk });
  const commit = async (localSequence: number) => {
    const request = commitBy("s", localSequence, { patches: [set("a", [], localSequence)] });
    return committed(await store.commit(request)).replayed;
  };
  expect([await commit(1), await commit(2), await commit(1)]).toEqual([false, false, true]);
  expect([await commit(3), await commit(2), await commit(3), await commit(1)]).toEqual([false, true, true, false]);
});

test("[S14] a patch that does not fit its document is misuse and leaves no trace", async () => {
  const store = memoryStore({ host: simulatedHost(1) });
  const request = commitBy("s", 1, { patches: [set("a", [], 1), set("a", ["below", "a", "number"], 1)] });
  await expect(store.commit(request)).rejects.toMatchObject({ code: "STORE_MISUSE" });
  expect((await store.verify()).documents).toBe(0);
});
