/** Queries of transactional capabilities: their answers are confirmed. */
import { describe, expect, test } from "#test";
import { Space } from "../../src/cells/space.ts";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { transactional } from "../../src/loop/transactional.ts";
import { Failure } from "../../src/message/error-data.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { rejected } from "../../src/store/rejection.ts";
import { FaultyLine, Gate } from "../store/faulty-store.ts";
import { command, query, setup } from "./loop-setup.ts";

/** A number that is set by command, and read at once, after a while, or as an error while there is none. */
async function register() {
  const host = simulatedHost(1);
  const line = new FaultyLine(memoryStore({ host }));
  const space = await host.run(() => Space.open({ store: line.store, host, name: "test" }));
  const number = space.cell<number>("number", 0);
  const held = new Gate();
  let reads = 0;
  let hasWritten = false;
  const register = transactional({
    space,
    description: "keeps a number",
    commands: { "Number.Set": { handle: (to: number, tx) => tx.set(number, to) } },
    queries: {
      "Number.Read": {
        handle: () => {
          reads++;
          const value = number.get() ?? 0;
          if (value === 404) throw new Failure(404, "there is none");
          return value;
        },
      },
      "Number.ReadOwn": {
        handle: () => {
          if (!hasWritten) number.set(1);
          hasWritten = true;
          return number.get() ?? 0;
        },
      },
      "Number.ReadSlowly": {
        handle: async () => {
          const value = number.get() ?? 0;
          await held.opened;
          return value;
        },
      },
    },
  });
  const made = await setup({ register }, { host });
  await host.run(() => space.cell("number").pull());
  const client = made.client();
  const send = (sent: ReturnType<typeof command>) => made.loop.receive(sent, client);
  return { host, line, space, number, held, client, send, reads: () => reads };
}

const REFUSED = { instead: rejected("refused", "protocol", "not today") } as const;

describe("queries of a transactional capability", () => {
  test("[L44] an answer waits until the reads of its query are confirmed", async () => {
    const { host, line, client, send, reads } = await register();
    const gate = new Gate();
    line.plan = ({ method }) => (method === "commit" ? { answered: gate.opened } : {});
    send(command("Number.Set", "a", 1));
    send(query("Number.Read", "q"));
    await host.advance(100);
    expect([client.answers, reads()]).toEqual([[], 1]);
    gate.open();
    await host.advance(100);
    expect([client.answers.sort(), reads()]).toEqual([["reply a null", "reply q 1"], 1]);
  });

  test("[L44] without pending commits a query is answered at once, and later commits do not matter", async () => {
    const { host, line, client, send } = await register();
    const gate = new Gate();
    line.plan = ({ method }) => (method === "commit" ? { answered: gate.opened } : {});
    send(query("Number.Read", "q"));
    send(command("Number.Set", "a", 1));
    await host.advance(100);
    expect(client.answers).toEqual(["reply q 0"]);
  });

  for (const value of [1, 404]) {
    test(`[L44] a commit that falls is not told of, neither as a value nor as an error (${value})`, async () => {
      const { host, line, client, send, reads } = await register();
      const gate = new Gate();
      line.plan = ({ method }) => (method === "commit" ? { ...REFUSED, answered: gate.opened } : {});
      send(command("Number.Set", "a", value));
      send(query("Number.Read", "q"));
      await host.advance(100);
      gate.open();
      await host.advance(100);
      expect([client.answers.sort(), reads()]).toEqual([["error a 422", "reply q 0"], 2]);
    });
  }

  test("[L44] a commit that is rolled back during the handler does not show in the answer", async () => {
    const { host, line, held, client, send } = await register();
    const gate = new Gate();
    line.plan = ({ method }) => (method === "commit" ? { ...REFUSED, answered: gate.opened } : {});
    send(command("Number.Set", "a", 1));
    send(query("Number.ReadSlowly", "q"));
    await host.advance(100);
    gate.open();
    await host.advance(100);
    expect(client.answers).toEqual(["error a 422"]);
    held.open();
    await host.advance(100);
    expect(client.answers).toEqual(["error a 422", "reply q 0"]);
  });

  test("[L44] plain writes in the turn of the query count as pending", async () => {
    const { host, line, space, client, send } = await register();
    const lost: unknown[] = [];
    space.scheduler.onError((error) => lost.push(error));
    line.plan = ({ method }) => (method === "commit" ? REFUSED : {});
    send(query("Number.ReadOwn", "q"));
    await host.advance(100);
    expect([client.answers, lost.length]).toEqual([["reply q 0"], 1]);
  });

  test("[L44] a store that does not answer makes it a 503 after 10 s", async () => {
    const { host, line, number, client, send } = await register();
    line.plan = ({ method }) => (method === "commit" ? { answered: new Gate().opened } : {});
    send(command("Number.Set", "a", 1));
    send(query("Number.Read", "q"));
    await host.advance(9_000);
    expect(client.answers).toEqual([]);
    await host.advance(2_000);
    expect(client.answers).toEqual(["error q 503"]);
    expect(number.get()).toBe(1);
  });
});
