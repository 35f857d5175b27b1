/** The path of a user's message, the agent's slot, channels, hooks, tools, and the topics that lead to them. */
import { describe, expect, test } from "vitest";
import type { ExtensionContext } from "../../src/extensions/extension-context.ts";
import type { HookCall } from "../../src/extensions/message-router.ts";
import type { AgentInvocation } from "../../src/extensions/providers.ts";
import { systemHost } from "../../src/host/system-host.ts";
import { AGENT_INVOKE_MS, AGENT_WAITING_MAX, HOOK_MS } from "../../src/limits.ts";
import type { Json } from "../../src/message/json.ts";
import { channel, inCode, open, SimulatedWorld } from "./extension-setup.ts";

/** An agent that takes its time and says when it begins and ends. */
function slowAgent(world: SimulatedWorld, told: string[], ms = 100) {
  return inCode(
    { id: "agent" },
    {
      invoke: async (task: string) => {
        told.push(`begin ${task}`);
        await new Promise<void>((resolve) => world.host.timer(ms, resolve));
        told.push(`end ${task}`);
        return { status: "success" as const, content: `answer to ${task}` };
      },
    },
  );
}

describe("a user's message", () => {
  test("[X33] goes through hook, agent, hook, and back over its channel", async () => {
    const world = new SimulatedWorld();
    const told: string[] = [];
    const chat = inCode(
      { id: "chat" },
      { sendToUser: (user: string, text: string) => void told.push(`${user} <- ${text}`) },
    );
    const watcher = inCode(
      { id: "watcher" },
      {
        initialize: (context: ExtensionContext) => {
          context.subscribe("user_message", async ({ text, userId, channelId }) => {
            await world.host.yield();
            told.push(`user_message ${channelId} ${userId}: ${text}`);
          });
          context.subscribe("agent_response", ({ text }) => void told.push(`agent_response ${text}`));
        },
      },
    );
    await world.open(chat, watcher, slowAgent(world, told));
    expect(await world.host.run(() => chat.context.onUserMessage("ada", "hello"))).toBe("answer to hello");
    expect(told).toEqual([
      "user_message chat ada: hello",
      "begin hello",
      "end hello",
      "agent_response answer to hello",
      "ada <- answer to hello",
    ]);
    await expect(chat.context.onUserMessage("ada", 7 as never)).rejects.toMatchObject({ code: "EXTENSION_MISUSE" });
  });

  test("[X28] hooks run in order, see frozen values, and do not stop the message when they throw or hang", async () => {
    const world = new SimulatedWorld();
    const told: string[] = [];
    const chat = inCode({ id: "chat" }, { sendToUser: () => undefined });
    const call: HookCall[] = [];
    const first = inCode(
      { id: "first" },
      {
        initialize: (context: ExtensionContext) => {
          context.subscribe("user_message", (one) => {
            call.push(one);
            Object.assign(one, { text: "changed" });
          });
          context.subscribe("user_message", () => new Promise(() => told.push("hangs")));
        },
      },
    );
    const second = inCode(
      { id: "second" },
      {
        initialize: (context: ExtensionContext) =>
          context.subscribe("user_message", ({ text }) => void told.push(text)),
      },
    );
    await world.open(chat, first, second, slowAgent(world, []));
    const startMs = world.host.monotonic();
    expect(await world.host.run(() => chat.context.onUserMessage("ada", "hello"))).toBe("answer to hello");
    expect(world.host.monotonic() - startMs).toBe(HOOK_MS + 100);
    expect(told).toEqual(["hangs", "hello"]);
    expect(world.log.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^hook user_message of first failed: Cannot assign to read only/),
      `hook user_message of first failed: hook user_message of first took longer than ${HOOK_MS} ms`,
    ]);
  });

  test("[X28] a hook and an event of the same name do not meet, and a hook can be taken back", async () => {
    const world = new SimulatedWorld();
    const told: string[] = [];
    const hook = () => void told.push("hook");
    const both = inCode(
      { id: "both", events: { publishes: [{ topic: "user_message" }], subscribes: [{ topic: "user_message" }] } },
      {
        sendToUser: () => undefined,
        initialize: (context: ExtensionContext) => {
          context.subscribe("user_message", hook);
          context.subscribeEvent("user_message", () => void told.push("event"));
        },
      },
    );
    const { kernel } = await world.open(both);
    await world.act(() => both.context.emit("user_message", null));
    expect(told).toEqual(["event"]);
    await world.act(() => both.context.onUserMessage("ada", "hello"));
    expect(told).toEqual(["event", "hook"]);
    expect(await kernel.bus.query({ limit: 9 })).toHaveLength(1);
    expect(both.context.unsubscribe("user_message", hook)).toBe(true);
    expect(both.context.unsubscribe("user_message", hook)).toBe(false);
    await world.act(() => both.context.onUserMessage("ada", "hello"));
    expect(told).toEqual(["event", "hook"]);
    expect(() => both.context.subscribe("email.received" as never, hook)).toThrow(/for events use subscribeEvent/);
  });
});

