/** Events that a timer sends are kept by it until the journal has them. */
import { expect, test } from "vitest";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { Kernel } from "../../src/kernel/kernel.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { type Store, StoreError } from "../../src/store/store.ts";

test("[T6] a journal that refuses appends for a while delays the event of a timer, which comes once", async () => {
  const host = simulatedHost(1);
  const real = memoryStore({ host });
  let isBusy = false;
  const store: Store = new Proxy(real, {
    get: (target, name) => {
      const member = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      if (name === "append" && isBusy) return () => Promise.reject(new StoreError("STORE_BUSY", "busy"));
      return member.bind(target);
    },
  });
  const heard: string[] = [];
  const kernel = await host.run(() =>
    Kernel.open({
      ...{ host, store, observe: () => undefined },
      capabilities: ({ bus }) => {
        bus.subscribe("Some.Thing", ({ message }) => void heard.push(message.metadata.id), { subscriberId: "s" });
        return {};
      },
    }),
  );
  const message = { kind: "event", type: "Some.Thing", data: null };
  await host.run(() => kernel.command("Timer.Set", { delayMs: 100, message }));
  isBusy = true;
  await host.advance(5_000);
  expect(heard).toEqual([]);
  isBusy = false;
  await host.advance(60_000);
  expect(heard).toHaveLength(1);
  await host.run(() => kernel.close());
});
