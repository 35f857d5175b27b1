/**
 * Actors that have come to wait for each other by requests that did not cause each other: told of, and ended by a
 * bound.
 */
import { describe, expect, test } from "#test";
import { CIRCLE_LOOK_MS, CIRCLE_WAIT_MS } from "../../src/limits.ts";
import type { Capability } from "../../src/loop/capability.ts";
import { capability } from "../../src/loop/define-capability.ts";
import { AnswerLater, type CapabilityContext } from "../../src/loop/mailbox-actor.ts";
import type { ErrorData } from "../../src/message/error-data.ts";
import type { Json, JsonObject } from "../../src/message/json.ts";
import { deferred, query, type Setup, setup } from "./loop-setup.ts";

type Ask = CapabilityContext["query"];

/** Answers `Name.Say` with its name, and `Name.Do` as it is told to. */
function actor(name: string, work: (ask: Ask) => Json | Promise<Json>): Capability {
  const sends = Object.fromEntries(["A.Say", "B.Say", "C.Say", "D.Say"].map((type) => [type, "query" as const]));
  const say = () => `${name} said`;
  const act = (_data: Json, context: CapabilityContext) => work(context.query);
  return capability({
    description: name,
    sends,
    queries: { [`${name}.Say`]: { handle: say }, [`${name}.Do`]: { handle: act } },
  });
}

/** Transactional handlers return it: the actor continues with the next message. */
function answerLater(answer: Promise<Json>): Json {
  return new AnswerLater(answer) as never;
}

/** Has all of them begin at once, so that each has asked before it is asked. */
async function begin({ loop, client, settle }: Setup, ...names: string[]) {
  const one = client();
  for (const name of names) loop.receive(query(`${name}.Do`, name.toLowerCase()), one);
  await settle();
  return one;
}

function circlesTold({ observed }: Setup): (Json | undefined)[] {
  return observed.filter(({ type }) => type === "Sys.WaitingCircle").map(({ data }) => (data as JsonObject)["actors"]);
}

/** After so long every circle has been given up that there was from the start. */
const LONG = CIRCLE_WAIT_MS + 5 * CIRCLE_LOOK_MS;

