/** Boot, liveness and the end of a loop. */
import { describe, expect, test } from "#test";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import type { Capability, MessageSchema } from "../../src/loop/capability.ts";
import { capability } from "../../src/loop/define-capability.ts";
import { EventLoop } from "../../src/loop/event-loop.ts";
import { messageSchema } from "../../src/loop/message-schema.ts";
import { BootError } from "../../src/loop/routing-table.ts";
import type { Json } from "../../src/message/json.ts";
import { BareActor, bare, deferred, query, setup } from "./loop-setup.ts";

/** A schema that describes itself as the test says. */
function described(input: () => unknown, output?: () => unknown): MessageSchema {
  const jsonSchema = output ? { input, output } : { input };
  return { "~standard": { version: 1, vendor: "test", validate: (value) => ({ value }), jsonSchema } };
}

const object = (kind: object, type: object) => ({ type: "object", properties: { kind, type } });

async function bootProblems(capabilities: Readonly<Record<string, unknown>>): Promise<readonly string[]> {
  const host = simulatedHost(1);
  const booting = host.run(() => EventLoop.boot({ host, capabilities: capabilities as Record<string, Capability> }));
  const failure = await booting.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(host.pendingTimers + host.pendingTasks).toBe(0);
  return failure instanceof BootError ? failure.problems : [`no BootError: ${String(failure)}`];
}

