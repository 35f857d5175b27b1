/** Actors: the Worker surface, mailboxes, crashes, and actors that ask actors. */
import { describe, expect, test } from "#test";
import type { ActorListener, CapabilityActor } from "../../src/loop/capability.ts";
import { declared } from "../../src/loop/capability-definition.ts";
import { capability } from "../../src/loop/define-capability.ts";
import { BootError } from "../../src/loop/routing-table.ts";
import { serve } from "../../src/loop/worker-serve.ts";
import type { Message } from "../../src/message/envelope.ts";
import type { Json } from "../../src/message/json.ts";
import { BareActor, bare, command, deferred, message, query, setup } from "./loop-setup.ts";

const posted = (message: Message) => ({ message, request: undefined, parcel: undefined });

describe("the surface", () => {
  test("[L13] an actor with onmessage alone, and one with listeners alone, both work", async () => {
    const simple: CapabilityActor = {
      onmessage: null,
      postMessage(given: Message) {
        const reply = message("reply", given.type, "r", "simple", { causation: given.metadata.id });
        this.onmessage?.({ type: "message", data: reply });
      },
    };
    const listened = new BareActor();
    listened.postMessage = (given) => listened.reply(given, "listened");
    const { loop, client, settle } = await setup({
      simple: bare(() => simple, { takes: [["query", "Simple.Ask"]] }),
      listened: bare(() => listened),
    });
    const one = client();
    loop.receive(query("Simple.Ask", "q1"), one);
    loop.receive(query("Bare.Ask", "q2"), one);
    await settle();
    expect(one.answers).toEqual(['reply q1 "simple"', 'reply q2 "listened"']);
  });

  test("[L13] an actor with both delivers once", async () => {
    const listeners: ActorListener[] = [];
    const both: CapabilityActor = {
      onmessage: null,
      addEventListener: (type, listener) => void (type === "message" && listeners.push(listener)),
      postMessage(given: Message) {
        const data = message("reply", given.type, "r", null, { causation: given.metadata.id });
        this.onmessage?.({ type: "message", data });
        for (const listener of listeners) listener({ type: "message", data });
      },
    };
    const { loop, client, settle, faults } = await setup({ both: bare(() => both) });
    const one = client();
    loop.receive(query("Bare.Ask", "q"), one);
    await settle();
    expect(one.received).toHaveLength(1);
    expect(faults()).toEqual([]);
  });
});

