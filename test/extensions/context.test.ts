/**
 * The door from an extension to the kernel: events by the journal, data, others, and the declarations of a manifest for
 * it.
 */
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Event } from "../../src/bus/event.ts";
import type { ExtensionContext } from "../../src/extensions/extension-context.ts";
import type { LogEntry } from "../../src/extensions/logger.ts";
import { systemHost } from "../../src/host/system-host.ts";
import type { KernelParts } from "../../src/kernel/kernel-options.ts";
import { capability } from "../../src/loop/define-capability.ts";
import { transactional } from "../../src/loop/transactional.ts";
import { Failure } from "../../src/message/error-data.ts";
import type { Json } from "../../src/message/json.ts";
import type { JournalRow } from "../../src/store/journal.ts";
import { scratchFolder } from "../repo/program.ts";
import { channel, inCode, open, SimulatedWorld } from "./extension-setup.ts";

const publishes = (...topics: string[]) => ({ events: { publishes: topics.map((topic) => ({ topic })) } });
const subscribes = (...topics: string[]) => ({ events: { subscribes: topics.map((topic) => ({ topic })) } });

/** An extension that keeps the events it gets. */
function listener(id: string, topic: string, act?: (event: Event, context: ExtensionContext) => unknown) {
  const heard: Event[] = [];
  const made = inCode(
    { id, ...subscribes(topic) },
    {
      initialize: (context: ExtensionContext) =>
        context.subscribeEvent(topic, (event) => {
          heard.push(event);
          return act?.(event, context);
        }),
    },
  );
  return Object.assign(made, { heard });
}

async function rows(kernel: { bus: { query(query: { limit: number }): Promise<readonly JournalRow[]> } }) {
  return kernel.bus.query({ limit: 100 });
}

