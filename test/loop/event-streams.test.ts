/** Events for clients that subscribe: contents, start and end of a stream. */
import { describe, expect, test } from "#test";
import type { EventFeed } from "../../src/loop/event-journal.ts";
import type { Json } from "../../src/message/json.ts";
import { command, message, query, setup } from "./loop-setup.ts";
import { streamJournal } from "./stream-journal.ts";

async function streaming() {
  const { journal } = streamJournal();
  const made = await setup({}, { events: journal });
  const [watcher, other] = [made.client(), made.client()];
  let sent = 0;
  const tell = async (...types: string[]) => {
    for (const type of types) made.loop.receive(message("event", type, `e${++sent}`, sent), other);
    await made.settle();
  };
  const ask = async (type: string, data: Json, from = watcher) => {
    made.loop.receive(command(type, made.host.id(), data), from);
    await made.settle();
    return from.received.find(({ kind }) => kind !== "event")?.data as { subscription?: string; code?: number };
  };
  const events = () =>
    watcher.received
      .filter(({ kind }) => kind === "event")
      .map(({ type, metadata }) => `${metadata["journalId"]} ${type}`);
  return { ...made, watcher, other, tell, ask, events };
}

describe("subscriptions", () => {
  test("[L21] [N12] a subscription in a lane is not begun if its connection closes first", async () => {
    const { loop, client, settle } = await streaming();
    const gone = client();
    loop.receive(command("Sys.Subscribe", "s1", null), gone);
    loop.disconnect(gone);
    await settle();
    expect([loop.streams.size, gone.received.length]).toEqual([0, 0]);
  });

  test("[N12] the answer first, then events from now on, in order, to this connection alone", async () => {
    const { ask, tell, events, watcher, other } = await streaming();
    await tell("A.Old");
    const { subscription } = await ask("Sys.Subscribe", null);
    await tell("A.Told", "B.Told");
    expect(watcher.received[0]).toMatchObject({ kind: "reply", type: "Sys.Subscribe", data: { subscription } });
    expect(events()).toEqual(["2 A.Told", "3 B.Told"]);
    expect(watcher.received[1]).toMatchObject({ data: 2, metadata: { id: "e2", subscription } });
    expect(other.received).toEqual([]);
  });

  test("[N12] from resumes after a cursor without repeated or missing events", async () => {
    const { ask, tell, events } = await streaming();
    await tell("A.One", "A.Two", "A.Three");
    await ask("Sys.Subscribe", { from: "h.0-1" });
    await tell("A.Four");
    expect(events()).toEqual(["2 A.Two", "3 A.Three", "4 A.Four"]);
  });

  test("[N12] types and topics choose", async () => {
    const { ask, tell, events } = await streaming();
    await ask("Sys.Subscribe", { types: ["A.Told"], topics: ["B.*"] });
    await tell("A.Told", "A.Else", "B.Told", "C.Told");
    expect(events()).toEqual(["1 A.Told", "3 B.Told"]);
  });

  test("[N12] unsubscribing ends it, and only one's own can be ended", async () => {
    const { ask, tell, events, loop, watcher, other } = await streaming();
    const { subscription = "" } = await ask("Sys.Subscribe", null);
    expect(await ask("Sys.Unsubscribe", { subscription }, other)).toEqual({ removed: false });
    await tell("A.One");
    await ask("Sys.Unsubscribe", { subscription });
    await tell("A.Two");
    expect(events()).toEqual(["1 A.One"]);
    expect(watcher.received.at(-1)).toMatchObject({ kind: "reply", data: { removed: true } });
    expect(loop.streams.size).toBe(0);
  });

  test("[N12] a connection that goes takes its subscriptions with it", async () => {
    const { ask, tell, events, loop, watcher } = await streaming();
    await ask("Sys.Subscribe", null);
    loop.disconnect(watcher);
    await tell("A.One");
    expect([events(), loop.streams.size]).toEqual([[], 0]);
  });

  const refused: readonly Json[] = [
    5,
    { types: "A.B" },
    { types: ["nope"] },
    { topics: ["a.**.b"] },
    { from: -1 },
    { from: "" },
    { from: "h.1" },
    { from: 1 },
  ];
  test("[N12] an invalid subscription is 422, one too many is 503, and a kernel without a journal answers 404", async () => {
    const { ask, watcher, loop } = await streaming();
    for (const data of refused) await ask("Sys.Subscribe", data);
    expect(watcher.received.map(({ data }) => (data as { code: number }).code)).toEqual(refused.map(() => 422));
    for (let n = 0; n < 17; n++) await ask("Sys.Subscribe", null);
    expect(watcher.received.at(-1)).toMatchObject({ kind: "error", data: { code: 503 } });
    expect(loop.streams.size).toBe(16);
    const bare = await setup({});
    const one = bare.client();
    bare.loop.receive(command("Sys.Subscribe", "s"), one);
    bare.loop.receive(query("Sys.Subscribe", "q"), one);
    await bare.settle();
    expect(one.answers).toEqual(["error s 404", "error q 404"]);
  });

  test("[N12] a gap in the journal after the place to go on from ends the subscription with a 410 that has the cursor to go on from", async () => {
    const { journal, append, remove } = streamJournal();
    append("A.Told", 9);
    for (let id = 2; id <= 8; id++) remove(id);
    const { loop, client, settle } = await setup({}, { events: journal });
    const [strict, beginner] = [client(), client()];
    loop.receive(command("Sys.Subscribe", "s", { from: "h.0-1" }), strict);
    loop.receive(command("Sys.Subscribe", "b", { from: "start" }), beginner);
    await settle();
    const [answer, end] = strict.received;
    expect(answer).toMatchObject({ kind: "reply", data: { subscription: end?.metadata["subscription"] } });
    expect(end).toMatchObject({
      ...{ kind: "error", data: { code: 410, data: { cursor: "h.0-8" } }, metadata: { causation: "s" } },
    });
    expect(strict.received).toHaveLength(2);
    expect(beginner.received.map(({ metadata }) => metadata["journalId"])).toEqual([undefined, 1, 9]);
    expect(loop.streams.size).toBe(1);
  });

  test("[N12] a journal that lost its last rows ends the subscription with a 410", async () => {
    const { journal, append, remove } = streamJournal();
    append("A.Told", 3);
    for (let id = 2; id <= 3; id++) remove(id);
    const { loop, client, settle } = await setup({}, { events: journal });
    const one = client();
    loop.receive(command("Sys.Subscribe", "s", { from: "h.0-1" }), one);
    await settle();
    expect(one.received[1]).toMatchObject({ kind: "error", data: { code: 410, data: { cursor: "h.0-3" } } });
  });

  for (const failing of ["end", "page", "grown"] as const) {
    test(`[N12] a journal that cannot be read (${failing}) ends the subscription with a 503, after its answer`, async () => {
      const { journal } = streamJournal();
      const away = async () => {
        throw new Error("the disk is away");
      };
      const feed = { ...(journal.feed as EventFeed), [failing]: away };
      const { loop, client, settle } = await setup({}, { events: { ...journal, feed } });
      const one = client();
      loop.receive(command("Sys.Subscribe", "s"), one);
      await settle();
      expect(one.received).toMatchObject([
        { kind: "reply" },
        { kind: "error", data: { code: 503, message: expect.stringContaining("the disk is away") } },
      ]);
      expect(loop.streams.size).toBe(0);
    });
  }

  test("[N2] [N12] a slow client is waited for; one that reads no event for 30 s loses its stream and is told where to resume", async () => {
    const { ask, tell, events, watcher, host, loop, settle } = await streaming();
    await ask("Sys.Subscribe", null);
    await tell("A.One");
    watcher.hasRoom = false;
    await tell("A.Two", "A.Three");
    await host.advance(29_000);
    expect(events()).toEqual(["1 A.One"]);
    watcher.makeRoom();
    await settle();
    expect(events()).toEqual(["1 A.One", "2 A.Two", "3 A.Three"]);
    watcher.hasRoom = false;
    await tell("A.Four");
    await host.advance(30_000);
    expect(events()).toHaveLength(3);
    expect(watcher.received.at(-1)).toMatchObject({
      kind: "error",
      type: "Sys.Subscribe",
      data: { code: 503, message: expect.stringContaining("from h.0-3") },
    });
    expect(loop.streams.size).toBe(0);
  });

  test("[N12] a stream that stalls before its first event resumes with the first missed event, not with the first of all", async () => {
    const { ask, tell, events, watcher, host } = await streaming();
    await tell("A.Old", "B.Old");
    await ask("Sys.Subscribe", { types: ["B.Told"] });
    watcher.hasRoom = false;
    await tell("A.Told", "B.Told", "B.Told");
    await host.advance(30_000);
    expect(events()).toEqual([]);
    const { message: reason = "" } = (watcher.received.at(-1)?.data ?? {}) as { message?: string };
    const from = /from (\S+)$/.exec(reason)?.[1] ?? "";
    watcher.makeRoom();
    await ask("Sys.Subscribe", { from });
    expect(events()).toEqual(["4 B.Told", "5 B.Told"]);
  });
});
