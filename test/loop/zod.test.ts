/** Capabilities written with zod itself: discovery, validation, descriptions, and the types that reach the handlers. */
import { z } from "zod";
import { describe, expect, test } from "#test";
import type { Capability } from "../../src/loop/capability.ts";
import { capability } from "../../src/loop/define-capability.ts";
import { type SyscallTargets, syscall } from "../../src/loop/syscall.ts";
import type { Json } from "../../src/message/json.ts";
import { BareActor, command, message, query, setup } from "./loop-setup.ts";

const metadata = z.object({ id: z.string(), timestamp: z.number() });

/** Whole messages as the RFC writes them, not only their data. */
function spelledOut(inbound: z.ZodType, actor = new BareActor()): Capability {
  const outbound = z.object({ kind: z.literal("reply"), type: z.literal("Note.Get"), data: z.string(), metadata });
  return { description: "notes", inbound, outbound, spawn: () => actor };
}

const get = z.object({
  kind: z.literal("query"),
  type: z.literal("Note.Get"),
  data: z.object({ key: z.string() }),
  metadata,
});
const put = z.object({
  kind: z.literal("command"),
  type: z.enum(["Note.Put", "Note.Append"]),
  data: z.object({ key: z.string(), text: z.string().max(5) }),
  metadata,
});

describe("schemas of whole messages", () => {
  const unions: readonly [string, z.ZodType][] = [
    ["a union", z.union([get, put])],
    ["a discriminated union", z.discriminatedUnion("kind", [get, put])],
    ["a union in a union", z.union([z.union([get]), put])],
  ];
  for (const [what, inbound] of unions) {
    test(`[L25] the handlers are found in ${what}`, async () => {
      const { loop } = await setup({ notes: spelledOut(inbound) });
      expect([...loop.table.routes()].map(({ kind, type }) => `${kind} ${type}`)).toEqual([
        "query Note.Get",
        "command Note.Put",
        "command Note.Append",
      ]);
    });
  }

  const event = z.object({ kind: z.literal("event"), type: z.literal("Note.Read"), data: z.any(), metadata });
  const any = z.object({ kind: z.enum(["reply", "event"]), type: z.string(), data: z.any(), metadata });
  const listening = { subscribes: ["Note.Read"] };
  const allowed: readonly [string, Partial<Capability>][] = [
    ["an outbound schema that takes any value", { outbound: z.any() }],
    ["an outbound schema whose types are any text", { outbound: any }],
    ["an inbound schema that lists an event of its subscriptions", { ...listening, inbound: z.union([get, event]) }],
    [
      "an inbound schema of events alone, and no outbound message",
      { ...listening, inbound: event, outbound: z.never() },
    ],
    ["no message at all", { ...listening, inbound: z.never(), outbound: z.never() }],
    ["empty unions", { ...listening, inbound: z.union([]), outbound: z.union([]) }],
  ];
  for (const [what, changed] of allowed) {
    test(`[L98] ${what} is accepted at boot`, async () => {
      const actor = new BareActor();
      const { loop, client, settle } = await setup({ notes: { ...spelledOut(get, actor), ...changed } });
      loop.receive(message("event", "Note.Read", "e1", 1), client());
      await settle();
      expect(actor.posted.map(({ type }) => type)).toEqual(changed.subscribes ? ["Note.Read"] : []);
    });
  }

  test("[L98] messages of an outbound schema that is not finite are validated, and their types are not restricted", async () => {
    const actor = new BareActor();
    const { loop, client, settle, faults } = await setup({ notes: { ...spelledOut(get, actor), outbound: any } });
    const one = client();
    for (const id of ["q1", "q2"]) loop.receive(query("Note.Get", id, { key: "a" }), one);
    await settle();
    actor.reply(actor.posted[0]!, { any: "data" });
    actor.say({ ...message("event", "Any.Thing", "e1", 1, { causation: "q1" }) });
    actor.say(message("command", "Any.Other", "c1", 1, { causation: "q1" }));
    await settle();
    expect(one.answers).toEqual(['reply q1 {"any":"data"}']);
    expect(faults()).toEqual(["Sys.ActorFault"]);
  });

  test("[L98] an event of the inbound schema that is not among the subscriptions is refused with the remedy", async () => {
    await expect(setup({ notes: spelledOut(z.union([get, event])) })).rejects.toThrow(
      'add it to subscribes: ["Note.Read"]',
    );
  });

  const refused: readonly [string, z.ZodType, string][] = [
    ["a type that is any text", put.extend({ type: z.string() }), "type is not a literal"],
    ["a kind that is any text", put.extend({ kind: z.string() }), "kind is not a literal"],
    ["a type by pattern", put.extend({ type: z.templateLiteral(["Note.", z.string()]) }), "type is not a literal"],
    ["a type that is none", put.extend({ type: z.literal("note.put") }), "not two PascalCase names"],
    ["data that is transformed", put.extend({ data: z.string().transform(Number) }), "has no JSON Schema"],
    ["data without a JSON form", put.extend({ data: z.bigint() }), "has no JSON Schema"],
    ["a reply", put.extend({ kind: z.literal("reply") }), "only commands and queries are routed"],
  ];
  for (const [what, inbound, problem] of refused) {
    test(`[L25] ${what} is refused at boot`, async () => {
      const actor = new BareActor();
      await expect(setup({ notes: spelledOut(inbound, actor) })).rejects.toThrow(problem);
      expect(actor.terminated).toBe(0);
    });
  }

  test("[L8] data that fits arrives as it was sent, although zod would drop unknown fields", async () => {
    const actor = new BareActor();
    const { loop, client, settle } = await setup({ notes: spelledOut(get, actor) });
    const asked = query("Note.Get", "q1", { key: "a", more: 1 });
    const sent = { ...asked, metadata: { ...asked.metadata, correlation: "c", note: true } };
    loop.receive(sent, client());
    await settle();
    expect(actor.posted).toEqual([sent]);
  });

  test("[L8] [L11] data that does not fit is 422 with its place, and such an answer is 500", async () => {
    const actor = new BareActor();
    const { loop, client, settle } = await setup({ notes: spelledOut(get, actor) });
    const one = client();
    loop.receive(query("Note.Get", "bad", { key: 5 }), one);
    loop.receive(query("Note.Get", "good", { key: "a" }), one);
    await settle();
    expect(actor.posted.map(({ metadata: { id } }) => id)).toEqual(["good"]);
    actor.reply(query("Note.Get", "good"), 5);
    await settle();
    expect(one.answers).toEqual(["error bad 422", "error good 500"]);
    const text = one.received.map(({ data }) => (data as { message: string }).message);
    expect(text[0]).toMatch(/^data\.key: /);
    expect(text[1]).toMatch(/gave an invalid answer: data: /);
  });
});