describe("emit", () => {
  test("[X21] publishes under the extension's id, and invents no correlation", async () => {
    const world = new SimulatedWorld();
    const sender = inCode({ id: "sender", ...publishes("email.received") });
    const hears = listener("hears", "email.received");
    const { kernel } = await world.open(sender, hears);
    const id = await world.act(() => sender.context.emit("email.received", { from: "Ada" }));
    const other = await world.act(() => sender.context.emit("email.received", {}, { correlation: "talk" }));
    expect(hears.heard).toMatchObject([
      { id, topic: "email.received", source: "sender", payload: { from: "Ada" }, correlation: undefined },
      { id: other, correlation: "talk" },
    ]);
    // The end of an event is written a little after its handler has ended.
    await world.act(() => kernel.idle());
    expect((await rows(kernel)).map(({ topic, status }) => `${topic} ${status}`)).toEqual(
      Array(2).fill("email.received done"),
    );
  });

  test("[X21] a topic that the manifest does not declare is refused with a remedy", async () => {
    const world = new SimulatedWorld();
    const sender = inCode({ id: "sender", ...publishes("a.b") });
    const { kernel } = await world.open(sender);
    const emitting = (topic: string, payload: Json = null) => world.act(() => sender.context.emit(topic, payload));
    await expect(emitting("a.c")).rejects.toMatchObject({
      code: "EXTENSION_TOPIC_UNDECLARED",
      message: 'sender emits "a.c", which its manifest does not declare; add it under events.publishes',
    });
    await expect(emitting("system.own")).rejects.toMatchObject({ code: "EXTENSION_TOPIC_UNDECLARED" });
    await expect(emitting("a.b", new Date(0) as never)).rejects.toMatchObject({ code: "BUS_EVENT_INVALID" });
    await emitting("system.user.notify", { text: "needs no declaration" });
    expect(await rows(kernel)).toHaveLength(1);
  });

  test("[X21] an emit without await that fails is logged, and the process goes on", async () => {
    const world = new SimulatedWorld();
    const sender = inCode({ id: "sender" });
    const { kernel } = await world.open(sender);
    void sender.context.emit("a.c", null);
    void sender.context.notifyUser("anybody?", "nowhere");
    await world.host.advance(0);
    expect(world.log).toMatchObject([
      { level: "warn", source: "ext.sender", message: expect.stringMatching(/^"a\.c" was not emitted: sender emits/) },
      { level: "warn", message: 'the user was not told: there is no channel "nowhere"; there are none' },
    ]);
    expect(kernel.health().state).toBe("running");
  });

  test("[X22] with a key an event is there once, across restarts", async () => {
    const world = new SimulatedWorld();
    const heard: Json[] = [];
    for (const _start of [1, 2]) {
      const sender = inCode({ id: "sender", ...publishes("a.b", "a.c") });
      const hears = listener("hears", "a.b", ({ payload }) => void heard.push(payload));
      const { kernel } = await world.open(sender, hears);
      const first = await world.act(() => sender.context.emit("a.b", 1, { key: "mail 1" }));
      await world.host.advance(1_000);
      expect(await world.act(() => sender.context.emit("a.b", 1, { key: "mail 1" }))).toBe(first);
      await expect(world.act(() => sender.context.emit("a.b", "another", { key: "mail 1" }))).rejects.toMatchObject({
        code: "EXTENSION_KEY_USED",
        message: expect.stringContaining("another key"),
      });
      await world.act(() => sender.context.emit("a.b", 2, { key: "mail 2" }));
      await world.act(() => sender.context.emit("a.c", 1, { key: "mail 1" }));
      expect(await rows(kernel)).toHaveLength(3);
      await world.host.run(() => kernel.close());
    }
    expect(heard).toEqual([1, 2]);
  });

  test("[X24] an event that a handler emits is caused by its event and has its correlation", async () => {
    const world = new SimulatedWorld();
    const sender = inCode({ id: "sender", ...publishes("a.b") });
    const undeclared: unknown[] = [];
    const relay = inCode(
      { id: "relay", events: { publishes: [{ topic: "a.c" }], subscribes: [{ topic: "a.b" }] } },
      {
        initialize: (context: ExtensionContext) =>
          context.subscribeEvent("a.b", async (_event, { emit, attempt }) => {
            await emit("a.c", { attempt });
            await emit("a.d", null).catch((error: unknown) => undeclared.push(error));
          }),
      },
    );
    const last = listener("last", "a.c");
    await world.open(sender, relay, last);
    await world.act(() => sender.context.emit("a.b", null, { correlation: "talk" }));
    const [event] = last.heard;
    expect(event).toMatchObject({ source: "relay", correlation: "talk", payload: { attempt: 1 } });
    expect(event?.message.metadata.causation).toBeDefined();
    expect(undeclared).toEqual([expect.objectContaining({ code: "EXTENSION_TOPIC_UNDECLARED" })]);
  });

  test("[X24] requests and events of code that a handler calls are caused by its event, and no others", async () => {
    const world = new SimulatedWorld();
    const agent = inCode(
      { id: "agent", events: { publishes: [{ topic: "a.c" }], subscribes: [{ topic: "a.b" }] } },
      {
        initialize: (context: ExtensionContext) =>
          context.subscribeEvent("a.b", async ({ payload }) => void (await context.invokeAgent(String(payload)))),
        invoke: async (task: string): Promise<string> => {
          await world.host.yield();
          await agent.context.command("Memory.Set", { key: `/${task}`, value: 1 });
          await agent.context.emit("a.c", task, { key: task });
          await agent.context.emit("a.c", task, { correlation: "another" });
          return "done";
        },
      },
    );
    const { kernel } = await world.open(agent);
    await world.act(() => kernel.publish("a.b", "first", { correlation: "talk 1" }));
    await world.act(() => kernel.publish("a.b", "second", { correlation: "talk 2" }));
    await world.act(() => agent.context.invokeAgent("alone"));
    const all = await rows(kernel);
    const causes = new Map(
      all.filter(({ topic }) => topic === "a.b").map(({ message }) => [message?.metadata.id, message?.data]),
    );
    const found = all.map(({ topic, message }) => {
      const { causation, correlation } = message?.metadata ?? {};
      return [topic, correlation, causes.get(causation as string)];
    });
    for (const [task, talk] of [
      ["first", "talk 1"],
      ["second", "talk 2"],
      [undefined, undefined],
    ]) {
      expect(found).toContainEqual(["Memory.Set", talk, task]);
      expect(found).toContainEqual(["a.c", talk, task]);
      expect(found).toContainEqual(["a.c", "another", task]);
    }
  });
});

