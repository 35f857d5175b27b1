/** Handlers that hang, as a kernel shows them: `Kernel.Work` and `Kernel.Health.work`, on simulated time. */
import { describe, expect, onTestFinished, test } from "vitest";
import { kernelProblems } from "../../src/cli/doctor.ts";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import type { WorkView } from "../../src/kernel/inspect-capability.ts";
import { Kernel } from "../../src/kernel/kernel.ts";
import type { KernelHealth } from "../../src/kernel/kernel-options.ts";
import { HANDLER_TIMEOUT_MS } from "../../src/limits.ts";
import { capability } from "../../src/loop/define-capability.ts";
import { transactional } from "../../src/loop/transactional.ts";
import type { Json } from "../../src/message/json.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";

/** A kernel without `trace`, with handlers that hang until `release` is called. */
async function setup() {
  const host = simulatedHost(1);
  const held: (() => void)[] = [];
  const hang = () => new Promise<null>((resolve) => void held.push(() => resolve(null)));
  const opening = Kernel.open({
    ...{ host, store: memoryStore({ host }) },
    capabilities: ({ space, bus }) => {
      bus.subscribe("thing.plain", hang, { subscriberId: "listener" });
      bus.subscribe("thing.once", async () => void (await hang()), { subscriberId: "ledger", space });
      return {
        gate: capability({
          description: "hangs",
          commands: { "Gate.Hold": { handle: hang }, "Gate.Pass": { handle: () => null } },
          queries: { "Gate.Ask": { handle: hang } },
        }),
        asker: capability({ description: "hangs", queries: { "Asker.Ask": { handle: hang } } }),
        hearer: capability({ description: "hangs", on: { "Thing.Heard": async () => void (await hang()) } }),
        once: transactional({ space, description: "hangs", commands: { "Once.Hold": { handle: hang } } }),
      };
    },
  });
  const kernel = await host.run(() => opening);
  onTestFinished(async () => {
    for (const release of held.splice(0)) release();
    await host.run(() => kernel.close());
  });
  const ask = <T>(type: string) => host.run(() => kernel.query(type, null)) as Promise<Json> as Promise<T>;
  const work = async () => (await ask<{ work: WorkView[] }>("Kernel.Work")).work;
  const health = () => ask<KernelHealth>("Kernel.Health");
  const release = async () => {
    for (const one of held.splice(0)) one();
    await host.advance(1_000);
  };
  return { host, kernel, work, health, release, hang };
}

describe("handlers that hang", () => {
  test("[U60] [U64] [K100] handlers of every entry point are on the work board, each message once", async () => {
    const { host, kernel, work, release, hang, health } = await setup();
    for (const type of ["Gate.Hold", "Once.Hold"]) void kernel.command(type, null);
    void kernel.query("Asker.Ask", null);
    const stream = kernel.space.stream<number>("numbers");
    stream.handle(async () => void (await hang()));
    stream.send(1);
    await host.run(() => kernel.publish("Thing.Heard", null));
    await host.run(() => kernel.publish("thing.plain", null));
    await host.run(() => kernel.publish("thing.once", null));
    await host.advance(1_000);
    const listed = (await work()).map(({ entryPoint, handler, type }) => `${entryPoint} ${handler} ${type}`);
    expect(listed.sort()).toEqual([
      "command gate Gate.Hold",
      "command once Once.Hold",
      "event hearer Thing.Heard",
      "query asker Asker.Ask",
      'stream stream numbers of space "kernel" send',
      "subscriber ledger Thing.Once",
      "subscriber listener Thing.Plain",
    ]);
    expect((await health()).work).toMatchObject({ open: 7, stuck: 0, leftBehind: 0 });
    await release();
    expect(await work()).toEqual([]);
  });

  test("[U61] a command that waits in a mailbox is not on the board", async () => {
    const { host, kernel, work, release } = await setup();
    void kernel.command("Gate.Hold", null);
    void kernel.command("Gate.Pass", null);
    await host.advance(1_000);
    expect((await work()).map(({ type }) => type)).toEqual(["Gate.Hold"]);
    await release();
  });

  test("[K101] [U63] health is degraded while a handler is stuck; after its timeout it is listed as left behind until it ends", async () => {
    const { host, kernel, work, health, release } = await setup();
    const answer = kernel.command("Gate.Hold", null).catch(({ code }) => code);
    await host.advance(1_000);
    expect(await health()).toMatchObject({ state: "running", work: { open: 1, stuck: 0, leftBehind: 0 } });
    await host.advance(HANDLER_TIMEOUT_MS / 2);
    expect(await health()).toMatchObject({ state: "degraded", work: { open: 1, stuck: 1, leftBehind: 0 } });
    expect(await work()).toMatchObject([{ handler: "gate", state: "stuck", timeoutMs: HANDLER_TIMEOUT_MS }]);
    expect(kernelProblems(await health(), await work())).toEqual([
      expect.stringMatching(/^stuck: command handler gate of Gate\.Hold, since \S+Z \(15\d s\), \S+$/),
    ]);
    await host.advance(HANDLER_TIMEOUT_MS / 2);
    expect(await answer).toBe(504);
    expect(kernelProblems(await health(), await work())).toEqual([]);
    expect(await health()).toMatchObject({ state: "running", work: { open: 0, oldestMs: 0, stuck: 0, leftBehind: 1 } });
    expect(await work()).toMatchObject([{ handler: "gate", state: "left-behind" }]);
    await release();
    expect(await health()).toMatchObject({ state: "running", work: { open: 0, leftBehind: 0 } });
  });
});
