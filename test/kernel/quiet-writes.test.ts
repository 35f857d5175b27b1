/** How often a kernel reads its store because of its own writes: counted by a store that notes each call. */
import { describe, expect, test } from "vitest";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { Kernel } from "../../src/kernel/kernel.ts";
import { capability } from "../../src/loop/define-capability.ts";
import { transactional } from "../../src/loop/transactional.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import type { Store } from "../../src/store/store.ts";

/** Longer than each pause before a look, shorter than the poll. */
const LOOKS_MS = 900;
const COUNTED = new Set(["append", "changesSince", "claim", "commit", "earliestDue", "load", "query", "settle"]);

async function setup() {
  const host = simulatedHost(1);
  const calls: string[] = [];
  const inner = memoryStore({ host });
  const store: Store = new Proxy(inner, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key);
      if (typeof value !== "function") return value;
      return (...given: unknown[]) => {
        if (COUNTED.has(String(key))) calls.push(String(key));
        return Reflect.apply(value, target, given);
      };
    },
  });
  const opened = Kernel.open({
    ...{ host, store },
    capabilities: ({ space }) => ({
      plain: capability({ description: "plain", commands: { "Plain.Do": { handle: () => 1 } } }),
      once: transactional({
        ...{ space, description: "transactional" },
        sends: { "Once.Do": "command", "Plain.Do": "command" },
        commands: {
          "Once.Do": {
            handle: (data, tx) => {
              tx.set(space.cell("last"), data);
              return null;
            },
          },
          "Once.Ring": {
            handle: (_, tx) => {
              tx.setTimer({ name: "ring", delayMs: 10, send: { type: "Once.Do", data: 7 } });
              return null;
            },
          },
          "Once.Send": {
            handle: (_, tx) => {
              tx.send("Plain.Do", null);
              return null;
            },
          },
        },
      }),
    }),
  });
  const kernel = await host.run(() => opened);
  /** The calls of the store that one command causes, in order. */
  const callsOf = async (type: string, data: number) => {
    await host.advance(LOOKS_MS);
    calls.length = 0;
    await host.run(() => kernel.command(type, data));
    await host.advance(LOOKS_MS);
    return [...calls];
  };
  return { host, kernel, space: kernel.space, callsOf };
}

describe("own writes", () => {
  test("[K175] a lone transactional command costs one commit, and no read of feed, journal or timers", async () => {
    const { host, kernel, callsOf } = await setup();
    await callsOf("Once.Do", 1);
    expect(await callsOf("Once.Do", 2)).toEqual(["commit"]);
    await host.run(() => kernel.close());
  });

  test("[K175] a lone plain command costs one append and one settlement", async () => {
    const { host, kernel, callsOf } = await setup();
    await callsOf("Plain.Do", 1);
    expect(await callsOf("Plain.Do", 2)).toEqual(["append", "settle"]);
    await host.run(() => kernel.close());
  });

  test("[K175] a timer and a command of a commit are noticed at once", async () => {
    const { host, kernel, space, callsOf } = await setup();
    expect(await callsOf("Once.Ring", 1)).toContain("earliestDue");
    expect(space.cell("last").get()).toBe(7);
    expect(await callsOf("Once.Send", 1)).toContain("settle");
    await host.run(() => kernel.close());
  });
});
