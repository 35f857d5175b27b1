/** Actors that would wait for themselves are told at once; those that only look like it are left alone. */
import { describe, expect, test } from "#test";
import type { Capability } from "../../src/loop/capability.ts";
import { capability } from "../../src/loop/define-capability.ts";
import type { CapabilityContext } from "../../src/loop/mailbox-actor.ts";
import type { ErrorData } from "../../src/message/error-data.ts";
import type { Json } from "../../src/message/json.ts";
import { causedBy, commandMessage as makeCommand } from "../../src/message/lineage.ts";
import { BareActor, bare, command, deferred, message, query, setup } from "./loop-setup.ts";

/** Answers `Name.Ask` with the answers to the types in its data, asked one after the other. */
function asks(name: string): Capability {
  const own = `${name}.Ask`;
  const sends = Object.fromEntries(["A.Ask", "B.Ask", "C.Ask", "Bare.Ask"].map((type) => [type, "query" as const]));
  const follow = async (data: Json, context: CapabilityContext): Promise<Json> => {
    const [next, ...rest] = data as string[];
    return next === undefined ? `the end of ${name}` : await context.query(next, rest);
  };
  return capability({ description: own, sends, queries: { [own]: { handle: follow } } });
}

describe("actors that would wait for themselves", () => {
  const setupThree = () => setup({ a: asks("A"), b: asks("B"), c: asks("C") });

  for (const [path, names] of [
    [["A.Ask"], "a waits for a,"],
    [["B.Ask", "A.Ask"], "a waits for b waits for a,"],
    [["B.Ask", "C.Ask", "A.Ask"], "a waits for b waits for c waits for a,"],
    [["B.Ask", "C.Ask", "B.Ask"], "b waits for c waits for b,"],
  ] as const) {
    test(`[L34] A.Ask, then ${path.join(", ")}: told at once, with the circle, and nothing stays pending`, async () => {
      const { loop, client, settle, faults } = await setupThree();
      const one = client();
      loop.receive(query("A.Ask", "q", [...path]), one);
      await settle();
      expect(one.answers).toEqual(["error q 500"]);
      const [{ message: text }] = one.received.map(({ data }) => data) as never as [ErrorData];
      expect(text).toContain(names);
      expect(text).toContain("use send() and do not wait");
      expect(faults()[0]).toBe("Sys.ActorFault");
      expect(loop.liveness.quiescent).toBe(true);
      loop.receive(query("A.Ask", "q2", ["B.Ask", "C.Ask"]), one);
      await settle();
      expect(one.answers.at(-1)).toBe('reply q2 "the end of C"');
    });
  }

  test("[L34] a handler of an event that asks its own actor, too", async () => {
    const said: string[] = [];
    const listener = capability({
      description: "asks itself",
      sends: { "Own.Ask": "query" },
      queries: { "Own.Ask": { handle: () => "never" } },
      on: {
        "Some.Thing": (_data, context) =>
          context.query("Own.Ask", null).catch((thrown: Error) => void said.push(thrown.message)),
      },
    });
    const { loop, settle } = await setup({ listener });
    loop.enqueue(message("event", "Some.Thing", "e"));
    await settle();
    expect(said).toHaveLength(1);
    expect(said[0]).toContain("listener waits for listener");
  });
});

describe("requests without a circle", () => {
  test("[L34] an actor asked twice, one after the other, or by two independent actors, closes no circle", async () => {
    const both = capability({
      description: "asks twice",
      sends: { "B.Ask": "query" },
      queries: {
        "Both.Ask": {
          handle: async (_data, { query: ask }) => [
            await ask("B.Ask", []),
            ...(await Promise.all([ask("B.Ask", []), ask("B.Ask", [])])),
          ],
        },
      },
    });
    const { loop, client, settle, faults } = await setup({ a: asks("A"), b: asks("B"), both });
    const one = client();
    loop.receive(query("A.Ask", "q1", ["B.Ask"]), one);
    loop.receive(query("Both.Ask", "q2"), one);
    await settle();
    const end = '"the end of B"';
    expect(one.answers.sort()).toEqual([`reply q1 ${end}`, `reply q2 [${end},${end},${end}]`]);
    expect(faults()).toEqual([]);
  });

  test("[L34] a handler that has ended when its request comes, or has sent it and does not wait, is handled after", async () => {
    const gate = deferred();
    const handled: string[] = [];
    const self = capability({
      description: "writes to itself",
      sends: { "Self.Note": "command" },
      commands: {
        "Self.Note": { handle: (data) => void handled.push(data as string) },
        "Self.Forget": { handle: (_data, context) => void context.command("Self.Note", "forgot") },
        "Self.Send": {
          handle: async (_data, context, request) => {
            context.send(makeCommand(context.host, "Self.Note", "sent", causedBy(request)));
            await gate.promise;
            handled.push("waited for something else");
          },
        },
      },
    });
    const { loop, client, settle, faults } = await setup({ self });
    const one = client();
    loop.receive(command("Self.Forget", "q1"), one);
    await settle();
    loop.receive(command("Self.Send", "q2"), one);
    await settle();
    expect(handled).toEqual(["forgot"]);
    gate.resolve();
    await settle();
    expect(handled).toEqual(["forgot", "waited for something else", "sent"]);
    expect(faults()).toEqual([]);
  });

  test("[L34] an actor that cannot tell its messages closes no circle", async () => {
    const actor = new BareActor();
    const { loop, client, settle, faults } = await setup({
      a: asks("A"),
      bare: { ...bare(() => actor), outbound: asks("Bare").outbound },
    });
    const one = client();
    loop.receive(query("A.Ask", "q", ["Bare.Ask"]), one);
    await settle();
    const [asked] = actor.posted;
    actor.say(message("query", "A.Ask", "back", [], { causation: asked?.metadata.id ?? "" }));
    await settle();
    expect(one.answers).toEqual([]);
    if (asked) actor.reply(asked, "at last");
    await settle();
    expect(one.answers).toEqual(['reply q "at last"']);
    expect(actor.posted.at(-1)?.data).toBe("the end of A");
    expect(faults()).toEqual([]);
  });
});
