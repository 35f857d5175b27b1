/** Requests that wait: duplicates, disconnects, timeouts, ownership. */
import fc from "fast-check";
import { describe, expect, test } from "#test";
import { capability } from "../../src/loop/define-capability.ts";
import { AnswerLater, type CapabilityContext } from "../../src/loop/mailbox-actor.ts";
import type { PendingRequest } from "../../src/loop/pending-request.ts";
import { PendingTable } from "../../src/loop/pending-table.ts";
import { timerCapability } from "../../src/loop/timer.ts";
import type { Json } from "../../src/message/json.ts";
import { BareActor, bare, Client, command, deferred, query, setup } from "./loop-setup.ts";

async function waiting(options = {}) {
  const actor = new BareActor();
  const made = await setup({ a: bare(() => actor), timer: timerCapability() }, options);
  const answerAll = () => {
    for (const given of actor.posted.splice(0)) actor.reply(given, "late");
  };
  return { ...made, actor, answerAll };
}

describe("duplicates", () => {
  test("[L20] a repeated pending id is 409 to its sender, and the original is answered once", async () => {
    const { loop, client, settle, answerAll, actor } = await waiting();
    const [one, two] = [client(), client()];
    loop.receive(query("Bare.Ask", "q"), one);
    loop.receive(query("Bare.Ask", "q"), one);
    loop.receive(query("Bare.Ask", "q"), two);
    await settle();
    expect([one.answers, two.answers]).toEqual([["error q 409"], ["error q 409"]]);
    expect(actor.posted).toHaveLength(1);
    answerAll();
    await settle();
    expect([one.answers, two.answers]).toEqual([["error q 409", 'reply q "late"'], ["error q 409"]]);
  });

  test("[L20] an id may be used again once it was answered", async () => {
    const { loop, client, settle, answerAll } = await waiting();
    const one = client();
    for (let n = 0; n < 2; n++) {
      loop.receive(query("Bare.Ask", "q"), one);
      await settle();
      answerAll();
      await settle();
    }
    expect(one.answers).toEqual(['reply q "late"', 'reply q "late"']);
  });
});

describe("an id that is used again after its requester left", () => {
  test("[L81] the answer to the first request does not reach the second requester", async () => {
    const gates = new Map([deferred(), deferred()].map((gate, n) => [n, gate]));
    const slow = capability({
      description: "answers later",
      commands: {
        "Slow.Do": { handle: (n) => new AnswerLater(gates.get(n as number)!.promise.then(() => n)) as never },
      },
    });
    const { loop, client, settle, faults } = await setup({ slow });
    const [gone, other] = [client(), client()];
    loop.receive(command("Slow.Do", "one", 0), gone);
    await settle();
    loop.disconnect(gone);
    loop.receive(command("Slow.Do", "one", 1), other);
    await settle();
    gates.get(0)?.resolve();
    await settle();
    expect([other.answers, faults()]).toEqual([[], ["Sys.OrphanOutcome"]]);
    gates.get(1)?.resolve();
    await settle();
    expect([gone.answers, other.answers]).toEqual([[], ["reply one 1"]]);
  });
});

const idOf = ({ id }: PendingRequest) => id;

describe("the table", () => {
  test("[L10] thousands of requests in any order are found by id, and no others", async () => {
    const { loop } = await setup({ a: bare(() => new BareActor()) });
    const actor = loop.actors.get("a")!;
    const connections = ["one", "two", "three"].map((id) => new Client(id));
    const numbers = fc.array(fc.nat(), { minLength: 5_000, maxLength: 5_000 });
    fc.assert(
      fc.property(numbers, (chosen) => {
        const table = new PendingTable();
        const expected = new Map<string, Client>();
        for (const [n, choice] of chosen.entries()) {
          const connection = connections[choice % 3]!;
          table.insert(query("Bare.Ask", `q${n}`), { kind: "adapter", connection }, actor);
          expected.set(`q${n}`, connection);
          if (choice % 500 === 0) {
            const waiting = [...expected].filter(([, owner]) => owner === connection).map(([id]) => id);
            expect(table.waitingFor(connection).map(idOf).sort()).toEqual(waiting.sort());
            expect(table.disconnect(connection)).toBe(waiting.length);
            for (const id of waiting) expected.delete(id);
            table.checkInvariants();
          }
          const taken = [...expected.keys()][(choice >> 3) % 40];
          if (taken !== undefined && expected.size > 10) {
            expect(table.take(taken)?.metadata.id).toBe(taken);
            expected.delete(taken);
          }
        }
        expect([...table].map(idOf).sort()).toEqual([...expected.keys()].sort());
        table.checkInvariants();
      }),
      { numRuns: 2 },
    );
  });
});

