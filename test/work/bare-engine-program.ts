/** Handlers on an engine without an async context. Prints the stored values, and whether the context follows an `await`. */
Object.defineProperty(globalThis.process, "getBuiltinModule", { value: undefined });

const { asyncContext } = await import("../../src/host/async-context.ts");
const { commandEntry } = await import("./entry-points.ts");
const { memoryWorlds, World } = await import("./world.ts");
const { tick } = await import("./trial.ts");

const world = new World(memoryWorlds);
const process = await world.process();
const { space } = process;
const cells = {
  sync: space.cell<number>("sync"),
  through: space.cell<number>("through"),
  within: space.cell<number>("within"),
};
const entry = await commandEntry.open(process, async (data, tx) => {
  cells.sync.set(1);
  await tick(process);
  tx.set(cells.through, 1);
  tx.within(() => cells.within.set(1));
  if (data === "throw") throw new Error("not today");
  return null;
});
const stored = async () => {
  const values = [];
  for (const id of Object.keys(cells)) values.push((await world.stored(id)) ?? null);
  return values;
};
const failed = await world.run(() => entry.handle("first", "throw"));
await world.settle();
const afterThrow = await stored();
const done = await world.run(() => entry.handle("second", null));
console.log(
  JSON.stringify({
    followsAwait: asyncContext.followsAwait,
    ends: [failed.kind, done.kind],
    afterThrow,
    after: await stored(),
  }),
);