test("[X24] work of other code after a call of an extension is not caused by the event it handled", async () => {
  const woken = Promise.withResolvers<void>();
  const one = inCode(
    { id: "one", events: { subscribes: [{ topic: "a.b" }] } },
    {
      initialize: (context: ExtensionContext) =>
        context.subscribeEvent("a.b", async () => {
          const set = context.command("Memory.Set", { key: "/caused", value: 1 });
          // The loop is under way now because of this.
          woken.resolve();
          await set;
        }),
      getCapabilities: () => ({
        desk: capability({
          description: "asks",
          commands: {
            "Desk.Ask": {
              handle: async (key: string): Promise<null> => {
                await one.context.command("Memory.Set", { key, value: 1 });
                return null;
              },
            },
          },
        }),
      }),
    },
  );
  const { kernel } = await open({ extensions: [one] });
  const asking = () => Array.from({ length: 20 }, (_, n) => kernel.command("Desk.Ask", `/${n}`));
  await Promise.all([kernel.publish("a.b", null), woken.promise.then(() => Promise.all(asking()))]);
  await kernel.idle();
  const set = (await rows(kernel)).filter(({ topic }) => topic === "Memory.Set");
  const caused = set.filter(({ message }) => message?.metadata.causation !== undefined);
  expect(set).toHaveLength(21);
  expect(caused.map(({ message }) => (message?.data as { key: string } | undefined)?.key)).toEqual(["/caused"]);
});

describe("subscribeEvent", () => {
  test("[X23] only declared custom topics can be subscribed to; one that is declared and left is warned of", async () => {
    const world = new SimulatedWorld();
    const trying = inCode({
      id: "trying",
      events: { subscribes: [{ topic: "a.b" }, { topic: "c.d", handler: "notify_user" }, { topic: "e.*" }] },
    });
    await world.open(trying);
    const subscribing = (topic: string) => () => trying.context.subscribeEvent(topic, () => undefined);
    expect(subscribing("x.y")).toThrow(
      /which its manifest does not declare; add it under events\.subscribes with handler: custom/,
    );
    expect(subscribing("c.d")).toThrow(expect.objectContaining({ code: "EXTENSION_TOPIC_UNDECLARED" }));
    expect(subscribing("e.f")).toThrow(expect.objectContaining({ code: "EXTENSION_TOPIC_UNDECLARED" }));
    expect(() => trying.context.subscribeEvent("a.b", 42 as never)).toThrow(
      expect.objectContaining({ code: "EXTENSION_MISUSE" }),
    );
    expect(world.log.filter(({ level }) => level === "warn").map(({ message }) => message)).toEqual([
      "trying declares a.b and has not subscribed to it; call context.subscribeEvent in initialize",
      "trying declares e.* and has not subscribed to it; call context.subscribeEvent in initialize",
    ]);
  });

  test("[X23] a handler that throws fails its own share under the extension's id, and can be retried", async () => {
    const world = new SimulatedWorld();
    const failing = listener("failing", "a.b", () => {
      throw new Error("no");
    });
    const fine = listener("fine", "a.b");
    let tries = 0;
    const patient = inCode(
      { id: "patient", ...subscribes("a.*") },
      {
        initialize: (context: ExtensionContext) =>
          context.subscribeEvent(
            "a.*",
            () => {
              if (++tries < 3) throw new Error("not yet");
            },
            { retry: { attempts: 3 } },
          ),
      },
    );
    const { kernel } = await world.open(failing, fine, patient);
    await world.act(() => kernel.publish("a.b", null));
    await world.host.advance(60_000);
    expect(fine.heard).toHaveLength(1);
    expect(failing.heard).toHaveLength(1);
    expect(tries).toBe(3);
    const [row] = await rows(kernel);
    expect(row).toMatchObject({ status: "failed", error: expect.stringContaining("failing: no") });
  });

  test("[X25] capabilities and extensions hear the same events, by type and by topic", async () => {
    const world = new SimulatedWorld({
      capabilities: ({ space }) => ({
        inbox: transactional({
          space,
          description: "keeps mail",
          emits: { "Email.Received": true },
          commands: {
            "Inbox.Receive": {
              handle: (data: Json, tx) => {
                tx.emit("Email.Received", data);
                return null;
              },
            },
          },
        }),
        plain: capability({
          description: "emits",
          emits: { "Email.Received": true },
          commands: { "Plain.Emit": { handle: (data: Json, { emit }) => emit("Email.Received", data) as never } },
        }),
        counter: capability({ description: "counts", on: { "Email.Received": (data) => void counted.push(data) } }),
      }),
    });
    const counted: Json[] = [];
    const sender = inCode({ id: "sender", ...publishes("email.received") });
    const hears = listener("hears", "email.received");
    const { kernel } = await world.open(sender, hears);
    await world.act(() => sender.context.emit("email.received", "extension"));
    await world.act(() => kernel.command("Inbox.Receive", "transactional"));
    await world.act(() => kernel.command("Plain.Emit", "plain"));
    await world.act(() => kernel.command("Journal.Publish", { type: "Email.Received", data: "journal" }));
    await world.act(() => kernel.publish("Email.Received", "by type"));
    await world.act(() => kernel.publish("email.received", "by topic"));
    await world.host.advance(1_000);
    const all = ["extension", "transactional", "plain", "journal", "by type", "by topic"];
    expect(new Set(counted)).toEqual(new Set(all));
    expect(new Set(hears.heard.map(({ payload }) => payload))).toEqual(new Set(all));
    expect(counted).toHaveLength(all.length);
    expect(hears.heard).toHaveLength(all.length);
    const topics = (await rows(kernel)).filter(({ message }) => message?.kind === "event").map(({ topic }) => topic);
    expect(new Set(topics)).toEqual(new Set(["email.received"]));
  });
});

