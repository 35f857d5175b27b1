/** The routing laws: receivers, permitted answers, and messages that cannot be routed. */
import { describe, expect, test } from "#test";
import { notPublished } from "../../src/bus/bus-error.ts";
import { isPassing } from "../../src/bus/concluded.ts";
import { capability } from "../../src/loop/define-capability.ts";
import type { EventJournal } from "../../src/loop/event-journal.ts";
import { dataSchema } from "../../src/loop/message-schema.ts";
import type { Message } from "../../src/message/envelope.ts";
import { type ErrorData, Failure } from "../../src/message/error-data.ts";
import type { Json } from "../../src/message/json.ts";
import { commandMessage as makeCommand } from "../../src/message/lineage.ts";
import { rejected } from "../../src/store/rejection.ts";
import { BareActor, bare, command, deferred, message, query, setup } from "./loop-setup.ts";

const text = dataSchema<string>((data) => (typeof data === "string" ? undefined : "must be text"), { type: "string" });

const echo = capability({
  description: "answers what it is given",
  queries: { "Echo.Say": { input: text, handle: (data: Json) => data } },
});

describe("requests", () => {
  test("[L7] a request goes to the one actor that claims its kind and type, and the answer to its sender alone", async () => {
    const { loop, client, settle } = await setup({ echo });
    const [one, two] = [client(), client()];
    loop.receive({ ...query("Echo.Say", "q1", "hi"), metadata: { id: "q1", timestamp: 1, correlation: "k" } }, one);
    await settle();
    expect(one.received).toMatchObject([
      { kind: "reply", type: "Echo.Say", data: "hi", metadata: { causation: "q1", correlation: "k" } },
    ]);
    expect(two.received).toEqual([]);
    expect(loop.pending.size).toBe(0);
  });

  test("[L7] an unknown type, and a known type of the wrong kind, are 404 at once", async () => {
    const { loop, client, settle, faults } = await setup({ echo });
    const one = client();
    loop.receive(query("Nobody.Home", "q1"), one);
    loop.receive(command("Echo.Say", "q2", "x"), one);
    loop.receive(query("Sys.RequestTimeout", "q3"), one);
    await settle();
    expect(one.answers).toEqual(["error q1 404", "error q2 404", "error q3 404"]);
    expect(faults()).toEqual(["Sys.RoutingError", "Sys.RoutingError", "Sys.RoutingError"]);
    expect(loop.pending.size).toBe(0);
  });

  test("[L8] a schema that answers with any kind of promise refuses the data", async () => {
    const handled: Json[] = [];
    // biome-ignore lint/suspicious/noThenProperty: what a schema of another library may answer with
    const thenable = { then: (resolve: (result: unknown) => void) => resolve({ value: 1 }) };
    const late = (answer: unknown): never =>
      ({ "~standard": { version: 1, vendor: "test", validate: () => answer } }) as never;
    const commands = Object.fromEntries(
      [Promise.resolve({ value: 1 }), thenable].map((answer, at) => [
        `Late.Do${at}`,
        { input: late(answer), handle: (data: Json) => void handled.push(data) },
      ]),
    );
    const { loop, client, settle } = await setup({ late: capability({ description: "late", commands }) });
    const one = client();
    for (const type of Object.keys(commands)) loop.receive(command(type, type), one);
    await settle();
    expect(one.answers).toEqual(["error Late.Do0 422", "error Late.Do1 422"]);
    expect(handled).toEqual([]);
  });

  test("[L8] data that does not fit is 422 and never reaches the actor; other data arrives unchanged", async () => {
    const actor = new BareActor();
    const { inbound } = echo;
    const { loop, client, settle, faults } = await setup({ a: { ...bare(() => actor), inbound } });
    const one = client();
    loop.receive(query("Echo.Say", "q1", 5), one);
    const sent = {
      ...query("Echo.Say", "q2", "fits"),
      metadata: { id: "q2", timestamp: 1, causation: null, extra: { a: 1 } },
    };
    loop.receive(sent, one);
    await settle();
    expect(one.answers).toEqual(["error q1 422"]);
    expect(faults()).toEqual(["Sys.RoutingError"]);
    expect(actor.posted).toEqual([sent]);
  });

  test("[L10] an actor may answer at once, inside postMessage: the request is pending by then", async () => {
    const actor = new BareActor();
    actor.postMessage = (given) => actor.reply(given, "now");
    const { loop, client, settle } = await setup({ a: bare(() => actor) }, { requestTimeoutMs: 100 });
    const one = client();
    loop.receive(query("Bare.Ask", "q"), one);
    await settle();
    expect(one.answers).toEqual(['reply q "now"']);
  });

  test("[L16] a postMessage that throws is a 500 and a fault; the loop and its pending table go on", async () => {
    const actor = new BareActor();
    actor.postMessage = () => {
      throw new Error("not cloneable");
    };
    const { loop, client, settle, faults } = await setup({ a: bare(() => actor), echo });
    const one = client();
    loop.receive(query("Bare.Ask", "q1"), one);
    loop.receive(query("Echo.Say", "q2", "x"), one);
    await settle();
    expect(one.answers).toEqual(["error q1 500", 'reply q2 "x"']);
    expect(faults()).toEqual(["Sys.ActorFault", "Sys.RoutingError"]);
    expect(loop.pending.size).toBe(0);
  });
});