describe("mailboxes", () => {
  test("[L14] a handler begins after postMessage has returned, and two never overlap", async () => {
    const log: string[] = [];
    const gates = new Map<string, ReturnType<typeof deferred<void>>>();
    const slow = capability({
      description: "slow",
      queries: {
        "Slow.Ask": {
          handle: async (data: Json) => {
            log.push(`begin ${data}`);
            const gate = deferred();
            gates.set(String(data), gate);
            await gate.promise;
            log.push(`end ${data}`);
            return data;
          },
        },
      },
    });
    const fast = capability({ description: "fast", queries: { "Fast.Ask": { handle: () => "fast" } } });
    const { loop, client, settle } = await setup({ slow, fast });
    const one = client();
    const actor = loop.actors.get("slow");
    actor?.post(posted(query("Slow.Ask", "q0", 0)));
    expect(log).toEqual([]);
    for (const n of [1, 2]) loop.receive(query("Slow.Ask", `q${n}`, n), one);
    loop.receive(query("Fast.Ask", "f"), one);
    await settle();
    expect(one.answers).toEqual(['reply f "fast"']);
    for (const n of [0, 1, 2]) {
      gates.get(String(n))?.resolve();
      await settle();
    }
    expect(log).toEqual(["begin 0", "end 0", "begin 1", "end 1", "begin 2", "end 2"]);
    expect(one.answers).toEqual(['reply f "fast"', "reply q1 1", "reply q2 2"]);
  });

  test("[L5] [L14] a long mailbox is worked off in bursts: tasks get in between, and the order holds", async () => {
    const handled: number[] = [];
    const gate = deferred();
    const burst = capability({
      description: "bursts",
      queries: {
        "Burst.Ask": {
          handle: (data: Json) => {
            handled.push(data as number);
            return data === 0 ? gate.promise.then(() => null) : null;
          },
        },
      },
    });
    const { loop, host, settle } = await setup({ burst });
    const actor = loop.actors.get("burst");
    for (let n = 0; n < 2_000; n++) actor?.post(posted(query("Burst.Ask", `q${n}`, n)));
    await settle();
    expect(handled).toEqual([0]);
    gate.resolve();
    let between = 0;
    host.task(() => {
      between = handled.length;
    });
    await settle();
    expect(between).toBeLessThan(2_000);
    expect(handled).toEqual(Array.from({ length: 2_000 }, (_, n) => n));
  });

  test("[L15] a full mailbox answers 503 and is observed; it does not grow", async () => {
    const gate = deferred();
    const stuck = capability({
      description: "stuck",
      queries: { "Stuck.Ask": { handle: () => gate.promise.then(() => 1) } },
    });
    const { loop, client, settle, faults } = await setup({ stuck }, { mailboxMax: 3 });
    const one = client();
    for (let n = 0; n < 5; n++) loop.receive(query("Stuck.Ask", `q${n}`), one);
    await settle();
    expect(one.answers).toEqual(["error q3 503", "error q4 503"]);
    expect(loop.liveness).toMatchObject({ mailboxes: 3, pendingRequests: 3 });
    expect(faults()).toEqual(["Sys.Overload", "Sys.Overload"]);
    gate.resolve();
    await settle();
    expect(one.answers.slice(2)).toEqual(["reply q0 1", "reply q1 1", "reply q2 1"]);
  });

  test("[L12] a handler that throws, sync or async, is a 500 and a fault; the next message is handled", async () => {
    const throwing = capability({
      description: "throws",
      queries: {
        "Throw.Ask": {
          handle: (data: Json) => {
            if (data === "sync") throw new Error("sync");
            return data === "async" ? Promise.reject(new Error("async")) : data;
          },
        },
      },
    });
    const { loop, client, settle, observed, faults } = await setup({ throwing });
    const one = client();
    for (const data of ["sync", "async", "fine"]) loop.receive(query("Throw.Ask", data, data), one);
    await settle();
    expect(one.answers).toEqual(["error sync 500", "error async 500", 'reply fine "fine"']);
    expect(faults()).toEqual(["Sys.ActorFault", "Sys.ActorFault"]);
    expect(observed.filter(({ type }) => type === "Sys.ActorFault")).toMatchObject([
      { data: { capability: "throwing", reason: "sync" } },
      { data: { capability: "throwing", reason: "async" } },
    ]);
  });

  test("[L12] a message of a declared type without a handler fails: a request with 500, an event with its delivery", async () => {
    const declares = declared({
      description: "declares more than it handles",
      commands: { "Part.Do": { handle: () => 1 } },
      queries: { "Part.Ask": { handle: () => 1 } },
      on: { "Part.Told": () => 1 },
    });
    const { spawn } = capability({ description: "handles nothing" });
    const { loop, client, settle, observed } = await setup({ part: { ...declares, spawn } });
    const one = client();
    loop.receive(command("Part.Do", "c", null), one);
    loop.receive(query("Part.Ask", "q", null), one);
    loop.receive(message("event", "Part.Told", "e", null), one);
    await settle();
    expect(one.answers).toEqual(["error c 500", "error q 500"]);
    const reasons = observed.filter(({ type }) => type === "Sys.ActorFault").map(({ data }) => data);
    expect(reasons).toMatchObject(
      ["command Part.Do", "query Part.Ask", "event Part.Told"].map((what) => ({
        reason: `${what} is declared, but the actor has no handler for it`,
      })),
    );
  });

  test("[L12] a definition with a handler that is not a function is refused at once", () => {
    const wrong = { "Part.Do": () => 1 };
    const define = () =>
      capability({
        description: "x",
        commands: wrong as never,
        queries: { "Part.Ask": {} } as never,
        on: { "Part.Told": 5 } as never,
      });
    expect(define).toThrow(BootError);
    expect(define).toThrow(
      /command Part\.Do has no handler.*query Part\.Ask has no handler.*event Part\.Told has no handler/s,
    );
    expect(() =>
      serve({ commands: wrong } as never, { postMessage: () => undefined, onMessage: () => undefined }),
    ).toThrow(BootError);
  });

  test("[L18] an error answer to a request that is not awaited has no further effect", async () => {
    const forgetful = capability({
      description: "does not wait",
      sends: { "Nobody.Home": "command" },
      commands: {
        "Forget.It": {
          handle: (_data, { command: send }) => {
            void send("Nobody.Home", null);
            return "done";
          },
        },
      },
    });
    const { loop, client, settle, faults } = await setup({ forgetful });
    const one = client();
    for (const id of ["q1", "q2"]) loop.receive(command("Forget.It", id), one);
    await settle();
    expect(one.answers).toEqual(['reply q1 "done"', 'reply q2 "done"']);
    expect(faults()).toEqual(["Sys.RoutingError", "Sys.RoutingError"]);
  });

  test("[L11] an answer that is not JSON is a 500, not silence", async () => {
    const odd = capability({
      description: "odd",
      queries: { "Odd.Ask": { handle: () => ({ when: new Date(0) }) as never } },
    });
    const { loop, client, settle } = await setup({ odd });
    const one = client();
    loop.receive(query("Odd.Ask", "q"), one);
    await settle();
    expect(one.answers).toEqual(["error q 500"]);
  });
});

