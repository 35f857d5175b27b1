/** Transactional capabilities: one commit for all effects, and a repeated request has one effect. */
import { describe, expect, test } from "#test";
import { Space } from "../../src/cells/space.ts";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { dataSchema } from "../../src/loop/message-schema.ts";
import { transactional } from "../../src/loop/transactional.ts";
import { type ErrorData, Failure } from "../../src/message/error-data.ts";
import type { Json } from "../../src/message/json.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { FaultyLine, Gate } from "../store/faulty-store.ts";
import { command, query, setup } from "./loop-setup.ts";

async function counter() {
  const host = simulatedHost(1);
  const line = new FaultyLine(memoryStore({ host }));
  const { store } = line;
  const space = await host.run(() => Space.open({ store, host, name: "test" }));
  const total = space.cell<number>("total");
  let runs = 0;
  const counting = transactional({
    space,
    description: "counts",
    emits: { "Count.Added": true },
    commands: {
      "Count.Add": {
        handle: (data: Json, tx) => {
          runs++;
          const sum = ((tx.get(total) as number | undefined) ?? 0) + (data as number);
          tx.set(total, sum);
          tx.emit("Count.Added", data);
          if (data === 13) throw new Failure(422, "unlucky");
          return sum;
        },
      },
    },
    queries: { "Count.Total": { handle: async () => (await total.pull()) ?? 0 } },
  });
  const made = await setup({ counting }, { host });
  let latest: Json | undefined;
  const ask = async (sent: ReturnType<typeof command>) => {
    const one = made.client();
    made.loop.receive(sent, one);
    // Longer than a command is tried.
    await host.advance(12_000);
    latest = one.received[0]?.data;
    return one.answers[0];
  };
  const rows = () => host.run(() => store.query({ limit: 100 }));
  return { ask, rows, line, runs: () => runs, latest: () => latest };
}