describe("events", () => {
  test("[L9] each subscriber gets an event in declared order with a copy of its own", async () => {
    const order: string[] = [];
    const actors = ["x", "y", "z"].map((name) => {
      const actor = new BareActor();
      actor.postMessage = (given) => {
        order.push(`${name} ${JSON.stringify(given.data)}`);
        (given.data as { changed?: boolean }).changed = true;
      };
      return bare(() => actor, { takes: [], subscribes: name === "z" ? ["All.Told"] : ["All.Told", "Some.Told"] });
    });
    const [x, y, z] = actors as [never, never, never];
    const { loop, client, settle } = await setup({ x, y, z });
    const one = client();
    for (const type of ["Nobody.Told", "Some.Told", "All.Told"])
      loop.receive(message("event", type, type, { n: 1 }), one);
    await settle();
    expect(order).toEqual(['x {"n":1}', 'y {"n":1}', 'x {"n":1}', 'y {"n":1}', 'z {"n":1}']);
    expect(one.received).toEqual([]);
  });

  test("[L9] with a journal an event is delivered only after it is kept", async () => {
    const actor = new BareActor();
    const kept = deferred();
    const delivered: ((given: Message) => Promise<void>)[] = [];
    const events: EventJournal = {
      publish: async (given) => {
        await kept.promise;
        for (const deliver of delivered) await deliver(given);
      },
      subscribe: (_type, _subscriber, deliver) => void delivered.push(deliver),
    };
    const { loop, client, settle } = await setup({ a: bare(() => actor, { subscribes: ["A.Told"] }) }, { events });
    loop.receive(message("event", "A.Told", "e"), client());
    await settle();
    expect(actor.posted).toEqual([]);
    kept.resolve();
    await settle();
    expect(actor.posted).toHaveLength(1);
  });

  test("[L9] a delivery of the journal fails with its handler, and with the actor that had it in hand", async () => {
    const deliveries = new Map<string, (given: Message) => Promise<void>>();
    const events: EventJournal = {
      publish: async () => undefined,
      subscribe: (type, _subscriber, deliver) => void deliveries.set(type, deliver),
    };
    const failing = capability({
      description: "listens",
      on: {
        "Bad.Told": () => {
          throw new Failure(503, "not now");
        },
        "Good.Told": () => undefined,
      },
    });
    const busy = deferred();
    const actor = Object.assign(new BareActor(), { idle: () => busy.promise });
    const crashing = bare(() => actor, { takes: [], subscribes: ["Crash.Told"] });
    const { host, settle } = await setup({ failing, crashing }, { events });
    const ends: string[] = [];
    for (const type of ["Bad.Told", "Good.Told", "Crash.Told"])
      deliveries
        .get(type)?.(message("event", type, type))
        .then(
          () => ends.push(`${type} handled`),
          (error: Error) => ends.push(`${type} ${error.message}`),
        );
    await settle();
    expect(ends.sort()).toEqual(["Bad.Told not now", "Good.Told handled"]);
    actor.dispatch({ type: "error", message: "boom" });
    busy.resolve();
    await host.advance(1_000);
    expect(ends).toContain("Crash.Told crashing crashed: boom");
  });

  test("[L9] a delivery is over when its handler is, also in an actor that is never without work", async () => {
    const deliveries: ((given: Message) => Promise<void>)[] = [];
    const events: EventJournal = {
      publish: async () => undefined,
      subscribe: (_type, _subscriber, deliver) => void deliveries.push(deliver),
    };
    const gates = [deferred(), deferred()];
    const order: string[] = [];
    const busy = capability({
      description: "always has something to do",
      queries: { "Busy.Ask": { handle: (n: Json) => gates[n as number]?.promise.then(() => n) as Promise<Json> } },
      on: { "Busy.Told": () => void order.push("handled") },
    });
    const { loop, client, settle } = await setup({ busy }, { events });
    const one = client();
    loop.receive(query("Busy.Ask", "q0", 0), one);
    await settle();
    for (const deliver of deliveries) void deliver(message("event", "Busy.Told", "e")).then(() => order.push("over"));
    loop.receive(query("Busy.Ask", "q1", 1), one);
    await settle();
    expect(order).toEqual([]);
    gates[0]?.resolve();
    await settle();
    expect([loop.liveness.mailboxes, ...order]).toEqual([1, "handled", "over"]);
  });

  test("[L9] [K26] a delivery is over when its handler's events are journaled, and fails if they are refused", async () => {
    const deliveries: ((given: Message) => Promise<void>)[] = [];
    const keeping: (PromiseWithResolvers<void> & { readonly type: string })[] = [];
    const events: EventJournal = {
      publish: ({ type }) => {
        const end = Promise.withResolvers<void>();
        keeping.push({ ...end, type });
        return end.promise;
      },
      subscribe: (_type, _subscriber, deliver) => void deliveries.push(deliver),
    };
    const emitting = capability({
      description: "passes events on",
      emits: { "One.Told": text, "Two.Told": text },
      on: {
        "In.Told": (_data, { emit }) => {
          emit("One.Told", "1");
          emit("Two.Told", "2");
        },
      },
    });
    const { settle } = await setup({ emitting }, { events });
    const ends: string[] = [];
    let thrown: unknown;
    const deliver = (id: string) =>
      deliveries[0]?.(message("event", "In.Told", id)).then(
        () => ends.push("handled"),
        (error: Error) => {
          thrown = error;
          ends.push(error.message);
        },
      );
    void deliver("e1");
    await settle();
    expect([keeping.map(({ type }) => type), ends]).toEqual([["One.Told", "Two.Told"], []]);
    keeping[1]?.resolve();
    await settle();
    expect(ends).toEqual([]);
    keeping[0]?.resolve();
    await settle();
    expect(ends.splice(0)).toEqual(["handled"]);
    void deliver("e2");
    await settle();
    keeping[2]?.resolve();
    keeping[3]?.reject(new Error("disk full"));
    await settle();
    expect(ends.splice(0)).toEqual(["Two.Told was not journaled: disk full"]);
    expect(isPassing(thrown)).toBe(false);
    // [J214] The store may have room later: the bus is to deliver the event again.
    void deliver("e3");
    await settle();
    keeping[4]?.resolve();
    keeping[5]?.reject(notPublished(rejected("failed", "store-full", "no space left")));
    await settle();
    expect([ends, isPassing(thrown)]).toEqual([
      ["Two.Told was not journaled: the event was not published: no space left; publish it again"],
      true,
    ]);
  });

  test("[L9] an event that the journal does not take is observed", async () => {
    const events: EventJournal = { publish: () => Promise.reject(new Error("disk full")), subscribe: () => undefined };
    const { loop, client, settle, observed } = await setup({}, { events });
    loop.receive(message("event", "A.Told", "e"), client());
    await settle();
    expect(observed).toMatchObject([{ type: "Sys.RoutingError", data: { reason: "not journaled: disk full" } }]);
  });

  test("[L90] each subscriber that gets an event is observed as Sys.Routed, with its capability", async () => {
    const listener = () => capability({ description: "listens", on: { "Some.Thing": () => undefined } });
    const { loop, client, settle, observed } = await setup({ one: listener(), two: listener() });
    loop.receive(message("event", "Some.Thing", "e1"), client());
    await settle();
    expect(observed.map(({ type, data, metadata }) => [type, data, metadata.causation])).toEqual(
      ["one", "two"].map((name) => ["Sys.Routed", { capability: name, type: "Some.Thing" }, "e1"]),
    );
  });

  test("[L12] a failed event handler is an actor's fault with any thrown value, and no orphan", async () => {
    const listener = capability({
      description: "fails",
      on: {
        "A.Told": () => {
          throw new Error("sync");
        },
        "B.Told": () => Promise.reject(new Failure(404, "async")),
      },
    });
    const { loop, client, settle, observed } = await setup({ listener });
    const one = client();
    for (const type of ["A.Told", "B.Told"]) loop.receive(message("event", type, type), one);
    await settle();
    const failed = observed.filter(({ type }) => type !== "Sys.Routed");
    expect(failed.map(({ type, data }) => [type, (data as { reason: string }).reason])).toEqual([
      ["Sys.ActorFault", "sync"],
      ["Sys.ActorFault", "async"],
    ]);
    expect(one.received).toEqual([]);
  });

  test("[L12] a refusal that no requester waits for is an actor's fault, and one to a requester is not", async () => {
    const refusing = capability({
      ...{ description: "refuses", durable: false },
      commands: {
        "Gate.Open": {
          handle: () => {
            throw new Failure(409, "the gate is locked");
          },
        },
      },
    });
    const sending = capability({
      ...{ description: "sends", sends: { "Gate.Open": "command" }, durable: false },
      commands: {
        "Gate.Ring": {
          handle: (_data, { send, host }, { metadata }) =>
            send(makeCommand(host, "Gate.Open", null, { causation: metadata.id })),
        },
      },
    });
    const { loop, client, settle, observed } = await setup({ refusing, sending });
    const faults = () => observed.filter(({ type }) => type === "Sys.ActorFault").map(({ data }) => data);
    const one = client();
    loop.receive(command("Gate.Open", "asked"), one);
    await settle();
    expect([one.answers, faults()]).toEqual([["error asked 409"], []]);
    loop.receive(command("Gate.Ring", "sent"), one);
    await settle();
    expect(faults()).toMatchObject([{ capability: "refusing", type: "Gate.Open", reason: "the gate is locked" }]);
  });

  test("[L12] [U101] each failed attempt of a command is an actor's fault, with the delay of the next", async () => {
    let calls = 0;
    const flaky = capability({
      ...{ description: "fails twice", durable: false, retry: { attempts: 3, backoff: { startMs: 10 } } },
      commands: {
        "Flaky.Do": {
          handle: () => {
            if (++calls < 3) throw new Error(`attempt ${calls}`);
            return calls;
          },
        },
      },
    });
    const { loop, client, host, observed } = await setup({ flaky });
    const one = client();
    loop.receive(command("Flaky.Do", "c"), one);
    await host.advance(1_000);
    const faults = observed.filter(({ type }) => type === "Sys.ActorFault").map(({ data }) => data);
    const reasons = [1, 2].map((n) => expect.stringMatching(new RegExp(`^attempt ${n}; tried again in \\d+ ms$`)));
    expect(one.answers).toEqual(["reply c 3"]);
    expect(faults).toMatchObject(
      reasons.map((reason) => ({ capability: "flaky", type: "Flaky.Do", code: 500, reason })),
    );
  });

  test("[L9] a subscriber that cannot take an event does not keep it from the others", async () => {
    const broken = new BareActor();
    broken.postMessage = () => {
      throw new Error("broken");
    };
    const actor = new BareActor();
    const subscribes = ["A.Told"];
    const { loop, client, settle, faults } = await setup({
      broken: bare(() => broken, { takes: [], subscribes }),
      a: bare(() => actor, { takes: [], subscribes }),
    });
    loop.receive(message("event", "A.Told", "e"), client());
    await settle();
    expect(actor.posted).toHaveLength(1);
    expect(faults()).toEqual(["Sys.ActorFault"]);
  });
});

