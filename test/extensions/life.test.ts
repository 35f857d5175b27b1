/** The life of extensions: contained failures, time limits, health, services, and the end. */
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { ExtensionContext } from "../../src/extensions/extension-context.ts";
import { EXTENSION_STEP_MS, HEALTH_INTERVAL_MS, LEASE_MS } from "../../src/limits.ts";
import { capability } from "../../src/loop/define-capability.ts";
import type { Json } from "../../src/message/json.ts";
import { scratchFolder } from "../repo/program.ts";
import { channel, ExtensionFolder, inCode, open, SimulatedWorld } from "./extension-setup.ts";

function never(): Promise<never> {
  return new Promise(() => undefined);
}

/** Bad health, and its report. */
const ILL: readonly (readonly [string, () => unknown, string])[] = [
  ["false", () => false, "it says that it is not well"],
  ["a throw", () => Promise.reject(new Error("disk gone")), "disk gone"],
  ["no answer", never, `health of sick took longer than ${EXTENSION_STEP_MS} ms`],
  ["something else", () => "fine", "it says that it is not well"],
];

describe("failures", () => {
  test.for(["initialize", "start"] as const)(
    "[X14] a failure in %s puts the extension and its dependents into ERROR, and no other",
    async (step) => {
      const folder = new ExtensionFolder();
      folder.addLiving("base");
      folder.addLiving("bad", { dependsOn: ["base"], fails: step });
      folder.addLiving("child", { dependsOn: ["bad"] });
      folder.addLiving("grandchild", { dependsOn: ["child"] });
      folder.addLiving("stranger");
      const { states, status, kernel } = await open({ extensions: folder.path });
      expect(states()).toEqual({
        base: "ACTIVE",
        bad: "ERROR",
        child: "ERROR",
        grandchild: "ERROR",
        stranger: "ACTIVE",
      });
      expect(status("bad").reason).toBe(`${step}: bad cannot ${step}`);
      expect(status("child").reason).toBe(`depends on bad, which failed: ${step}: bad cannot ${step}`);
      expect(status("grandchild").reason).toMatch(/^depends on child, which failed: depends on bad/);
      const ended = folder.told.filter((line) => line.endsWith("destroy"));
      expect(ended).toEqual(
        step === "start" ? ["grandchild destroy", "child destroy", "bad destroy"] : ["bad destroy"],
      );
      expect(folder.told.filter((line) => /^(grand)?child start/.test(line))).toEqual([]);
      expect(await kernel.query("Syscall.Ping", "the kernel runs")).toBe("the kernel runs");
    },
  );

  test("[X15] a failed extension loses its subscriptions, hooks, channel, agent, tools, schedules and capabilities", async () => {
    const world = new SimulatedWorld();
    const heard: Json[] = [];
    let healthy = true;
    const doomed = inCode(
      {
        id: "doomed",
        events: {
          publishes: [{ topic: "a.b" }],
          subscribes: [{ topic: "a.b" }, { topic: "c.d", handler: "notify_user" }],
        },
        schedules: [{ name: "often", cron: "* * * * *" }],
      },
      {
        initialize: (context: ExtensionContext) =>
          context.subscribeEvent("a.b", ({ payload }) => void heard.push(payload)),
        healthCheck: () => healthy,
        sendMessage: (text: string) => void heard.push(text),
        invoke: () => "answer",
        getTools: () => [{ name: "tool", description: "a tool", execute: () => null }],
        executeTask: () => void heard.push("task"),
        getCapabilities: () => ({
          own: capability({
            description: "says",
            queries: { "Doomed.Say": { handle: () => "said" } },
            on: { "Some.Thing": () => void heard.push("thing") },
          }),
        }),
      },
    );
    const { kernel, status } = await world.open(doomed);
    expect(status("doomed").providers).toEqual(["channel", "scheduler", "agent", "tool", "capability"]);
    expect(await world.act(() => kernel.query("Doomed.Say", null))).toBe("said");
    await world.act(() => kernel.publish("a.b", 1));
    await world.act(() => kernel.publish("c.d", { text: "two" }));
    await world.act(() => kernel.publish("Some.Thing", null));
    expect(heard).toEqual([1, "two", "thing"]);
    healthy = false;
    await world.host.advance(HEALTH_INTERVAL_MS);
    expect(status("doomed")).toMatchObject({
      state: "ERROR",
      reason: "health: it says that it is not well",
      schedules: [],
    });
    heard.length = 0;
    await world.act(() => kernel.publish("a.b", 2));
    await world.act(() => kernel.publish("c.d", { text: "three" }));
    await world.act(() => kernel.publish("Some.Thing", null));
    await world.host.advance(120_000);
    expect(heard).toEqual([]);
    expect(await kernel.bus.query({ status: "failed", limit: 9 })).toEqual([]);
    await expect(world.act(() => kernel.query("Doomed.Say", null))).rejects.toMatchObject({ code: 503 });
    await expect(world.act(() => doomed.context.emit("a.b", 3))).rejects.toMatchObject({ code: "EXTENSION_STOPPED" });
    await expect(world.act(() => doomed.context.invokeAgent("?"))).rejects.toMatchObject({ code: "EXTENSION_STOPPED" });
    expect(() => doomed.context.subscribe("user_message", () => undefined)).toThrow(/has stopped/);
    const task = await world.act(() => kernel.publish("system.agent.task", { prompt: "?" }));
    expect(await kernel.bus.query({ id: task, limit: 1 })).toMatchObject([
      { status: "failed", error: expect.stringContaining("no agent is there to answer") },
    ]);
    await world.host.run(() => kernel.close());
  });

  test.for(["initialize", "start"] as const)(
    "[X16] %s that never ends is over after its time, and the rest goes on",
    async (step) => {
      const world = new SimulatedWorld();
      const late = inCode({ id: "late" }, { [step]: never });
      const kernel = world.open(late, inCode({ id: "other" }));
      const { states, status } = await kernel;
      expect(states()).toEqual({ late: "ERROR", other: "ACTIVE" });
      expect(status("late").reason).toBe(`${step}: ${step} of late took longer than ${EXTENSION_STEP_MS} ms`);
    },
  );

  test("[X16] [X15] a step that ends too late is not wired", async () => {
    const world = new SimulatedWorld();
    const heard: Json[] = [];
    let thrown: unknown;
    const late = inCode(
      { id: "late", events: { subscribes: [{ topic: "a.b" }] } },
      {
        initialize: async (context: ExtensionContext) => {
          await new Promise<void>((resolve) => world.host.timer(EXTENSION_STEP_MS + 1_000, resolve));
          try {
            context.subscribeEvent("a.b", () => void heard.push("late"));
          } catch (error) {
            thrown = error;
          }
        },
      },
    );
    const { kernel } = await world.open(late);
    await world.host.advance(5_000);
    expect(thrown).toMatchObject({ code: "EXTENSION_STOPPED" });
    await world.act(() => kernel.publish("a.b", null));
    expect(heard).toEqual([]);
  });
});

