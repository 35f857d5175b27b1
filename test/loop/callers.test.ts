/** Requests of callers in this process: valid requests, and copies of their data. */
import { describe, expect, test } from "#test";
import { Space } from "../../src/cells/space.ts";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { capability } from "../../src/loop/define-capability.ts";
import { memoryCapability } from "../../src/loop/memory.ts";
import { timerCapability } from "../../src/loop/timer.ts";
import type { Message } from "../../src/message/envelope.ts";
import { type ErrorData, Failure } from "../../src/message/error-data.ts";
import type { Json } from "../../src/message/json.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { rejected } from "../../src/store/rejection.ts";
import type { Store } from "../../src/store/store.ts";
import { withFaults } from "../bus/bus-setup.ts";
import { setup as setupSpace } from "../scheduler/scheduler-setup.ts";
import { BareActor, bare, command, message, query, setup } from "./loop-setup.ts";

const CYCLE: { self?: unknown } = {};
CYCLE.self = CYCLE;

const IMPURE: readonly (readonly [what: string, data: unknown])[] = [
  ["nothing", undefined],
  ["a date", { at: new Date(0) }],
  ["a map", new Map()],
  ["NaN", { n: Number.NaN }],
  ["-0", -0],
  ["a BigInt", 1n],
  ["a function", { run: () => 1 }],
  ["a lone surrogate", "\ud800"],
  ["an element without a value", [undefined]],
  ["a cycle", CYCLE],
  ["nested 20,000 deep", Array.from({ length: 20_000 }).reduce<unknown>((inner) => [inner], 1)],
];

function echoing() {
  const given: Json[] = [];
  const echo = capability({
    description: "answers what it is given",
    queries: {
      "Echo.Say": {
        handle: (data: Json) => {
          given.push(data);
          return data;
        },
      },
    },
  });
  return { echo, given };
}

describe("callers in this process", () => {
  for (const [what, data] of IMPURE) {
    test(`[L8] [M6] ${what} is refused with 422 as from outside, and no actor sees it`, async () => {
      const { echo, given } = echoing();
      const { loop, host } = await setup({ echo });
      const answer = await host.run(() => loop.request({ ...query("Echo.Say", "q1"), data: data as Json }));
      expect(answer).toMatchObject({ kind: "error", type: "Echo.Say", metadata: { causation: "q1" } });
      expect((answer.data as ErrorData).code).toBe(422);
      expect(given).toEqual([]);
      expect(loop.pending.size).toBe(0);
    });
  }

  test("[L8] [M8] JSON arrives unchanged, with __proto__ as data, and later changes by the caller have no effect", async () => {
    const { echo, given } = echoing();
    const { loop, host } = await setup({ echo });
    const data = JSON.parse('{"__proto__": {"a": 1}, "list": [1, {"b": null}]}');
    const answered = host.run(() => {
      const answer = loop.request(query("Echo.Say", "q1", data));
      data.list.push(2);
      return answer;
    });
    const expected = '{"__proto__":{"a":1},"list":[1,{"b":null}]}';
    expect(JSON.stringify((await answered).data)).toBe(expected);
    expect(JSON.stringify(given)).toBe(`[${expected}]`);
  });

  test("[L7] a request without an id that can be answered is refused instead of waited for", async () => {
    const { echo } = echoing();
    const { loop } = await setup({ echo });
    for (const metadata of [undefined, { timestamp: 1 }, { id: 5, timestamp: 1 }, { id: "", timestamp: 1 }])
      await expect(
        loop.request({ ...query("Echo.Say", "q1"), metadata: metadata as Message["metadata"] }),
      ).rejects.toMatchObject({ code: 422 });
    expect(loop.pending.size).toBe(0);
  });

  test("[L7] an object that is no request is refused at once", async () => {
    const { echo } = echoing();
    const { loop } = await setup({ echo });
    await expect(loop.request(message("event", "Echo.Said", "e1"))).rejects.toMatchObject({ code: 422 });
  });
});

