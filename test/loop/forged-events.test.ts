/**
 * Events that only the kernel publishes, and connections that may publish none: refused, with one error to the client.
 */
import { describe, expect, test } from "#test";
import { timerCapability } from "../../src/loop/timer.ts";
import { JOURNAL_START } from "../../src/store/journal-position.ts";
import { Client, command, message, setup } from "./loop-setup.ts";
import { streamJournal } from "./stream-journal.ts";

class ClearedClient extends Client {
  readonly clearance: readonly string[] = ["s"];
}

async function publishing() {
  const journal = streamJournal();
  const made = await setup({ timer: timerCapability() }, { events: journal.journal });
  return {
    ...made,
    journaled: async () => (await journal.journal.feed?.page(JOURNAL_START, 100))?.rows.map(({ topic }) => topic),
  };
}

const FORGED = ["Sys.ActorFault", "Sys.AnyOther", "Label.Declassified", "Timer.Fired"];

describe("events of clients", () => {
  for (const type of FORGED) {
    test(`[N19] an event ${type} of a client is not journaled, and answered with one 403`, async () => {
      const { loop, client, settle, journaled } = await publishing();
      const forger = client();
      loop.receive(message("event", type, "e1", { labels: ["s"] }), forger);
      await settle();
      expect(await journaled()).toEqual([]);
      expect(forger.received).toHaveLength(1);
      expect(forger.received[0]).toMatchObject({
        ...{ kind: "error", type, data: { code: 403, message: expect.stringContaining("only the kernel") } },
        metadata: { causation: "e1", refused: true },
      });
    });

    test(`[N19] a timer with an event ${type} is refused when it is set`, async () => {
      const { loop, client, settle } = await publishing();
      const forger = client();
      const template = { kind: "event", type, data: null };
      loop.receive(command("Timer.Set", "t1", { delayMs: 1, message: template }), forger);
      loop.receive(command("Timer.Every", "t2", { everyMs: 1, message: template }), forger);
      await settle();
      expect(forger.answers).toEqual(["error t1 422", "error t2 422"]);
    });
  }

  test("[N19] a connection with a clearance publishes no events and sets no timers; one without does", async () => {
    const { loop, client, settle, journaled } = await publishing();
    const [cleared, open] = [new ClearedClient("cleared"), client()];
    const template = { kind: "event", type: "Mail.Sent", data: null };
    for (const one of [cleared, open]) {
      loop.receive(message("event", "Mail.Read", `e-${one.id}`), one);
      loop.receive(command("Timer.Set", `t-${one.id}`, { delayMs: 60_000, message: template }), one);
    }
    await settle();
    expect(cleared.answers.sort()).toEqual(["error e-cleared 403", "error t-cleared 403"]);
    expect(open.received.map(({ kind }) => kind)).toEqual(["reply"]);
    expect(await journaled()).toEqual(["Mail.Read"]);
  });

  test("[N19] a client is told that the journal refused its event", async () => {
    const away = async () => {
      throw new Error("the disk is full");
    };
    const { loop, client, settle } = await setup({}, { events: { publish: away, subscribe: () => undefined } });
    const one = client();
    loop.receive(message("event", "Mail.Read", "e1"), one);
    await settle();
    expect(one.received).toMatchObject([
      { kind: "error", data: { code: 503, message: expect.stringContaining("the disk is full") } },
    ]);
  });
});
