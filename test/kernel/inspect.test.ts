/**
 * A kernel reports its contents: `Kernel.Graph`, `Why`, `Runs`, `Requests`, `Requeue`, `Heal`, `Purge`, asked in this
 * process.
 */
import { describe, expect, onTestFinished, test } from "vitest";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { systemHost } from "../../src/host/system-host.ts";
import type { GraphView, PendingView, WhyView } from "../../src/kernel/inspect-capability.ts";
import { Kernel } from "../../src/kernel/kernel.ts";
import type { TracedCommit } from "../../src/kernel/run-log.ts";
import {
  COMMITS_TRACED_MAX,
  GRAPH_NODES_MAX,
  GRAPH_READS_MAX,
  RESTARTS_MAX,
  RUNS_ASKED_MAX,
} from "../../src/limits.ts";
import type { Capability } from "../../src/loop/capability.ts";
import { capability } from "../../src/loop/define-capability.ts";
import { transactional } from "../../src/loop/transactional.ts";
import type { Failure } from "../../src/message/error-data.ts";
import type { Json } from "../../src/message/json.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { BareActor, bare } from "../loop/loop-setup.ts";

async function setup({ trace = true }: { trace?: boolean } = {}) {
  const host = systemHost();
  let release: () => void = () => undefined;
  const kernel = await Kernel.open({
    ...{ host, store: memoryStore({ host }), trace },
    capabilities: ({ space, bus }) => {
      const a = space.cell<{ x: number; y: number }>("a");
      const double = space.computed("double", () => (a.key("x").get() ?? 0) * 2);
      space.computed("sum", () => (double.get() ?? 0) + 1).sink(() => undefined);
      space.computed("other", () => a.key("y").get() ?? 0).sink(() => undefined);
      bus.subscribe("thing.failed", () => Promise.reject(new Error("no")), { subscriberId: "clumsy" });
      return {
        writer: transactional({
          ...{ space, description: "writes" },
          commands: {
            "A.Set": {
              handle: (value: { x: number; y: number }, tx) => {
                tx.set(a, value);
                return null;
              },
            },
          },
        }),
        gate: capability({
          description: "waits",
          sends: { "A.Set": "command" },
          commands: {
            "Gate.Hold": {
              handle: () =>
                new Promise<null>((resolve) => {
                  release = () => resolve(null);
                }),
            },
          },
          on: { "Thing.Happened": () => undefined },
        }),
      };
    },
  });
  onTestFinished(() => kernel.close());
  const ask = async <T>(type: string, data: Json = null) => (await kernel.query(type, data)) as never as T;
  return { kernel, ask, release: () => release() };
}

/** Commits of this process are numbered from 1 on, and there are no others. */
async function commitsOf(kernel: Kernel): Promise<{ session: string; localSequence: number }[]> {
  const { session } = kernel.space.replica("kernel");
  return Array.from({ length: 20 }, (_, index) => ({ session, localSequence: index + 1 }));
}

