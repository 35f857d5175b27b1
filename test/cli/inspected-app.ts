/**
 * An app with a part of every kind that reading verbs explain: a commit, derived values observed and unobserved, an
 * event that fails, a timer.
 */
import { existsSync } from "node:fs";
import { index } from "../../src/cells/collection.ts";
import type { KernelParts } from "../../src/kernel/kernel-options.ts";
import { capability } from "../../src/loop/define-capability.ts";
import type { CapabilityContext } from "../../src/loop/mailbox-actor.ts";
import { transactional } from "../../src/loop/transactional.ts";

/** Computed values are stored, so that the file of a stopped kernel has them. */
export const version = "1";

export default ({ space, bus }: KernelParts) => {
  const orders = space.cell<readonly number[]>("orders");
  const sum = space.computed("sum", () => (orders.get() ?? []).reduce((total, price) => total + price, 0));
  sum.sink(() => undefined);
  space.computed("average", () => (sum.get() ?? 0) / (orders.get()?.length ?? 1));
  bus.subscribe(
    "Order.Refused",
    () => {
      // Fails until the fault is repaired.
      if (!existsSync("repaired")) throw new Error("the printer is on fire");
    },
    { subscriberId: "printer" },
  );
  // A transaction of the bus, by a pattern.
  bus.subscribe("Order.*", ({ payload }, tx) => tx.set(space.cell("last-order"), payload), {
    subscriberId: "ledger",
    space,
  });
  const tasks = space.collection<{ due: number }, "by_due">("tasks", {
    indexes: [index("by_due", (task) => [task.due], { totals: 1 })],
  });
  const held: (() => void)[] = [];
  return {
    shop: transactional({
      ...{ space, description: "takes orders", emits: { "Order.Placed": true } },
      commands: {
        "Shop.Order": {
          handle: ({ price }: { price: number }, tx) => {
            tx.set(orders, [...(tx.get(orders) ?? []), price]);
            tx.emit("Order.Placed", { price });
            return { accepted: true };
          },
        },
        "Shop.Plan": { handle: ({ due }: { due: number }) => void tasks.set("t1", { due }) },
      },
    }),
    audit: capability({ description: "hears of orders", on: { "Order.Placed": () => undefined } }),
    clerk: capability({
      description: "asks others, and sets a timer",
      // No row for a command that a client waits for.
      durable: "unawaited",
      commands: {
        "Clerk.Remind": {
          handle: async (data: { price: number }, { command, query }: CapabilityContext) => {
            await query("Syscall.Ping", null);
            const message = { kind: "command", type: "Shop.Order", data };
            return command("Timer.Set", { delayMs: 1, message });
          },
        },
      },
      sends: { "Syscall.Ping": "query", "Timer.Set": "command" },
    }),
    gate: capability({
      description: "holds until the kernel ends",
      commands: { "Gate.Hold": { handle: () => new Promise<null>((resolve) => void held.push(() => resolve(null))) } },
    }),
  };
};
