/** Faults in a kernel are reported with their place: by capabilities, subscribers and nodes alike. */
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, test } from "vitest";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { systemHost } from "../../src/host/system-host.ts";
import { faultText } from "../../src/kernel/faults.ts";
import { Kernel } from "../../src/kernel/kernel.ts";
import { CIRCLE_LOOK_MS } from "../../src/limits.ts";
import { capability } from "../../src/loop/define-capability.ts";
import type { CapabilityContext } from "../../src/loop/mailbox-actor.ts";
import type { Message } from "../../src/message/envelope.ts";
import { Failure } from "../../src/message/error-data.ts";
import type { Json } from "../../src/message/json.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { withFaults } from "../bus/bus-setup.ts";
import { ROOT } from "../repo/program.ts";
import { append, entry } from "../store/conformance/requests.ts";
import { StoreFile } from "../store/sqlite/store-file.ts";

async function broken() {
  const host = systemHost();
  const told: Message[] = [];
  const lastAttempt = Promise.withResolvers<void>();
  const kernel = await Kernel.open({
    host,
    store: memoryStore({ host }),
    observe: (observation) => void told.push(observation),
    capabilities: ({ space, bus }) => {
      space
        .computed("derived", () => {
          throw new RangeError("no such thing");
        })
        .sink(() => undefined);
      const reader = async (_event: unknown, { attempt }: { attempt: number }) => {
        if (attempt === 2) lastAttempt.resolve();
        throw new TypeError("not readable");
      };
      const retry = { attempts: 2, backoff: { startMs: 1 } };
      bus.subscribe("Some.Thing", reader, { subscriberId: "reader", retry });
      const bug = () => {
        throw new TypeError("a bug");
      };
      const refusal = () => {
        throw new Failure(422, "not that one");
      };
      return {
        buggy: capability({
          description: "fails",
          commands: { "Buggy.Do": { handle: bug }, "Buggy.Refuse": { handle: refusal } },
          on: { "Other.Thing": bug },
        }),
      };
    },
  });
  const faults = () => told.filter(({ type }) => type.endsWith("Fault"));
  return {
    kernel,
    lastAttempt: lastAttempt.promise,
    texts: () => faults().map((fault) => faultText(fault)?.split("\n") ?? []),
  };
}

describe("faults", () => {
  test("[K53] faults of nodes during boot, of subscribers and of handlers are reported; a refusal is not", async () => {
    const { kernel, lastAttempt, texts } = await broken();
    for (const type of ["Buggy.Do", "Buggy.Refuse"]) await kernel.command(type, null).catch(() => undefined);
    const id = await kernel.publish("Some.Thing", null);
    await lastAttempt;
    await kernel.idle();
    await kernel.publish("Other.Thing", null);
    await kernel.idle();
    expect(texts().map(([first]) => first)).toEqual([
      "derived failed: RangeError: no such thing",
      "buggy failed on Buggy.Do: TypeError: a bug",
      `reader failed on event ${id} Some.Thing, which comes again: TypeError: not readable`,
      `reader failed on event ${id} Some.Thing: TypeError: not readable`,
      "buggy failed on Other.Thing: TypeError: a bug",
    ]);
    await kernel.close();
  });

  test("[K53] a fault shows the place in the user's code, without frames of the package or of Node", async () => {
    const { kernel, texts } = await broken();
    await kernel.command("Buggy.Do", null).catch(() => undefined);
    const [, fault = []] = texts();
    expect(fault[1]).toMatch(/^ {2}at .*faults\.test\.ts:\d+:\d+\)?$/);
    expect(fault.filter((line) => line.includes("node:internal") || line.includes("/src/loop/"))).toEqual([]);
    await kernel.close();
  });

  test("[K168] an observer of faults gets all faults and no ordinary work", async () => {
    const [all, faults]: Message[][] = [[], []];
    const buggy = capability({
      description: "has a bug",
      commands: {
        "Buggy.Do": {
          handle: () => {
            throw new TypeError("a bug");
          },
        },
      },
    });
    const kernel = await Kernel.open({
      ...{ store: memoryStore(), capabilities: { buggy } },
      ...{ observe: (one) => void all?.push(one), observeFaults: (one) => void faults?.push(one) },
    });
    await kernel.command("Buggy.Do", null).catch(() => undefined);
    expect(faults?.map(faultText)).toEqual([expect.stringMatching(/^buggy failed on Buggy.Do: TypeError: a bug/)]);
    expect(all?.map(({ type }) => type)).toContain("Sys.Routed");
    await kernel.close();
  });

  test("[K53] frames of the package are left out for built code and for source maps", () => {
    const frame = (path: string) => `    at run (${pathToFileURL(join(ROOT, path))}:1:1)`;
    const stack = ["Error: a bug", ...["examples/mine.ts", "dist/chunks/loop.js", "src/loop/turns.ts"].map(frame)].join(
      "\n",
    );
    const data = { capability: "mine", reason: "a bug", stack };
    const text = faultText({ kind: "event", type: "Sys.ActorFault", data, metadata: { id: "f", timestamp: 1 } });
    expect(text?.split("\n").slice(1)).toEqual([frame("examples/mine.ts").slice(2)]);
  });

  test("[K167] [L36] a cycle of waiting actors is named to people", async () => {
    const host = simulatedHost(1);
    const faults: Message[] = [];
    const asks = (own: string, other: string) =>
      capability({
        description: "asks the other",
        sends: { [`${other}.Say`]: "query" },
        queries: {
          [`${own}.Say`]: { handle: () => own },
          [`${own}.Do`]: { handle: (_data: Json, context: CapabilityContext) => context.query(`${other}.Say`, null) },
        },
      });
    const capabilities = { a: asks("A", "B"), b: asks("B", "A") };
    const observeFaults = (fault: Message) => void faults.push(fault);
    const kernel = await host.run(() =>
      Kernel.open({ host, store: memoryStore({ host }), capabilities, observeFaults }),
    );
    const answers = Promise.allSettled([kernel.query("A.Do", null), kernel.query("B.Do", null)]);
    await host.advance(3 * CIRCLE_LOOK_MS);
    expect(faults.map(faultText)).toEqual([
      expect.stringMatching(/^b waits for a waits for b, .* given up after 30 s$/),
    ]);
    await host.run(() => answers);
    await host.run(() => kernel.close());
  });

  test("[K167] an unreadable event and a failing store are reported", async () => {
    await using file = new StoreFile();
    const store = await file.open();
    await append(store, entry({ data: { text: "soon torn" } }));
    file.database().exec(`UPDATE event_journal SET payload = '{"text'`);
    let refused = 0;
    const claim: typeof store.claim = (request) => {
      if (refused++ === 0) throw new Error("not now");
      return store.claim(request);
    };
    const told: Message[] = [];
    const host = systemHost();
    const bothTold = Promise.withResolvers<void>();
    const observe = (observation: Message) => {
      if (observation.type === "Sys.BusFault" && told.push(observation) === 2) bothTold.resolve();
    };
    const kernel = await Kernel.open({ host, store: withFaults(store, { claim }), observe, capabilities: {} });
    await bothTold.promise;
    expect(told.map(faultText)).toEqual([
      expect.stringMatching(/^the bus tries again \(claiming\): not now$/),
      expect.stringMatching(/^event 1 failed and is not handled: /),
    ]);
    await kernel.close();
  });
});
