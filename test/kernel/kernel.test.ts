/** The composition in one process: order of boot, remains of a failure, health, and the end. */
import { existsSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { Client } from "../../src/client/client.ts";
import { systemHost } from "../../src/host/system-host.ts";
import { configuredOptions } from "../../src/kernel/configured-options.ts";
import { dataDirectory } from "../../src/kernel/data-directory.ts";
import { Kernel } from "../../src/kernel/kernel.ts";
import type { KernelOptions } from "../../src/kernel/kernel-options.ts";
import { readSettings } from "../../src/kernel/settings.ts";
import type { Capability, CapabilityActor } from "../../src/loop/capability.ts";
import { capability } from "../../src/loop/define-capability.ts";
import { transactional } from "../../src/loop/transactional.ts";
import { Failure } from "../../src/message/error-data.ts";
import type { Json } from "../../src/message/json.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { openSqliteStore } from "../../src/store/sqlite/index.ts";
import { scratchFolder } from "../repo/program.ts";

async function open(options: Partial<KernelOptions> = {}): Promise<Kernel> {
  const host = systemHost();
  const kernel = await Kernel.open({ host, store: memoryStore({ host }), ...options });
  onTestFinished(() => kernel.close({ graceMs: 0 }));
  return kernel;
}

const echo = (): Capability => capability({ description: "echo", queries: { "Echo.Say": { handle: (data) => data } } });

/** Counts actors that were spawned and not ended. */
function counted(inner: Capability, alive: Set<CapabilityActor>): Capability {
  return {
    ...inner,
    spawn: (context) => {
      const actor = inner.spawn(context);
      alive.add(actor);
      const terminate = actor.terminate?.bind(actor);
      actor.terminate = () => {
        alive.delete(actor);
        return terminate?.();
      };
      return actor;
    },
  };
}

describe("boot", () => {
  test("[H21] a kernel without a host uses that of the process", async () => {
    await using kernel = await Kernel.open({ store: memoryStore(), capabilities: { echo: echo() } });
    expect(await kernel.query("Echo.Say", "hello")).toBe("hello");
  });

  test("[K161] a value that is not a store is refused with a remedy", async () => {
    const promise = openSqliteStore({ path: join(scratchFolder(), "kernel.db"), durability: "process" });
    await expect(Kernel.open({ store: promise as never })).rejects.toMatchObject({
      code: "STORE_MISUSE",
      message: "store: this is the promise of one; write store: await openSqliteStore({ … })",
    });
    await (await promise).close();
    await expect(Kernel.open({ store: undefined as never })).rejects.toMatchObject({ code: "STORE_MISUSE" });
  });

  test("[K20] the parts of capabilities are open before the capabilities are built", async () => {
    const kernel = await open({
      capabilities: ({ space, bus, store }) => {
        expect(store.backend).toBe("memory");
        expect(bus).toBeDefined();
        const count = space.cell<number>("count");
        return {
          counter: transactional({
            space,
            description: "counts",
            commands: {
              "Counter.Add": {
                handle: (_data, tx) => {
                  tx.set(count, (tx.get(count) ?? 0) + 1);
                  return tx.get(count) ?? 0;
                },
              },
            },
          }),
        };
      },
    });
    expect(await kernel.command("Counter.Add", null)).toBe(1);
    expect(await kernel.command("Counter.Add", null)).toBe(2);
    expect(kernel.space.cell("count").get()).toBe(2);
  });

  test("[K20] all problems of the capabilities are reported at once, and no part stays open", async () => {
    const host = systemHost();
    const store = memoryStore({ host });
    const alive = new Set<CapabilityActor>();
    const socketPath = join(scratchFolder(), "millrace", "kernel.sock");
    const broken = { ...echo(), description: "" };
    const failed = Kernel.open({
      ...{ host, store, socketPath },
      capabilities: { good: counted(echo(), alive), twin: echo(), broken },
    });
    await expect(failed).rejects.toMatchObject({
      code: "BOOT_FAILED",
      problems: [
        "capability twin: claims query Echo.Say, which good claims already",
        "capability broken: has no description",
      ],
    });
    expect(alive.size).toBe(0);
    expect(existsSync(socketPath)).toBe(false);
    await expect(store.count()).rejects.toMatchObject({ code: "STORE_CLOSED" });
  });

  test("[K20] an actor that does not start ends the others", async () => {
    const host = systemHost();
    const store = memoryStore({ host });
    const alive = new Set<CapabilityActor>();
    const stillborn: Capability = {
      ...capability({ description: "never", queries: { "Never.Say": { handle: () => null } } }),
      spawn: () => {
        throw new Error("no worker to be had");
      },
    };
    const failed = Kernel.open({ host, store, capabilities: { good: counted(echo(), alive), stillborn } });
    await expect(failed).rejects.toThrow(/capability stillborn: spawn failed: no worker to be had/);
    expect(alive.size).toBe(0);
    await expect(store.count()).rejects.toMatchObject({ code: "STORE_CLOSED" });
  });

  test("[K20] a socket that cannot be opened closes all earlier parts", async () => {
    const host = systemHost();
    const first = await open({ socketPath: join(scratchFolder(), "millrace", "kernel.sock") });
    const store = memoryStore({ host });
    const alive = new Set<CapabilityActor>();
    const second = Kernel.open({
      ...{ host, store, socketPath: first.socketPath as string },
      capabilities: { good: counted(echo(), alive) },
    });
    await expect(second).rejects.toMatchObject({ code: "SOCKET_IN_USE" });
    expect(alive.size).toBe(0);
    await expect(store.count()).rejects.toMatchObject({ code: "STORE_CLOSED" });
    await using client = await Client.connect({ path: first.socketPath as string });
    expect(await client.query("Syscall.Ping", "the first goes on")).toBe("the first goes on");
  });
});

describe("life", () => {
  test("[K21] health reports the parts of a kernel", async () => {
    const kernel = await open({
      socketPath: join(scratchFolder(), "millrace", "kernel.sock"),
      capabilities: ({ space, bus }) => {
        bus.subscribe("some.*", () => undefined, { subscriberId: "by-itself" });
        const source = space.cell<number>("source");
        const watched = space.computed("watched", () => (source.get() ?? 0) * 2);
        space.computed("dormant", () => (source.get() ?? 0) * 3);
        watched.sink(() => undefined);
        return {
          echo: echo(),
          listener: capability({ description: "listens", on: { "Some.Thing": () => undefined } }),
        };
      },
    });
    await using client = await Client.connect({ path: kernel.socketPath as string });
    await client.query("Echo.Say", 1);
    await kernel.idle();
    const { actors, ...health } = kernel.health();
    expect(health).toMatchObject({ state: "running", quiescent: true, subscriptions: 2, connections: 1 });
    expect(health).toMatchObject({ nodes: 3, liveNodes: 2, recovered: 0 });
    expect(new Set(Object.values(actors))).toEqual(new Set(["running"]));
    expect(Object.keys(actors)).toEqual(expect.arrayContaining(["syscall", "timer", "memory", "journal", "echo"]));
    await kernel.close();
    expect(kernel.health()).toMatchObject({ state: "stopped", quiescent: true });
  });

  test("[K26] an event is done when its subscriber has handled it, not at the hand-over", async () => {
    const host = systemHost();
    const store = memoryStore({ host });
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    const slow = capability({
      description: "slow",
      on: {
        "Some.Thing": () => {
          begin();
          return released;
        },
      },
    });
    const kernel = await open({ host, store, capabilities: { slow } });
    await kernel.command("Journal.Publish", { type: "Some.Thing", data: null });
    await begun;
    const statuses = async () => (await store.query({ topic: "Some.Thing", limit: 1 })).map(({ status }) => status);
    expect(await statuses()).toEqual(["processing"]);
    release();
    await kernel.close();
  });

  test("[K26] an event whose handler fails is a dead letter and can be requeued", async () => {
    const host = systemHost();
    let works = false;
    const heard: Json[] = [];
    const listener = capability({
      description: "listens",
      on: {
        "Some.Thing": async (data) => {
          if (!works) throw new Error("the model is down", { cause: new Error("ECONNREFUSED") });
          heard.push(data);
        },
      },
    });
    const kernel = await open({ host, store: memoryStore({ host }), capabilities: { listener } });
    await kernel.publish("Some.Thing", 1);
    await kernel.idle();
    const { rows } = await kernel.bus.failures();
    expect(rows.map(({ topic, error }) => `${topic} ${error}`)).toEqual([
      "Some.Thing listener: the model is down: ECONNREFUSED",
    ]);
    works = true;
    await kernel.bus.requeue(rows.map(({ id }) => id));
    await kernel.idle();
    expect(heard).toEqual([1]);
    await kernel.close();
  });
});

describe("the socket's clearance", () => {
  for (const clearance of [[], ["a"]]) {
    test(`[L70] a client with the clearance ${JSON.stringify(clearance)} cannot end the kernel`, async () => {
      const socketPath = join(scratchFolder(), "millrace", "kernel.sock");
      const kernel = await open({ socketPath, clearance });
      await using client = await Client.connect({ path: socketPath });
      await expect(client.command("Syscall.Shutdown", null)).rejects.toMatchObject({
        code: 403,
        message: expect.stringContaining("acts on the kernel itself"),
      });
      expect(await client.query("Syscall.Ping", 1)).toBe(1);
      expect(kernel.health().state).toBe("running");
    });
  }

  test("[F12] clients get data within the clearance and refusals otherwise; the program itself is unlimited", async () => {
    const socketPath = join(scratchFolder(), "kernel.sock");
    const kernel = await open({
      ...{ socketPath, clearance: ["a"] },
      capabilities: () => ({
        within: capability({ description: "within", clearance: ["a"], queries: { "Within.Ask": { handle: () => 1 } } }),
        above: capability({
          description: "above",
          clearance: ["a", "b"],
          queries: { "Above.Ask": { handle: () => 2 } },
        }),
        all: echo(),
      }),
    });
    await using client = await Client.connect({ path: socketPath });
    const ask = (type: string, data: Json = null) => client.query(type, data).catch(({ code }: Failure) => code);
    const asked = ["Within.Ask", "Above.Ask", "Echo.Say", "Kernel.Health", "Syscall.List"];
    expect(await Promise.all(asked.map((type) => ask(type)))).toEqual([1, 403, 403, 403, expect.anything()]);
    await expect(client.query("Above.Ask", null)).rejects.toThrow("give above a clearance that lies within it");
    expect(await kernel.query("Above.Ask", null)).toBe(2);
    await client.command("Memory.Set", { key: "/x", value: 1 });
    expect(await ask("Memory.Get", { key: "/x" })).toEqual({ value: 1 });
    expect(await ask("Memory.List")).toEqual({ keys: ["/x"] });
    await kernel.space.cell<number>("memory/x").label(["b"]);
    expect([await ask("Memory.Get", { key: "/x" }), await ask("Memory.List")]).toEqual([403, { keys: [] }]);
    await expect(client.subscribe({ from: "start" }).next()).rejects.toMatchObject({ code: 403 });
  });

  test("[F12] invalid label names are refused at boot", async () => {
    const opening = open({ socketPath: join(scratchFolder(), "kernel.sock"), clearance: [""] });
    await expect(opening).rejects.toMatchObject({ code: "LABEL_MISUSE" });
  });

  test.each([
    ["none", []],
    ["hr, finance", ["hr", "finance"]],
    [undefined, ["app"]],
  ])("[F12] the setting %j overrides the app's clearance", async (clearance, expected) => {
    const folder = scratchFolder();
    writeFileSync(join(folder, "app.mjs"), 'export default {}; export const clearance = ["app"];');
    const settings = await readSettings({ folder, environment: {}, code: { app: join(folder, "app.mjs"), clearance } });
    const directory = dataDirectory({ MILLRACE_DIR: folder });
    expect((await configuredOptions(settings, directory)).clearance).toEqual(expected);
  });
});

describe("one commit", () => {
  test("[J5] a command's launches exist if and only if its handler committed", async () => {
    const host = systemHost();
    const store = memoryStore({ host });
    const kernel = await open({
      ...{ host, store },
      capabilities: ({ space }) => ({
        shop: transactional({
          space,
          description: "takes orders",
          emits: { "Order.Placed": true },
          commands: {
            "Shop.Order": {
              handle: ({ fail }: { fail: boolean }, tx) => {
                tx.set(space.cell("orders"), 1);
                tx.emit("Order.Placed", null);
                if (fail) throw new Failure(422, "no stock");
                return null;
              },
            },
          },
        }),
      }),
    });
    const topics = async () => {
      const rows = await store.query({ status: "done", limit: 10 });
      // The row of a refused command says so.
      return rows.filter(({ outcome }) => outcome !== "refused").map(({ topic }) => topic);
    };
    await expect(kernel.command("Shop.Order", { fail: true })).rejects.toMatchObject({ code: 422 });
    expect(await topics()).toEqual([]);
    expect(await kernel.space.cell("orders").pull()).toBeUndefined();
    await kernel.command("Shop.Order", { fail: false });
    expect(await topics()).toEqual(["Order.Placed", "Shop.Order"]);
    expect(kernel.space.cell("orders").get()).toBe(1);
  });
});

describe("the end", () => {
  test("[K23] running work is finished and answered, then all parts close", async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<string>();
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    const alive = new Set<CapabilityActor>();
    const slow = capability({
      description: "slow",
      commands: {
        "Slow.Work": {
          handle: () => {
            begin();
            return released;
          },
        },
      },
    });
    const socketPath = join(scratchFolder(), "millrace", "kernel.sock");
    const kernel = await open({ socketPath, capabilities: { slow: counted(slow, alive) } });
    await using client = await Client.connect({ path: socketPath });
    const answer = client.command("Slow.Work", null);
    await begun;
    const closing = [kernel.close(), kernel.close()];
    expect(kernel.health().state).toBe("stopping");
    release("finished");
    expect(await answer).toBe("finished");
    await Promise.all([...closing, kernel.closed()]);
    await kernel.closed();
    expect(kernel.health().state).toBe("stopped");
    expect(alive.size).toBe(0);
    expect(existsSync(socketPath)).toBe(false);
  });

  test("[K23] work that does not finish in time is answered with 503", async () => {
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    const stuck = capability({
      description: "stuck",
      commands: {
        "Stuck.Work": {
          handle: () => {
            begin();
            return new Promise<never>(() => undefined);
          },
        },
      },
    });
    const kernel = await open({ capabilities: { stuck } });
    const answer = kernel.command("Stuck.Work", null).catch((error: unknown) => error);
    await begun;
    await kernel.close({ graceMs: 1 });
    expect(await answer).toMatchObject({ name: "Failure", code: 503 });
  });

  test("[K164] Syscall.Shutdown is answered before the socket closes", async () => {
    const socketPath = join(scratchFolder(), "millrace", "kernel.sock");
    const kernel = await open({ socketPath });
    await using client = await Client.connect({ path: socketPath });
    expect(await client.command("Syscall.Shutdown", null)).toEqual({ success: true });
    await kernel.closed();
    expect(existsSync(socketPath)).toBe(false);
  });

  test("[K23] a silent open connection does not delay the end", async () => {
    const socketPath = join(scratchFolder(), "millrace", "kernel.sock");
    const kernel = await open({ socketPath });
    const silent = connect(socketPath);
    await new Promise((resolve) => silent.once("connect", resolve));
    const ended = new Promise((resolve) => silent.once("close", resolve));
    silent.resume();
    await kernel.close();
    await ended;
  });
});
