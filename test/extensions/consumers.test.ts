/** Events of extensions that do not run: they wait, and are delivered when the extension runs again. */
import { describe, expect, test } from "vitest";
import { inCode, SimulatedWorld } from "./extension-setup.ts";

const SUBSCRIBES = { events: { subscribes: [{ topic: "email.received" }] } };

function agent(heard: number[], broken: () => boolean) {
  const made = inCode(
    { id: "agent", ...SUBSCRIBES },
    {
      initialize() {
        if (broken()) throw new Error("the model server is not reachable");
        made.context.subscribeEvent<number>("email.received", ({ payload }) => void heard.push(payload));
      },
    },
  );
  return made;
}

async function emit(world: SimulatedWorld, kernel: { publish(topic: string, n: number): Promise<number> }, n: number) {
  return world.act(() => kernel.publish("email.received", n));
}

describe("an extension in ERROR", () => {
  test("[X49] its events are pending with the reason, and the next kernel delivers them", async () => {
    const world = new SimulatedWorld();
    const heard: number[] = [];
    const first = await world.open(agent(heard, () => true));
    expect(first.states()).toEqual({ agent: "ERROR" });
    const id = await emit(world, first.kernel, 1);
    const error = "waits for agent on email.received, which is not running";
    expect(await first.kernel.bus.query({ id, limit: 1 })).toMatchObject([{ status: "pending", error }]);
    const [waiting] = await first.kernel.bus.consumers();
    expect(waiting).toMatchObject({ name: "agent", waiting: 1, leases: [] });
    await world.act(() => first.kernel.close());
    const second = await world.open(agent(heard, () => false));
    await emit(world, second.kernel, 2);
    expect(heard).toEqual([1, 2]);
    expect(await second.kernel.bus.query({ id, limit: 1 })).toMatchObject([{ status: "done" }]);
    await world.act(() => second.kernel.close());
  });

  test("[X49] later events of an extension that fails while it runs stay pending", async () => {
    const world = new SimulatedWorld();
    const heard: number[] = [];
    let isWell = true;
    const made = agent(heard, () => false);
    Object.assign(made.extension, { healthCheck: () => isWell });
    const { kernel, states } = await world.open(made);
    await emit(world, kernel, 1);
    isWell = false;
    await world.host.advance(60_000);
    expect(states()).toEqual({ agent: "ERROR" });
    const id = await emit(world, kernel, 2);
    expect(heard).toEqual([1]);
    expect(await kernel.bus.query({ id, limit: 1 })).toMatchObject([{ status: "pending" }]);
    await world.act(() => kernel.close());
  });

  test("[X49] an extension that lacks a dependency is declared as consumer too; a disabled one is not", async () => {
    const world = new SimulatedWorld();
    const orphan = inCode({ id: "orphan", depends_on: ["nobody"], ...SUBSCRIBES });
    const disabled = inCode({ id: "disabled", enabled: false, ...SUBSCRIBES });
    const { kernel } = await world.open(orphan, disabled);
    const declared = await kernel.bus.consumers();
    expect(declared.filter(({ pattern }) => pattern === "email.received").map(({ name }) => name)).toEqual(["orphan"]);
    await world.act(() => kernel.close());
  });
});