describe("the rest of the context", () => {
  test("[X30] config, logger, data folder", async () => {
    const data = join(scratchFolder(), "data");
    const quiet = inCode({ id: "quiet" });
    const one = inCode({ id: "one", config: { folder: "new", deep: { n: 1 } } });
    const { log } = await open({ extensions: [one, quiet], extensionData: data });
    expect(one.context.config).toEqual({ folder: "new", deep: { n: 1 } });
    expect(quiet.context.config).toEqual({});
    expect(() => Object.assign(one.context.config["deep"]!, { n: 2 })).toThrow(TypeError);
    one.context.logger.info("hello");
    one.context.logger.error("oh");
    expect(log).toEqual([
      { level: "info", source: "ext.one", message: "hello" },
      { level: "error", source: "ext.one", message: "oh" },
    ]);
    expect(existsSync(data)).toBe(false);
    const folder = one.context.dataDir;
    expect(folder).toBe(join(data, "one"));
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    expect(one.context.dataDir).toBe(folder);
  });

  test("[X30] other extensions are reached when they are declared, and only then", async () => {
    const base = inCode({ id: "base" }, { greet: () => "hello" });
    const user = inCode({ id: "user", depends_on: ["base"] });
    const stranger = inCode({ id: "stranger" });
    await open({ extensions: [base, user, stranger] });
    expect(user.context.getExtension<{ greet(): string }>("base").greet()).toBe("hello");
    expect(() => stranger.context.getExtension("base")).toThrow(
      'stranger asks for "base", which is not under depends_on in its manifest; add it',
    );
    expect(() => user.context.getExtension("ghost")).toThrow(
      expect.objectContaining({ code: "EXTENSION_NOT_A_DEPENDENCY" }),
    );
  });

  test("[X30] the kernel's capabilities are reached by commands and queries", async () => {
    const one = inCode({ id: "one" });
    await open({ extensions: [one] });
    expect(await one.context.command("Memory.Set", { key: "/a", value: 1 })).toEqual({ success: true });
    expect(await one.context.query("Memory.Get", { key: "/a" })).toEqual({ value: 1 });
    await expect(one.context.query("No.Such", null)).rejects.toMatchObject({ name: "Failure", code: 404 });
  });

  test("[X30] [M43] a failure has its reason, data and cause, with an id and without", async () => {
    const one = inCode({ id: "one" });
    const fail = () => {
      throw new Failure(409, "nothing is left", { reason: "SOLD_OUT", data: { left: 0 }, cause: new Error("empty") });
    };
    const stock = capability({ description: "stock", commands: { "Stock.Take": { handle: fail } } });
    await open({ extensions: [one], capabilities: { stock } });
    for (const options of [{}, { id: "take-1" }])
      await expect(one.context.command("Stock.Take", null, options)).rejects.toMatchObject({
        ...{ code: 409, message: "nothing is left", reason: "SOLD_OUT", data: { left: 0 } },
        cause: { message: "empty" },
      });
  });

  test("[X35] capabilities of extensions are the kernel's, and a conflict is an error of its extension", async () => {
    const say = (type: string) => ({
      getCapabilities: () => ({
        own: capability({ description: "says", queries: { [type]: { handle: (): string => "said" } } }),
      }),
    });
    const one = inCode({ id: "one" }, say("One.Say"));
    const clash = inCode({ id: "clash" }, say("One.Say"));
    const child = inCode({ id: "child", depends_on: ["clash"] }, say("Child.Say"));
    const throwing = inCode(
      { id: "throwing" },
      {
        getCapabilities: () => {
          throw new Error("no parts");
        },
      },
    );
    const built = inCode(
      { id: "built" },
      {
        getCapabilities: ({ space }: KernelParts) => ({
          own: capability({ description: "says", queries: { "Built.Say": { handle: (): string => space.name } } }),
        }),
      },
    );
    const { kernel, states, status } = await open({ extensions: [one, clash, child, throwing, built] });
    expect(states()).toEqual({ one: "ACTIVE", clash: "ERROR", child: "ERROR", throwing: "ERROR", built: "ACTIVE" });
    expect(status("clash").reason).toBe("capability clash.own: claims query One.Say, which one.own claims already");
    expect(await kernel.query("One.Say", null)).toBe("said");
    expect(await kernel.query("Built.Say", null)).toBe("kernel");
    await expect(kernel.query("Child.Say", null)).rejects.toMatchObject({ code: 404 });
    expect(Object.keys(kernel.health().actors)).toEqual(expect.arrayContaining(["one.own", "built.own"]));
  });

  test("[X8] [X35] an id, or the name of its capability, that is a capability's already is refused", async () => {
    const extra = capability({ description: "says", queries: { "Twin.Say": { handle: (): string => "extension" } } });
    const app = capability({ description: "says", queries: { "App.Say": { handle: (): string => "app" } } });
    const clash = inCode({ id: "inbox" }, { getCapabilities: () => ({ mails: extra }) });
    const names = ["timer", "kernel", "shop"].map((id) => inCode({ id }));
    const { kernel, states, status } = await open({
      capabilities: { shop: app, "inbox.mails": { ...app, inbound: extra.inbound, outbound: extra.outbound } },
      extensions: [...names, clash],
    });
    expect(states()).toEqual({ timer: "ERROR", kernel: "ERROR", shop: "ERROR", inbox: "ERROR" });
    expect(status("timer").reason).toBe("timer is the name of a capability; give it another");
    expect(status("inbox").reason).toBe("inbox.mails is the name of a capability; give it another");
    expect(await kernel.query("App.Say", null)).toBe("app");
  });

  test("[K29] [X13] Kernel.Health tells every extension with its state", async () => {
    const one = inCode({ id: "one", name: "One", description: "the first", ...publishes("a.b") });
    const off = inCode({ id: "off", enabled: false });
    const bad = inCode({ id: "bad", depends_on: ["ghost"] });
    const { kernel } = await open({ extensions: [one, off, bad, channel("sink")] });
    const health = (await kernel.query("Kernel.Health", null)) as { extensions: Json[] };
    expect(health.extensions).toMatchObject([
      { id: "one", name: "One", version: "1.0.0", state: "ACTIVE", publishes: ["a.b"], providers: [] },
      { id: "off", state: "INACTIVE", enabled: false },
      { id: "bad", state: "ERROR", reason: "depends on ghost, which is not there" },
      { id: "sink", state: "ACTIVE", providers: ["channel"] },
    ]);
  });

  test("[X30] [H20] a log that throws or rejects does not disturb its callers", async () => {
    const host = systemHost();
    const reported: string[] = [];
    host.report = (error) => void reported.push((error as Error).message);
    const speaker = inCode({ id: "speaker" });
    const log = ({ level, message }: LogEntry) => {
      if (level === "info") throw new Error(message);
      return Promise.reject(new Error(message));
    };
    const { status } = await open({ host, log, extensions: [speaker] });
    speaker.context.logger.info("at once");
    speaker.context.logger.warn("later");
    await host.yield();
    expect(reported).toEqual(["at once", "later"]);
    expect(status("speaker").state).toBe("ACTIVE");
  });
});

