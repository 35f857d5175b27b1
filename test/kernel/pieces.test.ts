/** Pieces over a restart of the whole kernel on a real file. */
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Cell } from "../../src/cells/cell.ts";
import { pattern } from "../../src/cells/pattern.ts";
import { systemHost } from "../../src/host/system-host.ts";
import { Kernel } from "../../src/kernel/kernel.ts";
import { openSqliteStore } from "../../src/store/sqlite/index.ts";
import { scratchFolder } from "../repo/program.ts";

const counter = pattern("counter", (inputs: Cell<{ step: number }>, piece) => {
  const count = piece.cell<number>("count", { default: 0 });
  const add = piece.stream<number>("add");
  add.handle((times) => count.set((count.get() ?? 0) + times * (inputs.key("step").get() ?? 0)));
  return { count, add, doubled: piece.computed("doubled", () => (count.get() ?? 0) * 2) };
});

test("[P6] [K20] a kernel takes its pieces up again: their state, their streams, what they compute", async () => {
  const host = systemHost();
  const path = join(scratchFolder(), "kernel.db");
  const open = async (patterns = [counter]) =>
    Kernel.open({ host, store: await openSqliteStore({ path, host }), patterns });
  {
    await using kernel = await open();
    const { parts } = await kernel.space.run(counter, { step: 5 }, { id: "c" });
    expect(await parts.add.send(2).outcome).toMatchObject({ kind: "handled" });
    expect(await parts.doubled.pull()).toBe(20);
  }
  {
    await using kernel = await open([]);
    expect(kernel.health()).toMatchObject({ pieces: 0, piecesLeft: [{ id: "c", pattern: "counter" }] });
  }
  await using kernel = await open();
  expect(kernel.health()).toMatchObject({ pieces: 1, piecesLeft: [] });
  const { space } = kernel;
  expect(await space.cell<{ doubled: number }>("c").key("doubled").pull()).toBe(20);
  expect(await space.stream<number>("c/add").send(1).outcome).toMatchObject({ kind: "handled" });
  expect(await space.cell<{ doubled: number }>("c").key("doubled").pull()).toBe(30);
});