describe("outcomes", () => {
  test("[N1] [L10] a reply or error from outside answers no request, even with the right causation", async () => {
    const actor = new BareActor();
    const { loop, client, settle, faults } = await setup({ a: bare(() => actor) });
    const [victim, forger] = [client(), client()];
    loop.receive(query("Bare.Ask", "q"), victim);
    await settle();
    loop.receive(message("reply", "Bare.Ask", "f1", "forged", { causation: "q" }), forger);
    loop.receive(message("error", "Bare.Ask", "f2", { code: 500, message: "forged" }, { causation: "q" }), forger);
    loop.receive(message("reply", "Bare.Ask", "f3", null, { causation: "unknown" }), victim);
    await settle();
    expect([...victim.received, ...forger.received]).toEqual([]);
    expect(faults()).toEqual(["Sys.OrphanOutcome", "Sys.OrphanOutcome", "Sys.OrphanOutcome"]);
    for (const given of actor.posted) actor.reply(given, "true");
    await settle();
    expect(victim.answers).toEqual(['reply q "true"']);
  });

  test("[N1] [L10] an actor that was not asked cannot answer", async () => {
    const [asked, other] = [new BareActor(), new BareActor()];
    const { loop, client, settle, faults } = await setup({
      asked: bare(() => asked),
      other: { ...bare(() => other), inbound: bare(() => other, { takes: [] }).inbound },
    });
    const one = client();
    loop.receive(query("Bare.Ask", "q"), one);
    await settle();
    for (const given of asked.posted) other.reply(given, "wrong");
    await settle();
    expect(one.received).toEqual([]);
    expect(faults()).toEqual(["Sys.OrphanOutcome"]);
  });

  test("[L10] the first answer is delivered, the second is an orphan, an event after it still goes out", async () => {
    const [actor, listener] = [new BareActor(), new BareActor()];
    const { loop, client, settle, faults } = await setup({
      a: bare(() => actor, { emits: ["A.Told"] }),
      listener: bare(() => listener, { takes: [], subscribes: ["A.Told"] }),
    });
    const one = client();
    loop.receive(query("Bare.Ask", "q"), one);
    await settle();
    for (const given of actor.posted) {
      actor.reply(given, 1);
      actor.reply(given, 2);
      actor.say(message("event", "A.Told", "e", null, { causation: "q" }));
    }
    await settle();
    expect(one.answers).toEqual(["reply q 1"]);
    expect(faults()).toEqual(["Sys.OrphanOutcome"]);
    expect(listener.posted).toHaveLength(1);
  });
});

