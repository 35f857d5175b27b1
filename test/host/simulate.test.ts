import { describe, expect, test } from "#test";
import { HostError } from "../../src/host/host.ts";
import { forbidRealTime } from "../../src/host/real-time-guard.ts";
import { simulate } from "../../src/host/simulated-host.ts";
import { systemHost } from "../../src/host/system-host.ts";

const nothing = () => undefined;

/** All functions that must fail under simulation, by the name in the error. */
const FORBIDDEN: Record<string, () => unknown> = {
  "Date.now()": () => Date.now(),
  "new Date()": () => new Date(),
  "Date()": () => Date(),
  "performance.now()": () => performance.now(),
  "setTimeout()": () => setTimeout(nothing, 0),
  "setInterval()": () => setInterval(nothing, 1),
  "setImmediate()": () => setImmediate(nothing),
  "AbortSignal.timeout()": () => AbortSignal.timeout(1),
  "MessageChannel()": () => new MessageChannel(),
  "Math.random()": () => Math.random(),
  "crypto.randomUUID()": () => crypto.randomUUID(),
  "crypto.getRandomValues()": () => crypto.getRandomValues(new Uint8Array(1)),
};

function errorOf(act: () => unknown): unknown {
  try {
    act();
    return undefined;
  } catch (error) {
    return error;
  }
}

/** The identity of every global that the guard replaces. */
function globals(): unknown[] {
  return [
    Date,
    Date.now,
    performance.now,
    setTimeout,
    setInterval,
    setImmediate,
    AbortSignal.timeout,
    MessageChannel,
    Math.random,
    crypto.randomUUID,
    crypto.getRandomValues,
  ];
}

/** Taken before any guard was held. */
const realGlobals = globals();

describe("real time and randomness under simulation", () => {
  test("[H16] each forbidden call throws REAL_TIME_IN_SIMULATION with its name", async () => {
    for (const [name, act] of Object.entries(FORBIDDEN)) {
      const guard = forbidRealTime();
      const error = errorOf(act);
      guard.release();
      expect(error instanceof HostError && error.code).toBe("REAL_TIME_IN_SIMULATION");
      expect(String(error)).toContain(`${name} was called`);
      expect(guard.violation).toBe(error);
    }
  });

  test("[H16] a forbidden call inside a simulated task fails the simulation", async () => {
    const run = simulate(1, async (host) => {
      host.timer(10, () => void Date.now());
      await host.runUntilIdle();
    });
    await expect(run).rejects.toThrow("Date.now() was called");
  });

  test("[H16] a forbidden call fails the simulation even if its error is caught", async () => {
    const run = simulate(1, (host) => {
      host.task(() => void errorOf(() => Math.random()));
      return host.runUntilIdle();
    });
    await expect(run).rejects.toThrow("Math.random() was called");
  });

  test("[H34] the globals are restored after a run, after an error and after the last of several guards", async () => {
    const ownBefore = Object.hasOwn(crypto, "randomUUID");
    await simulate(1, nothing);
    expect(globals()).toEqual(realGlobals);
    await expect(
      simulate(1, () => {
        throw new Error("from the drive");
      }),
    ).rejects.toThrow("from the drive");
    expect(globals()).toEqual(realGlobals);
    const outer = forbidRealTime();
    const inner = forbidRealTime();
    inner.release();
    inner.release();
    expect(errorOf(() => Date.now()) instanceof HostError).toBe(true);
    outer.release();
    expect(globals()).toEqual(realGlobals);
    expect(Object.hasOwn(crypto, "randomUUID")).toBe(ownBefore);
    expect(Number.isInteger(Date.now())).toBe(true);
  });

  test("[H34] calls without time or randomness stay allowed", async () => {
    const real = new Date(5);
    const { value } = await simulate(1, async (host) => {
      const log: unknown[] = [];
      queueMicrotask(() => log.push("microtask"));
      host.task(nothing);
      await host.runUntilIdle();
      clearTimeout(undefined);
      const date = new Date(0);
      log.push(date.toISOString(), date instanceof Date, real instanceof Date, Date.UTC(1970, 0, 1), Math.max(1, 2));
      return log;
    });
    expect(value).toEqual(["microtask", "1970-01-01T00:00:00.000Z", true, true, 0, 2]);
  });

  test("[H16] a system host works beside a simulation", async () => {
    await simulate(1, async () => {
      const host = systemHost();
      await host.yield();
      await new Promise<void>((resolve) => host.timer(1, resolve));
      expect(host.id().length).toBe(36);
      expect(host.now() > 0 && host.random() < 1).toBe(true);
    });
  });

  test("[H12] simulate() reports the trace hash of its run", async () => {
    const run = (seed: number) =>
      simulate(seed, (host) =>
        host.run(async () => {
          await Promise.all([1, 2, 3].map(async (name) => host.yield().then(() => host.note(`${name}`))));
          return host.id();
        }),
      );
    expect(await run(9)).toEqual(await run(9));
    expect((await run(9)).traceHash).not.toBe((await run(10)).traceHash);
  });
});
