/** Pieces over a restart of the whole kernel on a real file. */
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Cell } from "../../src/cells/cell.ts";
import { pattern } from "../../src/cells/pattern.ts";
import { systemHost } from "../../src/host/system-host.ts";
import { Kernel } from "../../src/kernel/kernel.ts";
import type { KernelOptions } from "../../src/kernel/kernel-options.ts";
import { openSqliteStore } from "../../src/store/sqlite/index.ts";
import { scratchFolder } from "../repo/program.ts";

let computed = 0;

const counter = pattern("counter", (inputs: Cell<{ step: number }>, piece) => {
  const count = piece.cell<number>("count", 0);
  const add = piece.stream<number>("add");
  add.handle((times) => count.set((count.get() ?? 0) + times * (inputs.key("step").get() ?? 0)));
  const doubled = piece.computed("doubled", () => {
    computed++;
    return (count.get() ?? 0) * 2;
  });
  return { count, add, doubled };
});

test("[P6] [K20] [I7] a kernel resumes its pieces: state, streams and computed values, without computing again", async () => {
  const host = systemHost();
  const path = join(scratchFolder(), "kernel.db");
  const open = async (given: Pick<KernelOptions, "patterns"> = { patterns: [counter] }) =>
    Kernel.open({ host, store: await openSqliteStore({ path, host }), ...given, version: "1" });
  {
    await using kernel = await open();
    const { parts } = await kernel.space.run(counter, { step: 5 }, { id: "c" });
    expect(await parts.add.send(2).outcome).toMatchObject({ kind: "handled" });
    expect(await parts.doubled.pull()).toBe(20);
  }
  for (const given of [{ patterns: [] }, {}]) {
    await using kernel = await open(given);
    expect(kernel.health()).toMatchObject({ pieces: 0, piecesLeft: [{ id: "c", pattern: "counter" }] });
  }
  await using kernel = await open();
  expect(kernel.health()).toMatchObject({ pieces: 1, piecesLeft: [] });
  const { space } = kernel;
  const before = computed;
  expect(await space.cell<{ doubled: number }>("c").key("doubled").pull()).toBe(20);
  expect(computed).toBe(before);
  expect(await space.stream<number>("c/add").send(1).outcome).toMatchObject({ kind: "handled" });
  expect(await space.cell<{ doubled: number }>("c").key("doubled").pull()).toBe(30);
});
