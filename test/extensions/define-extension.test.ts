/** Extensions in one file: an app with a life, a typed configuration and tools; the manifest follows from the code. */
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { type } from "../../src/app/event-definition.ts";
import { on } from "../../src/app/on.ts";
import { cron } from "../../src/app/schedule.ts";
import { type DefinedExtension, defineExtension, tool } from "../../src/extensions/define-extension.ts";
import type { AgentInvocation } from "../../src/extensions/providers.ts";
import type { KernelOptions } from "../../src/kernel/kernel-options.ts";
import { ExtensionFolder, open, SimulatedWorld } from "./extension-setup.ts";

const DEFINE = JSON.stringify(new URL("../../src/extensions/define-extension.ts", import.meta.url).href);
const ON = JSON.stringify(new URL("../../src/app/on.ts", import.meta.url).href);
const TYPE = JSON.stringify(new URL("../../src/app/event-definition.ts", import.meta.url).href);

const CONFIG = z.object({ greeting: z.string().default("Welcome") });

/** Greets guests; `told` gets the steps of its life. */
function greeter(told: string[] = [], more: { readonly version?: string; readonly dependsOn?: string[] } = {}) {
  return defineExtension(
    { id: "greeter", version: "1.2.0", config: CONFIG, ...more },
    ({ cell, config, event, log }) => {
      const greeted = cell<string[]>("greeted", []);
      const arrived = event("Guest.Arrived", type<{ name: string }>());
      const welcomed = event("Guest.Welcomed", type<{ text: string }>());
      return {
        commands: { "Greeter.Clear": (_, tx) => tx.set(greeted, []) },
        queries: { "Greeter.List": () => greeted.get() },
        on: {
          guest: on(arrived, ({ name }, tx) => {
            tx.update(greeted, (all) => [...all, name]);
            tx.emit(welcomed, { text: `${config.greeting}, ${name}!` });
          }),
        },
        schedules: { evening: cron("0 18 * * *", ({ at }, tx) => tx.push(greeted, new Date(at).toISOString())) },
        start: () => void told.push(`start ${config.greeting}`),
        stop: () => void told.push("stop"),
        healthCheck: () => {
          log.info("asked");
          return true;
        },
      };
    },
  );
}

const opened = (extensions: KernelOptions["extensions"]) => open(extensions === undefined ? {} : { extensions });

