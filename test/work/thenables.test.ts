/** Objects that look like promises, returned by code that is no handler of a message. */
import { describe, expect, test } from "#test";
import { memoryWorlds, World } from "./world.ts";

/** A constant, because linters refuse objects with this key. */
const THEN = "then";

function broken(): object {
  return Object.defineProperty({}, THEN, {
    get() {
      throw new Error("no promise");
    },
  });
}

describe("objects with a `then` that throws", () => {
  test("[U31] an effect that returns one fails alone, and later effects run", async () => {
    const world = new World(memoryWorlds);
    const { space, errors } = await world.process();
    const seen: unknown[] = [];
    space.effect(() => broken());
    space.cell<number>("n", 1).sink((n) => void seen.push(n));
    await world.settle();
    expect(errors.map(String)).toEqual(["Error: no promise"]);
    expect(seen.at(-1)).toBe(1);
  });

  test("[U31] a computed value that returns one has that error", async () => {
    const world = new World(memoryWorlds);
    const { space } = await world.process();
    const computed = space.computed("broken", () => broken() as never);
    computed.sink(() => undefined);
    await world.settle();
    expect(String(computed.error)).toBe("Error: no promise");
  });

  test("[U30] `transact` refuses a thenable, does not call it, and takes its writes back", async () => {
    const world = new World(memoryWorlds);
    const { space } = await world.process();
    const n = space.cell<number>("n", 0);
    let called = 0;
    const code = () => {
      n.set(1);
      return { [THEN]: () => void called++ } as object;
    };
    const refused = await world.run(() => space.transact(code).catch((error: object) => error));
    expect([refused, n.get(), called]).toEqual([expect.objectContaining({ code: "STORE_MISUSE" }), 0, 0]);
  });
});
