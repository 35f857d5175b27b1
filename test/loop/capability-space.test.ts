/** Capabilities with a space: `capability({ space })`, and `transactional()`, its alias. */
import { describe, expect, test } from "#test";
import { Space } from "../../src/cells/space.ts";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { capability } from "../../src/loop/define-capability.ts";
import { EventLoop } from "../../src/loop/event-loop.ts";
import type { CapabilityContext } from "../../src/loop/mailbox-actor.ts";
import { dataSchema } from "../../src/loop/message-schema.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { Tx } from "../../src/work/tx.ts";

describe("a capability with a space", () => {
  test("[L32] its handlers get a transaction, and those of a capability without one the plain context", async () => {
    const host = simulatedHost(1);
    const space = await host.run(() => Space.open({ host, store: memoryStore({ host }), name: "shop" }));
    const count = space.cell<number>("count", 0);
    await host.run(() => count.pull());
    const contexts: unknown[] = [];
    const input = dataSchema<{ readonly by: number }>(() => undefined, { type: "object" });
    const counter = capability({
      description: "counts",
      space,
      commands: {
        "Counter.Add": {
          input,
          handle: ({ by }, tx) => {
            const [typed, step]: [Tx, number] = [tx, by];
            contexts.push(typed);
            tx.update(count, (n) => n + step);
            return tx.get(count);
          },
        },
      },
    });
    const plain = capability({
      description: "says hello",
      commands: {
        "Greeter.Hello": {
          handle: (_data, context) => {
            const typed: CapabilityContext = context;
            contexts.push(typed);
            return "hello";
          },
        },
      },
    });
    const loop = await host.run(() => EventLoop.boot({ host, capabilities: { counter, plain } }));
    expect(await host.run(() => loop.command("Counter.Add", { by: 2 }))).toBe(2);
    expect(await host.run(() => loop.command("Greeter.Hello", null))).toBe("hello");
    expect(contexts.map((one) => one instanceof Tx)).toEqual([true, false]);
    expect([counter.work, plain.work]).toEqual([space, undefined]);
  });
});
