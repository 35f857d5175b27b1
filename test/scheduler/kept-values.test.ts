/** Rows that would be wrong for a later process: each mistake shows only after a restart. */
import { describe, expect, test } from "#test";
import type { Space } from "../../src/cells/space.ts";
import { rejected } from "../../src/store/rejection.ts";
import { Gate } from "../store/faulty-store.ts";
import { type Life, setup } from "./restart-setup.ts";
import { Calls } from "./scheduler-setup.ts";

type Setup = ReturnType<typeof setup>;

/** The next process's view of a resumed computation. */
async function shownNext<T>(
  at: Setup,
  build: (life: Life) => { sink(callback: (value: T | undefined) => void): unknown },
) {
  const life = await at.begin();
  const seen = new Calls<T | undefined>();
  void life.space.restore(() => build(life)).then((value) => value.sink(seen.note));
  await at.host.advance(1_000);
  return { life, shown: seen.seen.at(-1) };
}

/** Sixty-four keys, one of which follows from the input: changes are stored as differences. */
function wide(space: Space): Record<string, number> {
  const input = space.cell<number>("input").get() ?? 0;
  return Object.fromEntries(Array.from({ length: 64 }, (_, key) => [`k${key}`, key === 7 ? input : key]));
}

describe("stored rows of a computation", () => {
  test("[I7] [R34] the row of a dormant computation with a changed input does not count as current", async () => {
    const at = setup();
    const build = ({ space }: Life) => space.computed("double", () => (space.cell<number>("input").get() ?? 0) * 2);
    const life = await at.begin();
    life.space.cell("input").set(1);
    await at.host.advance(0);
    expect(await at.host.run(() => build(life).pull())).toBe(2);
    life.space.cell("input").set(5);
    await at.host.advance(1_000);
    life.kill();
    expect((await shownNext(at, build)).shown).toBe(10);
  });

  test("[I7] [R34] the row of a computation with side-writes waits until those are confirmed", async () => {
    const at = setup();
    const build = ({ space }: Life) =>
      space.computed("writer", () => {
        const input = space.cell<number>("input").get() ?? 0;
        space.cell("beside").set(input * 10);
        return input;
      });
    const life = await at.begin();
    life.space.cell("input").set(3);
    await at.host.advance(0);
    // They were rolled back, and this process has not heard it yet.
    const answers = new Gate();
    const instead = rejected("stale", "read-moved", "somebody was faster");
    life.line.plan = ({ request }) =>
      request && request.basis.length === 0 ? { instead, answered: answers.opened } : {};
    build(life).sink(() => undefined);
    await at.host.advance(1_000);
    expect(life.derivedCommits).toEqual([]);
    life.kill();
    const next = await shownNext(at, build);
    expect(next.shown).toBe(3);
    expect(await at.host.run(() => next.life.space.cell("beside").pull())).toBe(30);
  });

  test("[I7] [I1] an output that another process has overwritten is stored again, even with an equal result", async () => {
    const at = setup();
    const build = ({ space }: Life) =>
      space.computed("tens", () => Math.floor((space.cell<number>("input").get() ?? 0) / 10));
    const life = await at.begin();
    life.space.cell("input").set(11);
    build(life).sink(() => undefined);
    await at.host.advance(1_000);
    const other = await at.begin();
    other.space.cell("tens").set("something else");
    await at.host.advance(1_000);
    life.space.cell("input").set(12);
    await at.host.advance(1_000);
    life.kill();
    expect((await shownNext(at, build)).shown).toBe(1);
  });

  test("[I7] [R34] a difference is stored only on the value that it was taken from", async () => {
    const at = setup();
    const build = ({ space }: Life) => space.computed("wide", () => wide(space));
    const life = await at.begin();
    life.space.cell("input").set(1);
    build(life).sink(() => undefined);
    await at.host.advance(1_000);
    const other = await at.begin();
    life.space.cell("input").set(2);
    await at.host.advance(0);
    const feed = new Gate();
    life.line.plan = ({ method }) => (method === "changesSince" ? { arrives: feed.opened } : {});
    other.space.cell("wide").set({ theirs: true });
    await at.host.advance(1_000);
    const expected = wide(life.space);
    expect(expected["k7"]).toBe(2);
    life.kill();
    expect((await shownNext(at, build)).shown).toEqual(expected);
  });
});