describe("emissions of actors", () => {
  const bad: readonly [string, unknown][] = [
    ["not a message", 42],
    ["not JSON", { kind: "event", type: "A.Told", data: 1n, metadata: { id: "e", timestamp: 1, causation: "q" } }],
    ["without causation", message("event", "A.Told", "e")],
    ["not declared", message("event", "B.Told", "e", null, { causation: "q" })],
  ];
  for (const [what, said] of bad) {
    test(`[L11] an event that is ${what} is not routed, and is the actor's fault`, async () => {
      const [actor, listener] = [new BareActor(), new BareActor()];
      const { settle, faults } = await setup({
        a: bare(() => actor, { emits: ["A.Told"] }),
        listener: bare(() => listener, { takes: [], subscribes: ["A.Told", "B.Told"] }),
      });
      actor.say(said);
      await settle();
      expect(listener.posted).toEqual([]);
      expect(faults()).toEqual(["Sys.ActorFault"]);
    });
  }

  test("[L11] an invalid or undeclared answer becomes a 500 for the requester", async () => {
    const actor = new BareActor();
    const { loop, client, settle, faults } = await setup({ a: bare(() => actor) });
    const one = client();
    for (const id of ["q1", "q2"]) loop.receive(query("Bare.Ask", id), one);
    await settle();
    actor.say({ ...message("reply", "Bare.Ask", "r", null, { causation: "q1" }), data: undefined });
    actor.say(message("reply", "Other.Type", "r", null, { causation: "q2" }));
    await settle();
    expect(one.answers).toEqual(["error q1 500", "error q2 500"]);
    expect(faults()).toEqual(["Sys.ActorFault", "Sys.ActorFault"]);
    expect(loop.pending.size).toBe(0);
  });

  test("[L11] a request that is not declared, or is not JSON, is answered to the actor that asked, which does not wait for ever", async () => {
    const asking = capability({
      description: "asks",
      sends: { "Echo.Say": "query" },
      commands: {
        "Ask.Undeclared": { handle: (_data, { command }) => command("Echo.Other", null) },
        "Ask.Impure": { handle: (_data, { query }) => query("Echo.Say", { count: 1n } as never) },
      },
    });
    const { loop, client, settle, faults } = await setup({ asking, echo });
    const one = client();
    loop.receive(command("Ask.Undeclared", "q1"), one);
    loop.receive(command("Ask.Impure", "q2"), one);
    await settle();
    expect(one.received.map(({ data }) => (data as unknown as ErrorData).message)).toEqual([
      'not sent: command Echo.Other is not declared as outbound by asking; add it: sends: { "Echo.Other": "command" }',
      "not sent: data.count: must be a JSON value, got a BigInt",
    ]);
    expect(faults()).toContain("Sys.ActorFault");
  });

  test("[L11] an undeclared or invalid emission throws in its handler", async () => {
    const telling = capability({
      description: "tells",
      emits: { "Tell.Known": dataSchema((data) => (data === 1 ? undefined : "must be 1"), {}) },
      commands: {
        "Tell.It": {
          handle: (type, { emit }) => {
            emit(type as string, 2);
            return "told";
          },
        },
      },
    });
    const { loop, client, settle } = await setup({ telling });
    const one = client();
    loop.receive(command("Tell.It", "q1", "Tell.Unknown"), one);
    loop.receive(command("Tell.It", "q2", "Tell.Known"), one);
    await settle();
    expect(one.received.map(({ data }) => (data as unknown as ErrorData).message)).toEqual([
      'event Tell.Unknown is not declared as outbound by telling; add it: emits: { "Tell.Unknown": true }',
      "data: must be 1",
    ]);
  });

  test("[L11] an actor's later changes to a message are invisible to others", async () => {
    const actor = new BareActor();
    const { loop, client, settle } = await setup({ a: bare(() => actor) });
    const one = client();
    const data = { value: 1 };
    actor.postMessage = (given) => {
      actor.reply(given, data);
      data.value = 2;
      Object.assign(given.metadata, { id: "other" });
    };
    loop.receive(query("Bare.Ask", "q"), one);
    await settle();
    expect(one.answers).toEqual(['reply q {"value":1}']);
    expect(loop.pending.size).toBe(0);
  });
});

describe("observations", () => {
  test("[L29] observations are Sys events caused by the observed message, and an observer that throws is removed", async () => {
    let calls = 0;
    const { loop, client, settle, observed, host } = await setup({ echo });
    const reported: unknown[] = [];
    host.report = (error) => void reported.push(error);
    loop.observations.add(() => {
      calls++;
      throw new Error("bad observer");
    });
    loop.observations.add(async () => {
      calls++;
      throw new Error("later");
    });
    const one = client();
    loop.receive(query("Echo.Say", "q1", "x"), one);
    await settle();
    loop.receive(query("Nobody.Home", "q2"), one);
    await settle();
    expect([calls, reported]).toEqual([2, [new Error("bad observer"), new Error("later")]]);
    expect(observed).toMatchObject([
      { kind: "event", type: "Sys.Routed", data: { capability: "echo" }, metadata: { causation: "q1" } },
      { kind: "event", type: "Sys.RoutingError", data: { code: 404 }, metadata: { causation: "q2" } },
    ]);
  });
});
