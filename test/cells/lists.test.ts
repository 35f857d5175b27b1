import { describe, expect, test } from "#test";
import type { Json } from "../../src/message/json.ts";
import { Calls, setup } from "../scheduler/scheduler-setup.ts";
import { Gate } from "../store/faulty-store.ts";

interface Item {
  readonly id: string;
  readonly n: number;
}

async function items(...ids: string[]) {
  const parts = await setup();
  const { space } = parts;
  const cells = new Map(ids.map((id) => [id, space.cell<Item>(id)]));
  ids.forEach((id, n) => {
    cells.get(id)?.set({ id, n });
  });
  const list = space.cell<readonly Json[]>("list");
  const show = (...order: string[]) => list.set(order.map((id) => space.cell(id).asLink()));
  show(...ids);
  const runs = new Calls<string>();
  return { ...parts, cells, list: space.cell<readonly Item[]>("list"), show, runs };
}

describe("lists", () => {
  test("[R27] map over links runs no child for a move, and one child for a change or an addition", async () => {
    const { space, list, show, cells, runs, scheduler } = await items("a", "b", "c");
    const names = space.map("names", list, (item) => {
      runs.note(item.get()?.id ?? "?");
      return `${item.get()?.id}${item.get()?.n}`;
    });
    const seen = new Calls();
    names.sink(seen.note);
    space.flush();
    expect(runs.take()).toEqual(["a", "b", "c"]);
    show("c", "a", "b");
    space.flush();
    expect(runs.take()).toEqual([]);
    cells.get("a")?.key("n").set(9);
    space.flush();
    expect(runs.take()).toEqual(["a"]);
    space.cell("d").set({ id: "d", n: 4 });
    show("c", "a", "d", "b");
    space.flush();
    expect(runs.take()).toEqual(["d"]);
    expect(seen.take()).toEqual([
      ["a0", "b1", "c2"],
      ["c2", "a0", "b1"],
      ["c2", "a9", "b1"],
      ["c2", "a9", "d4", "b1"],
    ]);
    scheduler.checkInvariants();
  });

  test("[R27] map over values goes by position, or by key where one is given", async () => {
    const { space, scheduler } = await setup();
    const list = space.cell<Item[]>("list");
    const [a, b, c] = [
      { id: "a", n: 1 },
      { id: "b", n: 2 },
      { id: "c", n: 3 },
    ] as const;
    list.set([a, b]);
    const [byPlace, byKey] = [new Calls<string>(), new Calls<string>()];
    space
      .map("by place", list, (item) => {
        byPlace.note(item.get()?.id ?? "?");
        return item.get()?.n;
      })
      .sink(() => undefined);
    const keyed = space.map(
      "by key",
      list,
      (item) => {
        byKey.note(item.get()?.id ?? "?");
        return item.get()?.n;
      },
      { key: ({ id }) => id },
    );
    const seen = new Calls();
    keyed.sink(seen.note);
    space.flush();
    byPlace.take();
    byKey.take();
    list.set([c, a, b]);
    space.flush();
    expect(byPlace.take()).toEqual(["c", "a", "b"]);
    expect(byKey.take()).toEqual(["c"]);
    list.set([{ ...c, n: 30 }, a]);
    space.flush();
    expect(byKey.take()).toEqual(["c"]);
    expect(seen.take()).toEqual([
      [1, 2],
      [3, 1, 2],
      [30, 1],
    ]);
    scheduler.checkInvariants();
  });

  test("[R27] keys that look like the list's own names, or like repeated ones, are kept apart; ordinary ones are the child's name", async () => {
    const { space, scheduler } = await setup();
    const errors = new Calls();
    scheduler.onError(errors.note);
    const list = space.cell<readonly Item[]>("keyed");
    const ids = ["docs", "docs/element", "docs/index", "a", "a", "a~1", "a~", "~1", "/", "~s", "~"];
    list.set(ids.map((id, n) => ({ id, n })));
    const shown = space.map("shown", list, (item, index) => [item.get()?.id, item.get()?.n, index.get()] as never, {
      key: ({ id }) => id,
    });
    const seen = new Calls();
    shown.sink(seen.note);
    space.flush();
    const right = (order: readonly string[]) => order.map((id, n) => [id, n, n]);
    expect(seen.take()).toEqual([right(ids)]);
    const turned = ids.toReversed();
    list.set(turned.map((id, n) => ({ id, n })));
    space.flush();
    expect([seen.take().at(-1), errors.take()]).toEqual([right(turned), []]);
    expect(["shown/docs", "shown/a", "shown/a~1"].map((id) => scheduler.find(id)?.id)).toEqual([
      "shown/docs",
      "shown/a",
      "shown/a~1",
    ]);
    scheduler.checkInvariants();
  });

  test("[R27] equal elements keep runs of their own", async () => {
    const { space, list, show, runs } = await items("a", "b");
    const names = space.map("names", list, (item) => {
      runs.note(item.get()?.id ?? "?");
      return item.get()?.id;
    });
    const seen = new Calls();
    names.sink(seen.note);
    show("a", "a", "b");
    space.flush();
    expect(runs.take()).toEqual(["a", "a", "b"]);
    show("a", "b");
    space.flush();
    expect(runs.take()).toEqual([]);
    expect(seen.take()).toEqual([
      ["a", "a", "b"],
      ["a", "b"],
    ]);
  });

  test("[R27] filter: one verdict flips, the list changes, the other verdicts are not asked again", async () => {
    const { space, list, cells, runs, scheduler } = await items("a", "b", "c");
    const odd = space.filter("odd", list, (item) => {
      runs.note(item.get()?.id ?? "?");
      return (item.get()?.n ?? 0) % 2 === 1;
    });
    const seen = new Calls();
    odd.sink((value) => seen.note((value as Item[] | undefined)?.map(({ id }) => id)));
    space.flush();
    runs.take();
    cells.get("c")?.key("n").set(3);
    space.flush();
    expect(runs.take()).toEqual(["c"]);
    expect(seen.take()).toEqual([["b"], ["b", "c"]]);
    scheduler.checkInvariants();
  });

  test("[R27] flatMap concatenates the arrays that its function returns", async () => {
    const { space, scheduler } = await setup();
    const list = space.cell<number[]>("list");
    list.set([1, 2]);
    const all = space.flatMap("all", list, (n) => Array.from({ length: n.get() ?? 0 }, () => n.get() ?? 0));
    const seen = new Calls();
    all.sink(seen.note);
    space.flush();
    list.set([2, 0, 1]);
    space.flush();
    expect(seen.take()).toEqual([
      [1, 2, 2],
      [2, 2, 1],
    ]);
    scheduler.checkInvariants();
  });

  test("[R27] a removed element removes its child, unless the child is observed", async () => {
    const { space, list, show, cells, runs, scheduler } = await items("a", "b");
    const names = space.map("names", list, (item) => {
      runs.note(item.get()?.id ?? "?");
      return item.get()?.n;
    });
    names.sink(() => undefined);
    space.flush();
    const opened = new Calls();
    const child = scheduler.getGraphSnapshot().find(({ id }) => id.startsWith("names/") && id.includes('"a"'));
    const cancel = space.cell(child?.writes[0] ?? "").sink(opened.note);
    show();
    space.flush();
    runs.take();
    cells.get("a")?.key("n").set(7);
    cells.get("b")?.key("n").set(8);
    space.flush();
    expect(runs.take()).toEqual(["a"]);
    expect(opened.take()).toEqual([0, 7]);
    cancel();
    show("b");
    space.flush();
    cells.get("a")?.key("n").set(9);
    space.flush();
    expect(runs.take()).toEqual(["b"]);
    expect(scheduler.getGraphSnapshot().filter(({ id }) => id.startsWith("names/"))).toHaveLength(1);
    scheduler.checkInvariants();
  });

  test("[R27] a list of lists, filtered and mapped, is right after every change", async () => {
    const { space, scheduler } = await setup();
    const list = space.cell<number[]>("list");
    list.set([]);
    const even = space.filter("even", list, (n) => (n.get() ?? 0) % 2 === 0);
    const twice = space.map("twice", even, (n) => (n.get() ?? 0) * 2);
    const seen = new Calls();
    twice.sink(seen.note);
    for (const next of [[1, 2, 3, 4], [4, 2], [2, 4, 6, 6], [], [8]]) {
      list.set(next);
      space.flush();
      scheduler.checkInvariants();
    }
    expect(seen.take()).toEqual([[4, 8], [8, 4], [4, 8, 12, 12], [], [16]]);
  });

  test("[R27] elements that are computed are looked at one by one", async () => {
    const { space } = await setup();
    const list = space.cell<number[]>("list");
    list.set([1, 2, 3]);
    const squares = space.map("squares", list, (n) => (n.get() ?? 0) ** 2);
    const seen = new Calls();
    squares.key(1).sink(seen.note);
    space.flush();
    list.key(0).set(10);
    space.flush();
    list.key(1).set(5);
    space.flush();
    expect(seen.take()).toEqual([4, 25]);
  });

  test("[R27] [S60] a place that was being loaded keeps the value that a list writes meanwhile", async () => {
    const { space, scheduler, line, quiet } = await setup();
    const list = space.cell<number[]>("list");
    list.set([1, 2]);
    await quiet();
    const gate = new Gate();
    line.plan = ({ method }) => (method === "load" ? { arrives: gate.opened } : {});
    const element = space.cell<number>("twice/0/element");
    const index = space.cell<number>("twice/0/index");
    const seen = new Calls();
    element.sink(seen.note);
    index.sink(seen.note);
    space.flush();
    const twice = space.map("twice", list, (n, at) => `${at.get()}: ${(n.get() ?? 0) * 2}`);
    const shown = new Calls();
    twice.sink(shown.note);
    space.flush();
    gate.open();
    await quiet();
    scheduler.checkInvariants();
    expect(shown.take()).toEqual([["0: 2", "1: 4"]]);
    expect([element.get(), index.get(), seen.seen.at(-1)]).toEqual([1, 0, 0]);
    list.set([5, 2]);
    space.flush();
    expect([element.get(), shown.take()]).toEqual([5, [["0: 10", "1: 4"]]]);
  });
});