describe("boot", () => {
  let spawned = 0;
  const spawn = () => {
    spawned++;
    return new BareActor();
  };
  const good = bare(spawn);
  const literal = { const: "A.B" };
  const cases: readonly [string, unknown, RegExp][] = [
    ["no description", { ...good, description: "" }, /has no description/],
    ["no spawn", { ...good, spawn: undefined }, /has no spawn\(\)/],
    ["no inbound", { ...good, inbound: undefined }, /has no inbound schema/],
    ["no outbound", { ...good, outbound: undefined }, /has no outbound schema/],
    ["nothing at all", undefined, /has no description/],
    ["no schema", { ...good, inbound: {} }, /is not a schema/],
    [
      "any text as type",
      { ...good, inbound: described(() => object({ const: "query" }, { type: "string" })) },
      /type is not a literal/,
    ],
    [
      "a pattern as type",
      { ...good, inbound: described(() => object({ const: "query" }, { pattern: "^A" })) },
      /type is not a literal/,
    ],
    [
      "no literal kind",
      { ...good, inbound: described(() => object({ type: "string" }, literal)) },
      /kind is not a literal/,
    ],
    [
      "an unknown kind",
      { ...good, inbound: described(() => object({ const: "wish" }, literal)) },
      /is not a kind of message/,
    ],
    [
      "a reply as inbound",
      { ...good, inbound: messageSchema([{ kind: "reply", type: "A.B" }]) },
      /only commands and queries are routed/,
    ],
    [
      "a type that is none",
      { ...good, inbound: messageSchema([{ kind: "query", type: "a.b" }]) },
      /"a\.b" is not two PascalCase/,
    ],
    [
      "a schema that cannot describe itself",
      {
        ...good,
        inbound: described(() => {
          throw new Error("cannot");
        }),
      },
      /has no JSON Schema: cannot/,
    ],
    [
      "a schema that transforms",
      {
        ...good,
        inbound: described(
          () => object({ const: "query" }, literal),
          () => {
            throw new Error("Transforms cannot be represented");
          },
        ),
      },
      /Transforms cannot/,
    ],
    [
      "a schema that has no JSON Schema",
      { ...good, inbound: { "~standard": { version: 1, vendor: "v", validate: () => ({ value: 1 }) } } },
      /v gives no JSON Schema/,
    ],
    ["a bad subscription", { ...good, subscribes: ["A.B", "nope"] }, /subscribes to "nope"/],
    ["a subscription twice", { ...good, subscribes: ["A.B", "A.B"] }, /subscribes to A\.B twice/],
    ["subscriptions that are no list", { ...good, subscribes: "A.B" }, /not a list/],
    ["a bad type in on", capability({ description: "x", on: { nope: () => 1 } }), /subscribes to "nope"/],
    [
      "what the loop answers itself",
      bare(spawn, { takes: [["command", "Sys.RequestTimeout"]] }),
      /the loop answers itself/,
    ],
  ];

  for (const [what, broken, problem] of cases) {
    test(`[L25] ${what} is refused, and no actor is started`, async () => {
      spawned = 0;
      const [found, ...more] = await bootProblems({ good: bare(spawn, { takes: [] }), broken });
      expect(found).toMatch(/^capability broken: /);
      expect([found, ...more].join("\n")).toMatch(problem);
      expect(spawned).toBe(0);
    });
  }

  test("[L25] all problems are reported together, and a clash names both capabilities", async () => {
    const problems = await bootProblems({
      first: bare(spawn, { takes: [["command", "A.B"]] }),
      second: bare(spawn, { takes: [["command", "A.B"]] }),
      third: { ...good, description: "", spawn: 5 },
    });
    expect(problems).toEqual([
      "capability second: claims command A.B, which first claims already",
      "capability third: has no description",
      "capability third: has no spawn()",
    ]);
  });

  test("[L25] a command and a query of one type may belong to different capabilities", async () => {
    const { loop } = await setup({
      first: bare(() => new BareActor(), { takes: [["command", "A.B"]] }),
      second: bare(() => new BareActor(), { takes: [["query", "A.B"]] }),
    });
    expect([...loop.table.routes()].map(({ kind, capability: owner }) => `${kind} ${owner}`)).toEqual([
      "command first",
      "query second",
    ]);
  });

  test("[L25] unions inside unions, references and lists of literals are all found", async () => {
    const inbound = described(() => ({
      $defs: { one: object({ const: "query" }, { enum: ["A.B", "A.C"] }) },
      anyOf: [{ $ref: "#/$defs/one" }, { oneOf: [object({ const: "command" }, { const: "A.D" })] }],
    }));
    const { loop } = await setup({ a: { ...bare(() => new BareActor(), { takes: [] }), inbound } });
    expect([...loop.table.routes()].map(({ kind, type }) => `${kind} ${type}`)).toEqual([
      "query A.B",
      "query A.C",
      "command A.D",
    ]);
  });

  test("[L26] if the third actor does not start, the first two are ended, even if one fails to end", async () => {
    const started = [new BareActor(), new BareActor()];
    const [first, second] = started as [BareActor, BareActor];
    first.terminate = () => {
      first.terminated++;
      throw new Error("will not end");
    };
    const problems = await bootProblems({
      first: bare(() => first, { takes: [] }),
      second: bare(() => second, { takes: [] }),
      third: bare(
        () => {
          throw new Error("no memory");
        },
        { takes: [] },
      ),
      fourth: bare(spawn, { takes: [] }),
    });
    expect(problems).toEqual(["capability third: spawn failed: no memory"]);
    expect(started.map(({ terminated }) => terminated)).toEqual([1, 1]);
  });

  test("[L26] if the journal does not take a subscription, every actor is ended", async () => {
    const actor = new BareActor();
    const listener = bare(() => actor, { takes: [], subscribes: ["Some.Told"] });
    const subscribe = () => {
      throw new Error("another topic has this type");
    };
    const booting = EventLoop.boot({
      ...{ host: simulatedHost(1), capabilities: { listener } },
      events: { publish: async () => undefined, subscribe },
    });
    await expect(booting).rejects.toThrow("another topic has this type");
    expect(actor.terminated).toBe(1);
  });

  test("[L26] a spawn that gives no actor is refused", async () => {
    expect(await bootProblems({ a: bare(() => ({}) as never) })).toEqual([
      "capability a: spawn failed: spawn() of capability a gave no actor with postMessage()",
    ]);
  });
});

