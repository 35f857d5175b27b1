import { describe, expect, test } from "#test";
import { HostError } from "../../src/host/host.ts";
import { messageChannelMacrotask } from "../../src/host/platform.ts";
import { systemHost } from "../../src/host/system-host.ts";
import { TIMER_CHUNK_MS, TIMER_DELAY_MS_MAX } from "../../src/limits.ts";
import { ScriptedPlatform } from "./scripted-platform.ts";

function setup() {
  const platform = new ScriptedPlatform();
  const host = systemHost(platform);
  const log: string[] = [];
  const say = (word: string) => () => void log.push(word);
  return { platform, host, log, say };
}

function fired(host: ReturnType<typeof systemHost>, delayMs: number): Promise<number> {
  return new Promise((resolve) => host.timer(delayMs, () => resolve(host.monotonic())));
}

describe("clocks of the system host", () => {
  test("[H2] now() is whole milliseconds near the runtime's wall clock", () => {
    const before = Date.now();
    const now = systemHost().now();
    expect(Number.isInteger(now)).toBe(true);
    expect(now >= before && now <= Date.now()).toBe(true);
  });

  test("[H3] monotonic() never steps back", () => {
    const host = systemHost();
    let last = host.monotonic();
    for (let count = 0; count < 100_000; count++) {
      const next = host.monotonic();
      if (next < last) throw new Error(`${next} follows ${last}`);
      last = next;
    }
  });
});

describe("timers of the system host", () => {
  test("[H4] in a runtime that fires early no timer fires early", () => {
    const { platform, host, log, say } = setup();
    platform.earlyMs = 0.75;
    host.timer(10, say("ten"));
    platform.turn();
    expect(platform.monotonic).toBe(1_009.25);
    expect(log).toEqual([]);
    platform.turnUntilIdle();
    expect(log).toEqual(["ten"]);
    expect(platform.monotonic >= 1_010).toBe(true);
  });

  test("[H4] no timer of the real runtime fires before its delay has passed", async () => {
    const host = systemHost();
    const start = host.monotonic();
    const delays = [0, 0.5, 1, 1.5, 2, 3, 5, 7.25, 10];
    const times = await Promise.all(delays.map((delayMs) => fired(host, delayMs)));
    for (const [index, at] of times.entries()) expect(at - start >= delays[index]!).toBe(true);
  });

  test("[H30] the longest delay of the runtime is requested at once, one more in two pieces", () => {
    const { platform, host, log, say } = setup();
    host.timer(TIMER_CHUNK_MS, say("chunk"));
    platform.turnUntilIdle();
    expect(platform.requestedDelays).toEqual([TIMER_CHUNK_MS]);
    host.timer(TIMER_CHUNK_MS + 1, say("more"));
    platform.turnUntilIdle();
    expect(platform.requestedDelays).toEqual([TIMER_CHUNK_MS, TIMER_CHUNK_MS, 1]);
    expect(log).toEqual(["chunk", "more"]);
  });

  test("[H4] [H30] a timer of 100 years fires after 100 years, armed in several pieces", () => {
    const { platform, host, log, say } = setup();
    host.timer(TIMER_DELAY_MS_MAX, say("century"));
    while (log.length === 0) expect(platform.turn()).toBe(true);
    expect(platform.monotonic - 1_000).toBe(TIMER_DELAY_MS_MAX);
    expect(platform.requestedDelays.length).toBe(Math.ceil(TIMER_DELAY_MS_MAX / TIMER_CHUNK_MS));
  });

  test("[H4] an invalid delay throws INVALID_DELAY and sets no timer", () => {
    const { platform, host } = setup();
    const wrong = [-1, -0.001, Number.NaN, Number.POSITIVE_INFINITY, TIMER_DELAY_MS_MAX + 1];
    for (const delayMs of wrong) {
      let thrown: unknown;
      try {
        host.timer(delayMs, () => undefined);
      } catch (error) {
        thrown = error;
      }
      expect(thrown instanceof HostError && thrown.code).toBe("INVALID_DELAY");
    }
    expect(platform.staysAlive).toBe(false);
  });

  test("[H4] the wall clock moves no timer", () => {
    const { platform, host, log, say } = setup();
    host.timer(50, say("fifty"));
    platform.wall += 86_400_000;
    host.timer(40, say("forty"));
    platform.wall -= 2 * 86_400_000;
    platform.turnUntilIdle();
    expect(log).toEqual(["forty", "fifty"]);
    expect(platform.monotonic).toBe(1_050);
  });

  test("[H5] timers fire by deadline, equal deadlines in the order set, even when all are late", () => {
    const { platform, host, log, say } = setup();
    host.timer(30, say("c"));
    host.timer(10, say("a"));
    platform.monotonic += 10;
    host.timer(20, say("d"));
    host.timer(0, say("b"));
    platform.monotonic += 1_000;
    platform.turnUntilIdle();
    expect(log).toEqual(["a", "b", "c", "d"]);
  });

  test("[H5] microtasks of one timer finish before the next timer fires", async () => {
    const host = systemHost();
    const log: string[] = [];
    await new Promise<void>((resolve) => {
      host.timer(1, () => {
        log.push("one");
        Promise.resolve().then(() => Promise.resolve().then(() => log.push("its microtask")));
      });
      host.timer(1, () => {
        log.push("two");
        resolve();
      });
    });
    expect(log).toEqual(["one", "its microtask", "two"]);
  });

  test("[H6] cancel() reports whether it stopped the timer", () => {
    const { platform, host, log, say } = setup();
    const first = host.timer(1, say("first"));
    const second = host.timer(2, say("second"));
    expect(second.cancel()).toBe(true);
    expect(second.cancel()).toBe(false);
    platform.turnUntilIdle();
    expect(first.cancel()).toBe(false);
    expect(log).toEqual(["first"]);
  });

  test("[H6] a timer may cancel one that is due at the same time", () => {
    const { platform, host, log, say } = setup();
    host.timer(5, () => log.push(`cancelled ${second.cancel()}`));
    const second = host.timer(5, say("second"));
    platform.turnUntilIdle();
    expect(log).toEqual(["cancelled true"]);
  });

  test("[H31] only timers without keepAlive: false keep the process alive", () => {
    const { platform, host } = setup();
    host.timer(10, () => undefined, { keepAlive: false });
    expect(platform.staysAlive).toBe(false);
    const kept = host.timer(20, () => undefined);
    expect(platform.staysAlive).toBe(true);
    kept.cancel();
    expect(platform.staysAlive).toBe(false);
    host.timer(5, () => undefined);
    expect(platform.staysAlive).toBe(true);
    platform.turn();
    expect(platform.staysAlive).toBe(false);
    expect(platform.timeouts.size).toBe(1);
  });

  test("[H31] when the last timer is cancelled no timeout of the runtime stays armed", () => {
    const { platform, host } = setup();
    const timers = [host.timer(10, () => undefined), host.timer(20, () => undefined, { keepAlive: false })];
    for (const timer of timers) timer.cancel();
    expect(platform.timeouts.size).toBe(0);
    expect(platform.tasks.length).toBe(0);
  });

  test("[H6] for any number of timers, one timeout of the runtime is armed", () => {
    const { platform, host } = setup();
    for (let count = 1_000; count > 0; count--) host.timer(count, () => undefined);
    expect(platform.timeouts.size).toBe(1);
  });

  test("[H11] a timer that throws stops no other", () => {
    const { platform, host, log, say } = setup();
    host.timer(1, () => {
      throw new Error("from the timer");
    });
    host.timer(1, say("second"));
    expect(() => platform.turn()).toThrow("from the timer");
    platform.turnUntilIdle();
    expect(log).toEqual(["second"]);
  });
});