describe("requests that cross", () => {
  test("[L36] crossed requests are observed once, and the last one is given up with the circle in its error; the others continue", async () => {
    const all = await setup({ a: actor("A", (ask) => ask("B.Say", null)), b: actor("B", (ask) => ask("A.Say", null)) });
    const one = await begin(all, "A", "B");
    await all.host.advance(CIRCLE_WAIT_MS);
    expect(one.answers).toEqual([]);
    expect(circlesTold(all)).toEqual([["b", "a", "b"]]);
    await all.host.advance(LONG - CIRCLE_WAIT_MS);
    expect(one.answers.sort()).toEqual(['reply a "B said"', "error b 504"].sort());
    const [text] = one.received
      .filter(({ kind }) => kind === "error")
      .map(({ data }) => (data as never as ErrorData).message);
    expect(text).toContain("b waits for a waits for b");
    expect(circlesTold(all)).toHaveLength(1);
    expect(all.loop.liveness.quiescent).toBe(true);
    await all.host.runUntilIdle();
  });

  test("[L36] crossed requests of three actors are given up, and requesters outside of the circle are answered too", async () => {
    const all = await setup({
      a: actor("A", (ask) => ask("B.Say", null)),
      b: actor("B", (ask) => ask("C.Say", null)),
      c: actor("C", (ask) => ask("A.Say", null)),
      d: actor("D", (ask) => ask("A.Say", null)),
    });
    const one = await begin(all, "A", "B", "C", "D");
    await all.host.advance(LONG);
    const inOrder = ['reply a "B said"', 'reply b "C said"', 'reply d "A said"', "error c 504"];
    expect(one.answers.sort()).toEqual(inOrder.sort());
    expect(circlesTold(all)).toEqual([["c", "a", "b", "c"]]);
  });

  test("[L36] through an actor that only hands requests on, likewise", async () => {
    const relay = capability({
      description: "hands on",
      sends: { "B.Say": "query" },
      queries: { "C.Say": { handle: (_data, { query: ask }) => ask("B.Say", null) } },
    });
    const b = actor("B", (ask) => ask("A.Say", null));
    const all = await setup({ a: actor("A", (ask) => ask("C.Say", null)), b, relay });
    const one = await begin(all, "A", "B");
    await all.host.advance(LONG);
    // The forwarded request was asked last; its error comes back the same way.
    expect(one.answers.sort()).toEqual(["error a 504", 'reply b "A said"']);
    expect(circlesTold(all)).toEqual([["relay", "b", "a", "relay"]]);
    expect(all.loop.liveness.quiescent).toBe(true);
  });

  test("[L36] a handler that waits for all of several is stuck when only the circle is left", async () => {
    const gate = deferred();
    const both = async (ask: Ask) => (await Promise.all([ask("B.Say", null), ask("C.Do", null)])).join();
    const waits = async () => {
      await gate.promise;
      return "late";
    };
    const a = capability({
      description: "asks two",
      sends: { "B.Say": "query", "C.Do": "query" },
      queries: { "A.Do": { handle: (_data, { query: ask }) => both(ask) }, "A.Say": { handle: () => "A said" } },
    });
    const all = await setup({ a, b: actor("B", (ask) => ask("A.Say", null)), c: actor("C", waits) });
    const one = await begin(all, "A", "B");
    await all.host.advance(3 * LONG);
    expect([one.answers, circlesTold(all)]).toEqual([[], []]);
    gate.resolve();
    await all.host.advance(LONG);
    expect(one.answers.sort()).toEqual(['reply a "B said,late"', "error b 504"].sort());
  });

  test("[L36] crossed requests keep the process alive until they are ended", async () => {
    const all = await setup({ a: actor("A", (ask) => ask("B.Say", null)), b: actor("B", (ask) => ask("A.Say", null)) });
    const one = await begin(all, "A", "B");
    await all.host.runUntilIdle();
    expect(one.answers).toHaveLength(2);
  });

  test("[L36] end by their own time, where requests have one that is shorter", async () => {
    const all = await setup(
      { a: actor("A", (ask) => ask("B.Say", null)), b: actor("B", (ask) => ask("A.Say", null)) },
      { requestTimeoutMs: 500 },
    );
    const one = await begin(all, "A", "B");
    await all.host.advance(LONG);
    expect(one.answers).toHaveLength(2);
    expect(circlesTold(all)).toEqual([]);
  });
});

