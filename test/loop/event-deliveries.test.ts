/**
 * Parcels: an event is over when its handler has ended and every message that the handler sent is journaled or refused.
 */
import { describe, expect, test } from "#test";
import type { CommandJournal } from "../../src/loop/command-journal.ts";
import { capability } from "../../src/loop/define-capability.ts";
import type { EventJournal } from "../../src/loop/event-journal.ts";
import type { CapabilityContext } from "../../src/loop/mailbox-actor.ts";
import { dataSchema } from "../../src/loop/message-schema.ts";
import { Parcel } from "../../src/loop/parcel.ts";
import type { Message } from "../../src/message/envelope.ts";
import { Failure } from "../../src/message/error-data.ts";
import { message, setup } from "./loop-setup.ts";

/** How a parcel ended: undefined while it is not over, "handled", or its failure. */
function parcel(id: string) {
  const ends: string[] = [];
  const made = new Parcel(message("event", "Mail.Come", id), (failure) => void ends.push(failure?.reason ?? "handled"));
  return { made, ends };
}

describe("deliveries", () => {
  test("[L9] two deliveries that sent the same command are both over when it is journaled", () => {
    const [one, other] = [parcel("e1"), parcel("e2")];
    const sent = [one, other].map(({ made }) => made.send());
    for (const { made } of [one, other]) made.ended();
    expect([one.ends, other.ends]).toEqual([[], []]);
    sent[0]?.done();
    expect([one.ends, other.ends]).toEqual([["handled"], []]);
    sent[1]?.done();
    expect([one.ends, other.ends]).toEqual([["handled"], ["handled"]]);
  });

  test("[L9] a repeated delivery during the handling has an end of its own", () => {
    const [first, again] = [parcel("e1"), parcel("e1")];
    const sent = again.made.send();
    first.made.ended();
    again.made.ended("no");
    expect([first.ends, again.ends]).toEqual([["handled"], []]);
    sent?.done();
    expect([first.ends, again.ends]).toEqual([["handled"], ["no"]]);
  });

  test("[L89] a parcel is over once, with its first failure, and does not wait for messages sent after its handler ended", () => {
    const { made, ends } = parcel("e1");
    const [one, two] = [made.send(), made.send()];
    made.ended();
    expect(made.send()).toBeUndefined();
    one?.done("first");
    one?.done("twice");
    two?.done("second");
    made.ended("late");
    expect(ends).toEqual(["first"]);
  });

  test("[L9] a handler that awaits a refused command decides about its delivery", async () => {
    const delivered: ((given: Message) => Promise<void>)[] = [];
    const events: EventJournal = {
      publish: () => Promise.resolve(),
      subscribe: (_type, _subscriber, deliver) => void delivered.push(deliver),
    };
    const commands: CommandJournal = {
      keep: () => Promise.reject(new Failure(503, "no room")),
      find: async () => undefined,
      take: () => undefined,
    };
    const caught: unknown[] = [];
    const work = capability({
      ...{ description: "works", durable: "before" },
      commands: { "Work.Do": { handle: () => null } },
    });
    const listener = capability({
      description: "asks",
      sends: { "Work.Do": "command" },
      on: {
        "Mail.Come": async (_data, { command }) => {
          await command("Work.Do", 1).catch(({ code }: Failure) => caught.push(code));
        },
      },
    });
    const { settle } = await setup({ work, listener }, { events, commands });
    const outcome = delivered[0]!(message("event", "Mail.Come", "e1")).then(() => "handled");
    await settle();
    expect([caught, await outcome]).toEqual([[503], "handled"]);
  });

  test("[L9] a delivery fails with the reason if its handler sent a message that cannot be routed", async () => {
    const delivered: ((given: Message) => Promise<void>)[] = [];
    const events: EventJournal = {
      publish: () => Promise.resolve(),
      subscribe: (_type, _subscriber, deliver) => void delivered.push(deliver),
    };
    const broken = {
      "~standard": {
        version: 1 as const,
        vendor: "test",
        jsonSchema: { input: () => ({}), output: () => ({}) },
        validate: () => {
          throw new Error("the check is broken");
        },
      },
    };
    const receiver = capability({
      description: "takes commands",
      commands: { "Work.Do": { input: broken, handle: () => null } },
    });
    const sender = capability({
      description: "sends commands",
      sends: { "Work.Do": "command" },
      on: {
        "In.Told": (_data, { send }, { metadata }) => {
          send({
            kind: "command",
            type: "Work.Do",
            data: null,
            metadata: { ...metadata, id: "w1", causation: metadata.id },
          });
        },
      },
    });
    const { settle } = await setup({ receiver, sender }, { events });
    const ends: string[] = [];
    void delivered[0]?.(message("event", "In.Told", "e1")).then(
      () => ends.push("handled"),
      (error: Error) => ends.push(error.message),
    );
    await settle();
    expect(ends).toEqual([expect.stringContaining("Work.Do was not routed")]);
  });

  for (const [what, type, reason] of [
    ["nobody handles", "Work.Nobody", "Work.Nobody was refused: no capability handles command Work.Nobody"],
    ["does not fit", "Work.Do", "Work.Do was refused: data: must be text"],
    [
      "it has not declared",
      "Work.Secret",
      "Work.Secret was not sent: command Work.Secret is not declared as outbound by",
    ],
  ] as const) {
    test(`[L9] a delivery fails with the reason if its handler sent a command that ${what}`, async () => {
      const { ends, deliver } = await sending((context, { metadata }) =>
        context.send({ kind: "command", type, data: 1, metadata: { ...metadata, id: "w1", causation: metadata.id } }),
      );
      await deliver("e1");
      expect(ends).toEqual([expect.stringContaining(reason)]);
    });
  }

  test("[L9] a delivery ends as its handler decides if the handler awaits a refused request", async () => {
    const { ends, deliver } = await sending((context) =>
      context.command("Work.Nobody", null).then(undefined, () => undefined),
    );
    await deliver("e1");
    expect(ends).toEqual(["handled"]);
  });
});

/** A handler of events that sends commands, a receiver of some of them, and the ends of its deliveries. */
async function sending(handle: (context: CapabilityContext, event: Message) => unknown) {
  const delivered: ((given: Message) => Promise<void>)[] = [];
  const events: EventJournal = {
    publish: () => Promise.resolve(),
    subscribe: (_type, _subscriber, deliver) => void delivered.push(deliver),
  };
  const text = dataSchema<string>((data) => (typeof data === "string" ? undefined : "must be text"), {});
  const receiver = capability({
    description: "takes text",
    commands: { "Work.Do": { input: text, handle: () => null } },
  });
  const sender = capability({
    description: "sends commands",
    sends: { "Work.Do": "command", "Work.Nobody": "command" },
    on: { "In.Told": (_data, context, event) => handle(context, event) },
  });
  const { settle } = await setup({ receiver, sender }, { events });
  const ends: string[] = [];
  return {
    ends,
    deliver: async (id: string) => {
      void delivered[0]?.(message("event", "In.Told", id)).then(
        () => ends.push("handled"),
        (error: Error) => ends.push(error.message),
      );
      await settle();
    },
  };
}
