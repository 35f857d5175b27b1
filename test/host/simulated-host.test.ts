import fc from "fast-check";
import { describe, expect, test } from "#test";
import { type Host, HostError } from "../../src/host/host.ts";
import { SIMULATION_START_MS, type SimulatedHost, simulatedHost } from "../../src/host/simulated-host.ts";

function setup(seed = 1) {
  const host = simulatedHost(seed);
  const log: string[] = [];
  const say = (word: string) => () => void log.push(word);
  return { host, log, say };
}

async function codeOf(outcome: () => unknown): Promise<string> {
  try {
    await outcome();
    return "no error";
  } catch (error) {
    return error instanceof HostError ? error.code : String(error);
  }
}

/** Workers that take turns, sleep and draw: enough concurrency for a seed to matter. */
async function program(host: Host, say: (word: string) => void): Promise<void> {
  const worker = async (name: string) => {
    for (let round = 0; round < 5; round++) {
      await host.yield();
      say(`${name}${round}`);
      const pauseMs = Math.floor(host.random() * 10);
      await new Promise<void>((resolve) => host.timer(pauseMs, resolve));
      say(`${name}${round} ${host.id()} at ${host.now()}`);
    }
  };
  await Promise.all(["a", "b", "c", "d"].map(worker));
}

async function runProgram(seed: number): Promise<{ log: string[]; hash: string }> {
  const { host, log } = setup(seed);
  await host.run(() => program(host, (word) => log.push(word)));
  return { log, hash: host.traceHash() };
}

/** Steps until no work is left, and checks the host after every step. */
async function stepThrough(host: SimulatedHost): Promise<number> {
  let steps = 0;
  host.checkInvariants();
  while (await host.step()) {
    host.checkInvariants();
    steps += 1;
  }
  return steps;
}

describe("a run is a function of its seed", () => {
  test("[H12] two runs of one seed agree in every event, id, time and in their trace hash", async () => {
    await fc.assert(
      fc.asyncProperty(fc.maxSafeInteger(), async (seed) => {
        const one = await runProgram(seed);
        const other = await runProgram(seed);
        expect(other.log).toEqual(one.log);
        expect(other.hash).toBe(one.hash);
      }),
      { numRuns: 50 },
    );
  });

  test("[H12] different seeds give different orders and different hashes", async () => {
    const runs = await Promise.all(Array.from({ length: 20 }, (_, seed) => runProgram(seed)));
    const orders = new Set(runs.map(({ log }) => log.map((line) => line.slice(0, 2)).join()));
    expect(orders.size > 15).toBe(true);
    expect(new Set(runs.map(({ hash }) => hash)).size).toBe(20);
  });

  test("[H12] seeds that differ only above 32 bits, and negative ones, are different seeds", async () => {
    const hashes = await Promise.all(
      [5, 5 + 2 ** 32, 5 + 2 ** 40, -5].map(async (seed) => (await runProgram(seed)).hash),
    );
    expect(new Set(hashes).size).toBe(4);
  });

  test("[H12] a seed that is not a safe integer is refused", async () => {
    for (const seed of [0.5, Number.NaN, 2 ** 53]) expect(await codeOf(() => simulatedHost(seed))).toBe("INVALID_SEED");
  });

  test("[H12] a note, its end, a clock step, a random draw, a timer and the time of a step change the trace", async () => {
    const hashes = await Promise.all(
      [
        () => undefined,
        (host: SimulatedHost) => host.note("x"),
        (host: SimulatedHost) => host.note("y"),
        (host: SimulatedHost) => {
          host.note("ab");
          host.note("c");
        },
        (host: SimulatedHost) => {
          host.note("a");
          host.note("bc");
        },
        (host: SimulatedHost) => host.stepClock(1),
        (host: SimulatedHost) => void host.random(),
        (host: SimulatedHost) => void host.timer(1, () => undefined).cancel(),
        (host: SimulatedHost) => host.elapse(1),
      ].map(async (act) => {
        const { host } = setup();
        host.task(() => act(host));
        await host.step();
        host.timer(5, () => undefined);
        await host.step();
        return host.traceHash();
      }),
    );
    expect(new Set(hashes).size).toBe(hashes.length);
  });

  test("[H12] one more random draw does not change the order of tasks", async () => {
    const orderOf = async (draws: number) => {
      const { host, log, say } = setup(3);
      for (let count = 0; count < draws; count++) host.random();
      for (const word of ["a", "b", "c", "d", "e", "f"]) host.task(say(word));
      await host.runUntilIdle();
      return log;
    };
    expect(await orderOf(7)).toEqual(await orderOf(0));
  });
});

