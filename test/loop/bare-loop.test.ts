/** The loop alone, as `millrace/loop` exports it: adapters and actors of others, on every runtime. */
import { describe, expect, test } from "#test";
import {
  type AdapterLife,
  type CapabilityActor,
  type Connection,
  capability,
  EventLoop,
  timerCapability,
} from "../../src/loop/index.ts";
import type { Message } from "../../src/message/envelope.ts";
import { BareActor, bare, Client, command, message, query, setup } from "./loop-setup.ts";

const echo = () => capability({ description: "echoes", queries: { "Echo.Ask": { handle: (data) => data } } });

/** An adapter as a stranger would write one: one client in memory. */
class MemoryAdapter implements AdapterLife, Connection {
  readonly id = "memory-1";
  readonly adapter = "memory";
  readonly hasRoom = true;
  frames = 0;
  closed = 0;
  readonly received: Message[] = [];
  waiting = Promise.withResolvers<void>();

  deliver(answer: Message): void {
    this.received.push(answer);
    this.waiting.resolve();
  }

  stream(given: Message): void {
    this.deliver(given);
  }

  async whenRoom(): Promise<void> {}

  close(): void {
    this.closed++;
  }
}

describe("receive", () => {
  for (const [what, given] of [
    ["undefined", undefined],
    ["null", null],
    ["a number", 7],
    ["an object without a kind", {}],
    ["a message without an id", { kind: "query", type: "Echo.Ask", data: 1, metadata: { timestamp: 1 } }],
    ["data that is no JSON", { kind: "query", type: "Echo.Ask", data: () => 1, metadata: { id: "a", timestamp: 1 } }],
    [
      "an accessor that throws",
      {
        get kind(): string {
          throw new Error("no");
        },
      },
    ],
  ] as const) {
    test(`[L92] ${what} is answered with an error, observed, and does not end the loop`, async () => {
      const { loop, client, settle, faults } = await setup({ echo: echo() });
      const one = client();
      loop.receive(given, one);
      loop.receive(query("Echo.Ask", "next", 1), one);
      await settle();
      expect(one.received[0]).toMatchObject({ kind: "error", data: { code: 422 } });
      expect(one.answers[1]).toBe("reply next 1");
      expect(faults()).toEqual(["Sys.RoutingError"]);
    });
  }

  test("[L92] the error names the id, type and correlation of the message as far as they can be read", async () => {
    const { loop, client, settle } = await setup({ echo: echo() });
    const one = client();
    const metadata = { id: "q1", timestamp: -1, correlation: "c1" };
    loop.receive({ kind: "query", type: "Echo.Ask", data: 1, metadata }, one);
    await settle();
    expect(one.received).toMatchObject([
      { kind: "error", type: "Echo.Ask", metadata: { causation: "q1", correlation: "c1" } },
    ]);
  });

  test("[L92] the actor gets a copy: a change of the sender's object is not seen", async () => {
    const actor = new BareActor();
    const { loop, client, settle } = await setup({ a: bare(() => actor) });
    const sent = message("query", "Bare.Ask", "q", { n: 1 });
    loop.receive(sent, client());
    (sent.data as { n: number }).n = 2;
    await settle();
    expect(actor.posted[0]?.data).toEqual({ n: 1 });
    expect(actor.posted[0]).not.toBe(sent);
  });
});

describe("foreign adapters", () => {
  test("[L93] an attached adapter keeps the loop alive, counts its frames, and is closed with the loop", async () => {
    const { loop } = await setup({ echo: echo() });
    const [one, other] = [new MemoryAdapter(), new MemoryAdapter()];
    const detach = loop.attach(one);
    loop.attach(other);
    one.frames = 3;
    expect(loop.liveness).toMatchObject({ alive: true, adapters: 2, frames: 3 });
    detach();
    expect(loop.liveness).toMatchObject({ alive: true, adapters: 1, frames: 0 });
    await loop.stop();
    expect([one.closed, other.closed]).toEqual([0, 1]);
  });

  test("[L94] the loop runs alone on the runtime's own host, with the timer capability", async () => {
    const adapter = new MemoryAdapter();
    const loop = await EventLoop.boot({ capabilities: { echo: echo(), timer: timerCapability() } });
    const detach = loop.attach(adapter);
    const later = { kind: "query", type: "Echo.Ask", data: "later" };
    loop.receive(command("Timer.Set", "t1", { delayMs: 1, message: later }), adapter);
    await adapter.waiting.promise;
    expect(adapter.received).toMatchObject([{ kind: "reply", metadata: { causation: "t1" } }]);
    expect(await loop.query("Echo.Ask", 7)).toBe(7);
    detach();
    await loop.stop();
  });
});

describe("foreign actors", () => {
  test("[L96] an error that an onmessage-only actor reports through onerror restarts it", async () => {
    const spawned: CapabilityActor[] = [];
    const spawn = () => {
      const actor: CapabilityActor = { postMessage: () => undefined, onmessage: null };
      spawned.push(actor);
      return actor;
    };
    const { loop, client, settle, faults, host } = await setup({ a: bare(spawn) });
    const one = client();
    loop.receive(query("Bare.Ask", "q"), one);
    await settle();
    let prevented = 0;
    const event = { type: "error", message: "escaped", preventDefault: () => void prevented++ };
    spawned[0]?.onerror?.(event);
    await host.advance(1_000);
    expect([one.answers, spawned.length, prevented]).toEqual([["error q 500"], 2, 1]);
    expect(faults()).toEqual(["Sys.ActorFault", "Sys.ActorRestarted"]);
  });

  test("[L97] an actor that is an event emitter, as a Worker of Node is, is heard", async () => {
    type Listener = (value: unknown) => void;
    const listeners = new Map<string, Listener>();
    const posted: Message[] = [];
    const emitter = {
      postMessage: (given: Message) => void posted.push(given),
      on: (event: string, listener: Listener) => void listeners.set(event, listener),
    };
    const { loop, client, settle, faults, host } = await setup({ a: bare(() => emitter) });
    const one = client();
    loop.receive(query("Bare.Ask", "q1"), one);
    await settle();
    const reply = message("reply", "Bare.Ask", "r1", "heard", { causation: "q1" });
    listeners.get("message")?.(reply);
    await settle();
    loop.receive(query("Bare.Ask", "q2"), one);
    await settle();
    listeners.get("error")?.(new Error("escaped"));
    await host.advance(1_000);
    expect(one.answers).toEqual(['reply q1 "heard"', "error q2 500"]);
    expect(faults()).toEqual(["Sys.ActorFault", "Sys.ActorRestarted"]);
  });
});

test("[L92] a client that throws when it is told of an invalid message is observed", async () => {
  const { loop, settle, faults } = await setup({ echo: echo() });
  const broken = new Client("broken");
  broken.stream = () => {
    throw new Error("gone");
  };
  loop.receive(undefined, broken);
  await settle();
  expect(faults()).toEqual(["Sys.RoutingError", "Sys.RoutingError"]);
});
