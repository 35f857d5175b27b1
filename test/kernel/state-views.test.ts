/** The state of a kernel for tools: failures by cause, actors, timers, and the authors of actions. */
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { app } from "../../src/app/app.ts";
import { type } from "../../src/app/event-definition.ts";
import { on } from "../../src/app/on.ts";
import type { FailureGroups } from "../../src/bus/failure-groups.ts";
import { systemHost } from "../../src/host/system-host.ts";
import { Kernel } from "../../src/kernel/kernel.ts";
import type { ActorView, TimerView } from "../../src/kernel/state-views.ts";
import { capability } from "../../src/loop/define-capability.ts";
import type { Json } from "../../src/message/json.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { openOn, STORES } from "../app/app-setup.ts";
import { serve } from "../http/http-setup.ts";

const letters = app("letters", ({ event }) => {
  const received = event("Letter.Received", type<{ to: string; road: string }>());
  return {
    commands: {
      "Letter.Take": (letter: { to: string; road: string }, tx) => {
        tx.emit(received, letter);
        return null;
      },
    },
    on: {
      carrier: on(
        received,
        ({ to, road }) => {
          if (road === "flooded") throw new Error(`road 17 to "${to}" is under 3 feet of water`);
          if (road === "closed") throw new Error(`the gate before ${to} is closed`);
        },
        { retry: 1 },
      ),
    },
  };
});

const taken = (to: string, road: string) => ({ to, road });

describe.for(STORES)("failures by cause, %s", (store) => {
  test("[W85] failures with one type, subscriber and error are one group; names, ids and numbers do not divide it", async () => {
    const kernel = await openOn(store, letters);
    const all = [taken("ann", "flooded"), taken("bob", "open"), taken("cy", "flooded"), taken("dan", "closed")];
    for (const letter of all) await kernel.command("Letter.Take", letter);
    await kernel.idle();
    const ask = async (asked: Json) => (await kernel.kernel.query("Kernel.Failures", asked)) as never as FailureGroups;
    const { groups, scanned, scannedTo } = await ask(null);
    expect(scanned).toBe(3);
    expect(scannedTo).toBeUndefined();
    expect(groups.map(({ type, subscriber, error, count }) => ({ type, subscriber, error, count }))).toEqual([
      { type: "Letter.Received", subscriber: "letters.carrier", error: "the gate before dan is closed", count: 1 },
      {
        ...{ type: "Letter.Received", subscriber: "letters.carrier", count: 2 },
        error: 'road 17 to "cy" is under 3 feet of water',
      },
    ]);
    const [closed, flooded] = groups;
    expect(closed?.fingerprint).not.toBe(flooded?.fingerprint);
    expect(flooded?.correlations).toBe(2);
    expect(flooded?.sample).toHaveLength(2);
    expect(flooded?.buckets.reduce((sum, count) => sum + count, 0)).toBe(2);
    expect((await ask({ filter: "data.road:closed" })).groups.map(({ count }) => count)).toEqual([1]);
  });

  test("[W85] a bad filter, cursor or time is refused with 422", async () => {
    const kernel = await openOn(store, letters);
    for (const asked of [{ filter: "colour:red" }, { cursor: "x" }, { withinMs: 0 }])
      await expect(kernel.kernel.query("Kernel.Failures", asked)).rejects.toMatchObject({ code: 422 });
  });
});

test("[W86] an actor tells the length of its mailbox, its oldest running handler, and how long its handlings took", async () => {
  const host = systemHost();
  const releases: (() => void)[] = [];
  const begun = (count: number) => vi.waitFor(() => expect(releases).toHaveLength(count), { timeout: 60_000 });
  const kernel = await Kernel.open({
    ...{ host, store: memoryStore({ host }), trace: true },
    capabilities: {
      gate: capability({
        description: "waits",
        queries: {
          "Gate.Look": { handle: () => "open" },
          "Gate.Hold": {
            handle: () =>
              new Promise<null>((resolve) => {
                releases.push(() => resolve(null));
              }),
          },
        },
      }),
    },
  });
  onTestFinished(() => kernel.close({ graceMs: 0 }));
  await kernel.query("Gate.Look", null);
  const held = kernel.query("Gate.Hold", null);
  await begun(1);
  const second = kernel.query("Gate.Hold", null);
  const gate = async () => {
    const { actors } = (await kernel.query("Kernel.Actors", null)) as never as { actors: ActorView[] };
    return actors.find(({ name }) => name === "gate");
  };
  expect(await gate()).toMatchObject({
    ...{ state: "running", mailbox: 2, running: 1 },
    oldest: { type: "Gate.Hold" },
    handled: { count: 1, failed: 0 },
  });
  releases[0]?.();
  await held;
  await begun(2);
  releases[1]?.();
  await second;
  expect(await gate()).toMatchObject({ mailbox: 0, running: 0, handled: { count: 3 } });
});

test("[W87] timers are listed with their time, the earliest first", async () => {
  const kernel = await openOn("memory", letters);
  const message = { kind: "command", type: "Letter.Take", data: taken("eve", "open") } as const;
  for (const delayMs of [7_200_000, 3_600_000]) await kernel.kernel.command("Timer.Set", { delayMs, message });
  const { timers } = (await kernel.kernel.query("Kernel.Timers", null)) as never as { timers: TimerView[] };
  expect(timers).toHaveLength(2);
  expect((timers[1]?.dueAtMs ?? 0) - (timers[0]?.dueAtMs ?? 0)).toBeGreaterThan(3_000_000);
  const one = (await kernel.kernel.query("Kernel.Timers", { limit: 1 })) as never as { timers: TimerView[] };
  expect(one.timers.map(({ key }) => key)).toEqual([timers[0]?.key]);
});

test("[W88] the audit row of an action over HTTP names the token, whatever the client says", async () => {
  const { post, kernel } = await serve();
  const answer = await post("/v1/commands/Kernel.Purge", { keepSettled: 0, by: "somebody else" });
  expect(answer.status).toBe(200);
  expect(((await answer.json()) as { removed: number }).removed).toBeGreaterThan(0);
  const { rows } = (await kernel.kernel.query("Kernel.Journal", { filter: "type:Sys.Audited" })) as never as {
    rows: { message: { data: Json } }[];
  };
  expect(rows.map(({ message }) => message.data)).toEqual([expect.objectContaining({ action: "purge", by: "test" })]);
});