describe("a defined extension", () => {
  test("[X70] is an app with a life: its requests, events, schedules and steps run", async () => {
    const told: string[] = [];
    const { kernel, status, states } = await opened([greeter(told)]);
    expect(states()).toEqual({ greeter: "ACTIVE" });
    await kernel.publish("Guest.Arrived", { name: "Ada" });
    await kernel.idle();
    expect(await kernel.query("Greeter.List", null)).toEqual(["Ada"]);
    const rows = await kernel.bus.query({ topic: "Guest.Welcomed", limit: 1 });
    expect(rows).toMatchObject([{ status: "done", source: "greeter.guest" }]);
    await kernel.command("Greeter.Clear", null);
    expect(await kernel.query("Greeter.List", null)).toEqual([]);
    expect(status("greeter").schedules).toMatchObject([{ name: "evening", cron: "0 18 * * *" }]);
    await kernel.close();
    expect(told).toEqual(["start Welcome", "stop"]);
  });

  test("[X71] its manifest follows from the code", async () => {
    const { status } = await opened([greeter()]);
    expect(status("greeter")).toMatchObject({
      ...{ id: "greeter", name: "greeter", version: "1.2.0", dependsOn: [], providers: ["capability"] },
      ...{ publishes: ["Guest.Arrived", "Guest.Welcomed"], subscribes: ["Guest.Arrived"] },
    });
  });

  test("[X72] the manifest's configuration is checked by the schema, and its output is given", async () => {
    const told: string[] = [];
    await opened([{ manifest: { id: "greeter", config: { greeting: "Hello" } }, extension: greeter(told) }]);
    expect(told).toEqual(["start Hello"]);
    const wrong = await opened([{ manifest: { id: "greeter", config: { greeting: 3 } }, extension: greeter() }]);
    expect(wrong.states()).toEqual({ greeter: "ERROR" });
    expect(wrong.status("greeter").reason).toContain("the configuration of greeter does not take this data");
  });

  test("[X73] a manifest that says the same is taken, and each difference is an error of the extension", async () => {
    const both = (manifest: object) => [{ manifest: { id: "greeter", ...manifest }, extension: greeter() }];
    const same = await opened(
      both({
        version: "1.2.0",
        events: {
          publishes: ["guest.arrived", "guest.welcomed"].map((topic) => ({ topic, description: "of a guest" })),
        },
        schedules: [{ name: "evening", cron: "0 18 * * *" }],
      }),
    );
    expect(same.status("greeter")).toMatchObject({ state: "ACTIVE" });
    // Its events are known under the topics of the manifest too.
    await same.kernel.publish("guest.arrived", { name: "Ada" });
    await same.kernel.idle();
    expect(await same.kernel.query("Greeter.List", null)).toEqual(["Ada"]);
    const other = await opened(
      both({ version: "2.0.0", events: { subscribes: [{ topic: "guest.left" }] }, schedules: [] }),
    );
    expect(other.status("greeter").reason).toContain(
      "version is 2.0.0 in the manifest and 1.2.0 in the code; " +
        "events.subscribes is Guest.Left in the manifest and Guest.Arrived in the code",
    );
    expect(other.kernel.apps.spaces).toEqual([]);
  });

  test("[X74] a file of the folder of extensions is one; other modules beside it are not", async () => {
    const folder = new ExtensionFolder();
    folder.write(
      "hello.ts",
      `import { defineExtension } from ${DEFINE};\nimport { on } from ${ON};\nimport { type } from ${TYPE};\n
export default defineExtension({ id: "hello", dependsOn: ["other"] }, ({ cell, event, config }) => {
  const names = cell<string[]>("names", []);
  const arrived = event("Guest.Arrived", type<{ name: string }>());
  return {
    queries: { "Hello.Config": () => config },
    on: { guest: on(arrived, ({ name }, tx) => tx.push(names, name)) },
  };
});\n`,
    );
    folder.write(
      "helper.ts",
      "export const words = 3;\nexport default function never() { throw new Error('called'); }\n",
    );
    folder.write("hello.test.ts", "throw new Error('a test is no extension');\n");
    folder.write("broken.ts", "export default nothing;\n");
    folder.addLiving("other");
    const { kernel, states, status } = await opened(folder.path);
    expect(states()).toEqual({ broken: "ERROR", hello: "ACTIVE", other: "ACTIVE" });
    expect(status("broken").reason).toBe("nothing is not defined");
    expect(status("hello").folder).toBe(join(folder.path, "hello.ts"));
    expect(await kernel.query("Hello.Config", null)).toEqual({});
  });

  test("[X75] tools take the output of their schema, and the channel and the agent are those of the definition", async () => {
    const said: string[] = [];
    const seen: unknown[] = [];
    const desk = defineExtension({ id: "desk" }, () => ({
      tools: {
        add: tool({
          description: "adds two numbers",
          input: z.object({ a: z.number(), b: z.number().default(1) }),
          run: ({ a, b }) => a + b,
        }),
      },
      channel: { sendMessage: (text: string) => void said.push(text) },
      agent: {
        invoke: async (_task: string, { tools }: AgentInvocation) => {
          const [add] = tools;
          seen.push(await add?.execute({ a: 2 }));
          await Promise.resolve(add?.execute({ a: "2" })).catch(({ message }: Error) => seen.push(message));
          return "done";
        },
      },
    }));
    const { kernel, status } = await opened([desk]);
    expect(status("desk").providers).toEqual(["channel", "agent", "tool"]);
    await kernel.publish("system.user.notify", { text: "hi" });
    await kernel.publish("system.agent.background", { prompt: "add" });
    await kernel.idle();
    expect(said).toEqual(["hi"]);
    expect(seen).toEqual([3, expect.stringContaining("the tool add of desk does not take this data")]);
  });

  test("[X75] mistakes of a definition are told with the remedy", async () => {
    const broken = (id: string, define: () => object) => defineExtension({ id }, define);
    const { status } = await opened([
      broken("none", () => undefined as never),
      broken("wrong", () => ({ commands: { order: () => 1 } })),
      broken("tools", () => ({ tools: { add: () => 1 } as never })),
    ]);
    expect(status("none").reason).toContain("its function returns undefined; return { commands, queries, … }");
    expect(status("wrong").reason).toContain('command "order": a name is two PascalCase words, like Shop.Order');
    expect(status("tools").reason).toContain("tools.add: must come from tool({ description, input, run })");
    expect(() => defineExtension({ id: "Not A Name" }, () => ({}))).toThrow("a name is a word like shop");
    expect(() => defineExtension({ id: "a", confg: 1 } as never, () => ({}))).toThrow("did you mean config");
    expect(() => defineExtension({ id: "a", config: { x: 1 } as never }, () => ({}))).toThrow("is a Standard Schema");
    expect(() => tool({ description: "x" } as never)).toThrow("takes a text, a Standard Schema and a function");
  });
});

describe("a defined extension in ERROR", () => {
  /** Without requests: it can be started again in a running kernel. */
  function listener(heard: string[], isWell: () => boolean): DefinedExtension {
    return defineExtension({ id: "listener" }, ({ cell, event }) => {
      const last = cell("last", "");
      const arrived = event("Guest.Arrived", type<{ name: string }>());
      return {
        on: {
          guest: on(arrived, ({ name }, tx) => {
            heard.push(`${tx.get(last)}>${name}`);
            tx.set(last, name);
          }),
        },
        healthCheck: isWell,
      };
    });
  }

  test("[X70] [X49] [X50] its events wait, and are handled after a restart, on the state that it had", async () => {
    const world = new SimulatedWorld();
    const heard: string[] = [];
    let isWell = true;
    const { kernel, states } = await world.open(listener(heard, () => isWell));
    await world.act(() => kernel.publish("Guest.Arrived", { name: "Ada" }));
    isWell = false;
    await world.host.advance(60_000);
    expect(states()).toEqual({ listener: "ERROR" });
    await world.act(() => kernel.publish("Guest.Arrived", { name: "Bob" }));
    expect(heard).toEqual([">Ada"]);
    isWell = true;
    await world.act(() => kernel.restartExtension("listener"));
    expect(states()).toEqual({ listener: "ACTIVE" });
    expect(heard).toEqual([">Ada", "Ada>Bob"]);
    await world.act(() => kernel.close());
  });
});
