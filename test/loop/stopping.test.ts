/** Work that must not happen after the end was requested. */
import { describe, expect, test } from "#test";
import { BareActor, bare, command, deferred, query, setup } from "./loop-setup.ts";
import { streamJournal } from "./stream-journal.ts";

describe("after the end", () => {
  test("[L17] [L28] an actor with a due restart is not started after the end", async () => {
    const spawned: BareActor[] = [];
    const spawn = () => {
      spawned.push(new BareActor());
      return spawned.at(-1) as BareActor;
    };
    const { loop, host, client, settle } = await setup({ a: bare(spawn) });
    spawned[0]?.dispatch({ type: "error", message: "boom" });
    loop.receive(query("Bare.Ask", "waits"), client());
    await settle();
    await host.run(() => loop.stop());
    await host.advance(60_000);
    expect(spawned).toHaveLength(1);
  });

  test("[L28] a request in a lane at the end is told that its actor is shutting down", async () => {
    const { loop, host, client, settle } = await setup({ a: bare(() => new BareActor()) });
    const one = client();
    await host.run(async () => {
      loop.enqueue(query("Bare.Ask", "late"), { kind: "adapter", connection: one });
      await loop.stop();
    });
    await settle();
    expect(one.received.map(({ data }) => data)).toEqual([
      { code: 503, message: "a is shutting down", reason: "DRAINING" },
    ]);
  });

  test("[L28] actors that do not end are named until they do", async () => {
    const ending = deferred();
    const slow = new BareActor();
    slow.terminate = () => ending.promise as never;
    const { loop, host, settle } = await setup({
      slow: bare(() => slow),
      quick: bare(() => new BareActor(), { takes: [] }),
    });
    expect(loop.stopping).toEqual([]);
    const stopped = loop.stop();
    await settle();
    expect(loop.stopping).toEqual(["slow"]);
    ending.resolve();
    await host.run(() => stopped);
    expect(loop.stopping).toEqual([]);
    expect([...loop.actors.values()].map(({ state }) => state)).toEqual(["stopped", "stopped"]);
  });

  test("[N12] a client that unsubscribed while it was stalled gets no more events", async () => {
    const { journal, append } = streamJournal();
    append("A.One");
    const { loop, client, settle } = await setup({}, { events: journal });
    const watcher = client();
    watcher.hasRoom = false;
    loop.receive(command("Sys.Subscribe", "s", { from: "start" }), watcher);
    await settle();
    const [answer] = watcher.received;
    const { subscription } = (answer?.data ?? {}) as { subscription?: string };
    expect(typeof subscription).toBe("string");
    loop.receive(command("Sys.Unsubscribe", "u", { subscription: subscription ?? null }), watcher);
    await settle();
    watcher.makeRoom();
    await settle();
    expect(watcher.received.map(({ kind }) => kind)).toEqual(["reply", "reply"]);
  });
});
