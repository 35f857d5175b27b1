/** The end of a kernel with work that never ends: it closes when the grace is over, and names the abandoned work. */
import { describe, expect, test } from "vitest";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { Kernel } from "../../src/kernel/kernel.ts";
import type { KernelOptions } from "../../src/kernel/kernel-options.ts";
import type { SpawnContext } from "../../src/loop/capability.ts";
import { capability } from "../../src/loop/define-capability.ts";
import type { Message } from "../../src/message/envelope.ts";
import { causedBy, commandMessage } from "../../src/message/lineage.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";

const forever = new Promise<never>(() => undefined);
const GRACE_MS = 5_000;

async function site(capabilities: KernelOptions["capabilities"] = {}) {
  const host = simulatedHost(1);
  const observed: Message[] = [];
  const observe = (message: Message) => observed.push(message);
  const kernel = await host.run(() => Kernel.open({ host, store: memoryStore({ host }), capabilities, observe }));
  return {
    host,
    kernel,
    faults: () => observed.filter(({ type }) => type === "Sys.NodeFault").map(({ data }) => data),
    /** How long it took, if it has closed. */
    closed: async () => {
      const began = host.monotonic();
      let took: number | undefined;
      kernel.close({ graceMs: GRACE_MS }).then(() => {
        took = host.monotonic() - began;
      });
      await host.advance(10 * GRACE_MS);
      return took;
    },
  };
}

describe("the end of a kernel with work that never ends", () => {
  test("[K164] an effect that never ends is named when the kernel closes", async () => {
    const { kernel, closed, faults } = await site();
    kernel.space.effect(() => forever, { id: "stuck" });
    expect(await closed()).toBe(GRACE_MS);
    expect(faults()).toEqual([expect.objectContaining({ node: "stuck" })]);
    expect(kernel.health().state).toBe("stopped");
  });

  test("[K164] the send of a stream handler that never ends is dropped and named", async () => {
    const { kernel, host, closed, faults } = await site();
    const stream = kernel.space.stream<number>("orders");
    stream.handle(() => forever);
    const { outcome } = stream.send(1);
    expect(await closed()).toBe(GRACE_MS);
    expect(await host.run(() => outcome)).toMatchObject({ kind: "dropped", reason: "closed" });
    expect(faults()).toEqual([expect.objectContaining({ reason: expect.stringContaining("stream orders") })]);
  });

  test("[K23] the event of a bus handler that never ends is left to the next process", async () => {
    const { kernel, host, closed } = await site();
    kernel.subscribe("Order.Placed", () => forever, { subscriberId: "clerk" });
    await host.run(() => kernel.publish("Order.Placed", {}));
    await host.advance(0);
    expect(await closed()).toBe(GRACE_MS);
  });

  test("[K23] if an actor does not terminate, the rest closes, and the caller gets an error", async () => {
    const echo = capability({ description: "echo", queries: { "Echo.Say": { handle: (data) => data } } });
    const deaf = {
      ...echo,
      spawn: (context: SpawnContext) => Object.assign(echo.spawn(context), { terminate: () => forever }),
    };
    const { host, kernel } = await site({ deaf });
    const failed = kernel.close({ graceMs: GRACE_MS }).catch((error: unknown) => error);
    await host.advance(GRACE_MS);
    expect(await failed).toMatchObject({ errors: [{ message: expect.stringContaining("not ended in time: deaf;") }] });
    expect(kernel.health().state).toBe("stopped");
  });

  test("[K23] a capability and an effect that never end share the grace", async () => {
    const stuck = capability({ description: "stuck", commands: { "Stuck.Work": { handle: () => forever } } });
    const { kernel, host, closed } = await site({ stuck });
    kernel.space.effect(() => forever);
    const answer = kernel.command("Stuck.Work", null).catch((error: unknown) => error);
    const took = await closed();
    expect(took).toBeGreaterThanOrEqual(GRACE_MS);
    expect(took).toBeLessThan(2 * GRACE_MS);
    expect(await host.run(() => answer)).toMatchObject({ code: 503 });
  });
});

describe("the end of a kernel with a backlog", () => {
  test("[K23] after close no event of a backlog begins or fails, and the next kernel continues", async () => {
    const host = simulatedHost(1);
    const disk = new MemoryDisk();
    let done = 0;
    const worker = capability({
      description: "works",
      commands: { "Work.Do": { handle: () => void done++ } },
      idempotent: true,
    });
    const boss = capability({
      description: "gives orders",
      sends: { "Work.Do": "command" },
      on: {
        "User.Seen": async (data, { host: clock, send }, message) => {
          await clock.yield();
          send(commandMessage(clock, "Work.Do", data, causedBy(message)));
        },
      },
    });
    const open = () =>
      host.run(() => Kernel.open({ host, store: memoryStore({ host, disk }), capabilities: { worker, boss } }));
    let kernel = await open();
    const events = Array.from({ length: 300 }, (_, n) => ({ topic: "User.Seen", source: "test", payload: n }));
    await host.run(() => kernel.bus.publishMany(events));
    const began = host.monotonic();
    await host.run(() => kernel.close({ graceMs: GRACE_MS }));
    expect(host.monotonic() - began).toBeLessThan(GRACE_MS);
    expect(done).toBeLessThan(events.length);
    kernel = await open();
    await host.run(() => kernel.idle());
    expect(await host.run(() => kernel.bus.query({ status: "failed", limit: 10 }))).toEqual([]);
    expect(await host.run(() => kernel.bus.query({ status: "pending", limit: 10 }))).toEqual([]);
    expect(done).toBe(events.length);
    await host.run(() => kernel.close());
  });
});