describe("the next callback", () => {
  test("[H13] every order of three ready tasks occurs under some seed", async () => {
    const orders = new Set<string>();
    for (let seed = 0; seed < 100; seed++) {
      const { host, log, say } = setup(seed);
      for (const word of ["a", "b", "c"]) host.task(say(word));
      await host.runUntilIdle();
      orders.add(log.join(""));
    }
    expect([...orders].sort()).toEqual(["abc", "acb", "bac", "bca", "cab", "cba"]);
  });

  test("[H13] a due timer may come before or after a ready task", async () => {
    const orders = new Set<string>();
    for (let seed = 0; seed < 50; seed++) {
      const { host, log, say } = setup(seed);
      host.task(say("task"));
      host.timer(0, say("timer"));
      await host.runUntilIdle();
      orders.add(log.join(" "));
    }
    expect([...orders].sort()).toEqual(["task timer", "timer task"]);
  });

  test("[H5] under every seed timers fire by deadline, equal deadlines in the order set", async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), fc.array(fc.nat(5), { maxLength: 30 }), async (seed, delays) => {
        const host = simulatedHost(seed);
        const fired: Array<{ delayMs: number; index: number; at: number }> = [];
        for (const [index, delayMs] of delays.entries()) {
          host.timer(delayMs, () => fired.push({ delayMs, index, at: host.monotonic() }));
          host.task(() => undefined);
        }
        await stepThrough(host);
        const expected = delays
          .map((delayMs, index) => ({ delayMs, index, at: delayMs }))
          .sort((one, other) => one.delayMs - other.delayMs || one.index - other.index);
        expect(fired).toEqual(expected);
      }),
    );
  });

  test("[H13] time stands while a task is ready, then jumps to the earliest deadline", async () => {
    const { host } = setup();
    const times: number[] = [];
    host.timer(1_000, () => times.push(host.monotonic()));
    for (let count = 0; count < 10; count++) host.task(() => times.push(host.monotonic()));
    await host.runUntilIdle();
    expect(times).toEqual([...Array(10).fill(0), 1_000]);
    expect(host.now()).toBe(SIMULATION_START_MS + 1_000);
  });

  test("[H13] elapse() makes the running callback slow, and no callback runs meanwhile", async () => {
    const { host, log, say } = setup();
    host.timer(5, say("timer"));
    host.task(() => {
      host.elapse(40);
      log.push(`slow until ${host.monotonic()}`);
    });
    await host.runUntilIdle();
    expect(log).toEqual(["slow until 40", "timer"]);
    expect(host.monotonic()).toBe(40);
  });

  test("[H17] the host's invariants hold after every step of a concurrent program", async () => {
    for (let seed = 0; seed < 10; seed++) {
      const host = simulatedHost(seed);
      void program(host, () => undefined);
      expect(await stepThrough(host)).toBe(40);
    }
  });
});

