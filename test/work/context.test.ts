/** The async context of a handler reaches the code that follows from it, and no other. */
import { describe, expect, test } from "#test";
import { asyncContext } from "../../src/host/async-context.ts";
import { capability } from "../../src/loop/define-capability.ts";
import { EventLoop } from "../../src/loop/event-loop.ts";
import { transactional } from "../../src/loop/transactional.ts";
import type { Json } from "../../src/message/json.ts";
import { Client, command } from "../loop/loop-setup.ts";
import { memoryWorlds, type Process, World } from "./world.ts";

type Handle = (process: Process, loop: EventLoop) => Promise<Json | undefined>;

/** A transactional capability `Work.Do`, and a plain one `Plain.Do` that writes after an await. */
async function setup(handle: Handle) {
  const world = new World(memoryWorlds);
  const process = await world.process();
  const { host, space } = process;
  const working = transactional({
    space,
    description: "works",
    commands: { "Work.Do": { handle: () => handle(process, loop) } },
  });
  const plain = capability({
    description: "writes after an await",
    commands: {
      "Plain.Do": {
        handle: async () => {
          await tick(process);
          space.cell("plain").set(1);
        },
      },
    },
  });
  const loop: EventLoop = await world.run(() => EventLoop.boot({ host, capabilities: { working, plain } }));
  const client = new Client("client");
  const send = async (type: string, id: string) => {
    loop.receive(command(type, id), client);
    await world.settle();
  };
  return { world, process, loop, send, client };
}

const tick = ({ host }: Process) => new Promise<void>((resolve) => void host.timer(5, resolve));

describe("the context of a handler", () => {
  test("[U38] the engines that run this test keep it across awaits", () => {
    expect(asyncContext.followsAwait).toBe(true);
  });

  test("[U39] a plain handler, sinks, effects and timers that a handler sets off are not part of it", async () => {
    const { world, send, client, process } = await setup(async ({ space, host }, loop) => {
      space.cell("started").set(1);
      await tick(process);
      loop.command("Plain.Do", null).catch(() => undefined);
      space.outside(() => host.timer(50, () => space.cell("timer").set(1)));
      host.timer(60, () => space.cell("host-timer").set(1));
      await tick(process);
      return "done";
    });
    const { space } = process;
    space.cell("started").sink(async (value) => {
      await tick(process);
      if (value === 1) space.cell("sink").set(1);
    });
    await world.settle();
    await send("Work.Do", "a");
    expect(client.answers).toEqual(['reply a "done"']);
    const ids = ["started", "plain", "timer", "host-timer", "sink"];
    for (const id of ids) expect([id, await world.stored(id)]).toEqual([id, 1]);
    expect(process.errors).toEqual([]);
  });

  test("[U44] two handlers that are interleaved do not see each other's writes", async () => {
    const world = new World(memoryWorlds);
    const process = await world.process();
    const { host, space } = process;
    const seen: unknown[] = [];
    const of = (own: string) =>
      transactional({
        space,
        description: own,
        commands: {
          [`${own}.Do`]: {
            handle: async (): Promise<void> => {
              const cell = space.cell<string>("shared");
              cell.set(own);
              await tick(process);
              seen.push(cell.get());
              await tick(process);
              space.cell(own).set(cell.get());
            },
          },
        },
      });
    const loop = await world.run(() => EventLoop.boot({ host, capabilities: { one: of("One"), two: of("Two") } }));
    const client = new Client("client");
    loop.receive(command("One.Do", "a"), client);
    loop.receive(command("Two.Do", "b"), client);
    await world.settle();
    expect(new Set(seen)).toEqual(new Set(["One", "Two"]));
    expect([await world.stored("One"), await world.stored("Two")]).toEqual(["One", "Two"]);
  });

  test("[U45] a computed value that a handler reads does not see the handler's writes, and its reads are its own", async () => {
    const { world, process, send } = await setup(async ({ space }) => {
      const n = space.cell<number>("n", 1);
      const twice = space.scheduler.parts.documents.computationOf(space.replica(space.name), "twice");
      n.set(10);
      await tick(process);
      space.cell("seen").set([n.get() ?? 0, twice?.output?.value ?? null]);
      return null;
    });
    const { space } = process;
    const n = space.cell<number>("n", 1);
    space.computed("twice", () => (n.get() ?? 0) * 2).sink(() => undefined);
    await world.settle();
    await send("Work.Do", "a");
    expect(await world.stored("seen")).toEqual([10, 2]);
  });

  test("[F9] the clearance of a handler holds after an await, with a transaction and without one", async () => {
    const world = new World(memoryWorlds);
    const { host, space } = await world.process();
    const secret = space.cell<number>("secret", undefined, { label: ["high"] });
    await world.run(() => space.transact(() => secret.set(1)));
    await world.settle();
    const later = async () => {
      await new Promise<void>((resolve) => void host.timer(5, resolve));
      return secret.get() ?? null;
    };
    const working = transactional({
      ...{ space, description: "works", clearance: [] },
      commands: { "Work.Do": { handle: later } },
    });
    const plain = capability({ description: "plain", clearance: [], commands: { "Plain.Do": { handle: later } } });
    const loop = await world.run(() => EventLoop.boot({ host, capabilities: { working, plain } }));
    const client = new Client("client");
    loop.receive(command("Work.Do", "a"), client);
    loop.receive(command("Plain.Do", "b"), client);
    await world.settle();
    expect(client.answers.sort()).toEqual(["error a 403", "error b 403"]);
  });
});