describe("the agent", () => {
  test("[X31] users, extensions and events ask at once, and are answered one after the other", async () => {
    const world = new SimulatedWorld();
    const told: string[] = [];
    const chat = inCode({ id: "chat" }, { sendToUser: () => undefined });
    const { kernel } = await world.open(chat, slowAgent(world, told));
    const answers = await world.host.run(async () => {
      await kernel.publish("system.agent.background", { prompt: "event" });
      const all = await Promise.all([chat.context.onUserMessage("ada", "user"), chat.context.invokeAgent("extension")]);
      await kernel.idle();
      return all;
    });
    expect(answers).toEqual(["answer to user", "answer to extension"]);
    const begun = told.filter((line) => line.startsWith("begin")).map((line) => line.slice(6));
    expect(told).toEqual(begun.flatMap((task) => [`begin ${task}`, `end ${task}`]));
    expect(new Set(begun)).toEqual(new Set(["event", "user", "extension"]));
  });

  test("[X31] an agent that asks itself gets an error and does not wait for ever", async () => {
    const world = new SimulatedWorld();
    const selfish = inCode(
      { id: "selfish" },
      {
        invoke: async (): Promise<string> => {
          await world.host.yield();
          return selfish.context.invokeAgent("and what do you think?");
        },
      },
    );
    await world.open(selfish);
    await expect(world.host.run(() => selfish.context.invokeAgent("?"))).rejects.toThrow(
      /^the agent was invoked by itself and would wait for ever; emit system\.agent\.background/,
    );
  });

  test("[X31] events that an agent causes are not taken for the agent: they are answered one after the other", async () => {
    // In real time: a simulated host starts all work from outside, and would hide the consequences of a call.
    const host = systemHost();
    const events = {
      publishes: [{ topic: "a.b" }, { topic: "a.c" }],
      subscribes: [{ topic: "a.b" }, { topic: "a.c" }],
    };
    const answers: string[] = [];
    const agent = inCode(
      { id: "agent", events },
      {
        initialize: (context: ExtensionContext) => {
          context.subscribeEvent(
            "a.b",
            async ({ payload }) => void answers.push(await context.invokeAgent(String(payload))),
          );
          context.subscribeEvent(
            "a.c",
            async ({ payload }) => void answers.push(await context.invokeAgent(`${payload} again`)),
          );
        },
        invoke: async (task: string): Promise<string> => {
          await agent.context.command("Memory.Set", { key: `/${task.replace(" ", "/")}`, value: 1 });
          if (!task.endsWith("again")) await agent.context.emit("a.c", task);
          await new Promise<void>((resolve) => host.timer(1, resolve));
          return task;
        },
      },
    );
    const { kernel } = await open({ extensions: [agent] });
    const tasks = ["1", "2", "3"];
    await Promise.all(tasks.map((task) => kernel.publish("a.b", task)));
    await kernel.idle();
    expect(answers.toSorted()).toEqual(tasks.flatMap((task) => [task, `${task} again`]).sort());
  });

  test("[X32] an agent that throws, is late or answers nonsense rejects; a waiting user gets a text", async () => {
    const world = new SimulatedWorld();
    const replies: Record<string, unknown> = {
      refused: { status: "refused", content: "I would rather not" },
      error: { status: "error", error: "no tokens left" },
      text: "just text",
      nonsense: { status: "success" },
    };
    const agent = inCode(
      { id: "agent" },
      {
        invoke: (task: string) => {
          if (task === "throw") throw new Error("out of order");
          return task === "never" ? new Promise<never>(() => undefined) : (replies[task] as string);
        },
      },
    );
    const asker = inCode({ id: "asker" });
    const alone = await new SimulatedWorld().open(asker);
    expect(alone.states()).toEqual({ asker: "ACTIVE" });
    await world.open(agent, asker);
    const ask = (task: string) => world.host.run(() => agent.context.invokeAgent(task));
    expect(await ask("refused")).toBe("I would rather not");
    const failed = (text: string | RegExp) => ({
      code: "EXTENSION_AGENT_FAILED",
      message: expect.stringMatching(text),
    });
    await expect(ask("error")).rejects.toMatchObject(failed("no tokens left"));
    expect(await ask("text")).toBe("just text");
    await expect(ask("nonsense")).rejects.toMatchObject(failed(/^an agent answers with/));
    await expect(ask("throw")).rejects.toMatchObject(failed("out of order"));
    await expect(ask("never")).rejects.toMatchObject(
      failed(`the agent of agent took longer than ${AGENT_INVOKE_MS} ms`),
    );
    expect(await ask("text")).toBe("just text");
    const chat = (task: string) => world.host.run(() => asker.context.onUserMessage("ada", task));
    expect(await chat("throw")).toBe("(Error: out of order)");
    expect(await chat("error")).toBe("(Error: no tokens left)");
  });

  test("[X32] without an agent a question is rejected, and a user is told so", async () => {
    const world = new SimulatedWorld();
    const asker = inCode({ id: "asker" });
    await world.open(asker);
    await expect(world.host.run(() => asker.context.invokeAgent("?"))).rejects.toMatchObject({
      code: "EXTENSION_NO_AGENT",
    });
    const answer = await world.host.run(() => asker.context.onUserMessage("ada", "?"));
    expect(answer).toBe("(No agent is there to answer)");
  });

  test("[X31] the number of waiting calls is bounded", async () => {
    for (const [limits, max] of [
      [{}, AGENT_WAITING_MAX],
      [{ agentWaitingMax: 2 }, 2],
    ] as const) {
      const world = new SimulatedWorld({ limits });
      const agent = inCode({ id: "agent" }, { invoke: (task: string) => task });
      await world.open(agent);
      const asked = Array.from({ length: max + 3 }, (_, n) => n);
      const answers = await world.host.run(() =>
        Promise.allSettled(asked.map((n) => agent.context.invokeAgent(String(n)))),
      );
      expect(answers.filter(({ status }) => status === "rejected")).toHaveLength(2);
    }
  });

  test("[X20] the first of several agents has the slot, or the agent that is named", async () => {
    const first = () => inCode({ id: "first" }, { invoke: () => "first" });
    const second = () => inCode({ id: "second" }, { invoke: () => "second" });
    const asker = inCode({ id: "asker" });
    const world = new SimulatedWorld();
    await world.open(first(), second(), asker);
    expect(await world.host.run(() => asker.context.invokeAgent("?"))).toBe("first");
    const other = new SimulatedWorld({ agent: "second" });
    await other.open(first(), second(), asker);
    expect(await other.host.run(() => asker.context.invokeAgent("?"))).toBe("second");
  });

  test("[X34] it is given the tools of all; two of one name are an error of the second", async () => {
    const world = new SimulatedWorld();
    const tool = (name: string) => ({ name, description: name, execute: (input: Json) => [name, input] });
    const tools = (id: string, ...names: string[]) => inCode({ id }, { getTools: () => names.map(tool) });
    const broken = inCode({ id: "broken" }, { getTools: () => [{ name: "x" }] });
    const agent = inCode(
      { id: "agent" },
      {
        invoke: async (_task: string, { tools: given }: AgentInvocation) =>
          JSON.stringify(await Promise.all(given.map(({ execute }) => execute(1)))),
      },
    );
    const { states, status } = await world.open(tools("a", "look", "read"), tools("b", "write", "look"), broken, agent);
    expect(states()).toEqual({ a: "ACTIVE", b: "ERROR", broken: "ERROR", agent: "ACTIVE" });
    expect(status("b").reason).toBe(`initialize: the tool "look" is another extension's; rename it`);
    expect(await world.host.run(() => agent.context.invokeAgent("?"))).toBe('[["look",1],["read",1]]');
  });
});

