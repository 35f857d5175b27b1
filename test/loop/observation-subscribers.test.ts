/** Capabilities that subscribe to observations: their messages, and no circle. */
import { describe, expect, test } from "#test";
import { type SimulatedHost, simulatedHost } from "../../src/host/simulated-host.ts";
import { capability } from "../../src/loop/define-capability.ts";
import { EventLoop } from "../../src/loop/event-loop.ts";
import { Observations } from "../../src/loop/observation.ts";
import type { Message } from "../../src/message/envelope.ts";
import type { Json } from "../../src/message/json.ts";
import { command, deferred, message, query, setup } from "./loop-setup.ts";

const failing = capability({
  description: "fails",
  commands: {
    "Fail.Now": {
      handle: () => {
        throw new Error("on purpose");
      },
    },
  },
});

/** Keeps the observations of a type; `act` is called for each. */
function watcher(type: string, act: (seen: Message, context: Acting) => unknown = () => undefined) {
  const seen: Message[] = [];
  const watch = capability({
    description: "watches",
    sends: { "Fail.Now": "command" },
    on: {
      [type]: (_data: Json, context, observation) => {
        seen.push(observation);
        return act(observation, context);
      },
    },
  });
  return { seen, watch };
}

interface Acting {
  command(type: string, data: Json): Promise<Json>;
  emit(type: string, data: Json): void;
}

function reporting(): { host: SimulatedHost; reported: string[] } {
  const host = simulatedHost(1);
  const reported: string[] = [];
  host.report = (thrown: unknown) => void reported.push(String(thrown));
  return { host, reported };
}

