/** Handlers of capabilities that take too long. */
import { describe, expect, test } from "#test";
import { capability } from "../../src/loop/define-capability.ts";
import { EventLoop } from "../../src/loop/event-loop.ts";
import { transactional } from "../../src/loop/transactional.ts";
import { Client, command } from "../loop/loop-setup.ts";
import { memoryWorlds, World } from "./world.ts";

async function setup() {
  const world = new World(memoryWorlds);
  const process = await world.process();
  const { host, space, errors } = process;
  const total = space.cell<number>("total", 0);
  const wait = (ms: number) => new Promise<void>((resolve) => void host.timer(ms, resolve));
  const refused = (error: { code?: string }) => void errors.push(error.code);
  const working = transactional({
    ...{ space, description: "works", timeoutMs: 100 },
    commands: {
      "Work.Hang": {
        handle: async (_: unknown, tx) => {
          tx.set(total, 1);
          await wait(500);
          try {
            total.set(2);
          } catch (error) {
            refused(error as { code?: string });
          }
          return null;
        },
      },
      "Work.Add": {
        handle: (_: unknown, tx) => {
          tx.update(total, (n = 0) => n + 10);
          return tx.get(total) ?? null;
        },
      },
    },
  });
  const plain = capability({
    ...{ description: "plain", timeoutMs: 100, emits: { "Plain.Late": true } },
    commands: {
      "Plain.Hang": {
        handle: async (_: unknown, context) => {
          context.signal.addEventListener("abort", () => errors.push("aborted"));
          await wait(500);
          try {
            context.emit("Plain.Late", null);
          } catch (error) {
            refused(error as { code?: string });
          }
          return null;
        },
      },
      "Plain.Ping": { handle: () => "pong" },
    },
  });
  const loop = await world.run(() => EventLoop.boot({ host, capabilities: { working, plain } }));
  const client = new Client("client");
  const send = async (...types: string[]) => {
    for (const type of types) loop.receive(command(type, type), client);
    await world.settle();
  };
  return { world, client, send, errors, total };
}

describe("a handler that takes too long", () => {
  test("[U34] [U35] [U36] a command is answered with 504, its late writes are refused, and the next command is handled", async () => {
    const { world, client, send, errors } = await setup();
    await send("Work.Hang", "Work.Add");
    expect(client.answers).toEqual(["error Work.Hang 504", "reply Work.Add 10"]);
    expect([await world.stored("total"), errors]).toEqual([10, ["WORK_OVER"]]);
  });

  test("[U34] [U35] [U36] the signal of a plain handler is aborted, its late events are refused, and the actor goes on", async () => {
    const { client, send, errors } = await setup();
    await send("Plain.Hang", "Plain.Ping");
    expect(client.answers).toEqual(["error Plain.Hang 504", 'reply Plain.Ping "pong"']);
    expect(errors).toEqual(["aborted", "WORK_OVER"]);
  });

  test("[U34] [U36] a stream's handler has the timeout that it asks for, and 0 is for ever", async () => {
    const world = new World(memoryWorlds);
    const { host, space } = await world.process();
    const slow = (name: string, timeoutMs: number) => {
      const stream = space.stream<number>(name);
      stream.handle((ms) => new Promise<void>((resolve) => void host.timer(ms, resolve)), { timeoutMs });
      return stream;
    };
    const [short, endless] = [slow("short", 100), slow("endless", 0)];
    const outcomes = [short.send(500), short.send(50), endless.send(1_000_000)].map(({ outcome }) => outcome);
    const ends = await world.run(() => Promise.all(outcomes));
    expect(ends[0]).toMatchObject({ kind: "failed", reason: "timeout", message: expect.stringContaining("100 ms") });
    expect(ends.slice(1).map(({ kind }) => kind)).toEqual(["handled", "handled"]);
    expect(() => space.stream("bad").handle(() => null, { timeoutMs: -1 })).toThrow(/timeoutMs: must be 0/);
  });

  test("[U34] a timeout that is no time is refused when the capability is made", () => {
    const make = () => capability({ description: "x", timeoutMs: -1, commands: {} });
    expect(make).toThrow(/timeoutMs: must be 0/);
  });
});