test("[X16] [X13] a start that ends too late makes no extension ACTIVE", async () => {
  const world = new SimulatedWorld();
  const late = inCode(
    { id: "late", schedules: [{ name: "tick", cron: "* * * * *" }] },
    {
      start: () => new Promise<void>((resolve) => world.host.timer(EXTENSION_STEP_MS + 1_000, resolve)),
      executeTask: () => null,
    },
  );
  const { status } = await world.open(late);
  await world.host.advance(5_000);
  expect(status("late")).toMatchObject({ state: "ERROR", schedules: [] });
});

describe("health and services", () => {
  test.for(ILL)("[X17] health: %s ends it, its dependents first", async ([, healthCheck, reason]) => {
    const world = new SimulatedWorld();
    const ended: string[] = [];
    const sick = inCode(
      { id: "sick" },
      { healthCheck: healthCheck as () => boolean, stop: () => void ended.push("sick") },
    );
    const child = inCode({ id: "child", depends_on: ["sick"] }, { stop: () => void ended.push("child") });
    const well = inCode({ id: "well" }, { healthCheck: () => true, stop: () => void ended.push("well") });
    const { states, status, kernel } = await world.open(sick, child, well);
    await world.host.advance(HEALTH_INTERVAL_MS - 1);
    expect(states()).toEqual({ sick: "ACTIVE", child: "ACTIVE", well: "ACTIVE" });
    await world.host.advance(1 + EXTENSION_STEP_MS);
    expect(states()).toEqual({ sick: "ERROR", child: "ERROR", well: "ACTIVE" });
    expect(status("sick").reason).toBe(`health: ${reason}`);
    expect(ended).toEqual(["child", "sick"]);
    await world.host.run(() => kernel.close());
    expect(ended).toEqual(["child", "sick", "well"]);
  });

  test("[X19] a service runs until its signal fires, and a throw is a failure", async () => {
    const world = new SimulatedWorld();
    const told: string[] = [];
    const waits = (signal: AbortSignal) =>
      new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(void told.push("told"))));
    const steady = inCode({ id: "steady" }, { runBackground: waits, stop: () => void told.push("stop") });
    const short = inCode({ id: "short" }, { runBackground: async () => "done" });
    const broken = inCode(
      { id: "broken" },
      {
        runBackground: () =>
          new Promise<void>((_, reject) => world.host.timer(100, () => reject(new Error("no more")))),
      },
    );
    const { states, status, kernel } = await world.open(steady, short, broken);
    expect(states()).toEqual({ steady: "ACTIVE", short: "ACTIVE", broken: "ACTIVE" });
    await world.host.advance(100);
    expect(states()).toEqual({ steady: "ACTIVE", short: "ACTIVE", broken: "ERROR" });
    expect(status("broken").reason).toBe("its service failed: no more");
    await world.host.run(() => kernel.close());
    expect(told).toEqual(["told", "stop"]);
  });
});