describe("tasks of the system host", () => {
  test("[H7] yield() lets a 0 ms timer and a message run", async () => {
    const host = systemHost();
    const log: string[] = [];
    const { port1, port2 } = new MessageChannel();
    const bothIn = new Promise<void>((resolve) => {
      const arrive = (word: string) => () => {
        log.push(word);
        if (log.includes("timer") && log.includes("message")) resolve();
      };
      port1.onmessage = arrive("message");
      host.timer(0, arrive("timer"));
    });
    port2.postMessage(null);
    // A loop that never lets go of the thread would not end.
    while (log.length < 2) await host.yield();
    await bothIn;
    port1.close();
    expect(log.sort()).toEqual(["message", "timer"]);
  });

  test("[H7] a task runs after the queued microtasks, which run first in, first out", async () => {
    const host = systemHost();
    const log: string[] = [];
    await new Promise<void>((resolve) => {
      host.task(() => {
        log.push("task");
        resolve();
      });
      host.microtask(() => {
        log.push("first");
        host.microtask(() => log.push("third"));
      });
      host.microtask(() => log.push("second"));
    });
    expect(log).toEqual(["first", "second", "third", "task"]);
  });

  test("[H7] every task is its own turn: microtasks finish between two tasks", async () => {
    const host = systemHost();
    const log: string[] = [];
    host.task(() => {
      log.push("one");
      Promise.resolve().then(() => Promise.resolve().then(() => log.push("its microtask")));
    });
    await new Promise<void>((resolve) => host.task(resolve));
    expect(log).toEqual(["one", "its microtask"]);
  });

  test("[H7] with only a MessageChannel, each task is its own message and keeps its order", async () => {
    const channel = new MessageChannel();
    const macrotask = messageChannelMacrotask(channel);
    const log: number[] = [];
    await new Promise<void>((resolve) => {
      for (let count = 0; count < 3_000; count++) macrotask(() => log.push(count));
      macrotask(resolve);
    });
    await new Promise<void>((resolve) => macrotask(resolve));
    channel.port1.close();
    expect(log).toEqual(Array.from({ length: 3_000 }, (_, index) => index));
  });
});