describe("driving a simulation", () => {
  test("[H14] step() runs one callback and every promise chain that it started", async () => {
    const { host, log, say } = setup();
    host.task(async () => {
      for (let count = 0; count < 500; count++) await Promise.resolve();
      log.push("chain");
      host.microtask(say("microtask"));
    });
    expect(log).toEqual([]);
    expect(await host.step()).toBe(true);
    expect(log).toEqual(["chain", "microtask"]);
    expect(await host.step()).toBe(false);
  });

  test("[H14] the first step waits for promise chains that started before it", async () => {
    const { host, log } = setup();
    void (async () => {
      for (let count = 0; count < 500; count++) await Promise.resolve();
      await host.yield();
      log.push("yielded");
    })();
    expect(await host.step()).toBe(true);
    expect(log).toEqual(["yielded"]);
  });

  test("[H14] advance(ms) runs the callbacks due until then, and ends exactly then", async () => {
    const { host, log, say } = setup();
    host.timer(10, () => host.timer(5, say("fifteen")));
    host.timer(16, say("sixteen"));
    await host.advance(15);
    expect(log).toEqual(["fifteen"]);
    expect(host.monotonic()).toBe(15);
    await host.advance(0.5);
    expect(host.monotonic()).toBe(15.5);
    await host.advance(0.5);
    expect(log).toEqual(["fifteen", "sixteen"]);
  });

  test("[H14] advance(0) runs the callbacks that are ready now", async () => {
    const { host, log, say } = setup();
    host.task(() => host.task(say("later task")));
    host.timer(0, say("due"));
    host.timer(1, say("not due"));
    await host.advance(0);
    expect(log.sort()).toEqual(["due", "later task"]);
    expect(host.monotonic()).toBe(0);
  });

  test("[H14] runUntilIdle() ends when only timers with keepAlive: false are left", async () => {
    const { host, log } = setup();
    const poll = () => {
      log.push("poll");
      host.timer(10, poll, { keepAlive: false });
    };
    poll();
    host.timer(25, () => log.push("work"));
    await host.runUntilIdle();
    expect(log).toEqual(["poll", "poll", "poll", "work"]);
    expect(host.idle).toBe(true);
    expect(host.pendingTimers).toBe(1);
  });

  test("[H33] a run of exactly maxSteps succeeds, and one more is an overrun with a remedy", async () => {
    const exact = setup();
    for (let count = 0; count < 10; count++) exact.host.task(() => undefined);
    await exact.host.runUntilIdle({ maxSteps: 10 });
    const { host, log } = setup(42);
    const again = () => {
      log.push("ran");
      host.task(again);
    };
    host.task(again);
    expect(await codeOf(() => host.runUntilIdle({ maxSteps: 10 }))).toBe("SIMULATION_OVERRUN");
    expect(log.length).toBe(11);
    expect(await codeOf(() => host.advance(1, { maxSteps: 10 }))).toBe("SIMULATION_OVERRUN");
    await expect(host.runUntilIdle({ maxSteps: 10 })).rejects.toThrow(/seed 42.*keepAlive/s);
  });

  test("[H33] run(main) returns the result or error of main", async () => {
    const { host } = setup();
    const main = async () => {
      await host.yield();
      return 7;
    };
    expect(await host.run(main)).toBe(7);
    const failing = async () => {
      await host.yield();
      throw new Error("from main");
    };
    await expect(host.run(failing)).rejects.toThrow("from main");
  });

  test("[H33] run(main) reports a main that cannot finish", async () => {
    const { host } = setup();
    expect(await codeOf(() => host.run(() => new Promise(() => undefined)))).toBe("SIMULATION_STUCK");
  });

  test("[H33] a simulation has one driver at a time, and is free again after an error", async () => {
    const { host } = setup();
    const outcomes: string[] = [];
    host.task(async () => void outcomes.push(await codeOf(() => host.step())));
    const first = host.step();
    expect(await codeOf(() => host.runUntilIdle())).toBe("SIMULATION_REENTERED");
    await first;
    expect(outcomes).toEqual(["SIMULATION_REENTERED"]);
    expect(await host.step()).toBe(false);
  });

  test("[H11] a step rejects with the error of its callback or microtask, and other callbacks still run", async () => {
    const { host, log, say } = setup();
    const fail = (word: string) => () => {
      throw new Error(word);
    };
    host.timer(1, fail("from the timer"));
    host.timer(2, () => host.microtask(fail("from the microtask")));
    host.timer(3, say("third"));
    await expect(host.step()).rejects.toThrow("from the timer");
    await expect(host.runUntilIdle()).rejects.toThrow("from the microtask");
    await host.runUntilIdle();
    expect(log).toEqual(["third"]);
    host.checkInvariants();
  });

  test("[H11] when one step throws twice, both errors are reported", async () => {
    const { host } = setup();
    host.task(() => {
      host.microtask(() => {
        throw new Error("second");
      });
      throw new Error("first");
    });
    const error: unknown = await host.step().catch((reason: unknown) => reason);
    expect(error instanceof AggregateError && error.errors.map(String)).toEqual(["Error: first", "Error: second"]);
  });
});

describe("clocks of a simulation", () => {
  test("[H15] the wall clock steps both ways and moves neither monotonic time nor timers", async () => {
    const { host, log } = setup();
    host.timer(100, () => log.push(`at ${host.monotonic()}, wall ${host.now() - SIMULATION_START_MS}`));
    await host.advance(50);
    host.stepClock(-86_400_000);
    expect(host.now()).toBe(SIMULATION_START_MS + 50 - 86_400_000);
    expect(host.monotonic()).toBe(50);
    await host.advance(40);
    expect(log).toEqual([]);
    host.stepClock(2 * 86_400_000);
    await host.advance(10);
    expect(log).toEqual([`at 100, wall ${86_400_100}`]);
  });

  test("[H9] ids increase while the simulated clock steps back", async () => {
    const { host } = setup();
    let last = host.id();
    for (let count = 0; count < 1_000; count++) {
      if (count % 3 === 0) host.stepClock(-10);
      if (count % 7 === 0) await host.advance(12);
      const id = host.id();
      expect(id > last).toBe(true);
      last = id;
    }
  });

  test("[H2] now() is whole milliseconds when virtual time is not", async () => {
    const { host } = setup();
    await host.advance(0.75);
    expect(host.now()).toBe(SIMULATION_START_MS);
    expect(host.monotonic()).toBe(0.75);
  });

  test("[H15] invalid clock steps are refused", async () => {
    const { host } = setup();
    expect(await codeOf(() => host.advance(-1))).toBe("INVALID_CLOCK");
    expect(await codeOf(() => host.elapse(Number.NaN))).toBe("INVALID_CLOCK");
    expect(await codeOf(() => host.stepClock(-SIMULATION_START_MS - 1))).toBe("INVALID_CLOCK");
    expect(await codeOf(() => host.stepClock(Number.NaN))).toBe("INVALID_CLOCK");
    expect(await codeOf(() => host.timer(-1, () => undefined))).toBe("INVALID_DELAY");
    host.stepClock(-SIMULATION_START_MS);
    expect(host.now()).toBe(0);
  });
});
