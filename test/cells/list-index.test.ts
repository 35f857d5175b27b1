/** List operations whose function reads the index of its element. */
import { describe, expect, test } from "#test";
import { testSpace } from "../../src/cells/test-space.ts";
import { Calls, setup } from "../scheduler/scheduler-setup.ts";

describe("an operation that looks at the index", () => {
  test("[R27] runs again for elements that have moved, and for no others", async () => {
    const { space, quiet, scheduler } = await setup();
    const items = ["a", "b", "c", "d"].map((id) => space.cell<string>(id));
    for (const item of items) item.set(String(item.address));
    const list = space.cell<readonly unknown[]>("list");
    list.set(items.map((item) => item.asLink()));
    const ran = new Calls<string>();
    const numbered = space.map("numbered", list, (element, index) => {
      const text = `${index.get()} ${element.get()}`;
      ran.note(text);
      return text;
    });
    const seen = new Calls<unknown>();
    numbered.sink(seen.note);
    await quiet();
    expect(seen.take().at(-1)).toEqual(["0 a", "1 b", "2 c", "3 d"]);
    ran.take();
    const [a, b, c, d] = items.map((item) => item.asLink());
    list.set([b, a, c, d]);
    await quiet();
    expect(seen.take().at(-1)).toEqual(["0 b", "1 a", "2 c", "3 d"]);
    expect(ran.take().toSorted()).toEqual(["0 b", "1 a"]);
    list.set([b, a, c]);
    await quiet();
    expect(ran.take()).toEqual([]);
    list.set([d, b, a, c]);
    await quiet();
    expect(seen.take().at(-1)).toEqual(["0 d", "1 b", "2 a", "3 c"]);
    expect(ran.take().toSorted()).toEqual(["0 d", "1 b", "2 a", "3 c"]);
    items[2]?.set("C");
    await quiet();
    expect(ran.take()).toEqual(["3 C"]);
    scheduler.checkInvariants();
  });

  test("[R27] filter and flatMap have it too; one that takes it and does not look is not run for moving", async () => {
    const { space, quiet } = await setup();
    const list = space.cell<readonly { id: string }[]>("list");
    const key = ({ id }: { id: string }) => id;
    list.set(["a", "b", "c", "d"].map((id) => ({ id })));
    const even = space.filter("even", list, (_element, index) => (index.get() ?? 0) % 2 === 0, { key });
    const twice = space.flatMap("twice", list, (element, index) => [element.get()?.id, index.get()], { key });
    const ran = new Calls();
    const careless = space.map("careless", list, (element, _index) => ran.note(element.get()), { key });
    const [evens, twices] = [new Calls<unknown>(), new Calls<unknown>()];
    even.sink(evens.note);
    twice.sink(twices.note);
    careless.sink(() => undefined);
    await quiet();
    ran.take();
    list.set(["d", "a", "b", "c"].map((id) => ({ id })));
    await quiet();
    expect(evens.take().at(-1)).toEqual([{ id: "d" }, { id: "b" }]);
    expect(twices.take().at(-1)).toEqual(["d", 0, "a", 1, "b", 2, "c", 3]);
    expect(ran.count).toBe(0);
  });

  test("[R38] [I7] after a restart, a child runs only if its element has moved", async () => {
    const test = await testSpace({
      build: (space) => {
        const list = space.cell<readonly { id: string }[]>("list");
        const numbered = space.map("numbered", list, (element, index) => `${index.get()} ${element.get()?.id}`, {
          key: ({ id }) => id,
        });
        return { list, numbered };
      },
    });
    const ids = (...all: string[]) => all.map((id) => ({ id }));
    test.app.list.set(ids("a", "b", "c"));
    const look = async () => {
      const seen = new Calls<unknown>();
      test.app.numbered.sink(seen.note);
      await test.settle();
      return seen.seen.at(-1);
    };
    expect(await look()).toEqual(["0 a", "1 b", "2 c"]);
    await test.restart();
    expect(await look()).toEqual(["0 a", "1 b", "2 c"]);
    for (const id of ["a", "b", "c"]) test.expectNotRan(`numbered/${id}`);
    await test.restart();
    test.app.list.set(ids("a", "c", "b"));
    expect(await look()).toEqual(["0 a", "1 c", "2 b"]);
    test.expectNotRan("numbered/a");
    test.expectRan("numbered/b");
    test.expectRan("numbered/c");
    test.expectIdempotent();
  });
});