describe("crashes", () => {
  function crashing() {
    const spawned: BareActor[] = [];
    const spawn = () => {
      const actor = new BareActor();
      spawned.push(actor);
      return actor;
    };
    return { spawned, spawn, last: () => spawned.at(-1) as BareActor };
  }

  test("[L17] requests of a crashed actor are answered with 500; later messages wait for its restart", async () => {
    const { spawned, spawn, last } = crashing();
    const { loop, client, host, settle, faults } = await setup({ a: bare(spawn) });
    const one = client();
    loop.receive(query("Bare.Ask", "lost"), one);
    await settle();
    last().dispatch({ type: "error", message: "boom" });
    loop.receive(query("Bare.Ask", "waits"), one);
    await settle();
    expect(one.answers).toEqual(["error lost 500"]);
    expect(spawned).toHaveLength(1);
    expect(spawned[0]?.terminated).toBe(1);
    await host.advance(99);
    expect(spawned).toHaveLength(1);
    await host.advance(1);
    expect(spawned).toHaveLength(2);
    expect(last().posted.map(({ metadata }) => metadata.id)).toEqual(["waits"]);
    for (const given of last().posted) last().reply(given, "back");
    await settle();
    expect(one.answers).toEqual(["error lost 500", 'reply waits "back"']);
    expect(faults()).toEqual(["Sys.ActorFault", "Sys.ActorRestarted"]);
  });

  test("[L17] messages of a dead actor have no receiver", async () => {
    const { spawn, last } = crashing();
    const { loop, client, host, settle } = await setup({ a: bare(spawn) });
    const one = client();
    const dead = last();
    dead.dispatch({ type: "messageerror" });
    await host.advance(100);
    loop.receive(query("Bare.Ask", "q"), one);
    await settle();
    dead.say(message("reply", "Bare.Ask", "r", "ghost", { causation: "q" }));
    dead.dispatch({ type: "error", message: "again" });
    await settle();
    expect(one.received).toEqual([]);
    expect(loop.actors.get("a")?.state).toBe("running");
  });

  test("[L17] the fourth crash within a minute leaves it unhealthy, 503, until healed; older crashes are forgotten", async () => {
    const { spawned, spawn, last } = crashing();
    const { loop, client, host, settle, faults } = await setup({ a: bare(spawn) });
    const one = client();
    const crash = async () => {
      last().dispatch({ type: "error", message: "boom" });
      await host.advance(1_000);
    };
    for (let n = 0; n < 3; n++) await crash();
    await host.advance(60_000);
    for (let n = 0; n < 3; n++) await crash();
    expect(loop.actors.get("a")?.state).toBe("running");
    await crash();
    expect(loop.actors.get("a")?.state).toBe("unhealthy");
    expect(spawned).toHaveLength(7);
    loop.receive(query("Bare.Ask", "q1"), one);
    await settle();
    expect(one.answers).toEqual(["error q1 503"]);
    expect(faults()).toContain("Sys.ActorUnhealthy");
    loop.heal("a");
    loop.receive(query("Bare.Ask", "q2"), one);
    await settle();
    expect(last().posted.map(({ metadata }) => metadata.id)).toEqual(["q2"]);
  });

  test("[L17] [L28] the loop drains across a restart, when the waiting messages are answered", async () => {
    const { spawn, last } = crashing();
    const { loop, client, host, settle } = await setup({ a: bare(spawn) });
    const one = client();
    last().dispatch({ type: "error", message: "boom" });
    loop.receive(query("Bare.Ask", "q"), one);
    let drained = false;
    const draining = loop.drained().then(() => {
      drained = true;
    });
    await host.advance(150);
    expect(drained).toBe(false);
    for (const given of last().posted) last().reply(given);
    await settle();
    await draining;
    expect(drained).toBe(true);
  });
});

describe("actors that ask", () => {
  const asking = capability({
    description: "asks",
    sends: { "Inner.Ask": "query", "Nobody.Home": "query" },
    queries: { "Outer.Ask": { handle: (data: Json, context) => context.query(data as string, null) } },
  });

  test("[L18] the answer goes past the mailbox, even if it is full, and failures are handed on", async () => {
    const gate = deferred();
    const inner = capability({
      description: "inner",
      queries: { "Inner.Ask": { handle: () => gate.promise.then(() => "inner") } },
    });
    const { loop, client, settle } = await setup({ asking, inner }, { mailboxMax: 2 });
    const one = client();
    loop.receive(query("Outer.Ask", "q1", "Inner.Ask"), one);
    loop.receive(query("Outer.Ask", "q2", "Nobody.Home"), one);
    await settle();
    expect(loop.actors.get("asking")?.mailboxLength).toBe(2);
    gate.resolve();
    await settle();
    expect(one.answers).toEqual(['reply q1 "inner"', "error q2 404"]);
    expect(loop.liveness.quiescent).toBe(true);
  });

  test("[L18] an actor that was restarted does not get the answers of the one before; they are orphans", async () => {
    const first = new BareActor();
    const inner = new BareActor();
    const { loop, host, settle, faults } = await setup({
      outer: {
        ...bare(() => first, { takes: [] }),
        outbound: asking.outbound,
      },
      inner: bare(() => inner, { takes: [["query", "Inner.Ask"]] }),
    });
    first.say(message("query", "Inner.Ask", "ask", null, { causation: "x" }));
    await settle();
    first.dispatch({ type: "error", message: "boom" });
    for (const given of inner.posted) inner.reply(given);
    await settle();
    expect(faults()).toEqual(["Sys.ActorFault", "Sys.OrphanOutcome"]);
    await host.advance(1_000);
    expect(loop.pending.size).toBe(0);
  });
});
