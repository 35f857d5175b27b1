/** The heap of a kernel that handles many messages: a million in the long form. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, test } from "vitest";
import { Kernel } from "../../src/kernel/kernel.ts";
import { capability } from "../../src/loop/define-capability.ts";
import { dataSchema } from "../../src/loop/message-schema.ts";
import { openSqliteStore } from "../../src/store/sqlite/open.ts";
import { counted, type LongPart, rounds, timeoutMs } from "../portable/long-run.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** Commands of a round; each emits one event. */
const COMMANDS = 500;
const PART: LongPart = { name: "heap", short: 20, long: 1_000, minutes: 2 };
/** Rounds until caches, rings and filters have their size. */
const WARM = 10;
/** Bytes by which the heap may grow: 48 for each message of the long form, so that one object for each does not fit. */
const GROWTH_MAX = 48 * 1_048_576;

async function heapOf(kernel: Kernel): Promise<number> {
  await kernel.idle();
  // Objects of the present turn are held until its end.
  await new Promise<void>((resolve) => setImmediate(resolve));
  collectGarbage();
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

describe("the heap of a kernel", () => {
  test(
    "[U68] does not grow with the number of commands and events that were handled",
    async () => {
      const folder = mkdtempSync(join(tmpdir(), "millrace-heap-"));
      const store = await openSqliteStore({ path: join(folder, "heap.db"), durability: "process" });
      let events = 0;
      const capabilities = ({ space }: Pick<Kernel, "space">) => {
        const total = space.cell("total", 0);
        return {
          counter: capability({
            ...{ space, description: "counts" },
            emits: { "Count.Added": dataSchema<number>(() => undefined, { type: "number" }) },
            commands: {
              "Count.Add": {
                handle: (data: number, tx) => {
                  tx.update(total, (n) => (n ?? 0) + 1);
                  tx.emit("Count.Added", data);
                  return data;
                },
              },
            },
          }),
          listener: capability({ description: "hears", on: { "Count.Added": () => void events++ } }),
        };
      };
      const kernel = await Kernel.open({ store, capabilities, retention: { maxSettled: 1_000, everyMs: 1_000 } });
      let [before, done] = [0, 0];
      for (const round of rounds(PART)) {
        const sent = Array.from({ length: COMMANDS }, (_, n) => kernel.command("Count.Add", n));
        await Promise.all(sent);
        await kernel.idle();
        done = round * COMMANDS;
        if (round === WARM) before = await heapOf(kernel);
      }
      const grown = (await heapOf(kernel)) - before;
      const work = kernel.health().work;
      counted(2 * done, "messages of the heap test");
      console.log(`heap: grown by ${Math.round(grown / 1024)} KiB over ${2 * (done - WARM * COMMANDS)} messages`);
      await kernel.close();
      rmSync(folder, { recursive: true });
      expect(before).toBeGreaterThan(0);
      expect([events, work.open]).toEqual([done, 0]);
      expect(grown).toBeLessThan(GROWTH_MAX);
    },
    timeoutMs(PART),
  );
});