describe("telling the user", () => {
  test("[X29] over the named channel, else the first; an unknown one is refused, and so is none", async () => {
    const world = new SimulatedWorld();
    const [one, two, asker] = [channel("one"), channel("two"), inCode({ id: "asker" })];
    const { kernel } = await world.open(one, two, asker);
    await world.act(() => asker.context.notifyUser("first"));
    await world.act(() => asker.context.notifyUser("second", "two"));
    await expect(world.act(() => asker.context.notifyUser("?", "three"))).rejects.toThrow(
      'there is no channel "three"; there are one, two',
    );
    expect([one.said, two.said]).toEqual([["first"], ["second"]]);
    await world.host.run(() => kernel.close());
    const lonely = new SimulatedWorld();
    const alone = inCode({ id: "alone" });
    await lonely.open(alone);
    await expect(lonely.act(() => alone.context.notifyUser("anybody?"))).rejects.toMatchObject({
      code: "EXTENSION_NO_CHANNEL",
    });
    expect(lonely.log).toMatchObject([{ level: "warn", message: expect.stringContaining("there is no channel") }]);
  });

  test("[X29] a channel that knows users by name tells the last user that wrote", async () => {
    const world = new SimulatedWorld();
    const said: string[] = [];
    const chat = inCode(
      { id: "chat" },
      { sendToUser: (user: string, text: string) => void said.push(`${user}: ${text}`) },
    );
    await world.open(chat);
    await world.act(() => chat.context.notifyUser("news"));
    await world.act(() => chat.context.onUserMessage("ada", "hello"));
    await world.act(() => chat.context.notifyUser("news"));
    expect(said).toEqual(["default: news", "ada: (No agent is there to answer)", "ada: news"]);
  });

  test("[X26] notify_user says the payload's text, and a payload without one fails visibly", async () => {
    const world = new SimulatedWorld();
    const [one, two] = [channel("one"), channel("two")];
    const events = { subscribes: [{ topic: "user.notify", handler: "notify_user" }] };
    const { kernel } = await world.open(one, two, inCode({ id: "bell", events }));
    for (const payload of [
      { text: "hello" },
      { text: "there", channel_id: "two" },
      { txt: "typo" },
      { text: "x", channel_id: "no" },
      7,
    ])
      await world.act(() => kernel.publish("user.notify", payload));
    expect([one.said, two.said]).toEqual([["hello"], ["there"]]);
    const rows = await kernel.bus.query({ limit: 9 });
    expect(rows.map(({ status }) => status)).toEqual(["done", "done", "failed", "failed", "failed"]);
    expect(rows[2]?.error).toContain("the payload needs text, a text; got an object");
    expect(rows[3]?.error).toContain('there is no channel "no"');
    await world.act(() => kernel.publish("user.notify", { text: "still here" }));
    expect(one.said).toEqual(["hello", "still here"]);
  });

  test("[X26] a channel that throws fails the delivery", async () => {
    const world = new SimulatedWorld();
    const broken = inCode({ id: "broken" }, { sendMessage: () => Promise.reject(new Error("paper jam")) });
    const { kernel } = await world.open(broken);
    await world.act(() => kernel.publish("system.user.notify", { text: "x" }));
    expect(await kernel.bus.query({ limit: 9 })).toMatchObject([
      { status: "failed", error: expect.stringContaining("paper jam") },
    ]);
  });

  test("[X27] system topics reach the user and the agent", async () => {
    const world = new SimulatedWorld();
    const [one, two] = [channel("one"), channel("two")];
    const asked: (string | undefined)[][] = [];
    const agent = inCode(
      { id: "agent" },
      {
        invoke: (task: string, { correlation }: AgentInvocation) => {
          asked.push([task, correlation]);
          return `answer to ${task}`;
        },
      },
    );
    const { kernel } = await world.open(one, two, agent);
    await world.act(() => kernel.publish("system.user.notify", { text: "note", channel_id: "two" }));
    await world.act(() =>
      kernel.publish("system.agent.task", { prompt: "task", channel_id: "two" }, { correlation: "talk" }),
    );
    await world.act(() => kernel.publish("system.agent.background", { prompt: "quiet" }));
    await world.act(() => kernel.publish("system.agent.background", {}));
    await world.act(() =>
      kernel.command("Journal.Publish", { type: "System.UserNotify", data: { text: "by a client" } }),
    );
    await world.host.advance(1_000);
    expect(one.said).toEqual(["by a client"]);
    expect(two.said).toEqual(["note", "answer to task"]);
    expect(asked).toEqual([
      ["task", "talk"],
      ["quiet", undefined],
    ]);
    const failed = await kernel.bus.query({ status: "failed", limit: 9 });
    expect(failed).toMatchObject([
      { topic: "system.agent.background", error: expect.stringContaining("needs prompt") },
    ]);
  });
});