describe("calls of command and query", () => {
  test("[L8] callers get the data of the reply, and an error as Failure; both carry the given lineage", async () => {
    const { echo } = echoing();
    const failing = capability({
      description: "fails",
      commands: {
        "Fail.Now": {
          handle: (_data, _context, { metadata }) => {
            throw new Failure(418, `for ${metadata.correlation}`);
          },
        },
      },
    });
    const { loop, host, settle } = await setup({ echo, failing });
    expect(await host.run(() => loop.query("Echo.Say", { a: 1 }))).toEqual({ a: 1 });
    const failed = host.run(() => loop.command("Fail.Now", null, { correlation: "c" }));
    await expect(failed).rejects.toMatchObject({ name: "Failure", code: 418, message: "for c" });
    await expect(host.run(() => loop.query("Nobody.There", null))).rejects.toMatchObject({ code: 404 });
    await expect(loop.query("nobody", null)).rejects.toThrow(/two PascalCase names/);
    await settle();
    expect(loop.pending.size).toBe(0);
  });

  for (const [what, data] of IMPURE) {
    test(`[L8] [M6] ${what} is refused with 422`, async () => {
      const { echo, given } = echoing();
      const { loop, host } = await setup({ echo });
      await expect(host.run(() => loop.query("Echo.Say", data as Json))).rejects.toMatchObject({ code: 422 });
      expect([given, loop.pending.size]).toEqual([[], 0]);
    });
  }

  test("[L8] later changes by the caller to data and lineage have no effect", async () => {
    const { echo } = echoing();
    const { loop, host } = await setup({ echo });
    const [data, lineage] = [[1], { correlation: "before" }];
    const answered = host.run(() => {
      const answer = loop.query("Echo.Say", data, lineage);
      data.push(2);
      lineage.correlation = "after";
      return answer;
    });
    expect(await answered).toEqual([1]);
  });

  test("[L7] [L10] only the asked actor can answer, although call ids are in no table", async () => {
    const [bell, thief] = [new BareActor(), new BareActor()];
    const takes = [["query", "Bell.Ring"]] as const;
    const { loop, settle, faults } = await setup({ bell: bare(() => bell, { takes }), thief: bare(() => thief) });
    const answered: Json[] = [];
    void loop.query("Bell.Ring", null).then((data) => answered.push(data));
    await settle();
    const asked = bell.posted[0]!;
    thief.reply({ ...asked, type: "Bare.Ask" }, "stolen");
    await settle();
    expect([answered, faults()]).toEqual([[], ["Sys.OrphanOutcome"]]);
    bell.reply(asked, "mine");
    bell.reply(asked, "twice");
    await settle();
    expect([answered, faults().length, loop.pending.size]).toEqual([["mine"], 2, 0]);
  });

  test("[L17] [L28] a caller is told of a crashed actor and of a stopped loop", async () => {
    const actor = new BareActor();
    const { loop, host, settle } = await setup({ a: bare(() => actor) });
    const codes: unknown[] = [];
    const ask = () => void loop.query("Bare.Ask", null).catch(({ code }: Failure) => codes.push(code));
    ask();
    await settle();
    actor.dispatch({ type: "error", message: "gone" });
    await settle();
    expect(codes).toEqual([500]);
    await host.advance(10_000);
    ask();
    await settle();
    await host.run(() => loop.stop());
    expect([codes.length, loop.pending.size]).toEqual([2, 0]);
  });
});

describe("built-in capabilities", () => {
  test("[L8] Memory.List takes only an object or null", async () => {
    const { space, host } = await setupSpace();
    const { loop, settle } = await setup({ memory: memoryCapability(space) }, { host });
    const kinds: string[] = [];
    for (const [at, data] of [null, {}, { prefix: "/" }, 42, [], "/", { prefix: 1 }].entries())
      void loop.request(query("Memory.List", `q${at}`, data)).then(({ kind }) => kinds.push(kind));
    await settle();
    expect(kinds.toSorted()).toEqual(["error", "error", "error", "error", "reply", "reply", "reply"]);
  });

  test("[L32] Memory.Set works again when the store does, also where the first one of all met a store that could not write", async () => {
    const host = simulatedHost(1);
    const inner = memoryStore({ host });
    let works = false;
    const commit: Store["commit"] = (request) =>
      works ? inner.commit(request) : Promise.resolve(rejected("failed", "store-full", "no space on the device"));
    const space = await host.run(() => Space.open({ host, name: "s", store: withFaults(inner, { commit }) }));
    const { loop } = await setup({ memory: memoryCapability(space) }, { host });
    const set = (id: string) =>
      host.run(() => loop.request(command("Memory.Set", id, { key: "/a", value: 1 }))).then(({ data }) => data);
    expect(await set("c1")).toMatchObject({ code: 503 });
    works = true;
    expect(await set("c2")).toEqual({ success: true });
  });

  test("[T3] a moment more than 100 years ahead is refused like a delay that long, and no timer is armed", async () => {
    const { loop, host, settle } = await setup({ timer: timerCapability() });
    const late = { kind: "event", type: "Late.Come", data: null };
    const hundredYears = 3_155_760_000_000;
    const codes: unknown[] = [];
    for (const [at, over] of [0, 1].entries()) {
      const data = { dueAt: host.now() + hundredYears + over, message: late };
      const { kind } = await host.run(() => loop.request(command("Timer.Set", `t${at}`, data)));
      codes.push(kind);
    }
    await settle();
    expect(codes).toEqual(["reply", "error"]);
    expect(loop.liveness.timers).toBe(1);
  });
});