describe("schemas of data", () => {
  const greeter = capability({
    description: "says hello",
    commands: {
      "Greeter.Hello": {
        input: z.object({ name: z.string().min(1), times: z.number().int().optional() }),
        output: z.object({ text: z.string() }),
        description: "greets somebody",
        // The types of `name` and of the result follow from the schemas.
        handle: ({ name, times = 1 }) => ({ text: Array(times).fill(`Hello ${name.trim()}`).join(", ") }),
      },
      // @ts-expect-error the answer does not fit the schema
      "Greeter.Wrong": { output: z.object({ text: z.string() }), handle: () => ({ text: 5 }) },
    },
    queries: {
      "Greeter.Length": { description: "counts characters", input: z.string(), handle: async (text) => text.length },
      // @ts-expect-error the schema has no such field
      "Greeter.Field": { input: z.object({ a: z.string() }), handle: ({ b }) => b },
      // Without a schema it is any JSON.
      "Greeter.Echo": { handle: (data) => data satisfies Json },
    },
    emits: { "Greeter.Greeted": z.object({ name: z.string() }) },
  });

  async function greeting() {
    const told = { descriptions: new Map([["greeter", "greets"]]) };
    const targets = (): SyscallTargets => ({ ...told, table: made.loop.table });
    const made = await setup({ greeter, sys: syscall(targets) });
    return { ...made, one: made.client() };
  }

  test("[L7] [L8] a handler gets the schema's output, or the sender 422", async () => {
    const { loop, one, settle } = await greeting();
    loop.receive(command("Greeter.Hello", "c1", { name: " Ada ", times: 2 }), one);
    loop.receive(command("Greeter.Hello", "c2", { name: "" }), one);
    loop.receive(command("Greeter.Hello", "c3", { name: "Ada", times: 1.5 }), one);
    loop.receive(query("Greeter.Length", "q1", "four"), one);
    loop.receive(query("Greeter.Echo", "q2", [1]), one);
    await settle();
    expect(one.answers.toSorted()).toEqual([
      "error c2 422",
      "error c3 422",
      'reply c1 {"text":"Hello Ada, Hello Ada"}',
      "reply q1 4",
      "reply q2 [1]",
    ]);
  });

  test("[L11] an answer that the compiler let through and the schema does not is the actor's fault", async () => {
    const { loop, one, settle, faults } = await greeting();
    loop.receive(command("Greeter.Wrong", "c1"), one);
    await settle();
    expect(one.answers).toEqual(["error c1 500"]);
    expect(faults()).toEqual(["Sys.ActorFault"]);
  });

  test("[L25] Syscall.Describe gives zod's own JSON Schema of input and output", async () => {
    const { loop, one, settle } = await greeting();
    loop.receive(query("Syscall.Describe", "q1", { name: "Greeter.Hello" }), one);
    await settle();
    const [described] = (one.received[0]?.data as { types: Json[] } | undefined)?.types ?? [];
    expect(described).toMatchObject({
      kind: "command",
      input: {
        type: "object",
        properties: { name: { type: "string", minLength: 1 }, times: { type: "integer" } },
        required: ["name"],
      },
      output: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
    });
  });

  test("[L38] Syscall.Describe tells a handler's own description, and its capability's where it has none", async () => {
    const { loop, one, settle } = await greeting();
    loop.receive(query("Syscall.Describe", "q1", { name: "greeter" }), one);
    await settle();
    const { types } = one.received[0]!.data as { types: { type: string; description: string }[] };
    const descriptions = Object.fromEntries(types.map(({ type, description }) => [type, description]));
    expect(descriptions).toMatchObject({ "Greeter.Length": "counts characters", "Greeter.Echo": "greets" });
  });
});
