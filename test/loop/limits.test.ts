/** Chosen bounds of a loop, at the edge and one past it. */
import { describe, expect, test } from "#test";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { TIMER_DELAY_MS_MAX } from "../../src/limits.ts";
import { capability } from "../../src/loop/define-capability.ts";
import { EventLoop } from "../../src/loop/event-loop.ts";
import { timerCapability } from "../../src/loop/timer.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { BareActor, bare, command, query, setup } from "./loop-setup.ts";

const template = { kind: "event", type: "Some.Thing", data: null };

describe("limits of a loop", () => {
  test("[L35] [L6] laneMax messages wait in a lane; one more is a 503 that names the limit", async () => {
    const actor = new BareActor();
    const { loop, client, settle } = await setup({ a: bare(() => actor) }, { laneMax: 2 });
    const one = client();
    for (const id of ["q1", "q2", "q3"]) loop.receive(query("Bare.Ask", id), one);
    expect(one.received.map(({ data }) => data)).toEqual([{ code: 503, message: "the user lane is full (2)" }]);
    await settle();
    expect(actor.posted.map(({ metadata }) => metadata.id)).toEqual(["q1", "q2"]);
  });

  test("[L6] an event that a full lane does not take is told to the handler that emits it, with 503", async () => {
    const emitter = capability({
      description: "emits twice",
      emits: { "Some.Thing": true },
      commands: { "Emit.Two": { handle: (_data, { emit }) => [1, 2].forEach((n) => void emit("Some.Thing", n)) } },
    });
    const { loop, client, settle } = await setup({ emitter }, { laneMax: 1 });
    const one = client();
    loop.receive(command("Emit.Two", "c"), one);
    await settle();
    expect(one.answers).toEqual(["error c 503"]);
  });

  test("[L35] [L4] microtasksMax microtasks run at the end of a turn, the next one in the next turn", async () => {
    const { loop, settle, observed } = await setup({}, { microtasksMax: 2 });
    let ran = 0;
    for (let n = 0; n < 3; n++) loop.microtask(() => ran++);
    await settle();
    expect(ran).toBe(3);
    expect(observed.map(({ type, data }) => [type, data])).toEqual([["Sys.MicrotaskOverflow", { carried: 1 }]]);
  });

  test("[L35] [L15] mailboxMax messages wait in a mailbox, one more is 503", async () => {
    const actor = Object.assign(new BareActor(), { mailboxLength: 1 });
    const { loop, client, settle } = await setup({ a: bare(() => actor) }, { mailboxMax: 2 });
    const one = client();
    loop.receive(query("Bare.Ask", "q1"), one);
    await settle();
    actor.mailboxLength = 2;
    loop.receive(query("Bare.Ask", "q2"), one);
    await settle();
    expect(one.answers).toEqual(["error q2 503"]);
  });

  test("[L35] an invalid limit is refused before any actor is started", async () => {
    const started: string[] = [];
    const spy = bare(() => {
      started.push("a");
      return new BareActor();
    });
    for (const limits of [{ laneMax: 0 }, { mailboxMax: 1.5 }, { microtasksMax: Number.NaN }]) {
      const boot = EventLoop.boot({ host: simulatedHost(1), capabilities: { a: spy }, ...limits });
      await expect(boot).rejects.toThrow(/must be a whole number of at least 1/);
    }
    for (const requestTimeoutMs of [-1, 0, Number.NaN, TIMER_DELAY_MS_MAX + 1]) {
      const boot = EventLoop.boot({ host: simulatedHost(1), capabilities: { a: spy }, requestTimeoutMs });
      await expect(boot).rejects.toThrow(/^requestTimeoutMs must be/);
    }
    expect(started).toEqual([]);
  });
});

describe("limits of timers", () => {
  async function timers(limits: Parameters<typeof timerCapability>[0], isDurable = false) {
    const host = simulatedHost(1);
    const store = isDurable ? memoryStore({ host }) : undefined;
    const made = await setup({ timer: timerCapability({ store, ...limits }) }, { host });
    const one = made.client();
    const ask = async (id: string, data: object, type = "Timer.Set") => {
      made.loop.receive(command(type, id, { ...data, message: template } as never), one);
      await made.settle();
      return one.answers.at(-1)?.split(" ").slice(0, 3).join(" ");
    };
    return { ...made, ask };
  }

  test("[L35] [T3] a timer may be set timerDelayMsMax ahead, one millisecond more is 422", async () => {
    const { host, ask } = await timers({ timerDelayMsMax: 1_000 });
    expect(await ask("a", { delayMs: 1_000 })).toMatch(/^reply a/);
    expect(await ask("b", { delayMs: 1_001 })).toBe("error b 422");
    expect(await ask("c", { dueAt: host.now() + 1_000 })).toMatch(/^reply c/);
    expect(await ask("d", { dueAt: host.now() + 1_001 })).toBe("error d 422");
    expect(await ask("e", { everyMs: 1_000 }, "Timer.Every")).toMatch(/^reply e/);
    expect(await ask("f", { everyMs: 1_001 }, "Timer.Every")).toBe("error f 422");
  });

  test("[L35] [T10] timersMax timers wait in memory, one more is 503; a repeated one does not count", async () => {
    const { host, ask } = await timers({ timersMax: 2 });
    expect(await ask("a", { delayMs: 10 })).toMatch(/^reply a/);
    expect(await ask("b", { delayMs: 20 })).toMatch(/^reply b/);
    expect(await ask("b", { delayMs: 20 })).toMatch(/^reply b/);
    expect(await ask("c", { delayMs: 30 })).toBe("error c 503");
    await host.advance(10);
    expect(await ask("c", { delayMs: 30 })).toMatch(/^reply c/);
  });

  test("[L35] [T10] a store keeps as many as it has room for", async () => {
    const { ask } = await timers({ timersMax: 1 }, true);
    for (const id of ["a", "b", "c"]) expect(await ask(id, { delayMs: 10 })).toMatch(new RegExp(`^reply ${id}`));
  });

  for (const [kind, isDurable] of [
    ["event", false],
    ["event", true],
    ["query", true],
  ] as const) {
    const where = isDurable ? "in a store" : "in memory";
    test(`[L6] [T1] with room for one message, a timer ${where} still sends its ${kind}, after Timer.Fired`, async () => {
      const host = simulatedHost(1);
      const store = isDurable ? memoryStore({ host }) : undefined;
      const actor = new BareActor();
      const listener = bare(() => actor, { subscribes: ["Timer.Fired", "Some.Thing"] });
      const timer = timerCapability({ store });
      const { loop, client } = await setup({ timer, listener }, { host, laneMax: 1 });
      const type = kind === "event" ? "Some.Thing" : "Bare.Ask";
      loop.receive(command("Timer.Set", "t", { delayMs: 10, message: { kind, type, data: null } }), client());
      await host.advance(10_000);
      expect(actor.posted.map((given) => given.type)).toEqual(["Timer.Fired", type]);
    });
  }

  test("[L35] no timer may be set further ahead than the host can wait", () => {
    expect(() => timerCapability({ timerDelayMsMax: TIMER_DELAY_MS_MAX + 1 })).toThrow(/100 years/);
  });
});
