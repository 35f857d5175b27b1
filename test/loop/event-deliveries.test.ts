/** Deliveries of the journal and what their handlers have sent: each is over when all of it is kept, and knows its own end. */
import { describe, expect, test } from "#test";
import type { CommandJournal } from "../../src/loop/command-journal.ts";
import { capability } from "../../src/loop/define-capability.ts";
import { EventDeliveries } from "../../src/loop/event-deliveries.ts";
import type { EventJournal } from "../../src/loop/event-journal.ts";
import type { HandlerContext } from "../../src/loop/mailbox-actor.ts";
import { dataSchema } from "../../src/loop/message-schema.ts";
import type { Message } from "../../src/message/envelope.ts";
import { Failure } from "../../src/message/error-data.ts";
import { message, setup } from "./loop-setup.ts";

/** What a handler of an event has sent. */
function sent(id: string, causation: string): Message {
  return { kind: "event", type: "Mail.Due", data: null, metadata: { id, timestamp: 1, causation } };
}

describe("deliveries", () => {
  test("[L9] two that have sent the same are both over when it is kept", async () => {
    const deliveries = new EventDeliveries();
    const [one, other] = [deliveries.begin("greeter", "e1"), deliveries.begin("greeter", "e2")];
    deliveries.sent("greeter", sent("mail-7", "e1"));
    deliveries.sent("greeter", sent("mail-7", "e2"));
    const over = Promise.all([deliveries.allKept(one), deliveries.allKept(other)]);
    deliveries.kept("mail-7");
    await over;
    expect([deliveries.end("greeter", "e1", one), deliveries.end("greeter", "e2", other)]).toEqual([
      undefined,
      undefined,
    ]);
  });

  test("[L9] one that comes again while it is handled has its own end", async () => {
    const deliveries = new EventDeliveries();
    const first = deliveries.begin("greeter", "e1");
    const again = deliveries.begin("greeter", "e1");
    deliveries.sent("greeter", sent("mail-8", "e1"));
    expect(deliveries.end("greeter", "e1", first)).toBeUndefined();
    deliveries.failed("greeter", "e1", "no");
    const over = deliveries.allKept(again);
    deliveries.kept("mail-8");
    await over;
    expect(deliveries.end("greeter", "e1", again)).toBe("no");
  });

  test("[L9] one whose handler waits for a command and hears that it is not taken is handled as it ends", async () => {
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

  test("[L9] one whose handler has sent what cannot be routed has failed, with the reason", async () => {
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
    ["nobody handles", "Work.Nobody", "Work.Nobody was refused: nobody handles command Work.Nobody"],
    ["does not fit", "Work.Do", "Work.Do was refused: data: must be text"],
    ["it has not declared", "Work.Secret", "Work.Secret was not sent: command Work.Secret is not among"],
  ] as const) {
    test(`[L9] one whose handler has sent a command that ${what} has failed, with the reason`, async () => {
      const { ends, deliver } = await sending((context, { metadata }) =>
        context.send({ kind: "command", type, data: 1, metadata: { ...metadata, id: "w1", causation: metadata.id } }),
      );
      await deliver("e1");
      expect(ends).toEqual([expect.stringContaining(reason)]);
    });
  }

  test("[L9] one whose handler waits for what is refused ends as the handler says", async () => {
    const { ends, deliver } = await sending((context) =>
      context.command("Work.Nobody", null).then(undefined, () => undefined),
    );
    await deliver("e1");
    expect(ends).toEqual(["handled"]);
  });
});

/** A handler of events that sends commands, and one who takes some of them; how its deliveries end. */
async function sending(handle: (context: HandlerContext, event: Message) => unknown) {
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
