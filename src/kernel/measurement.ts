/**
 * A short measurement of a kernel for `millrace bench`: events published durably per second, events delivered and
 * settled, transactional commands answered, and the latency of a single command. Uses the public API.
 */
import type { Host } from "../host/host.ts";
import { capability } from "../loop/define-capability.ts";
import { transactional } from "../loop/transactional.ts";
import type { Store } from "../store/store.ts";
import { Kernel } from "./kernel.ts";

/** Concurrent callers: enough to share the disk's flushes. */
const CALLERS = 64;

export interface Measurement {
  readonly host: Host;
  /** Closed when the measurement ends. */
  readonly store: Store;
  readonly seconds: number;
  progress(text: string): void;
}

/** Per second, unless the name says otherwise. */
export interface Measured {
  readonly published: number;
  readonly handled: number;
  readonly commands: number;
  readonly oneCommandMs: number;
}

export async function measureKernel({ host, store, seconds, progress }: Measurement): Promise<Measured> {
  let handled = 0;
  await using kernel = await Kernel.open({
    ...{ host, store },
    capabilities: ({ space }) => ({
      listener: capability({
        description: "counts",
        on: {
          "Bench.Happened": () => {
            handled++;
          },
        },
      }),
      counter: transactional({
        ...{ space, description: "adds one" },
        commands: {
          "Bench.Count": {
            handle: ({ caller }: { caller: number }, tx) => {
              const cell = space.cell<number>(`count ${caller}`);
              tx.set(cell, (tx.get(cell) ?? 0) + 1);
              return null;
            },
          },
        },
      }),
    }),
  });
  const forMs = (seconds * 1_000) / 3;
  progress("publishing");
  const began = host.monotonic();
  const events = await repeat(host, forMs, CALLERS, () => kernel.bus.publish("Bench.Happened", "bench", { n: 1 }));
  const publishedAfterMs = host.monotonic() - began;
  progress("waiting until all are handled");
  while (handled < events) await host.yield();
  const handledAfterMs = host.monotonic() - began;
  progress("sending commands");
  const commandsBegan = host.monotonic();
  const commands = await repeat(host, forMs, CALLERS, (caller) => kernel.command("Bench.Count", { caller }));
  const commandsMs = host.monotonic() - commandsBegan;
  progress("one at a time");
  const aloneBegan = host.monotonic();
  const alone = await repeat(host, forMs, 1, () => kernel.command("Bench.Count", { caller: 0 }));
  return {
    published: (events / publishedAfterMs) * 1_000,
    handled: (events / handledAfterMs) * 1_000,
    commands: (commands / commandsMs) * 1_000,
    oneCommandMs: (host.monotonic() - aloneBegan) / alone,
  };
}

/** Several callers that repeat the work until the time is up; resolves with the number of calls. */
async function repeat(
  host: Host,
  forMs: number,
  callers: number,
  work: (caller: number) => Promise<unknown>,
): Promise<number> {
  const until = host.monotonic() + forMs;
  let count = 0;
  const call = async (caller: number) => {
    do {
      await work(caller);
      count++;
    } while (host.monotonic() < until);
  };
  await Promise.all(Array.from({ length: callers }, (_, caller) => call(caller)));
  return count;
}
