/** The health of a kernel whose store loses its server, and comes back with data that lack acknowledged commits. */
import { expect, test } from "vitest";
import { kernelProblems } from "../../src/cli/doctor.ts";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { Kernel } from "../../src/kernel/kernel.ts";
import { Server } from "../store/served-store.ts";

async function running() {
  const world = simulatedHost(1);
  const server = new Server(world);
  const line = server.connect();
  const kernel = await world.run(() =>
    Kernel.open({
      ...{ host: world, store: line.store, version: "1", capabilities: () => ({}) },
      ...{ extensions: [], extensionData: "nowhere", log: () => undefined, observe: () => undefined },
    }),
  );
  let asked = 0;
  const put = async (value: number) => {
    const metadata = { id: `put-${++asked}`, timestamp: world.now() };
    const data = { key: "/a", value };
    return kernel.loop.request({ kind: "command", type: "Memory.Set", data, metadata });
  };
  return { world, server, line, kernel, put };
}

test("[K62] health and doctor tell that the server cannot be reached, since when, and how many writes are parked", async () => {
  const { world, line, kernel } = await running();
  expect(kernel.health().store).toEqual({ backend: "memory" });
  line.cut();
  const sinceMs = world.now();
  const published = kernel.bus.publish("parcel.came", "test", 1);
  await world.advance(1_000);
  const health = kernel.health();
  expect(health.state).toBe("degraded");
  expect(health.store.away).toEqual({ sinceMs, reason: "the line is cut", parked: 1 });
  expect(kernelProblems(health, []).join()).toContain("the line is cut");
  line.repair();
  await world.advance(1_000);
  expect(await published).toBe(1);
  expect(kernel.health().store).toEqual({ backend: "memory" });
  expect(kernelProblems(kernel.health(), [])).toEqual([]);
});

test("[S236] health and doctor tell of acknowledged commits that a failover has lost", async () => {
  const { world, server, kernel, put } = await running();
  server.stopCopying();
  expect((await world.run(() => put(1))).kind).toBe("reply");
  server.failOver();
  await world.advance(1_000);
  const health = kernel.health();
  expect(health.state).toBe("degraded");
  expect(health.store.historyLost).toContain("acknowledged commit");
  expect(kernelProblems(health, [])).toContain(health.store.historyLost);
});