describe("requests that are unlisted until a look-up", () => {
  async function actors() {
    const { loop } = await setup({
      a: bare(() => new BareActor()),
      b: bare(() => new BareActor(), { takes: [["query", "Other.Ask"]] }),
    });
    return { a: loop.actors.get("a")!, b: loop.actors.get("b")! };
  }
  const caller = { kind: "caller" as const, answer: () => undefined };

  test("[L10] [L20] [L21] unlisted requests are found by id, by their answers and by their connections, in any order", async () => {
    const { a } = await actors();
    const connections = ["one", "two"].map((id) => new Client(id));
    const step = fc.record({ id: fc.nat(400), at: fc.nat(), what: fc.nat(99) });
    fc.assert(
      fc.property(fc.array(step, { minLength: 300, maxLength: 300 }), fc.boolean(), (steps, isInOrder) => {
        const table = new PendingTable();
        const expected = new Map<string, PendingRequest>();
        for (const [n, { id: number, at, what }] of steps.entries()) {
          const id = `q${isInOrder ? n : number}`;
          if (what % 10 === 0) {
            const made = `made-${n}`;
            expected.set(made, table.insertNew(query("Bare.Ask", made), caller, a));
          } else {
            // As in the router: a pending id is not inserted again.
            expect(table.get(id)).toBe(expected.get(id));
            const connection = connections[at % 2]!;
            if (!expected.has(id))
              expected.set(id, table.insert(query("Bare.Ask", id), { kind: "adapter", connection }, a));
          }
          const [chosen, entry] = [...expected][at % expected.size]!;
          if (what % 20 === 3) expect(table.get(chosen)).toBe(entry);
          if (what % 20 === 4) expect(table.has(id)).toBe(true);
          if (what % 3 === 0) {
            expect(table.take(chosen, a, what % 2 === 0 ? entry : undefined)).toBe(entry);
            expect(table.take(chosen, a, entry)).toBeUndefined();
            expected.delete(chosen);
          }
          if (what === 99) {
            const gone = connections[at % 2]!;
            const waiting = [...expected].filter(
              ([, { origin }]) => origin.kind === "adapter" && origin.connection === gone,
            );
            expect(table.disconnect(gone)).toBe(waiting.length);
            for (const [id] of waiting) expected.delete(id);
          }
          expect(table.size).toBe(expected.size);
          table.checkInvariants();
        }
        expect(table.of(a).sort()).toEqual([...expected.keys()].sort());
      }),
      { numRuns: 60 },
    );
  });

  test("[L10] an unlisted request is not taken by another actor or under another id", async () => {
    const { a, b } = await actors();
    const table = new PendingTable();
    const [one, two] = ["one", "two"].map((id) => table.insertNew(query("Bare.Ask", id), caller, a));
    expect(table.take("one", b, one)).toBeUndefined();
    expect(table.take("two", a, one)).toBe(two);
    expect(table.take("one", a, one)).toBe(one);
    expect(table.size).toBe(0);
  });

  test("[L22] an answered request has no timeout", async () => {
    const echo = capability({ description: "echo", queries: { "Echo.Say": { handle: (data: Json) => data } } });
    const { loop, client, host, settle } = await setup({ echo }, { requestTimeoutMs: 1_000 });
    const one = client();
    for (const id of ["q1", "q2", "q3"]) loop.receive(query("Echo.Say", id), one);
    await settle();
    expect([one.answers.length, host.pendingTimers, loop.pending.size]).toEqual([3, 0, 0]);
  });
});