describe("Kernel.*", () => {
  test("[K40] the graph has capabilities with their messages and nodes with their reads", async () => {
    const { kernel, ask } = await setup();
    await kernel.command("A.Set", { x: 1, y: 1 });
    await kernel.idle();
    const { capabilities, nodes } = await ask<GraphView>("Kernel.Graph");
    expect(capabilities.find(({ name }) => name === "gate")).toMatchObject({
      ...{ state: "running", handles: ["command Gate.Hold"], sends: ["command A.Set"], subscribes: ["Thing.Happened"] },
    });
    expect(nodes.find(({ id }) => id === "double")).toMatchObject({ live: true, reads: ["a /x"], status: "clean" });
  });

  test("[K40] a graph of many nodes, and a node with many reads, fit their answers", async () => {
    const { kernel, ask } = await setup();
    for (let n = 0; n < GRAPH_NODES_MAX; n++) kernel.space.computed(`many/${n}`, () => n);
    const cells = Array.from({ length: GRAPH_READS_MAX + 1 }, (_, n) => kernel.space.cell(`read/${n}`));
    await kernel.space.computed("reads a lot", () => cells.map((cell) => cell.get()).length).pull();
    const first = await ask<GraphView>("Kernel.Graph");
    const rest = await ask<GraphView>("Kernel.Graph", { fromNode: first.nodes.length });
    expect([first.nodes.length, first.nodes.length + rest.nodes.length]).toEqual([GRAPH_NODES_MAX, first.nodeCount]);
    expect(rest.nodes.at(-1)).toMatchObject({ id: "reads a lot" });
    expect(rest.nodes.at(-1)?.reads).toHaveLength(GRAPH_READS_MAX);
  });

  test("[K40] a commit has its changes and exactly the nodes that ran because of it, also through other nodes", async () => {
    const { kernel, ask } = await setup();
    await kernel.command("A.Set", { x: 1, y: 1 });
    await kernel.idle();
    await kernel.command("A.Set", { x: 2, y: 1 });
    await kernel.idle();
    const { commits } = await ask<{ commits: TracedCommit[] }>("Kernel.Runs", { commits: await commitsOf(kernel) });
    const second = commits.findLast(({ changes }) => changes.some(({ document }) => document === "a"));
    expect(second?.changes.filter(({ document }) => document === "a")).toEqual([
      { document: "a", path: [], before: { x: 1, y: 1 }, after: { x: 2, y: 1 } },
    ]);
    expect(second?.runs.map(({ node }) => node)).toEqual(["double", "sum", "sink of sum"]);
    expect(second?.runs[0]?.because).toEqual(["a /x"]);
  });

  test("[K40] no runs are kept without tracing, nor for old commits", async () => {
    const off = await setup({ trace: false });
    await off.kernel.command("A.Set", { x: 1, y: 1 });
    expect(await off.ask("Kernel.Runs", { commits: await commitsOf(off.kernel) })).toEqual({ commits: [] });
    const { kernel, ask } = await setup();
    for (let n = 0; n <= COMMITS_TRACED_MAX; n++) await kernel.command("A.Set", { x: n, y: 0 });
    const { session } = kernel.space.replica("kernel");
    expect(await ask("Kernel.Runs", { commits: [{ session, localSequence: 1 }] })).toEqual({ commits: [] });
  });

  test("[K40] Kernel.Why explains a node, and refuses an unknown one", async () => {
    const { kernel, ask } = await setup();
    await kernel.command("A.Set", { x: 1, y: 1 });
    await kernel.idle();
    const { why, whyNot } = await ask<WhyView>("Kernel.Why", { node: "sum" });
    expect(why.map(({ kind }) => kind)).toEqual(["ran", "ran", "written"]);
    expect(whyNot.kind).toBe("clean");
    await expect(ask("Kernel.Why", { node: "nobody" })).rejects.toMatchObject({ code: 404 });
  });

  test("[K40] a request without an answer is listed with its capability", async () => {
    const { kernel, ask, release } = await setup();
    const held = kernel.command("Gate.Hold", null);
    const { requests } = await ask<{ requests: PendingView[] }>("Kernel.Requests");
    expect(requests.find(({ type }) => type === "Gate.Hold")).toMatchObject({
      capability: "gate",
      askedBy: "the program",
    });
    release();
    await held;
  });

  test("[K40] [K44] failed events are requeued, a purge needs a bound, and invalid data is refused", async () => {
    const { kernel } = await setup();
    const id = await kernel.bus.publish("thing.failed", "test", {});
    while ((await kernel.bus.failures()).count === 0) await systemHost().yield();
    expect(await kernel.command("Kernel.Requeue", { ids: [id, 999] })).toEqual({ requeued: [id] });
    while ((await kernel.bus.failures()).count === 0) await systemHost().yield();
    await expect(kernel.command("Kernel.Purge", {})).rejects.toMatchObject({ code: 422 });
    expect(await kernel.command("Kernel.Purge", { keepSettled: 0 })).toEqual({ removed: 1 });
    const tooMany = Array.from({ length: RUNS_ASKED_MAX + 1 }, () => ({ session: "s", localSequence: 1 }));
    for (const [type, data] of [
      ["Kernel.Requeue", { ids: "12" }],
      ["Kernel.Requeue", { ids: [-1] }],
      ["Kernel.Purge", { keepSettled: -1 }],
    ] as const)
      await expect(kernel.command(type, data as Json)).rejects.toMatchObject({ code: 422 });
    await expect(kernel.query("Kernel.Runs", { commits: tooMany })).rejects.toMatchObject({ code: 422 });
    await expect(kernel.query("Kernel.Why", null)).rejects.toMatchObject({ code: 422 });
  });
});

test("[K81] [K91] Kernel.Heal restarts an actor that was given up, with an audit row, and leaves a running one", async () => {
  const spawned: BareActor[] = [];
  const spawn = () => {
    const actor = new BareActor();
    spawned.push(actor);
    return actor;
  };
  const { kernel, host } = await simulated({ crasher: bare(spawn) });
  for (let crash = 0; crash <= RESTARTS_MAX; crash++) {
    spawned.at(-1)?.dispatch({ type: "error", message: "on purpose" });
    await host.advance(1_000);
  }
  expect(kernel.health().actors).toMatchObject({ crasher: "unhealthy" });
  const heal = (name: string) => kernel.command("Kernel.Heal", { capability: name, by: "anna" });
  const healed = heal("crasher");
  const again = healed.then(() => heal("crasher"));
  const unknown = heal("nobody").catch(({ code }: Failure) => code);
  await host.advance(100);
  expect([await healed, await again, await unknown]).toEqual([
    { healed: true, state: "running" },
    { healed: false, state: "running" },
    404,
  ]);
  const rows = kernel.bus.query({ topic: "Sys.Audited", limit: 9 });
  await host.advance(0);
  expect((await rows).map(({ message }) => message?.data)).toEqual([
    { action: "heal", by: "anna", capability: "crasher" },
  ]);
});

async function simulated(capabilities: Readonly<Record<string, Capability>>) {
  const host = simulatedHost(1);
  const store = memoryStore({ host });
  const kernel = await host.run(() => Kernel.open({ host, store, capabilities, observeFaults: () => undefined }));
  return { kernel, host };
}
