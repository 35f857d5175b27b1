/** Events that a command emits are handled in the process that committed them. */
import { expect, test } from "vitest";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { Kernel } from "../../src/kernel/kernel.ts";
import { capability } from "../../src/loop/define-capability.ts";
import { transactional } from "../../src/loop/transactional.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";

test("[J86] an event of a command's commit is handled at once, without a claim and without a delay", async () => {
  const host = simulatedHost(1);
  const store = memoryStore({ host });
  const heard: unknown[] = [];
  const opening = Kernel.open({
    host,
    store,
    capabilities: ({ space }) => ({
      shop: transactional({
        space,
        description: "takes orders",
        emits: { "Order.Placed": true },
        commands: {
          "Shop.Order": {
            handle: (data: { n: number }, tx) => {
              tx.emit("Order.Placed", data);
              return null;
            },
          },
        },
      }),
      clerk: capability({ description: "hears of orders", on: { "Order.Placed": (data) => void heard.push(data) } }),
    }),
  });
  await host.advance(100);
  const kernel = await opening;
  // From now on no event can be claimed: handled ones were handed over.
  store.claim = () => Promise.resolve([]);
  const nowMs = host.now();
  for (const n of [1, 2]) {
    const ordering = kernel.command("Shop.Order", { n });
    await host.advance(0);
    await ordering;
  }
  expect(heard).toEqual([{ n: 1 }, { n: 2 }]);
  const idle = kernel.idle();
  await host.advance(0);
  await idle;
  expect(host.now() - nowMs).toBe(0);
  expect(await store.count()).toMatchObject({ pending: 0, processing: 0, failed: 0 });
  const closing = kernel.close();
  await host.advance(60_000);
  await closing;
});