describe("boot", () => {
  test("[X14] an actor that does not start is the failure of its extension: its dependents go with it, the kernel starts", async () => {
    const world = new SimulatedWorld();
    const heard: string[] = [];
    const well = capability({
      description: "hears",
      queries: { "Well.Ask": { handle: () => 1 } },
      on: { "Some.Thing": () => void heard.push("well") },
    });
    const ill = capability({
      description: "does not start",
      queries: { "Ill.Ask": { handle: () => 1 } },
      on: { "Some.Thing": () => void heard.push("ill") },
    });
    const spawn = () => {
      throw new Error("no memory");
    };
    const bad = inCode({ id: "bad" }, { getCapabilities: () => ({ well, ill: { ...ill, spawn } }) });
    const child = inCode({ id: "child", depends_on: ["bad"] });
    const other = inCode({ id: "other" });
    const { states, status, kernel } = await world.open(bad, child, other);
    expect(states()).toEqual({ bad: "ERROR", child: "ERROR", other: "ACTIVE" });
    expect(status("bad").reason).toBe("spawn of bad.ill: no memory");
    for (const type of ["Well.Ask", "Ill.Ask"]) {
      const asked = world.act(() => kernel.query(type, null).catch(({ code }: { code: number }) => code));
      expect(await asked).toBe(503);
    }
    const id = await world.act(() => kernel.publish("Some.Thing", null));
    const [row] = await world.act(() => kernel.bus.query({ id, limit: 1 }));
    expect([heard, row?.status]).toEqual([[], "pending"]);
    await world.host.run(() => kernel.close());
    expect(world.host.pendingTimers).toBe(0);
  });
});