describe("disconnects", () => {
  test("[L21] pending requests of a closed connection are removed with their timeouts; later outcomes are orphans", async () => {
    const { loop, client, host, settle, answerAll, faults } = await waiting({ requestTimeoutMs: 1_000 });
    const [gone, stays] = [client(), client()];
    for (const id of ["q1", "q2", "q3"]) loop.receive(query("Bare.Ask", id), gone);
    loop.receive(query("Bare.Ask", "q4"), stays);
    await settle();
    expect(host.pendingTimers).toBe(4);
    loop.disconnect(gone);
    expect(loop.pending.size).toBe(1);
    expect(host.pendingTimers).toBe(1);
    answerAll();
    await settle();
    expect(gone.received).toEqual([]);
    expect(stays.answers).toEqual(['reply q4 "late"']);
    expect(faults()).toEqual(["Sys.OrphanOutcome", "Sys.OrphanOutcome", "Sys.OrphanOutcome"]);
    expect(host.pendingTimers).toBe(0);
  });

  test("[L21] a request in a lane is handled although its connection has closed, without a receiver of the answer", async () => {
    const { loop, client, host, actor, settle, answerAll, faults } = await waiting({ requestTimeoutMs: 1_000 });
    const [gone, stays] = [client(), client()];
    loop.receive(query("Bare.Ask", "q1"), gone);
    loop.receive(query("Bare.Ask", "q2"), stays);
    loop.disconnect(gone);
    await settle();
    expect(actor.posted).toHaveLength(2);
    expect([loop.pending.size, host.pendingTimers]).toEqual([1, 1]);
    loop.receive(query("Bare.Ask", "q3"), stays);
    answerAll();
    await settle();
    expect([gone.received.length, stays.answers.length]).toEqual([0, 1]);
    expect(faults()).toEqual(["Sys.OrphanOutcome"]);
  });
});

