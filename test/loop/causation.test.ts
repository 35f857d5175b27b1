/** Messages of a handler are caused by the message that it handles, however long that takes. */
import { describe, expect, test } from "#test";
import { Space } from "../../src/cells/space.ts";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { capability } from "../../src/loop/define-capability.ts";
import { transactional } from "../../src/loop/transactional.ts";
import { serve } from "../../src/loop/worker-serve.ts";
import type { Message } from "../../src/message/envelope.ts";
import { Failure } from "../../src/message/error-data.ts";
import type { Json } from "../../src/message/json.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { BareActor, bare, command, deferred, setup } from "./loop-setup.ts";

/** All messages that a witness saw: `kind type <- causation`, with the correlation if there is one. */
function witness() {
  const seen: Message[] = [];
  const actor = new BareActor();
  actor.postMessage = (given) => {
    seen.push(given);
    if (given.kind !== "event") actor.reply(given, null);
  };
  const capability = bare(() => actor, {
    takes: [
      ["command", "Witness.Do"],
      ["query", "Witness.Ask"],
    ],
    subscribes: ["Work.Begun", "Work.Done"],
  });
  const causes = () => seen.map(({ kind, type, metadata }) => `${kind} ${type} <- ${metadata.causation}`);
  return { capability, seen, causes };
}

describe("causation", () => {
  test("[L33] events, commands and queries of a handler name its message, before and after an await", async () => {
    const { capability: seeing, seen, causes } = witness();
    const gate = deferred();
    const worker = capability({
      description: "works",
      emits: { "Work.Begun": true, "Work.Done": true },
      sends: { "Witness.Do": "command", "Witness.Ask": "query" },
      commands: {
        "Work.Do": {
          handle: async (_, { emit, command: tell, query: ask }) => {
            emit("Work.Begun", null);
            await gate.promise;
            await tell("Witness.Do", null);
            await ask("Witness.Ask", null);
            emit("Work.Done", null);
            return "done";
          },
        },
        "Work.Fail": {
          handle: () => {
            throw new Failure(422, "on purpose");
          },
        },
      },
    });
    const { loop, client, settle } = await setup({ worker, witness: seeing });
    const one = client();
    const begun = command("Work.Do", "first");
    loop.receive({ ...begun, metadata: { ...begun.metadata, correlation: "talk" } }, one);
    // It waits in the mailbox meanwhile, and must not be taken for a cause.
    loop.receive(command("Work.Do", "second"), one);
    loop.receive(command("Work.Fail", "third"), one);
    await settle();
    gate.resolve();
    await settle();
    const each = ["event Work.Begun", "command Witness.Do", "query Witness.Ask", "event Work.Done"];
    expect(causes()).toEqual(["first", "second"].flatMap((id) => each.map((what) => `${what} <- ${id}`)));
    expect(seen.map(({ metadata }) => metadata.correlation)).toEqual([
      ...each.map(() => "talk"),
      ...each.map(() => undefined),
    ]);
    expect(one.answers).toEqual(['reply first "done"', 'reply second "done"', "error third 422"]);
  });

  test("[L33] messages of an event's handler are caused by the event", async () => {
    const { capability: seeing, causes } = witness();
    const relay = capability({
      description: "passes on",
      emits: { "Work.Begun": true, "Work.Done": true },
      commands: { "Work.Do": { handle: (_, { emit }) => emit("Work.Begun", null) } },
      on: { "Work.Begun": (_, { emit }) => emit("Work.Done", null) },
    });
    const { loop, client, settle } = await setup({ relay, witness: seeing });
    loop.receive(command("Work.Do", "first"), client());
    await settle();
    const [begun, done] = causes();
    expect(begun).toBe("event Work.Begun <- first");
    expect(done).toMatch(/^event Work.Done <- /);
    expect(done).not.toBe("event Work.Done <- first");
  });

  test("[L33] [L32] the events of a commit, though commits of several commands are under way at once", async () => {
    const host = simulatedHost(1);
    const store = memoryStore({ host });
    const space = await host.run(() => Space.open({ store, host, name: "test" }));
    const total = space.cell<number>("total");
    const counting = transactional({
      space,
      description: "counts",
      emits: { "Count.Added": true },
      commands: {
        "Count.Add": {
          handle: (data: Json, tx) => {
            tx.set(total, (tx.get(total) ?? 0) + Number(data));
            tx.emit("Count.Added", data);
            return null;
          },
        },
      },
    });
    const { loop, client } = await setup({ counting }, { host });
    for (let n = 0; n < 10; n++) loop.receive(command("Count.Add", `c${n}`, n), client());
    await host.advance(1_000);
    const rows = await host.run(() => store.query({ limit: 100 }));
    const events = rows.flatMap(({ message }) => (message?.kind === "event" ? [message] : []));
    expect(events.map(({ data, metadata }) => `${data} <- ${metadata.causation}`)).toEqual(
      Array.from({ length: 10 }, (_, n) => `${n} <- c${n}`),
    );
  });

  test("[L33] [L31] inside a worker it is the same", async () => {
    const said: Message[] = [];
    const posted = deferred();
    let deliver: (data: unknown) => void = () => undefined;
    serve(
      { commands: { "Work.Do": { handle: (_: Json, { emit }) => emit("Work.Begun", null) } } },
      {
        postMessage: (data) => {
          // An answer is a part of the report that its message was handled.
          const { kind, answer } = data as Partial<Message> & { answer?: Message };
          if (kind !== undefined) said.push(data as Message);
          else if (answer !== undefined) said.push(answer);
          if (said.length === 2) posted.resolve();
        },
        onMessage: (listener) => {
          deliver = listener;
        },
      },
    );
    deliver(command("Work.Do", "first"));
    await posted.promise;
    expect(said.map(({ kind, metadata }) => `${kind} <- ${metadata.causation}`)).toEqual([
      "event <- first",
      "reply <- first",
    ]);
  });
});
