/**
 * Requests to the Timer capability: used ids, bounds of one client, timeouts of others, and a wall clock that is
 * corrected.
 */
import { describe, expect, test } from "#test";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { POLL_INTERVAL_MS } from "../../src/limits.ts";
import { timerCapability } from "../../src/loop/timer.ts";
import type { Json } from "../../src/message/json.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { BareActor, bare, type Client, command, query, setup } from "./loop-setup.ts";
import { stores, template, timers } from "./timer-setup.ts";

const other = { ...template, data: { target: "site" } };

for (const [where, store] of stores) {
  describe(`requests to timers ${where}`, () => {
    test("[T13] another request under the id of an armed timer is 409, and the first timer fires", async () => {
      const { set, every, host, one, arrived } = await timers({ store, answers: () => true });
      const timerId = await set({ delayMs: 400, message: template }, "1");
      const others: readonly Json[] = [
        { delayMs: 600, message: other },
        { delayMs: 401, message: template },
        { dueAt: host.now() + 400, message: template },
      ];
      for (const data of others) {
        await set(data, "1");
        expect(one.received.at(-1)).toMatchObject({ kind: "error", data: { code: 409 } });
      }
      await every({ everyMs: 100, message: template }, "1");
      expect(one.received.at(-1)).toMatchObject({ kind: "error", data: { code: 409 } });
      expect(await set({ delayMs: 400, message: template }, "1")).toBe(timerId);
      await host.advance(10_000);
      const sent = arrived.filter(({ message }) => message.kind === "command");
      expect(sent.map(({ at, message }) => [at, message.data])).toEqual([[400, template.data]]);
    });

    test("[T14] a client has a bounded number of timers, and gets room when one fires or is cancelled", async () => {
      const host = simulatedHost(1);
      const actor = new BareActor();
      actor.postMessage = (message) => actor.reply(message);
      const made = await setup(
        {
          timer: timerCapability({ store: store?.(host), timersPerClientMax: 2 }),
          build: bare(() => actor, { takes: [["command", "Build.Run"]] }),
        },
        { host },
      );
      const ask = async (client: Client, id: string, data: Json, type = "Timer.Set") => {
        made.loop.receive(command(type, id, data), client);
        await host.advance(0);
        return client.received.at(-1);
      };
      const [greedy, modest] = [made.client(), made.client()];
      const far = { delayMs: 60_000, message: template };
      await ask(greedy, "g1", { delayMs: 20_000, message: template });
      const second = await ask(greedy, "g2", far);
      const refused = await ask(greedy, "g3", far);
      const reason = "this client has 2 timers waiting; cancel some, or wait until some fired";
      expect(refused).toMatchObject({ kind: "error", data: { code: 503, message: reason } });
      // A repeated request is not one more, and other clients have bounds of their own.
      expect(await ask(modest, "m1", far)).toMatchObject({ kind: "reply" });
      await ask(greedy, "c", second?.data ?? null, "Timer.Cancel");
      expect(await ask(greedy, "g4", far)).toMatchObject({ kind: "reply" });
      expect(await ask(greedy, "g5", far)).toMatchObject({ kind: "error" });
      await host.advance(20_000);
      expect(await ask(greedy, "g6", far)).toMatchObject({ kind: "reply" });
      expect(await ask(greedy, "g7", far)).toMatchObject({ kind: "error" });
    });

    test("[T16] a delay that is set while the clock is ahead is not longer for that after the clock was set back", async () => {
      const { set, host, types, arrived } = await timers({ store, answers: () => true });
      await set({ delayMs: 2 * 3_600_000, message: template }, "before");
      host.stepClock(3_600_000);
      await set({ delayMs: 5 * 60_000, message: template }, "ahead");
      await set({ delayMs: 5 * 60_000, message: template }, "also");
      host.stepClock(-3_600_000);
      await host.advance(5 * 60_000 - 1);
      expect(arrived).toEqual([]);
      await host.advance(1);
      expect(types()).toHaveLength(4);
      const sent = arrived.filter(({ message }) => message.kind === "command");
      expect(sent.map(({ message }) => message.metadata.causation)).toEqual(["ahead", "also"]);
      await host.advance(2 * 3_600_000 - 5 * 60_000);
      expect(types()).toHaveLength(6);
    });

    test("[T19] a client's timeout works however many timeouts other clients have set, and ends only its own requests", async () => {
      const host = simulatedHost(1);
      const actor = new BareActor();
      const timer = timerCapability({ store: store?.(host) });
      const made = await setup({ timer, silent: bare(() => actor) }, { host });
      const [one, two] = [made.client(), made.client()];
      const timeout = (requestId: string, delayMs: number) => ({
        delayMs,
        message: { kind: "command", type: "Sys.RequestTimeout", data: { requestId } },
      });
      made.loop.receive(query("Bare.Ask", "q1"), one);
      made.loop.receive(command("Timer.Set", "own", timeout("q1", 5_000)), one);
      for (let n = 0; n < 12_000; n++) {
        made.loop.receive(command("Timer.Set", `other${n}`, timeout("q1", n < 10 ? 1_000 : 1e9)), two);
        if (n % 1_000 === 0) await host.advance(0);
      }
      await host.advance(4_000);
      expect(one.answers.filter((answer) => answer.includes("q1"))).toEqual([]);
      await host.advance(1_000);
      expect(one.answers.filter((answer) => answer.includes("q1"))).toEqual(["error q1 504"]);
    });
  });
}

describe("used ids of durable timers", () => {
  test("[T13] an id stays used after its timer has fired, in this process and in the next", async () => {
    const disk = new MemoryDisk();
    const host = simulatedHost(1);
    const store = () => memoryStore({ host, disk });
    const before = await timers({ host, store, answers: () => true });
    const timerId = await before.set({ delayMs: 50, message: template }, "7");
    await host.advance(1_000);
    const after = await timers({ host, store, answers: () => true });
    for (const made of [before, after]) {
      await made.set({ delayMs: 50, message: other }, "7");
      expect(made.one.received.at(-1)).toMatchObject({ kind: "error", data: { code: 409 } });
      expect(await made.set({ delayMs: 50, message: template }, "7")).toBe(timerId);
    }
    await host.advance(2 * POLL_INTERVAL_MS);
    const sent = [...before.arrived, ...after.arrived].filter(({ message }) => message.kind === "command");
    expect(sent).toHaveLength(1);
  });
});
