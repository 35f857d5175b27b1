import { describe, expect, test } from "#test";
import { asyncSlot } from "../../src/host/async-slot.ts";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { simulatedProcess } from "../../src/host/simulated-process.ts";
import { systemHost } from "../../src/host/system-host.ts";

const here = { name: "here" };
const there = { name: "there" };

describe("the context of a host", () => {
  test("[H22] follows code over await, timers of the engine, Promise.all and foreign thenables", async () => {
    const { context } = systemHost();
    expect(context.followsAwait).toBe(true);
    const seen = await context.run(here, async () => {
      const found = [context.get()];
      await Promise.resolve();
      found.push(context.get());
      await new Promise<void>((wake) => setTimeout(wake, 0));
      found.push(context.get());
      found.push(...(await Promise.all([1, 2].map(async () => context.get()))));
      // biome-ignore lint/suspicious/noThenProperty: a thenable of another library is the case
      await { then: (resolve: (value?: unknown) => void) => resolve() };
      found.push(context.get());
      return found;
    });
    expect(seen).toEqual([here, here, here, here, here, here]);
    expect(context.get()).toBe(undefined);
  });

  test("[H22] two that interleave do not see each other, and undefined clears the value", async () => {
    const { context } = systemHost();
    const walk = async (value: object | undefined) => {
      const found: unknown[] = [];
      for (let step = 0; step < 3; step++) {
        found.push(context.get() === value);
        await Promise.resolve();
      }
      return found;
    };
    const all = await Promise.all([here, there].map((value) => context.run(value, () => walk(value))));
    expect(all.flat()).toEqual(Array(6).fill(true));
    expect(await context.run(here, () => context.run(undefined, () => walk(undefined)))).toEqual([true, true, true]);
  });

  test("[H23] tasks, timers and microtasks of the real host start without a value", async () => {
    const host = systemHost();
    const seen: unknown[] = [];
    await new Promise<void>((done) => {
      const note = () => void (seen.push(host.context.get()) === 3 && done());
      host.context.run(here, () => {
        host.task(note);
        host.microtask(note);
        host.timer(0, note);
      });
    });
    expect(seen).toEqual([undefined, undefined, undefined]);
  });

  test("[H23] those of simulated hosts do too, whatever code drives the simulation", async () => {
    const world = simulatedHost(1);
    const seen: unknown[] = [];
    for (const host of [world, simulatedProcess(world)]) {
      const note = () => void seen.push(host.context.get());
      await host.context.run(here, () => {
        host.task(note);
        host.microtask(note);
        host.timer(5, note);
        return world.advance(10);
      });
    }
    expect(seen).toEqual(Array(6).fill(undefined));
  });

  test("[H22] an engine with AsyncContext is asked first; one without any covers the synchronous part", async () => {
    const made: string[] = [];
    class Variable<T> {
      #value: T | undefined;
      constructor() {
        made.push("variable");
      }
      get() {
        return this.#value;
      }
      run<R>(value: T | undefined, code: () => R): R {
        this.#value = value;
        return code();
      }
    }
    const modern = asyncSlot({ AsyncContext: { Variable } });
    expect([modern.followsAwait, modern.run(here, () => modern.get()), made]).toEqual([true, here, ["variable"]]);
    const bare = asyncSlot({});
    expect(bare.followsAwait).toBe(false);
    const later = bare.run(here, async () => {
      const first = bare.get();
      await Promise.resolve();
      return [first, bare.get()];
    });
    expect(bare.get()).toBe(undefined);
    expect(await later).toEqual([here, undefined]);
    const failing = () =>
      bare.run(here, () => {
        throw new Error("no");
      });
    expect(failing).toThrow("no");
    expect(bare.get()).toBe(undefined);
  });
});
