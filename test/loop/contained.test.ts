/** Users' code that throws where the loop looks at its values: only that message ends. */
import { z } from "zod";
import { describe, expect, test } from "#test";
import type { Capability } from "../../src/loop/capability.ts";
import { capability } from "../../src/loop/define-capability.ts";
import type { DataSchema } from "../../src/loop/message-schema.ts";
import { Failure } from "../../src/message/error-data.ts";
import type { Json } from "../../src/message/json.ts";
import { BareActor, bare, deferred, message, query, setup } from "./loop-setup.ts";

const ranges = z
  .object({ range: z.object({ from: z.number(), to: z.number() }).optional() })
  // A slip that compiles: it throws where there is no range, and zod answers with a promise then, which is rejected.
  .refine((value) => value.range!.from <= value.range!.to);

const throwing: DataSchema<Json> = {
  "~standard": {
    version: 1,
    vendor: "test",
    validate: () => {
      throw new Error("the check throws");
    },
    jsonSchema: { input: () => ({}) },
  },
};

function throwingWhenRead(name: string): Json {
  return Object.defineProperty({}, name, {
    enumerable: true,
    get: () => {
      throw new Error(`${name} throws`);
    },
  }) as Json;
}

/** Sends a bad request, then a good one: both are answered, and none is left. */
async function asked(wrong: Capability) {
  const echo = capability({ description: "echo", queries: { "Echo.Say": { handle: (data: Json) => data } } });
  const { loop, client, settle, faults } = await setup({ wrong, echo });
  const one = client();
  loop.receive(query("Wrong.Ask", "q1", {}), one);
  loop.receive(query("Wrong.Ask", "q2", {}), one);
  loop.receive(query("Echo.Say", "q3", "still here"), one);
  await settle();
  expect(loop.pending.size).toBe(0);
  return { answers: one.answers.sort(), faults: faults() };
}

describe("errors of users' code", () => {
  test("[L8] a schema with a check that throws refuses the data, even if it answers with a promise", async () => {
    const wrong = capability({ description: "w", queries: { "Wrong.Ask": { input: ranges, handle: () => "found" } } });
    const { answers } = await asked(wrong);
    expect(answers).toEqual(["error q1 422", "error q2 422", 'reply q3 "still here"']);
  });

  const outcomes: readonly (readonly [what: string, query: { output?: DataSchema<Json>; handle: () => Json }])[] = [
    ["in a schema of what goes out", { output: throwing, handle: () => null }],
    ["later in a schema of what goes out", { output: ranges as never, handle: () => ({}) }],
    ["when the answer is read", { handle: () => throwingWhenRead("x") }],
    ["when the answer is looked at for a promise", { handle: () => throwingWhenRead("then") }],
    ["when the answer of an asynchronous handler is read", { handle: (async () => throwingWhenRead("x")) as never }],
  ];
  for (const [what, handler] of outcomes) {
    test(`[L11] [L12] ${what} is a 500 for the requester, and the next message is handled`, async () => {
      const { answers, faults } = await asked(
        capability({ description: "w", queries: { "Wrong.Ask": handler as never } }),
      );
      expect(answers).toEqual(["error q1 500", "error q2 500", 'reply q3 "still here"']);
      expect(faults).toContain("Sys.ActorFault");
    });
  }

  test("[L11] a throw while an emission of a bare actor is read is a 500 for the requester", async () => {
    const actor = new BareActor();
    actor.postMessage = (given) => actor.reply(given, throwingWhenRead("x"));
    const { answers } = await asked(bare(() => actor, { takes: [["query", "Wrong.Ask"]] }));
    expect(answers).toEqual(["error q1 500", "error q2 500", 'reply q3 "still here"']);
  });

  test("[L28] an actor that throws at an answer does not prevent the end of the others", async () => {
    const asking = new BareActor();
    asking.postMessage = (given) => {
      if (given.kind === "error") throw new Error("no");
      asking.say(message("query", "Wait.Ask", "inner", null, { causation: given.metadata.id }));
    };
    const waits = new BareActor();
    const { loop, client, settle, host } = await setup({
      asking: {
        ...bare(() => asking),
        outbound: bare(() => asking, {
          takes: [
            ["query", "Bare.Ask"],
            ["query", "Wait.Ask"],
          ],
        }).inbound,
      },
      waits: bare(() => waits, { takes: [["query", "Wait.Ask"]] }),
    });
    const one = client();
    loop.receive(query("Bare.Ask", "q"), one);
    await settle();
    expect(waits.posted).toHaveLength(1);
    await host.run(() => loop.stop());
    expect([one.answers, [...loop.actors.values()].map(({ state }) => state)]).toEqual([
      ["error q 503"],
      ["stopped", "stopped"],
    ]);
  });
});