describe("observations in a mailbox", () => {
  test("[L37] a subscriber gets only observations of its type, caused by the observed message", async () => {
    const { seen, watch } = watcher("Sys.RoutingError");
    const { loop, client, settle, observed } = await setup({ watch, failing });
    loop.receive(query("No.Body", "q1"), client());
    loop.receive(command("Fail.Now", "c1"), client());
    await settle();
    expect(seen).toMatchObject([
      { kind: "event", type: "Sys.RoutingError", data: { type: "No.Body", code: 404 }, metadata: { causation: "q1" } },
    ]);
    expect(observed.map(({ type }) => type)).toEqual(["Sys.RoutingError", "Sys.Routed", "Sys.ActorFault"]);
  });

  test("[L37] the journal is not asked to deliver them, and an event of that type reaches no subscriber", async () => {
    const { seen, watch } = watcher("Sys.RoutingError");
    const subscribed: string[] = [];
    const events = { publish: async () => undefined, subscribe: (type: string) => void subscribed.push(type) };
    const journaled = await setup({ watch }, { events });
    expect(subscribed).toEqual([]);
    await journaled.loop.stop();
    const { loop, client, settle } = await setup({ watch });
    loop.receive(message("event", "Sys.RoutingError", "forged", { code: 404 }), client());
    await settle();
    // The kernel's own observation of the refusal, not the forged event.
    expect(seen).toMatchObject([{ data: { code: 403, type: "Sys.RoutingError" }, metadata: { causation: "forged" } }]);
  });

  test("[L37] a subscriber gets observations of ordinary work even without other observers", async () => {
    const { seen, watch } = watcher("Sys.Routed");
    const host = simulatedHost(1);
    const loop = await EventLoop.boot({ host, capabilities: { watch, failing } });
    loop.receive(command("Fail.Now", "c1"), { adapter: "test", id: "c", deliver: () => undefined } as never);
    await host.advance(0);
    expect(seen).toMatchObject([{ data: { capability: "failing", type: "Fail.Now" } }]);
    await loop.stop();
  });

  test("[L37] observations of a subscriber's own work go to the side sink only: no circle", async () => {
    // Not for ever: a circle shall fail the test, and not hang it.
    const { seen, watch } = watcher("Sys.ActorFault", (_seen, context) =>
      seen.length > 9 ? undefined : context.command("Fail.Now", null).catch(() => undefined),
    );
    const { loop, client, host, settle, observed } = await setup({ watch, failing });
    loop.receive(command("Fail.Now", "c1"), client());
    await host.advance(10_000);
    await settle();
    expect(seen).toHaveLength(1);
    expect(observed.filter(({ type }) => type === "Sys.ActorFault")).toHaveLength(2);
  });

  test("[L37] a subscriber with a failing handler is removed, and the host told once, without an observation", async () => {
    const { host, reported } = reporting();
    const { seen, watch } = watcher("Sys.ActorFault", () => {
      throw new Error("watching failed");
    });
    const { loop, client, settle, observed } = await setup({ watch, failing }, { host });
    for (const id of ["c1", "c2"]) loop.receive(command("Fail.Now", id), client());
    await settle();
    loop.receive(command("Fail.Now", "c3"), client());
    await settle();
    expect(seen.length).toBeLessThan(3);
    expect(reported).toEqual(["Error: watching failed"]);
    expect(observed.filter(({ type }) => type === "Sys.ActorFault")).toMatchObject(
      Array(3).fill({ data: { capability: "failing" } }),
    );
  });

  test("[L37] observations that only removed subscribers wanted are not made any more", () => {
    const host = simulatedHost(1);
    let made = 0;
    host.id = () => `m${++made}`;
    const observations = new Observations(host);
    const letGo = [1, 2].map(() => observations.addFor("Sys.Routed", () => undefined));
    observations.tell("Sys.Routed", null);
    letGo[0]?.();
    observations.tell("Sys.Routed", null);
    expect([made, observations.wanted]).toEqual([2, true]);
    letGo[1]?.();
    observations.tell("Sys.Routed", null);
    expect([made, observations.wanted]).toEqual([2, false]);
  });

  test("[L37] a refused emission of a subscriber goes to the side sink only", async () => {
    const { host } = reporting();
    let emitted = 0;
    const emitting = (_seen: Message, context: Acting) => {
      if (++emitted > 20) return;
      try {
        context.emit("Not.Declared", null);
      } catch {
        return;
      }
    };
    const [one, other] = [watcher("Sys.ActorFault", emitting), watcher("Sys.ActorFault", emitting)];
    const { loop, client, settle } = await setup({ one: one.watch, other: other.watch, failing }, { host });
    loop.receive(command("Fail.Now", "c1"), client());
    await host.advance(10_000);
    await settle();
    expect([one.seen.length, other.seen.length]).toEqual([1, 1]);
  });

  test("[L37] a subscriber gets ten observations without a cause per second", async () => {
    const { seen, watch } = watcher("Sys.NodeFault");
    const { loop, host, settle } = await setup({ watch });
    for (let at = 0; at < 30; at++) loop.observations.tell("Sys.NodeFault", { at });
    await settle();
    expect(seen).toHaveLength(10);
    await host.advance(1_000);
    loop.observations.tell("Sys.NodeFault", { at: 30 });
    await settle();
    expect(seen).toHaveLength(11);
  });

  test("[L37] observations fill at most half of a mailbox, so requests have room", async () => {
    const gate = deferred();
    const slow = capability({
      description: "slow",
      queries: { "Slow.Ask": { handle: () => gate.promise.then(() => 1) } },
      on: { "Sys.RoutingError": () => undefined },
    });
    const { loop, client, settle } = await setup({ slow }, { mailboxMax: 4 });
    const one = client();
    loop.receive(query("Slow.Ask", "q1"), one);
    await settle();
    for (let at = 0; at < 9; at++) loop.receive(query("No.Body", `n${at}`), client());
    await settle();
    expect(loop.liveness.mailboxes).toBe(2);
    loop.receive(query("Slow.Ask", "q2"), one);
    gate.resolve();
    await settle();
    expect(one.answers).toEqual(["reply q1 1", "reply q2 1"]);
  });

  test("[L37] a capability with a clearance cannot subscribe to observations", async () => {
    const watch = capability({ description: "watches", clearance: ["low"], on: { "Sys.Routed": () => undefined } });
    await expect(setup({ watch })).rejects.toThrow(/subscribes to Sys\.Routed, which may reveal data above/);
  });
});
