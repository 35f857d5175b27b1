/** The Timer capability, in memory and on a store that outlives it. */
import { describe, expect, test } from "#test";
import { type SimulatedHost, simulatedHost } from "../../src/host/simulated-host.ts";
import type { Capability } from "../../src/loop/capability.ts";
import { timerCapability } from "../../src/loop/timer.ts";
import type { Message } from "../../src/message/envelope.ts";
import type { Json } from "../../src/message/json.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { StoreError } from "../../src/store/store.ts";
import { BareActor, bare, command, deferred, setup } from "./loop-setup.ts";
import { intercepted, stores, template, timers } from "./timer-setup.ts";

const MINUTE = 60_000;

for (const [where, store] of stores) {
  describe(`timers ${where}`, () => {
    test("[T1] the answer, then Timer.Fired, then the message, both caused by the Timer.Set, and never early", async () => {
      const { set, host, one, arrived, types } = await timers({ store });
      const timerId = await set({ delayMs: 50, message: template });
      expect(one.received).toMatchObject([{ kind: "reply", type: "Timer.Set", metadata: { causation: "set" } }]);
      await host.advance(49);
      expect(arrived).toEqual([]);
      await host.advance(1);
      expect(types()).toEqual(["50 Timer.Fired", "50 Build.Run"]);
      const [fired, sent] = arrived.map(({ message }) => message);
      expect(fired).toMatchObject({ kind: "event", data: { timerId }, metadata: { causation: "set" } });
      expect(sent).toMatchObject({ ...template, metadata: { causation: "set", timestamp: host.now() } });
      expect(new Set(["set", timerId, fired?.metadata.id, sent?.metadata.id]).size).toBe(4);
      await host.advance(3_600_000);
      expect(arrived).toHaveLength(2);
    });

    test("[T2] a past dueAt fires at once, a delay of 0 too, and the answer comes first", async () => {
      const { set, host, one, arrived, types } = await timers({ store });
      let answered = false;
      const deliver = one.deliver.bind(one);
      one.deliver = (answer) => {
        answered ||= arrived.length === 0;
        deliver(answer);
      };
      await set({ dueAt: host.now() - 10_000, message: template }, "past");
      expect(answered).toBe(true);
      expect(types()).toEqual(["0 Timer.Fired", "0 Build.Run"]);
      answered = false;
      arrived.length = 0;
      await set({ delayMs: 0, message: template }, "zero");
      expect(answered).toBe(true);
      expect(arrived).toHaveLength(2);
    });

    test("[T2] deadlines decide the order, and the order of setting among equal ones", async () => {
      const { set, host, arrived } = await timers({ store });
      for (const [id, delayMs] of [
        ["c", 30],
        ["a", 10],
        ["d", 30],
        ["b", 20],
        ["e", 30],
      ] as const) {
        await set({ delayMs, message: template }, id);
      }
      await host.advance(30);
      const sent = arrived.filter(({ message }) => message.type === "Build.Run");
      expect(sent.map(({ message }) => message.metadata.causation)).toEqual(["a", "b", "c", "d", "e"]);
    });

    test("[T1] a clock that is set back makes no timer early", async () => {
      const { set, host, arrived } = await timers({ store });
      await set({ dueAt: host.now() + 1_000, message: template });
      host.stepClock(-500);
      await host.advance(1_499);
      expect(arrived).toEqual([]);
      await host.advance(1);
      expect(arrived).toHaveLength(2);
    });

    test("[T1] a clock that is put forward, or a machine that slept, makes no timer later than a minute", async () => {
      const { set, every, host, types } = await timers({ store });
      await set({ dueAt: host.now() + 60 * MINUTE, message: template });
      await every({ everyMs: 50 * MINUTE, message: template });
      await host.advance(MINUTE);
      host.stepClock(60 * MINUTE);
      await host.advance(MINUTE);
      expect(types().filter((one) => one.endsWith("Build.Run"))).toHaveLength(2);
      // Between two looks no timer fires.
      await host.advance(10 * MINUTE);
      expect(types()).toHaveLength(4);
    });

    const { kind, type, data } = template;
    const refused: readonly [string, Json][] = [
      ["negative", { delayMs: -1, message: template }],
      ["text", { delayMs: "5", message: template }],
      ["null", { delayMs: null, message: template }],
      ["absent", { message: template }],
      ["given twice", { delayMs: 1, dueAt: 1, message: template }],
      ["beyond 100 years", { delayMs: 1e15, message: template }],
      ["a moment that no date can name", { dueAt: 1e300, message: template }],
      ["fine, but there is no message", { delayMs: 1 }],
      ["fine, but the template has no kind", { delayMs: 1, message: { type, data } }],
      ["fine, but the template has no type", { delayMs: 1, message: { kind, data } }],
      ["fine, but the template has no data", { delayMs: 1, message: { kind, type } }],
      ["fine, but the template is a reply", { delayMs: 1, message: { ...template, kind: "reply" } }],
      ["fine, but the template's type is none", { delayMs: 1, message: { ...template, type: "build.run" } }],
      ["fine, but the correlation is empty", { delayMs: 1, message: { ...template, metadata: { correlation: "" } } }],
    ];
    test("[T3] a timer that can never fire is 422, and none is armed", async () => {
      const { set, host, one, loop, arrived } = await timers({ store });
      for (const [what, given] of refused) await set(given, what);
      expect(one.answers).toEqual(refused.map(([what]) => `error ${what} 422`));
      expect(loop.liveness.timers).toBe(0);
      await host.advance(1_000);
      expect(arrived).toEqual([]);
    });

    test("[T4] a template's id, timestamp and causation are overwritten, its correlation and the rest are kept", async () => {
      const { set, host, arrived } = await timers({ store });
      const metadata = { id: "mine", timestamp: 5, causation: "mine", correlation: "own", note: [1] };
      await set({ delayMs: 1, message: { ...template, metadata } }, "s1", { correlation: "requester" });
      await set({ delayMs: 2, message: template }, "s2", { correlation: "requester" });
      await host.advance(2);
      const sent = arrived.filter(({ message }) => message.type === "Build.Run").map(({ message }) => message.metadata);
      expect(sent[0]).toMatchObject({ causation: "s1", correlation: "own", note: [1] });
      expect(sent[0]?.id).not.toBe("mine");
      expect(sent[0]?.timestamp).not.toBe(5);
      expect(sent[1]).toMatchObject({ causation: "s2", correlation: "requester" });
    });

    const labels: readonly (readonly [given: Json | undefined, own: Json | undefined, sent: Json | undefined])[] = [
      [["secret"], undefined, ["secret"]],
      [["secret"], [], ["secret"]],
      [["secret"], "secret", ["secret"]],
      [["secret"], ["own"], ["own", "secret"]],
      [undefined, ["own"], ["own"]],
      [undefined, undefined, undefined],
    ];
    test("[F11] [T4] a template's label is added to that of the setter and removes none", async () => {
      const { set, host, arrived } = await timers({ store });
      for (const [index, [given, own]] of labels.entries()) {
        const message = { ...template, ...(own === undefined ? {} : { metadata: { label: own } }) };
        await set({ delayMs: 1, message }, `s${index}`, given === undefined ? {} : { label: given });
      }
      await host.advance(1);
      const sent = arrived.filter(({ message }) => message.type === "Build.Run").map(({ message }) => message.metadata);
      expect(sent.map(({ causation, label }) => [causation, label])).toEqual(
        labels.map(([, , label], index) => [`s${index}`, label]),
      );
    });

    test("[T5] a cancelled timer never fires; cancelling again, the unknown or the fired is false and no error", async () => {
      const { set, cancel, host, arrived } = await timers({ store });
      const first = await set({ delayMs: 10, message: template }, "s1");
      const second = await set({ delayMs: 20, message: template }, "s2");
      expect(await cancel(first)).toEqual({ cancelled: true });
      expect(await cancel(first)).toEqual({ cancelled: false });
      expect(await cancel("unknown")).toEqual({ cancelled: false });
      await host.advance(20);
      expect(arrived.map(({ message }) => message.metadata.causation)).toEqual(["s2", "s2"]);
      expect(await cancel(second)).toEqual({ cancelled: false, underway: 1 });
    });

    test("[L27] [L29] an armed timer keeps the loop alive and is observed", async () => {
      const { set, host, loop, faults } = await timers({ store });
      expect(loop.liveness.alive).toBe(false);
      await set({ delayMs: 10, message: template });
      expect(loop.liveness).toMatchObject({ quiescent: true, alive: true });
      await host.advance(10);
      expect(loop.liveness.timers).toBe(0);
      expect(faults()).toEqual(["Sys.TimerSet", "Sys.TimerFired"]);
    });
  });
}

