/** Calls of event handlers: their rights, their time, and how often they take effect. */
import { describe, expect, test } from "vitest";
import type { EventContext, ExtensionContext } from "../../src/extensions/extension-context.ts";
import type { AgentInvocation } from "../../src/extensions/providers.ts";
import type { Json } from "../../src/message/json.ts";
import { channel, inCode, SimulatedWorld } from "./extension-setup.ts";

const EVENTS = {
  publishes: [{ topic: "a.out" }],
  subscribes: [{ topic: "a.in" }, { topic: "bell.rang" }],
};
const RETRY = { attempts: 3, backoff: { startMs: 5 } };
const BELL = { kind: "event", type: "Bell.Rang", data: {} };

type Handle = (context: ExtensionContext, event: EventContext) => unknown;

/** A kernel with an extension that handles `a.in`, and counts its events `bell.rang`. */
async function handling(handle: Handle, options: object = {}, more: Parameters<SimulatedWorld["open"]> = []) {
  const world = new SimulatedWorld();
  const rang: number[] = [];
  const made = inCode(
    { id: "x", events: EVENTS },
    {
      initialize() {
        made.context.subscribeEvent("a.in", (_event, context) => handle(made.context, context), options);
        made.context.subscribeEvent("bell.rang", ({ id }) => void rang.push(id));
      },
    },
  );
  const { kernel } = await world.open(made, ...more);
  const publish = () => world.act(() => kernel.publish("a.in", null));
  const row = async (id: number) => (await kernel.bus.query({ id, limit: 1 }))[0]!;
  return { world, kernel, rang, publish, row };
}

describe("a handler that timed out", () => {
  test("[X52] can neither emit, send nor tell, by its own context or the extension's", async () => {
    const refused: unknown[] = [];
    const { world, kernel, publish, row, rang } = await handling(
      async (context, event) => {
        await new Promise<void>((resolve) => void context.host.timer(300, resolve));
        const { emit, command, notifyUser, invokeAgent } = context;
        const late = [
          () => emit("a.out", null),
          () => event.emit("a.out", null),
          () => command("Timer.Set", { delayMs: 1, message: BELL }),
          () => notifyUser("late"),
          () => invokeAgent("late"),
        ];
        for (const act of late) await act().catch((error: { code: string }) => refused.push(error.code));
      },
      { timeoutMs: 100 },
    );
    const id = await publish();
    await world.host.advance(1_000);
    expect(refused).toEqual(Array.from({ length: 5 }, () => "BUS_HANDLER_OVER"));
    expect(await row(id)).toMatchObject({ status: "failed", error: "x: the handler timed out after 100 ms" });
    expect(await kernel.bus.query({ topic: "a.out", limit: 9 })).toEqual([]);
    expect(rang).toEqual([]);
    await world.act(() => kernel.close());
  });
});

describe("a handler that runs again", () => {
  test("[X53] sets its timer once, and two equal timers twice", async () => {
    const set = (context: ExtensionContext) => context.command("Timer.Set", { delayMs: 500, message: BELL });
    for (const count of [1, 2]) {
      let calls = 0;
      const { world, kernel, rang, publish, row } = await handling(
        async (context) => {
          for (let n = 0; n < count; n++) await set(context);
          if (++calls < 3) throw new Error("after the timer was set");
        },
        { retry: RETRY },
      );
      const id = await publish();
      await world.host.advance(10_000);
      expect([calls, (await row(id)).status]).toEqual([3, "done"]);
      expect(rang).toHaveLength(count);
      await world.act(() => kernel.close());
    }
  });

  test("[X53] with a key the command is named by it: other data under the key are refused", async () => {
    let calls = 0;
    const errors: unknown[] = [];
    const { world, kernel, rang, publish } = await handling(
      async (context) => {
        const data = { delayMs: 500 + ++calls, message: BELL };
        await context.command("Timer.Set", data, { key: "bell" }).catch((error: unknown) => errors.push(error));
        if (calls === 1) throw new Error("again");
      },
      { retry: RETRY },
    );
    await publish();
    await world.host.advance(10_000);
    expect([rang.length, errors]).toMatchObject([1, [{ code: 409 }]]);
    await world.act(() => kernel.close());
  });

  test("[X53] outside of a handler a command may have an id, and a key is refused", async () => {
    const world = new SimulatedWorld();
    const asker = inCode({ id: "asker" });
    const { kernel } = await world.open(asker);
    const set = (options: object) =>
      world.act(() => asker.context.command("Timer.Set", { delayMs: 500, message: BELL }, options));
    expect(await set({ id: "one" })).toEqual(await set({ id: "one" }));
    await expect(set({ key: "k" })).rejects.toThrow("give an id");
    await world.host.advance(1_000);
    expect(await kernel.bus.query({ topic: "Bell.Rang", limit: 9 })).toHaveLength(1);
    await world.act(() => kernel.close());
  });
});

