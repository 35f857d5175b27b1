import { describe, expect, test } from "#test";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { template, timers } from "./timer-setup.ts";

describe("a timer that is set again while its message is being handled", () => {
  test("[T6] [T9] a repeated timer sends no message twice, and its message counts as handled only after its handler", async () => {
    const host = simulatedHost(1);
    const disk = new MemoryDisk();
    const store = () => memoryStore({ host, disk });
    const before = await timers({ host, store });
    await before.set({ delayMs: 10, message: template }, "set");
    await host.advance(20);
    // Its answer got lost, so its sender asks again; its message has no answer yet.
    await before.set({ delayMs: 10, message: template }, "set");
    await host.advance(20);
    expect(before.arrived.filter(({ message }) => message.kind === "command")).toHaveLength(1);
    await host.run(() => before.loop.stop());
    const after = await timers({ host, store, answers: () => true });
    await host.advance(0);
    expect(after.types()).toEqual(["0 Timer.Fired", "0 Build.Run"]);
    await host.advance(10);
    expect(await store().earliestDue()).toBeUndefined();
  });
});