describe("requests that end without help", () => {
  /** After all these actions of `b` no circle is observed, no request is given up, and all are answered. */
  const innocent = async (
    a: Capability,
    b: Capability,
    gate: { resolve(): void },
    rest: Record<string, Capability> = {},
  ) => {
    const all = await setup({ a, b, ...rest });
    const one = await begin(all, "A", "B");
    await all.host.advance(2 * LONG);
    gate.resolve();
    await all.settle();
    expect(all.faults()).toEqual([]);
    await all.host.runUntilIdle();
    return one.answers.sort();
  };

  test("[L36] a handler that asks several and needs one answer, from outside the circle", async () => {
    const gate = deferred();
    const race = (ask: Ask) => Promise.race([ask("B.Say", null), ask("D.Do", null)]);
    const waits = async () => {
      await gate.promise;
      return "D did";
    };
    const a = capability({
      description: "asks two",
      sends: { "B.Say": "query", "D.Do": "query" },
      queries: { "A.Do": { handle: (_data, { query: ask }) => race(ask) }, "A.Say": { handle: () => "A said" } },
    });
    const b = actor("B", (ask) => ask("A.Say", null));
    expect(await innocent(a, b, gate, { d: actor("D", waits) })).toEqual(['reply a "D did"', 'reply b "A said"']);
  });

  test("[L36] a handler that answers later and lets the next message in", async () => {
    const gate = deferred();
    const later = (ask: Ask) => answerLater(gate.promise.then(() => ask("B.Say", null)));
    const b = actor("B", (ask) => ask("A.Say", null));
    expect(await innocent(actor("A", later), b, gate)).toEqual(['reply a "B said"', 'reply b "A said"']);
  });

  test("[L36] a handler continues if its answer is in flight while the actor that owes it handles another message", async () => {
    const gate = deferred();
    const a = capability({
      description: "answers later",
      sends: { "B.Say": "query" },
      queries: {
        "A.Say": { handle: () => answerLater(gate.promise.then(() => "A said")) },
        "A.Do": { handle: (_data, { query: ask }) => ask("B.Say", null) },
      },
    });
    const all = await setup({ a, b: actor("B", (ask) => ask("A.Say", null)) });
    const one = await begin(all, "B");
    all.loop.receive(query("A.Do", "a"), one);
    await all.host.advance(2 * LONG);
    gate.resolve();
    await all.settle();
    expect(all.faults()).toEqual([]);
    expect(one.answers.sort()).toEqual(['reply a "B said"', 'reply b "A said"']);
  });

  test("[L36] a handler that does not wait for its request ends in time", async () => {
    const gate = deferred();
    const a = actor("A", async (ask) => {
      void ask("B.Say", null);
      await gate.promise;
      return "did not wait";
    });
    const all = await setup({ a, b: actor("B", (ask) => ask("A.Say", null)) });
    const one = await begin(all, "A", "B");
    await all.host.advance(CIRCLE_WAIT_MS - 1);
    gate.resolve();
    await all.host.advance(2 * LONG);
    expect(one.answers.sort()).toEqual(['reply a "did not wait"', 'reply b "A said"']);
  });

  test("[L36] actors that ask each other again and again, and are answered each time", async () => {
    const rounds = async (ask: Ask, other: string) => {
      for (let n = 0; n < 3; n++) await ask(other, null);
      return "done";
    };
    const gate = { resolve: () => undefined };
    const c = actor("C", (ask) => rounds(ask, "D.Say"));
    const a = actor("A", (ask) => rounds(ask, "D.Say"));
    const b = actor("B", (ask) => rounds(ask, "C.Say"));
    expect(await innocent(a, b, gate, { c, d: actor("D", () => "idle") })).toEqual([
      'reply a "done"',
      'reply b "done"',
    ]);
  });

  test("[L36] waiting for one that never answers, in no circle, keeps no process alive", async () => {
    const never = () => new Promise<Json>(() => undefined);
    const chain = capability({
      description: "asks on",
      sends: { "C.Do": "query", "A.Say": "query" },
      queries: {
        "B.Do": { handle: (_data, { query: ask }) => Promise.race([ask("C.Do", null), ask("A.Say", null)]) },
        "B.Say": { handle: () => "B said" },
      },
    });
    const all = await setup({ a: actor("A", (ask) => ask("B.Say", null)), b: chain, c: actor("C", never) });
    const one = await begin(all, "A", "B");
    await all.host.runUntilIdle();
    expect([all.host.monotonic() <= 2 * CIRCLE_LOOK_MS, one.answers, circlesTold(all)]).toEqual([true, [], []]);
  });

  test("[L36] a loop that has ended looks no more", async () => {
    const all = await setup({ a: actor("A", (ask) => ask("B.Say", null)), b: actor("B", (ask) => ask("A.Say", null)) });
    const one = await begin(all, "A", "B");
    await all.host.run(() => all.loop.stop());
    const atMs = all.host.monotonic();
    await all.host.runUntilIdle();
    expect(all.host.monotonic()).toBe(atMs);
    expect(one.answers).toEqual(["error a 503", "error b 503"]);
    expect(circlesTold(all)).toEqual([]);
  });
});
