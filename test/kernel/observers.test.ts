/** What sinks of a kernel's space see over restarts. */
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { Kernel } from "../../src/kernel/kernel.ts";
import { transactional } from "../../src/loop/transactional.ts";
import { openSqliteStore } from "../../src/store/sqlite/index.ts";
import { scratchFolder } from "../repo/program.ts";

describe("sinks over restarts of a kernel", () => {
  for (const version of [undefined, "1"]) {
    test(`[R55] each start calls them first with the stored value; version ${version}`, async () => {
      const path = join(scratchFolder(), "kernel.db");
      for (let start = 1; start <= 3; start++) {
        const seen: string[] = [];
        await using kernel = await Kernel.open({
          ...(version === undefined ? {} : { version }),
          store: await openSqliteStore({ path, durability: "process" }),
          capabilities: ({ space }) => {
            const stock = space.cell<number>("stock", { default: 10 });
            stock.sink((value) => seen.push(`cell ${value}`));
            space.computed("left", () => stock.get() ?? 0).sink((value) => seen.push(`computed ${value}`));
            const handle = (n: number, tx: { set(cell: typeof stock, n: number): void }) => {
              tx.set(stock, n);
              return null;
            };
            return { shop: transactional({ space, description: "stock", commands: { "Shop.Set": { handle } } }) };
          },
        });
        if (start === 1) await kernel.command("Shop.Set", 42);
        await kernel.space.settled();
        // In the first life the command may come before the sinks have been called with the default.
        const shown = start === 1 ? seen.slice(-2) : seen;
        expect(shown.toSorted()).toEqual(["cell 42", "computed 42"]);
      }
    });
  }
});
