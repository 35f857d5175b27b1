/** Timers that are set twice, refused for the moment, or shared by several processes. */
import { describe, expect, test } from "#test";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { TIMERS_FIRED_MAX } from "../../src/limits.ts";
import { timerCapability } from "../../src/loop/timer.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { BareActor, bare, command, setup } from "./loop-setup.ts";
import { template, timers } from "./timer-setup.ts";

function shared() {
  const host = simulatedHost(1);
  const disk = new MemoryDisk();
  return { host, disk, store: () => memoryStore({ host, disk }) };
}

describe("timers of two processes", () => {
  test("[T9] a set that is repeated under its id, by the same process or the next, is one timer", async () => {
    const { host, store } = shared();
    const first = await timers({ host, store, answers: () => true });
    const id = await first.set({ delayMs: 50, message: template }, "set");
    const second = await timers({ host, store, answers: () => true });
    expect(await second.set({ delayMs: 50, message: template }, "set")).toBe(id);
    await host.advance(60);
    const came = [...first.arrived, ...second.arrived].filter(({ message }) => message.kind === "command");
    expect(came).toHaveLength(1);
  });

  test("[T9] one of two processes fires a timer, and the other one's look does not disturb it", async () => {
    const { host, store } = shared();
    const one = await timers({ host, store });
    const two = await timers({ host, store });
    await one.set({ delayMs: 50, message: template });
    await host.advance(100);
    // Without an answer, the next process finds it marked.
    expect(one.arrived.length + two.arrived.length).toBe(2);
    const next = await timers({ host, store, answers: () => true });
    await host.advance(0);
    expect(next.types()).toEqual(["0 Timer.Fired", "0 Build.Run"]);
  });

  test("[T6] rows of another kind, however many are overdue, keep no timer from firing", async () => {
    const { host, store } = shared();
    const dueAtMs = host.now() - 1_000;
    const rows = Array.from({ length: 2 * TIMERS_FIRED_MAX }, (_, n) => ({ kind: "other", key: `${n}`, dueAtMs }));
    await host.run(() => store().changeDue(rows.map((row) => ({ ...row, op: "put", data: null }))));
    const one = await timers({ host, store, answers: () => true });
    await one.set({ delayMs: 50, message: template });
    await host.advance(2_000);
    expect(one.arrived.map(({ message }) => message.type)).toEqual(["Timer.Fired", "Build.Run"]);
  });

  test("[T20] a message that is refused with 503 is sent again under the same id, later and later, until it is handled", async () => {
    const { host, store } = shared();
    const seen: { at: number; id: string }[] = [];
    const actor = new BareActor();
    const start = host.monotonic();
    actor.postMessage = (message) => {
      seen.push({ at: host.monotonic() - start, id: message.metadata.id });
      if (seen.length < 4) actor.fail(message, 503);
      else actor.reply(message);
    };
    const made = await setup(
      { timer: timerCapability({ store: store() }), build: bare(() => actor, { takes: [["command", "Build.Run"]] }) },
      { host },
    );
    made.loop.receive(command("Timer.Set", "set", { delayMs: 10, message: template }), made.client());
    await host.advance(60_000);
    expect(seen.map(({ at }) => at)).toEqual([10, 1_010, 3_010, 7_010]);
    expect(new Set(seen.map(({ id }) => id)).size).toBe(1);
    expect(await store().earliestDue()).toBeUndefined();
  });
});