describe("outcomes", () => {
  test("[L9] [L12] [L24] the failure of an event's handler answers no request, even one with the same id", async () => {
    const both = capability({
      description: "asked and told",
      queries: { "Both.Ask": { handle: () => "right" } },
      on: {
        "Both.Told": async () => {
          await null;
          throw new Error("event failed");
        },
      },
    });
    const { loop, client, settle, observed } = await setup({ both });
    const [teller, asker] = [client(), client()];
    loop.receive(message("event", "Both.Told", "1"), teller);
    loop.receive(query("Both.Ask", "1"), asker);
    await settle();
    expect([asker.answers, teller.answers]).toEqual([['reply 1 "right"'], []]);
    expect(observed.filter(({ type }) => type === "Sys.ActorFault")).toHaveLength(1);
  });

  test("[L11] an answer of another type than the request's is invalid: the requester gets a 500", async () => {
    const actor = new BareActor();
    const takes = [
      ["query", "Bare.Ask"],
      ["query", "Bare.Other"],
    ] as const;
    const { loop, client, settle, faults } = await setup({ a: bare(() => actor, { takes }) });
    const one = client();
    loop.receive(query("Bare.Ask", "q"), one);
    await settle();
    actor.reply({ ...actor.posted[0]!, type: "Bare.Other" }, "something else");
    await settle();
    expect([one.answers, faults()]).toEqual([["error q 500"], ["Sys.ActorFault"]]);
    expect(one.received[0]?.type).toBe("Bare.Ask");
  });

  test("[L10] a request of a crashed actor is an orphan, because its successor has not asked it", async () => {
    const spawned: BareActor[] = [];
    const asking = bare(() => {
      const actor = new BareActor();
      spawned.push(actor);
      return actor;
    });
    const outbound = bare(() => new BareActor(), {
      takes: [
        ["query", "Bare.Ask"],
        ["query", "Slow.Ask"],
      ],
    }).inbound;
    const gate = deferred<Json>();
    const slow = capability({ description: "slow", queries: { "Slow.Ask": { handle: () => gate.promise } } });
    const { loop, client, settle, host, faults } = await setup({ asking: { ...asking, outbound }, slow });
    loop.receive(query("Bare.Ask", "q"), client());
    await settle();
    spawned[0]!.say(message("query", "Slow.Ask", "inner", null, { causation: "q" }));
    await settle();
    spawned[0]!.dispatch({ type: "error", message: "died" });
    await host.advance(1_000);
    gate.resolve("late");
    await settle();
    expect([spawned.length, spawned[1]!.posted, loop.pending.size]).toEqual([2, [], 0]);
    expect(faults()).toContain("Sys.OrphanOutcome");
  });

  test("[L17] [L28] an actor that throws at messages that waited for its restart is ended too", async () => {
    const spawned: BareActor[] = [];
    const { loop, client, settle, host } = await setup({
      a: bare(() => {
        const actor = new BareActor();
        if (spawned.push(actor) === 2)
          actor.postMessage = () => {
            throw new Error("not ready");
          };
        return actor;
      }),
    });
    spawned[0]!.dispatch({ type: "error", message: "died" });
    const one = client();
    loop.receive(query("Bare.Ask", "q"), one);
    await host.advance(1_000);
    expect([one.answers, loop.actors.get("a")!.state, spawned.map(({ terminated }) => terminated)]).toEqual([
      ["error q 500"],
      "unhealthy",
      [1, 1],
    ]);
    loop.heal("a");
    loop.receive(query("Bare.Ask", "again"), one);
    await settle();
    expect(spawned[2]!.posted).toHaveLength(1);
  });
});

describe("lanes and ids", () => {
  test("[L6] a full lane takes no answers of outsiders", async () => {
    const actor = new BareActor();
    const { loop, client, settle } = await setup({ a: bare(() => actor) }, { laneMax: 10 });
    const one = client();
    loop.receive(query("Bare.Ask", "q"), one);
    await settle();
    for (let n = 0; n < 100; n++) loop.receive(message("reply", "Bare.Ask", `r${n}`, null, { causation: "q" }), one);
    expect(loop.liveness.userLane).toBe(10);
    actor.reply(actor.posted[0]!, "mine");
    await settle();
    expect(one.answers).toEqual(['reply q "mine"']);
  });

  test("[L20] a pending id is answered with 409 also for requests to the loop itself and for unknown types", async () => {
    const actor = new BareActor();
    const { loop, client, settle } = await setup({ a: bare(() => actor) });
    const one = client();
    loop.receive(query("Bare.Ask", "1"), one);
    loop.receive(message("command", "Sys.RequestTimeout", "1", { requestId: "1" }), one);
    loop.receive(query("Nobody.There", "1"), one);
    await settle();
    expect(one.answers).toEqual(["error 1 409", "error 1 409"]);
    actor.reply(actor.posted[0]!, "mine");
    await settle();
    expect(one.answers.at(-1)).toBe('reply 1 "mine"');
  });

  test("[L8] [L2] a request of this process that is no message is refused, and the next turn comes", async () => {
    const echo = capability({ description: "echo", queries: { "Echo.Say": { handle: (data: Json) => data } } });
    const { loop, host } = await setup({ echo });
    const given = query("Echo.Say", "q1");
    const { metadata } = given;
    const wrong = [
      { ...given, type: "not a type" },
      { ...given, metadata: { ...metadata, timestamp: -1 } },
      { ...given, metadata: { ...metadata, correlation: "" } },
      { ...given, metadata: { ...metadata, traceparent: 10n } },
      { ...given, metadata: { ...metadata, foo: () => 1 } },
    ] as never as readonly (typeof given)[];
    for (const message of wrong)
      await expect(host.run(() => loop.request(message))).rejects.toMatchObject({ name: "Failure", code: 422 });
    for (const lineage of [{ correlation: "" }, { causation: "x".repeat(300) }, { traceparent: 10n as never }])
      await expect(host.run(() => loop.query("Echo.Say", 1, lineage))).rejects.toBeInstanceOf(Failure);
    expect(await host.run(() => loop.query("Echo.Say", "still here"))).toBe("still here");
  });
});