describe("timers that outlive the process", () => {
  test("[T6] after a restart overdue timers fire once, the others on time", async () => {
    const disk = new MemoryDisk();
    const before = await timers({ store: (host) => memoryStore({ host, disk }) });
    await before.set({ delayMs: 100, message: template }, "overdue");
    await before.set({ delayMs: 5_000, message: template }, "future");
    await before.host.run(() => before.loop.stop());
    await before.host.advance(1_000);
    expect(before.arrived).toEqual([]);

    const host = simulatedHost(2);
    host.stepClock(before.host.now() - host.now());
    const arrived: string[] = [];
    const actor = new BareActor();
    actor.postMessage = ({ type, metadata }) => void arrived.push(`${type} ${metadata.causation}`);
    const build: Capability = bare(() => actor, { takes: [["command", "Build.Run"]] });
    await setup({ build, timer: timerCapability({ store: memoryStore({ host, disk }) }) }, { host });
    await host.advance(0);
    expect(arrived).toEqual(["Build.Run overdue"]);
    await host.advance(3_999);
    expect(arrived).toHaveLength(1);
    await host.advance(1);
    expect(arrived).toEqual(["Build.Run overdue", "Build.Run future"]);
    await host.advance(3_600_000);
    expect(arrived).toHaveLength(2);
  });

  test("[T6] a store that fails for a while delays timers, and each still fires once", async () => {
    const failing = new Set<string>();
    const { set, host, arrived } = await timers({
      store: (given) =>
        intercepted(given, (name, call) => {
          return failing.has(name) ? Promise.reject(new Error("the disk is away")) : call();
        }),
    });
    await set({ delayMs: 100, message: template });
    for (const name of ["changeDue", "dueRows", "earliestDue"]) failing.add(name);
    await host.advance(5_000);
    expect(arrived).toEqual([]);
    // The store can be read again, but a firing cannot be marked, so a crash could lose it: it waits.
    for (const name of ["dueRows", "earliestDue"]) failing.delete(name);
    await host.advance(10_000);
    expect(arrived).toEqual([]);
    failing.clear();
    await host.advance(10_000);
    expect(arrived.map(({ message }) => message.type)).toEqual(["Timer.Fired", "Build.Run"]);
    await host.advance(3_600_000);
    expect(arrived).toHaveLength(2);
  });

  test("[T9] a store that refuses writes for the moment refuses set and cancel with 503, and accepts the same set later", async () => {
    let isFull = true;
    const { set, cancel, host, one, arrived } = await timers({
      store: (given) =>
        intercepted(given, (name, call) => {
          if (!isFull || (name !== "changeDue" && name !== "commit")) return call();
          return Promise.reject(new StoreError("STORE_FULL", "there is no space left"));
        }),
    });
    const refused = (message: string) => ({
      kind: "error",
      data: { code: 503, message: expect.stringContaining(message) },
    });
    await set({ delayMs: 100, message: template });
    expect(one.received.at(-1)).toMatchObject(refused("there is no space left; repeat it under its id"));
    await cancel("any");
    expect(one.received.at(-1)).toMatchObject(refused("there is no space left"));
    isFull = false;
    await set({ delayMs: 100, message: template });
    await host.advance(100);
    expect(arrived.map(({ message }) => message.type)).toEqual(["Timer.Fired", "Build.Run"]);
  });

  test("[T5] a deadline that comes while a cancellation is on its way waits for it, and does not fire", async () => {
    let isSlow = false;
    const made = await timers({
      store: (given) =>
        intercepted(given, async (name, call) => {
          const waits = isSlow && name === "changeDue";
          if (waits) isSlow = false;
          if (waits) await new Promise<void>((resolve) => given.timer(500, resolve));
          return call();
        }),
    });
    const { host, loop, one, arrived } = made;
    const timerId = await made.set({ delayMs: 100, message: template });
    isSlow = true;
    loop.receive(command("Timer.Cancel", "cancel", { timerId }), one);
    await host.advance(499);
    expect(one.answers.at(-1)).not.toMatch("cancel");
    await host.advance(10_000);
    expect(one.answers.at(-1)).toBe('reply cancel {"cancelled":true}');
    expect(arrived).toEqual([]);
  });

  test("[T11] overdue rows that are no timers cause no read of rows and no write", async () => {
    let accesses = 0;
    const host = simulatedHost(1);
    const store = intercepted(host, (name, call) => {
      if (name !== "earliestDue") accesses++;
      return call();
    });
    const foreign = { op: "put", kind: "elsewhere", key: "a", dueAtMs: 0, data: null } as const;
    await host.run(() => store.changeDue([foreign]));
    const { set, arrived } = await timers({ host, store: () => store });
    await set({ delayMs: 3_600_000, message: template });
    accesses = 0;
    await host.advance(3_599_999);
    expect(accesses).toBe(0);
    await host.advance(1);
    expect(arrived.map(({ message }) => message.type)).toEqual(["Timer.Fired", "Build.Run"]);
  });

  test("[T6] a fired and unhandled message of an ended process is sent again under its id; a handled one is not", async () => {
    const disk = new MemoryDisk();
    const before = await timers({ store: (host) => memoryStore({ host, disk }) });
    await before.set({ delayMs: 100, message: template }, "unhandled");
    await before.host.advance(100);
    const [, lost] = before.arrived.map(({ message }) => message);
    expect(lost).toMatchObject({ type: "Build.Run", metadata: { causation: "unhandled" } });
    await before.host.run(() => before.loop.stop());

    const host = simulatedHost(2);
    host.stepClock(before.host.now() - host.now());
    const arrived: Message[] = [];
    const actor = new BareActor();
    actor.postMessage = (message) => {
      arrived.push(message);
      actor.reply(message);
    };
    const build: Capability = bare(() => actor, { takes: [["command", "Build.Run"]] });
    const after = await setup({ build, timer: timerCapability({ store: memoryStore({ host, disk }) }) }, { host });
    await host.advance(0);
    expect(arrived.map(({ metadata }) => metadata.id)).toEqual([lost?.metadata.id]);
    await host.run(() => after.loop.stop());
    const store = memoryStore({ host, disk });
    expect(await host.run(() => store.earliestDue())).toBeUndefined();
  });

  test("[T6] a fired message is sent again even if the store fails first, or marked it without an answer", async () => {
    const disk = new MemoryDisk();
    let fault: "no answer" | "not read" | undefined;
    const store = (host: SimulatedHost) =>
      intercepted(
        host,
        async (name, call) => {
          if (fault === "not read" && name === "dueRows") throw new StoreError("STORE_BUSY", "not now");
          const result = await call();
          if (fault === "no answer" && name === "changeDue") throw new StoreError("STORE_IO", "it may be there");
          return result;
        },
        disk,
      );
    const before = await timers({ store });
    await before.set({ delayMs: 100, message: template });
    fault = "no answer";
    await before.host.advance(200);
    fault = undefined;
    await before.host.advance(10_000);
    expect(before.arrived.map(({ message }) => message.type)).toEqual(["Timer.Fired", "Build.Run"]);
    await before.host.run(() => before.loop.stop());

    const host = simulatedHost(2);
    host.stepClock(before.host.now() - host.now());
    fault = "not read";
    const after = await timers({ host, store, answers: () => true });
    await host.advance(5_000);
    expect(after.types()).toEqual([]);
    fault = undefined;
    await host.advance(10_000);
    expect(after.arrived.map(({ message }) => message.type)).toEqual(["Timer.Fired", "Build.Run"]);
  });

  test("[T2] a stored timer with an unanswered set does not fire along with another", async () => {
    const gate = deferred();
    let slow = false;
    const { set, host, one, arrived } = await timers({
      store: (given) =>
        intercepted(given, async (name, call) => {
          const result = await call();
          if (slow && name === "commit") {
            slow = false;
            await gate.promise;
          }
          return result;
        }),
    });
    await set({ delayMs: 10, message: template }, "first");
    slow = true;
    await set({ delayMs: 0, message: template }, "second");
    await host.advance(10);
    expect(one.answers).toHaveLength(1);
    expect(arrived.map(({ message }) => message.metadata.causation)).toEqual(["first", "first"]);
    gate.resolve();
    await host.advance(0);
    expect(one.answers).toHaveLength(2);
    await host.advance(1_000);
    expect(arrived.slice(2).map(({ message }) => message.metadata.causation)).toEqual(["second", "second"]);
  });
});