describe("a handler that asks the agent", () => {
  test("[X54] fails with the agent, so that its retry applies", async () => {
    let asked = 0;
    const agent = inCode(
      { id: "agent" },
      {
        invoke: () => {
          if (++asked < 3) throw new Error("overloaded");
          return "yes";
        },
      },
    );
    const { world, kernel, publish, row } = await handling(
      async (context) => void (await context.invokeAgent("?")),
      { retry: RETRY },
      [agent],
    );
    const id = await publish();
    await world.host.advance(1_000);
    expect([asked, (await row(id)).status]).toEqual([3, "done"]);
    asked = 0;
    const task = await world.act(() => kernel.publish("system.agent.background", { prompt: "?" }));
    expect(await row(task)).toMatchObject({ status: "failed", error: "kernel: overloaded" });
    await world.act(() => kernel.close());
  });

  test("[X55] its time does not run while it waits for the agent, and its signal reaches agent and tools", async () => {
    const gates: (() => void)[] = [];
    const signals: AbortSignal[] = [];
    const agent = inCode(
      { id: "agent" },
      {
        invoke: async (task: string, { tools }: AgentInvocation) => {
          if (task === "late") return String(await tools[0]?.execute(null));
          await new Promise<void>((resolve) => gates.push(resolve));
          return "yes";
        },
        getTools: () => [
          {
            name: "hang",
            description: "never ends",
            execute: (_input: Json, { signal }: { signal: AbortSignal }) => {
              signals.push(signal);
              return new Promise<Json>(() => undefined);
            },
          },
        ],
      },
    );
    let prompt = "first";
    const { world, kernel, publish, row } = await handling(
      async (context) => void (await context.invokeAgent(prompt)),
      { timeoutMs: 1_000 },
      [agent],
    );
    const [first, second] = [await publish(), await publish()];
    await world.host.advance(900);
    gates.shift()?.();
    await world.host.advance(900);
    gates.shift()?.();
    await world.host.advance(0);
    expect([(await row(first)).status, (await row(second)).status]).toEqual(["done", "done"]);
    prompt = "late";
    const late = await publish();
    expect(signals[0]?.aborted).toBe(false);
    await world.host.advance(1_000);
    expect((await row(late)).error).toBe("x: the handler timed out after 1000 ms");
    expect(signals[0]?.aborted).toBe(true);
    await world.act(() => kernel.close());
  });
});

describe("notify_user", () => {
  test("[X56] without a channel the event has failed with the reason, and tells the user once it is requeued", async () => {
    const world = new SimulatedWorld();
    const bell = () => inCode({ id: "bell", events: { subscribes: [{ topic: "user.told", handler: "notify_user" }] } });
    const { kernel } = await world.open(bell());
    const ids = [
      await world.act(() => kernel.publish("user.told", { text: "hello" })),
      await world.act(() => kernel.publish("system.user.notify", { text: "world" })),
    ];
    for (const id of ids) {
      const [row] = await kernel.bus.query({ id, limit: 1 });
      expect(row).toMatchObject({
        status: "failed",
        error: expect.stringContaining("there is no channel to the user"),
      });
    }
    await world.act(() => kernel.close());
    const chat = channel("chat");
    const second = await world.open(bell(), chat);
    await world.act(() => second.kernel.bus.requeue(ids));
    expect(chat.said).toEqual(["hello", "world"]);
    await world.act(() => second.kernel.close());
  });

  test("[X56] a channel that throws is tried again as the manifest says", async () => {
    const world = new SimulatedWorld();
    let calls = 0;
    const sendMessage = () => {
      if (++calls < 3) throw new Error("offline");
    };
    const subscribes = [{ topic: "user.told", handler: "notify_user", retry: { attempts: 3, backoff_ms: 1_000 } }];
    const bell = inCode({ id: "bell", events: { subscribes } }, { sendMessage });
    const { kernel } = await world.open(bell);
    const id = await world.act(() => kernel.publish("user.told", { text: "hello" }));
    expect((await kernel.bus.query({ id, limit: 1 }))[0]?.status).toBe("pending");
    await world.host.advance(10_000);
    expect([calls, (await kernel.bus.query({ id, limit: 1 }))[0]?.status]).toEqual([3, "done"]);
    await world.act(() => kernel.close());
  });
});