describe("the end", () => {
  test("[K20] [X18] a boot that fails after them ends them too", async () => {
    const told: string[] = [];
    const living = inCode(
      { id: "living" },
      { start: () => void told.push("start"), stop: () => void told.push("stop") },
    );
    const socketPath = join(scratchFolder(), "millrace", "kernel.sock");
    await open({ socketPath });
    await expect(open({ extensions: [living], socketPath })).rejects.toMatchObject({ code: "SOCKET_IN_USE" });
    expect(told).toEqual(["start", "stop"]);
  });

  test("[X18] extensions stop in the opposite order, each on its own, also if some fail or hang", async () => {
    const world = new SimulatedWorld();
    const told: string[] = [];
    const living = (id: string, stop: () => unknown, depends_on: string[] = []) =>
      inCode(
        { id, depends_on },
        {
          stop: () => {
            told.push(`${id} stop`);
            return stop();
          },
          destroy: () => void told.push(`${id} destroy`),
        },
      );
    const { kernel, states } = await world.open(
      living("a", () => undefined),
      living("b", () => Promise.reject(new Error("stuck")), ["a"]),
      living("c", never, ["b"]),
    );
    await world.host.run(() => Promise.all([kernel.close(), kernel.close()]));
    expect(told).toEqual(["c stop", "c destroy", "b stop", "b destroy", "a stop", "a destroy"]);
    expect(states()).toEqual({ a: "INACTIVE", b: "INACTIVE", c: "INACTIVE" });
    expect(world.log.map(({ message }) => message)).toEqual([
      `c did not end well: stop of c took longer than ${EXTENSION_STEP_MS} ms`,
      "b did not end well: stuck",
    ]);
  });

  test("[X18] an event emitted while stopping is kept, and handled by the next kernel", async () => {
    const world = new SimulatedWorld();
    const heard: Json[] = [];
    const make = (say: string) => {
      const events = { publishes: [{ topic: "a.b" }], subscribes: [{ topic: "a.b" }] };
      const made = inCode(
        { id: "parting", events },
        {
          initialize: (context: ExtensionContext) =>
            context.subscribeEvent("a.b", ({ payload }) => void heard.push(payload)),
          stop: () => made.context.emit("a.b", say),
        },
      );
      return made;
    };
    const first = await world.open(make("bye"));
    await world.host.run(() => first.kernel.close());
    expect(heard).toEqual([]);
    const second = await world.open(make("again"));
    await world.host.advance(0);
    expect(heard).toEqual(["bye"]);
    await world.host.run(() => second.kernel.close());
  });

  test("[X18] a handler that is over the grace is neither done nor failed: its event comes again", async () => {
    const world = new SimulatedWorld();
    const handled: number[] = [];
    const make = (ms: number) =>
      inCode(
        { id: "slow", events: { publishes: [{ topic: "c.d" }], subscribes: [{ topic: "a.b" }] } },
        {
          initialize: (context: ExtensionContext) =>
            context.subscribeEvent("a.b", async (event) => {
              await new Promise<void>((resolve) => world.host.timer(ms, resolve));
              await context.emit("c.d", event.id);
              handled.push(ms);
            }),
        },
      );
    const first = await world.open(make(60_000));
    await world.act(() => first.kernel.publish("a.b", null));
    await world.host.run(() => first.kernel.close({ graceMs: 100 }));
    const second = await world.open(make(1));
    await world.host.advance(2 * LEASE_MS);
    expect(handled).toEqual([1]);
    expect(await second.kernel.bus.query({ topic: "a.b", limit: 9 })).toMatchObject([{ status: "done" }]);
    await world.host.run(() => second.kernel.close());
  });

  test("[X18] no handler of a stopped extension begins: its share of the event comes with the next kernel", async () => {
    const world = new SimulatedWorld();
    const told: string[] = [];
    const make = (start: string, ms: number) =>
      ["a", "b"].map((id) =>
        inCode(
          { id, events: { subscribes: [{ topic: "x.y" }] } },
          {
            initialize: (context: ExtensionContext) =>
              context.subscribeEvent("x.y", async () => {
                told.push(`${start} ${id}`);
                if (id === "a") await new Promise<void>((resolve) => world.host.timer(ms, resolve));
              }),
          },
        ),
      );
    const first = await world.open(...make("first", 150));
    await world.act(() => first.kernel.publish("x.y", null));
    // The grace of the extensions is over before the first handler ends, that of the bus is not.
    await world.host.run(() => first.kernel.close({ graceMs: 100 }));
    const second = await world.open(...make("second", 1));
    await world.host.advance(2 * LEASE_MS);
    expect(told).toEqual(["first a", "second a", "second b"]);
    await world.host.run(() => second.kernel.close());
  });

  test("[X18] [K23] a handler that runs is let finish before its extension stops", async () => {
    const world = new SimulatedWorld();
    const told: string[] = [];
    const slow = inCode(
      { id: "slow", events: { subscribes: [{ topic: "a.b" }] } },
      {
        initialize: (context: ExtensionContext) =>
          context.subscribeEvent("a.b", async () => {
            await new Promise<void>((resolve) => world.host.timer(500, resolve));
            told.push("handled");
          }),
        stop: () => void told.push("stop"),
      },
    );
    const { kernel } = await world.open(slow);
    await world.act(() => kernel.publish("a.b", null));
    expect(kernel.quiescent).toBe(false);
    await world.host.run(() => kernel.close());
    expect(told).toEqual(["handled", "stop"]);
    const next = await world.open(inCode({ id: "slow" }));
    expect(next.kernel.health().recovered).toBe(0);
  });

  test("[K21] idle waits for the work of extensions", async () => {
    const world = new SimulatedWorld();
    const sink = channel("sink");
    const slow = inCode(
      { id: "slow" },
      { invoke: () => new Promise<string>((resolve) => world.host.timer(700, () => resolve("answer"))) },
    );
    const { kernel } = await world.open(sink, slow);
    await world.host.run(async () => {
      await kernel.publish("system.agent.task", { prompt: "?" });
      await kernel.idle();
      expect(kernel.quiescent).toBe(true);
    });
    expect(sink.said).toEqual(["answer"]);
  });
});