describe("transactional capabilities", () => {
  test("[L32] an emission of a transactional handler must be declared and fit, or the command has no effect", async () => {
    const host = simulatedHost(1);
    const store = memoryStore({ host });
    const space = await host.run(() => Space.open({ store, host, name: "test" }));
    const touched = space.cell<boolean>("touched");
    const telling = transactional({
      space,
      description: "tells",
      emits: { "Tell.Known": dataSchema((data) => (data === 1 ? undefined : "must be 1"), {}) },
      commands: {
        "Tell.It": {
          handle: (type, tx) => {
            tx.set(touched, true);
            tx.emit(type as string, 2);
            return "told";
          },
        },
      },
    });
    const { loop, client } = await setup({ telling }, { host });
    const one = client();
    loop.receive(command("Tell.It", "a", "Tell.Unknown"), one);
    loop.receive(command("Tell.It", "b", "Tell.Known"), one);
    await host.advance(1_000);
    expect(one.received.map(({ data }) => (data as unknown as ErrorData).message)).toEqual([
      'telling does not emit this: event Tell.Unknown is not declared; add it: emits: { "Tell.Unknown": true }',
      "telling does not emit this: data: must be 1",
    ]);
    expect(touched.get()).toBeUndefined();
  });

  test("[L32] the answer, the writes, the event and the journal row are one commit", async () => {
    const { ask, rows } = await counter();
    expect(await ask(command("Count.Add", "a", 5))).toBe("reply a 5");
    expect(await ask(command("Count.Add", "b", 6))).toBe("reply b 11");
    expect(await ask(query("Count.Total", "q"))).toBe("reply q 11");
    expect((await rows()).map(({ message, status }) => `${message?.type} ${status}`).sort()).toEqual([
      "Count.Add done",
      "Count.Add done",
      "Count.Added pending",
      "Count.Added pending",
    ]);
  });

  test("[L32] after an unknown outcome the answer says so, and the repeated request is answered by its receipt", async () => {
    const { ask, latest, line } = await counter();
    line.plan = ({ method }) => (method === "commit" ? { loseAnswer: true } : {});
    expect(await ask(command("Count.Add", "a", 5))).toBe("error a 503");
    expect(latest()).toMatchObject({
      message: expect.stringContaining("not known whether it was committed; repeat it"),
    });
    line.plan = () => ({});
    expect(await ask(command("Count.Add", "a", 5))).toBe("reply a 5");
    expect(await ask(query("Count.Total", "q"))).toBe("reply q 5");
  });

  test("[L32] a handler that wrote into an unloaded document runs again when it is loaded", async () => {
    const host = simulatedHost(1);
    const store = memoryStore({ host });
    const before = await host.run(() => Space.open({ store, host, name: "test" }));
    before.cell("stock").set({ tea: 1 });
    await host.advance(10);
    const space = await host.run(() => Space.open({ store, host, name: "test" }));
    const stock = space.cell<Record<string, number>>("stock");
    const keeping = transactional({
      space,
      description: "keeps stock",
      commands: { "Stock.Put": { handle: (data: Json, tx) => tx.set(stock.key("tea"), data as number) } },
    });
    const { loop, client } = await setup({ keeping }, { host });
    const one = client();
    loop.receive(command("Stock.Put", "a", 7), one);
    await host.advance(1_000);
    expect([one.answers, stock.get()]).toEqual([["reply a null"], { tea: 7 }]);
  });

  test("[L32] a failed handler has no effect, and its command may be tried again", async () => {
    const { ask, rows } = await counter();
    expect(await ask(command("Count.Add", "a", 13))).toBe("error a 422");
    expect(await ask(query("Count.Total", "q"))).toBe("reply q 0");
    expect(await rows()).toEqual([]);
    expect(await ask(command("Count.Add", "a", 1))).toBe("reply a 1");
  });

  test("[L32] a request repeated twice at once after a restart gets the same answer, and another one under its id 409", async () => {
    const host = simulatedHost(1);
    const line = new FaultyLine(memoryStore({ host }));
    const begin = async () => {
      const space = await host.run(() => Space.open({ store: line.store, host, name: "test" }));
      let runs = 0;
      const counting = transactional({
        ...{ space, description: "counts its runs" },
        commands: { "Count.Run": { handle: () => ++runs } },
      });
      return setup({ counting }, { host });
    };
    const first = await begin();
    const one = first.client();
    first.loop.receive(command("Count.Run", "c", "the same"), one);
    await host.advance(100);
    expect(one.answers).toEqual(["reply c 1"]);
    for (const [data, answer] of [["the same", "reply c 1"] as const, ["another", "error c 409"] as const]) {
      const { loop, client } = await begin();
      const [loaded, committed] = [new Gate(), new Gate()];
      const [gone, patient] = [client(), client()];
      // Handled for a requester that left, and, during the look-up of its receipt, for one that asks again.
      line.plan = ({ refs }) => (refs?.some(({ id }) => id === "receipt/c") ? { answered: loaded.opened } : {});
      loop.receive(command("Count.Run", "c", data), gone);
      await host.advance(10);
      loop.disconnect(gone);
      line.plan = ({ method }) => (method === "commit" ? { answered: committed.opened } : {});
      loop.receive(command("Count.Run", "c", data), patient);
      await host.advance(10);
      loaded.open();
      await host.advance(10);
      committed.open();
      line.plan = () => ({});
      await host.advance(100);
      expect([gone.answers, patient.answers]).toEqual([[], [answer]]);
    }
  });

  test("[L32] a repeated request of any sender gets the same answer without another effect", async () => {
    const { ask, rows } = await counter();
    for (let n = 0; n < 3; n++) expect(await ask(command("Count.Add", "a", 5))).toBe("reply a 5");
    expect(await ask(query("Count.Total", "q"))).toBe("reply q 5");
    expect(await rows()).toHaveLength(2);
  });

  for (const [what, answer] of [
    ["null", null],
    ["nothing", undefined],
    ["false", false],
    ["an empty text", ""],
    ["an empty object", {}],
  ] as const) {
    test(`[J3] [L32] a repeated command with the answer ${what} takes effect once`, async () => {
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
            handle: (_, tx) => {
              tx.set(total, (tx.get(total) ?? 0) + 1);
              tx.emit("Count.Added", null);
              return answer as Json;
            },
          },
        },
      });
      const { loop, client } = await setup({ counting }, { host });
      for (let n = 0; n < 3; n++) {
        const one = client();
        loop.receive(command("Count.Add", "a", 1), one);
        await host.advance(1_000);
        expect(one.received.map(({ kind, data }) => [kind, data])).toEqual([["reply", answer ?? null]]);
      }
      expect(total.get()).toBe(1);
      const rows = await host.run(() => store.query({ limit: 100 }));
      expect(rows.map(({ topic }) => topic).sort()).toEqual(["Count.Add", "Count.Added"]);
    });
  }

  test("[N1] [L32] another request under a used id is 409: it is neither done nor given the other's answer", async () => {
    const { ask } = await counter();
    await ask(command("Count.Add", "a", 5));
    expect(await ask(command("Count.Add", "a", 6))).toBe("error a 409");
    expect(await ask(query("Count.Total", "q"))).toBe("reply q 5");
  });
});
