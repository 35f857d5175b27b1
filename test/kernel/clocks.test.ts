/** Two kernels whose clocks are two hours apart, on one store with a clock of its own, as on a database server. */
import { describe, expect, test } from "vitest";
import { type SimulatedHost, simulatedHost } from "../../src/host/simulated-host.ts";
import { type SimulatedProcess, simulatedProcess } from "../../src/host/simulated-process.ts";
import { Kernel } from "../../src/kernel/kernel.ts";
import { capability } from "../../src/loop/define-capability.ts";
import type { Json } from "../../src/message/json.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";

const HOUR_MS = 3_600_000;

interface Running {
  readonly process: SimulatedProcess;
  readonly kernel: Kernel;
}

async function twoKernels() {
  const world = simulatedHost(1);
  const disk = new MemoryDisk();
  /** When a command or an event was handled, in milliseconds since the start. */
  const handled: string[] = [];
  const startMs = world.now();
  const note = (name: string) => handled.push(`${world.now() - startMs} ${name}`);
  const open = async (skewMs: number): Promise<Running> => {
    const process = simulatedProcess(world);
    process.stepClock(skewMs);
    const kernel = await world.run(() =>
      Kernel.open({
        ...{ host: process, store: memoryStore({ host: world, disk }), leaseMs: 2_000, version: "1" },
        ...{ extensions: [], extensionData: "nowhere", log: () => undefined, observe: () => undefined },
        capabilities: ({ bus }) => {
          let calls = 0;
          const tryTwice = () => {
            note("tried");
            if (++calls === 1) throw new Error("again, please");
          };
          const retry = { attempts: 3, backoff: { startMs: 1_000 } };
          bus.subscribe("parcel.came", tryTwice, { subscriberId: "tries", retry });
          return {
            bell: capability({ description: "rings", commands: { "Bell.Ring": { handle: () => void note("rang") } } }),
          };
        },
      }),
    );
    return { process, kernel };
  };
  return { world, handled, ahead: await open(HOUR_MS), behind: await open(-HOUR_MS) };
}

async function setTimer(world: SimulatedHost, { process, kernel }: Running, data: Json): Promise<void> {
  const metadata = { id: process.id(), timestamp: process.now() };
  const answer = await world.run(() => kernel.loop.request({ kind: "command", type: "Timer.Set", data, metadata }));
  expect(answer.kind).toBe("reply");
}

describe("kernels with wrong clocks", () => {
  const message = { kind: "command", type: "Bell.Ring", data: null };

  for (const name of ["ahead", "behind"] as const) {
    test(`[S232] a timer that the kernel ${name} sets fires after its delay`, async () => {
      const { world, handled, ...kernels } = await twoKernels();
      await setTimer(world, kernels[name], { delayMs: 5_000, message });
      await world.advance(4_999);
      expect(handled).toEqual([]);
      await world.advance(60_000);
      expect(handled).toEqual(["5000 rang"]);
    });

    test(`[S232] [T9] the other kernel fires the timer at its time after the kernel ${name} has died`, async () => {
      const { world, handled, ...kernels } = await twoKernels();
      await setTimer(world, kernels[name], { delayMs: 5_000, message });
      kernels[name].process.kill();
      await world.advance(4_999);
      expect(handled).toEqual([]);
      await world.advance(60_000);
      expect(handled).toEqual(["5000 rang"]);
    });

    test(`[S232] [J61] a failed event of the kernel ${name} is tried again within its backoff`, async () => {
      const { world, handled, ...kernels } = await twoKernels();
      const other = name === "ahead" ? kernels.behind : kernels.ahead;
      other.process.kill();
      await world.advance(0);
      await world.run(() => kernels[name].kernel.bus.publish("parcel.came", "test", null));
      await world.advance(499);
      expect(handled).toEqual(["0 tried"]);
      await world.advance(501);
      expect(handled).toHaveLength(2);
    });
  }
});