describe("liveness", () => {
  test("[L27] a lane, a pending request, a mailbox, an adapter and a frame each keep the loop alive", async () => {
    const gate = deferred();
    const slow = capability({
      description: "slow",
      queries: { "Slow.Ask": { handle: () => gate.promise.then(() => 1) } },
      on: { "A.Told": () => gate.promise },
    });
    const actor = new BareActor();
    const { loop, client, settle } = await setup({ slow, a: bare(() => actor) });
    expect(loop.liveness).toMatchObject({ alive: false, quiescent: true });

    loop.receive(query("Bare.Ask", "q"), client());
    expect(loop.liveness).toMatchObject({ alive: true, quiescent: false, userLane: 1 });
    await settle();
    expect(loop.liveness).toMatchObject({
      alive: true,
      quiescent: false,
      userLane: 0,
      pendingRequests: 1,
      mailboxes: 0,
    });
    for (const given of actor.posted) actor.reply(given);
    await settle();
    expect(loop.liveness.alive).toBe(false);

    loop.enqueue({ kind: "event", type: "A.Told", data: null, metadata: { id: "e", timestamp: 1 } });
    await settle();
    expect(loop.liveness).toMatchObject({ alive: true, quiescent: false, pendingRequests: 0, mailboxes: 1 });
    gate.resolve();
    await settle();
    expect(loop.liveness.alive).toBe(false);

    const adapter = { frames: 0 };
    const detach = loop.attach(adapter);
    expect(loop.liveness).toMatchObject({ alive: true, quiescent: true, adapters: 1 });
    adapter.frames = 10;
    expect(loop.liveness.frames).toBe(10);
    detach();
    expect(loop.liveness.alive).toBe(false);
  });
});

describe("the end", () => {
  test("[L28] drained waits for lanes, mailboxes and answers, and for what follows from them", async () => {
    const gates = [deferred(), deferred()];
    const inner = capability({
      description: "inner",
      queries: { "Inner.Ask": { handle: () => gates[1]?.promise.then(() => 2) as Promise<Json> } },
    });
    const outer = capability({
      description: "outer",
      sends: { "Inner.Ask": "query" },
      queries: {
        "Outer.Ask": {
          handle: async (_data: Json, context) => {
            await gates[0]?.promise;
            return context.query("Inner.Ask", null);
          },
        },
      },
    });
    const { loop, client, settle } = await setup({ inner, outer });
    const one = client();
    loop.receive(query("Outer.Ask", "q"), one);
    let drained = false;
    const draining = loop.drained().then(() => {
      drained = true;
    });
    await settle();
    expect(drained).toBe(false);
    gates[0]?.resolve();
    await settle();
    expect(drained).toBe(false);
    gates[1]?.resolve();
    await settle();
    await draining;
    expect(one.answers).toEqual(["reply q 2"]);
  });

  test("[L28] drained ends when the only waiting requester has left", async () => {
    const { loop, client, settle } = await setup({ a: bare(() => new BareActor()) });
    const one = client();
    loop.receive(query("Bare.Ask", "q"), one);
    await settle();
    const draining = loop.drained();
    loop.disconnect(one);
    await settle();
    await draining;
    expect(loop.liveness.quiescent).toBe(true);
  });

  test("[L28] stop answers pending requests with 503 and ends every actor, also after one that fails to end", async () => {
    const [first, second] = [new BareActor(), new BareActor()];
    first.terminate = () => {
      throw new Error("will not end");
    };
    const { loop, client, host, settle } = await setup({
      first: bare(() => first),
      second: bare(() => second, { takes: [] }),
    });
    const one = client();
    loop.receive(query("Bare.Ask", "q"), one);
    await settle();
    await host.run(() => loop.stop());
    expect(one.answers).toEqual(["error q 503"]);
    expect(second.terminated).toBe(1);
    expect(loop.pending.size).toBe(0);
  });

  test("[L28] an actor that is ended during a handling resolves its idle waiters", async () => {
    const never = deferred();
    const stuck = capability({ description: "stuck", on: { "A.Told": () => never.promise } });
    const { loop, host, settle } = await setup({ stuck });
    loop.enqueue({ kind: "event", type: "A.Told", data: null, metadata: { id: "e", timestamp: 1 } });
    await settle();
    const draining = loop.drained();
    await host.run(() => loop.stop());
    await settle();
    await draining;
    expect(loop.liveness.mailboxes).toBe(0);
  });
});