describe("timeouts", () => {
  test("[L22] without a timeout a request stays pending and is no fault", async () => {
    const { loop, client, host, faults } = await waiting();
    loop.receive(query("Bare.Ask", "q"), client());
    await host.advance(86_400_000);
    expect(loop.pending.size).toBe(1);
    expect(faults()).toEqual([]);
  });

  test("[L22] with one it is 504 in time: type, causation and correlation of the request; a late reply is an orphan", async () => {
    const { loop, client, host, settle, answerAll, faults } = await waiting({ requestTimeoutMs: 500 });
    const one = client();
    loop.receive({ ...query("Bare.Ask", "q"), metadata: { id: "q", timestamp: 1, correlation: "k" } }, one);
    await host.advance(499);
    expect(one.received).toEqual([]);
    await host.advance(1);
    expect(one.received).toMatchObject([
      {
        kind: "error",
        type: "Bare.Ask",
        data: { code: 504, message: "Request timed out" },
        metadata: { causation: "q", correlation: "k" },
      },
    ]);
    answerAll();
    await settle();
    expect(one.received).toHaveLength(1);
    expect(faults()).toEqual(["Sys.OrphanOutcome"]);
  });

  test("[L18] [L22] a timeout holds for requests of actors as well, and the actor continues", async () => {
    const silent = new BareActor();
    const heard: string[] = [];
    const asker = capability({
      description: "asks, because of an event, so that no client waits",
      sends: { "Bare.Ask": "query" },
      on: {
        "Door.Opened": async (_data: unknown, context: CapabilityContext) => {
          const end = (what: unknown) => void heard.push(`${context.host.monotonic()} ${what}`);
          await context.query("Bare.Ask", null).then(end, (failure: { code: number }) => end(failure.code));
        },
      },
    });
    const { loop, client, host, faults } = await setup(
      { silent: bare(() => silent), asker },
      { requestTimeoutMs: 500 },
    );
    const opened = { kind: "event", type: "Door.Opened", data: null } as const;
    for (const id of ["e1", "e2"]) loop.receive({ ...opened, metadata: { id, timestamp: 1 } }, client());
    await host.advance(499);
    expect([silent.posted.length, heard]).toEqual([1, []]);
    await host.advance(1);
    await host.advance(500);
    expect(heard).toEqual(["500 504", "1000 504"]);
    expect(loop.pending.size).toBe(0);
    expect(faults()).toEqual([]);
  });

  test("[L22] Sys.RequestTimeout ends a request of the same connection, and its sender is told", async () => {
    const { loop, client, settle } = await waiting();
    const one = client();
    loop.receive(query("Bare.Ask", "q"), one);
    loop.receive(command("Sys.RequestTimeout", "t1", { requestId: "q" }), one);
    loop.receive(command("Sys.RequestTimeout", "t2", { requestId: "unknown" }), one);
    loop.receive(command("Sys.RequestTimeout", "t3", { requestId: 5 }), one);
    await settle();
    expect(one.answers).toEqual([
      "error q 504",
      'reply t1 {"expired":true}',
      'reply t2 {"expired":false}',
      "error t3 422",
    ]);
  });

  test("[N1] [L23] a client cannot time out another connection's request", async () => {
    const { loop, client, settle, answerAll } = await waiting();
    const [victim, other] = [client(), client()];
    loop.receive(query("Bare.Ask", "q"), victim);
    loop.receive(command("Sys.RequestTimeout", "t", { requestId: "q" }), other);
    await settle();
    expect(other.answers).toEqual(['reply t {"expired":false}']);
    answerAll();
    await settle();
    expect(victim.answers).toEqual(['reply q "late"']);
  });

  const timeoutOf = (requestId: string): Json => ({
    delayMs: 100,
    message: { kind: "command", type: "Sys.RequestTimeout", data: { requestId } },
  });
  const codes = (client: Client) => client.answers.map((answer) => answer.replace(/\{.*/, "{}"));

  test("[L22] [L23] a client may set a timer for a timeout of its own request", async () => {
    const { loop, client, host } = await waiting();
    const one = client();
    loop.receive(query("Bare.Ask", "q"), one);
    loop.receive(command("Timer.Set", "t", timeoutOf("q")), one);
    await host.advance(100);
    expect(codes(one)).toEqual(["reply t {}", "error q 504"]);
  });

  test("[N1] [L23] a timer gives no power over another connection's request, not even after its setter has gone", async () => {
    const { loop, client, host, settle, answerAll } = await waiting();
    const [victim, other, third] = [client(), client(), client()];
    loop.receive(query("Bare.Ask", "q"), victim);
    loop.receive(command("Timer.Set", "t1", timeoutOf("q")), other);
    loop.receive(command("Timer.Set", "t2", timeoutOf("q")), third);
    await settle();
    loop.disconnect(third);
    await host.advance(200);
    expect(victim.received).toEqual([]);
    answerAll();
    await settle();
    expect(victim.answers).toEqual(['reply q "late"']);
  });
});

describe("timers that are set by timers", () => {
  test("[N1] [L23] a timer that is set by a timer has no authority over requests", async () => {
    const { loop, client, host, settle, answerAll } = await waiting();
    const [victim, other] = [client(), client()];
    loop.receive(query("Bare.Ask", "q"), victim);
    const timeout = { kind: "command", type: "Sys.RequestTimeout", data: { requestId: "q" } };
    const inner = { kind: "command", type: "Timer.Set", data: { delayMs: 5, message: timeout } };
    loop.receive(command("Timer.Set", "t", { delayMs: 5, message: inner }), other);
    await host.advance(1_000);
    expect(victim.received).toEqual([]);
    answerAll();
    await settle();
    expect(victim.answers).toEqual(['reply q "late"']);
  });

  test("[L18] [L22] a request of a timer without an answer ends with the request timeout", async () => {
    const { loop, client, host } = await waiting({ requestTimeoutMs: 1_000 });
    const ask = { kind: "query", type: "Bare.Ask", data: null };
    loop.receive(command("Timer.Set", "t", { delayMs: 5, message: ask }), client());
    await host.advance(500);
    expect(loop.pending.size).toBe(1);
    await host.advance(1_000);
    expect([loop.pending.size, loop.liveness.timers]).toEqual([0, 0]);
  });
});

describe("many connections", () => {
  test("[N1] [L24] a thousand requests of two connections, answered in random order, reach their own connection", async () => {
    const workers = Object.fromEntries(Array.from({ length: 8 }, (_, n) => [`w${n}`, slow(`W${n}.Ask`)]));
    const { loop, client, host } = await setup(workers, {}, 42);
    const clients = [client("a"), client("b")];
    for (let n = 0; n < 1_000; n++) {
      const one = clients[n % 2] as Client;
      loop.receive(query(`W${n % 8}.Ask`, `q${n}`, one.id), one);
      if (n % 50 === 0) await host.advance(Math.floor(host.random() * 30));
    }
    await host.runUntilIdle();
    for (const one of clients) {
      expect(one.received).toHaveLength(500);
      expect(new Set(one.received.map(({ data }) => data))).toEqual(new Set([one.id]));
      expect(new Set(one.received.map(({ metadata }) => metadata.causation)).size).toBe(500);
    }
    expect(loop.pending.size).toBe(0);
  });
});

function slow(type: string) {
  return capability({
    description: "answers after a random time",
    queries: {
      [type]: {
        handle: (data: Json, { host }: CapabilityContext) =>
          new Promise<Json>((resolve) => {
            host.timer(Math.floor(host.random() * 20), () => resolve(data));
          }),
      },
    },
  });
}