describe("handlers with effect once", () => {
  const both = { events: { ...publishes("mail.in", "mail.counted").events, ...subscribes("mail.in").events } };
  const retry = { attempts: 3, backoff: { startMs: 5 } };

  test("[U50] a handler that is delivered again sends its commands under the same ids", async () => {
    const ids: string[] = [];
    const note = (_data: unknown, _tx: unknown, { metadata }: { metadata: { id: string } }) =>
      void ids.push(metadata.id);
    const world = new SimulatedWorld({
      capabilities: ({ space }: KernelParts) => ({
        ids: transactional({ space, description: "notes ids", commands: { "Ids.Note": { handle: note } } }),
      }),
    });
    let calls = 0;
    const asks = inCode(
      { id: "asks", ...both },
      {
        initialize: (context: ExtensionContext) => {
          const handler = async () => {
            await context.command("Ids.Note", { same: true });
            await context.command("Ids.Note", { same: true });
            await context.command("Ids.Note", { call: ++calls });
            if (calls < 3) throw new Error("after the commands");
          };
          context.subscribeEvent("mail.in", handler, { retry });
        },
      },
    );
    await world.open(asks);
    await world.act(() => asks.context.emit("mail.in", {}));
    await world.host.advance(10_000);
    // Two commands of the same content, each handled once, and three that differ.
    expect([calls, ids.length, new Set(ids).size]).toEqual([3, 5, 5]);
  });

  test("[U51] a handler with a space takes effect once, with cells, events and plain writes after an await", async () => {
    const world = new SimulatedWorld();
    let calls = 0;
    const counts = inCode(
      { id: "counts", ...both },
      {
        initialize: (context: ExtensionContext) => {
          const { space, host } = context;
          const total = space.cell<number>("total", 0);
          context.subscribeEvent(
            "mail.in",
            async (_event, tx) => {
              tx.update(total, (n = 0) => n + 1);
              await new Promise<void>((resolve) => void host.timer(5, resolve));
              space.cell("last").set(tx.newId("last"));
              tx.emit("mail.counted", { total: tx.get(total) ?? 0 });
              if (++calls < 3) throw new Error("after the writes");
            },
            { space, retry },
          );
        },
      },
    );
    const { kernel } = await world.open(counts);
    await world.act(() => counts.context.emit("mail.in", {}));
    await world.host.advance(10_000);
    const { space } = kernel;
    expect([calls, space.cell("total").get(), (await rows(kernel)).map(({ topic }) => topic)]).toEqual([
      ...[3, 1],
      ["mail.in", "mail.counted"],
    ]);
    expect(space.cell<string>("last").get()).toMatch(/\/counts\/last$/);
  });

  test("[U51] an event that the manifest does not declare is refused, and the handler's writes with it", async () => {
    const world = new SimulatedWorld();
    const tells = inCode(
      { id: "tells", ...both },
      {
        initialize: (context: ExtensionContext) => {
          const { space } = context;
          context.subscribeEvent(
            "mail.in",
            (_event, tx) => {
              space.cell("touched").set(true);
              tx.emit("other.topic", {});
            },
            { space },
          );
        },
      },
    );
    const { kernel } = await world.open(tells);
    await world.act(() => tells.context.emit("mail.in", {}));
    await world.host.advance(1_000);
    expect([await kernel.space.cell("touched").pull(), (await rows(kernel))[0]?.status]).toEqual([undefined, "failed"]);
  });
});
