/** An engine without an async context: the modules are loaded after the engine's own is hidden. */
import { describe, expect, test, vi } from "vitest";

const builtIn = process.getBuiltinModule;
vi.spyOn(process, "getBuiltinModule").mockImplementation(((name: string) =>
  name === "node:async_hooks" ? undefined : builtIn(name)) as typeof builtIn);
const { asyncContext } = await import("../../src/host/async-context.ts");
const { EventLoop } = await import("../../src/loop/event-loop.ts");
const { transactional } = await import("../../src/loop/transactional.ts");
const { Client, command } = await import("../loop/loop-setup.ts");
const { memoryWorlds, World } = await import("./world.ts");

/** A transactional capability whose handler adds 1 to `total` after an await, by its `tx` or by a plain write. */
async function setup() {
  const world = new World(memoryWorlds);
  const process = await world.process();
  const { host, space } = process;
  const total = space.cell("total", 0);
  const working = transactional({
    space,
    description: "adds",
    commands: {
      "Work.Add": {
        handle: async (data, tx) => {
          const before = tx.get(total);
          await new Promise<void>((resolve) => void host.timer(5, resolve));
          if (data === "tx") tx.set(total, before + 1);
          else if (data === "within") tx.within(() => total.set(before + 1));
          else total.set(before + 1);
          if (data === "throw") throw new Error("not today");
        },
      },
    },
  });
  const loop = await world.run(() => EventLoop.boot({ host, capabilities: { working } }));
  const client = new Client("client");
  const send = async (data: string, id: string) => {
    loop.receive(command("Work.Add", id, data), client);
    await world.settle();
  };
  return { world, process, total, send, client };
}

describe("without an async context", () => {
  test("[U46] the engine of this test has none", () => {
    expect(asyncContext.followsAwait).toBe(false);
  });

  test("[U46] code that goes through tx is part of the commit after an await", async () => {
    const { world, process, send } = await setup();
    await send("tx", "a");
    await send("within", "b");
    expect([await world.stored("total"), process.errors]).toEqual([2, []]);
  });

  test("[U120] a plain write after an await to a document of the handler is reported once", async () => {
    const { process, send } = await setup();
    for (const id of ["a", "b", "c"]) await send("throw", id);
    expect(process.errors).toEqual([expect.objectContaining({ code: "WORK_ESCAPED" })]);
  });

  test("[U120] plain writes to other documents are not reported", async () => {
    const { process, send, world } = await setup();
    const sent = send("tx", "a");
    process.space.cell("other").set(1);
    await sent;
    expect([await world.stored("other"), await world.stored("total"), process.errors]).toEqual([1, 1, []]);
  });
});
