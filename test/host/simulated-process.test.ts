import { describe, expect, test } from "#test";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { simulatedProcess } from "../../src/host/simulated-process.ts";

function setup(seed = 1) {
  const world = simulatedHost(seed);
  const one = simulatedProcess(world);
  const other = simulatedProcess(world);
  const log: string[] = [];
  const say = (word: string) => () => void log.push(word);
  return { world, one, other, log, say };
}

describe("simulated processes", () => {
  test("[H18] a killed process runs no callback and leaves no timer; its neighbour continues", async () => {
    const { world, one, other, log, say } = setup();
    one.timer(10, say("one's timer"));
    one.task(say("one's task"));
    void one.yield().then(say("one's yield"));
    other.timer(10, say("other's timer"));
    one.kill();
    const afterwards = one.timer(5, say("after death"));
    one.task(say("after death"));
    one.microtask(say("after death"));
    expect(world.pendingTimers).toBe(1);
    await world.runUntilIdle();
    expect(log).toEqual(["other's timer"]);
    expect(afterwards.cancel()).toBe(false);
    one.resume();
    expect(one.status).toBe("killed");
  });

  test("[H18] a paused process runs its due callbacks when it resumes, timers in order", async () => {
    for (let seed = 0; seed < 20; seed++) {
      const { world, one, log, say } = setup(seed);
      one.timer(20, say("twenty"));
      one.timer(10, say("ten"));
      one.timer(10, say("ten again"));
      const cancelled = one.timer(15, say("cancelled"));
      one.timer(50, say("fifty"));
      one.pause();
      one.microtask(say("microtask"));
      await world.advance(30);
      expect(log).toEqual([]);
      expect(cancelled.cancel()).toBe(true);
      expect(cancelled.cancel()).toBe(false);
      one.resume();
      await world.advance(0);
      expect(log.filter((word) => word !== "microtask")).toEqual(["ten", "ten again", "twenty"]);
      expect(log.includes("microtask")).toBe(true);
      await world.advance(20);
      expect(log.at(-1)).toBe("fifty");
      expect(world.pendingTimers).toBe(0);
    }
  });

  test("[H18] a process killed while paused runs none of its held callbacks", async () => {
    const { world, one, log, say } = setup();
    one.timer(1, say("timer"));
    one.task(say("task"));
    one.pause();
    await world.advance(5);
    one.kill();
    one.resume();
    await world.runUntilIdle();
    expect(log).toEqual([]);
  });

  test("[H18] each process has its own wall clock and they share monotonic time", async () => {
    const { world, one, other } = setup();
    one.stepClock(-5_000);
    await world.advance(100);
    expect(one.now()).toBe(world.now() - 5_000);
    expect(other.now()).toBe(world.now());
    expect([one.monotonic(), other.monotonic()]).toEqual([100, 100]);
  });

  test("[H18] processes create different ids and random numbers, the same in every run", () => {
    const draw = () => {
      const { one, other } = setup();
      return [
        one.id(),
        other.id(),
        one.random(),
        other.random(),
        one.randomBytes(4).join(),
        other.randomBytes(4).join(),
      ];
    };
    expect(new Set(draw()).size).toBe(6);
    expect(draw()).toEqual(draw());
  });
});
