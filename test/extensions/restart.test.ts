/** Extensions in ERROR that are started again while their kernel runs. */
import { describe, expect, test } from "vitest";
import { ExtensionFolder, inCode, open, SimulatedWorld } from "./extension-setup.ts";

const SUBSCRIBES = "events: { subscribes: [{ topic: email.received }] }";

describe("restarting an extension", () => {
  test("[X50] the file is taken as it is now, and the events that waited are delivered", async () => {
    const folder = new ExtensionFolder();
    const manifest = `id: agent\nentrypoint: main.js\n${SUBSCRIBES}\n`;
    folder.add("agent", manifest, { "main.js": "export default { initialize() { throw new Error('no key'); } };" });
    const { kernel, states, status } = await open({ extensions: folder.path });
    expect(status("agent").reason).toBe("initialize: no key");
    const id = await kernel.publish("email.received", 1);
    folder.add("agent", manifest, {
      "main.js":
        "export default { initialize(context) { context.subscribeEvent('email.received', ({ payload }) => tell('heard ' + payload)); } };",
    });
    const answer = await kernel.command("Kernel.RestartExtension", { id: "agent" });
    expect(answer).toMatchObject({ extensions: [{ id: "agent", state: "ACTIVE" }] });
    await kernel.idle();
    expect(states()).toEqual({ agent: "ACTIVE" });
    expect(folder.told).toEqual(["heard 1"]);
    expect(await kernel.bus.query({ id, limit: 1 })).toMatchObject([{ status: "done" }]);
  });

  test("[X50] a restarted extension that still fails is in ERROR with the new reason, and its events wait", async () => {
    const folder = new ExtensionFolder();
    folder.add("agent", `id: agent\nentrypoint: main.js\n${SUBSCRIBES}\n`, { "main.js": "export default 7;" });
    const { kernel, status } = await open({ extensions: folder.path });
    const id = await kernel.publish("email.received", 1);
    folder.write("agent/manifest.yaml", "id: agent\nentrypoint: nowhere.js\n");
    expect(await kernel.restartExtension("agent")).toMatchObject([{ state: "ERROR" }]);
    expect(status("agent").reason).toMatch(/nowhere.js is not there/);
    folder.write("agent/manifest.yaml", "id: other\nentrypoint: main.js\n");
    expect(await kernel.restartExtension("agent")).toMatchObject([
      { id: "agent", reason: expect.stringContaining("another id") },
    ]);
    await kernel.idle();
    expect(await kernel.bus.query({ id, limit: 1 })).toMatchObject([{ status: "pending" }]);
  });

  test("[X50] those that failed because they depend on it start after it, in the order of their dependencies", async () => {
    const folder = new ExtensionFolder();
    folder.addLiving("base", { fails: "initialize" });
    folder.addLiving("child", { dependsOn: ["base", "middle"] });
    folder.addLiving("middle", { dependsOn: ["base"] });
    folder.addLiving("stranger", { fails: "start" });
    const { kernel, states } = await open({ extensions: folder.path });
    folder.addLiving("base");
    folder.told.length = 0;
    await kernel.restartExtension("base");
    expect(states()).toEqual({ base: "ACTIVE", child: "ACTIVE", middle: "ACTIVE", stranger: "ERROR" });
    expect(folder.told).toEqual(["base", "middle", "child"].flatMap((id) => [`${id} initialize`, `${id} start`]));
  });

  test("[X50] it waits until the end of the life before is through, and restarts follow each other", async () => {
    const world = new SimulatedWorld();
    const lives: string[] = [];
    let isWell = true;
    const slow = inCode(
      { id: "slow" },
      {
        initialize: () => void lives.push("initialize"),
        healthCheck: () => isWell,
        stop: async () => {
          await new Promise<void>((resolve) => void world.host.timer(5_000, resolve));
          lives.push("stopped");
        },
      },
    );
    const { kernel, states } = await world.open(slow);
    isWell = false;
    await world.host.advance(61_000);
    isWell = true;
    const restarts = [kernel.restartExtension("slow"), kernel.restartExtension("slow")];
    const outcomes = Promise.allSettled(restarts);
    await world.host.advance(10_000);
    expect((await outcomes).map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
    expect(lives).toEqual(["initialize", "stopped", "initialize"]);
    expect(states()).toEqual({ slow: "ACTIVE" });
    await world.act(() => kernel.close());
  });

  test("[X51] a restart of an extension that runs, is absent, or adds capabilities is refused with the reason", async () => {
    const folder = new ExtensionFolder();
    folder.addLiving("well");
    folder.addLiving("actor", { fails: "start", more: "getCapabilities() { return {}; }" });
    const { kernel } = await open({ extensions: folder.path });
    await expect(kernel.command("Kernel.RestartExtension", { id: "well" })).rejects.toMatchObject({
      code: 409,
      message: expect.stringContaining("well is ACTIVE"),
    });
    await expect(kernel.restartExtension("nobody")).rejects.toThrow(
      "there is no extension nobody; there are actor, well",
    );
    expect(await kernel.restartExtension("actor")).toMatchObject([
      { state: "ERROR", reason: expect.stringContaining("restart the kernel") },
    ]);
  });
});
