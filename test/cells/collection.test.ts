import { describe, expect, test } from "#test";
import { index } from "../../src/cells/collection.ts";
import { encodeKey, type IndexValue } from "../../src/cells/index-key.ts";
import { Space } from "../../src/cells/space.ts";
import { SeededRandom } from "../../src/host/seeded-random.ts";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import type { Store } from "../../src/store/store.ts";
import { isLongRun } from "../portable/long-run.ts";
import { Calls, setup } from "../scheduler/scheduler-setup.ts";

interface Task {
  readonly title: string;
  readonly status: "open" | "done";
  readonly hours: number;
  readonly tags?: readonly string[];
}

const spaces = new WeakMap<object, Space>();

function tasksOf(space: Space) {
  const tasks = space.collection<Task, "by_status">("tasks", {
    indexes: [index("by_status", (task) => [task.status, task.hours], { totals: 1 })],
    sums: { hours: (task) => task.hours },
  });
  spaces.set(tasks, space);
  return tasks;
}

const task = (hours: number, status: Task["status"] = "open"): Task => ({ title: `t${hours}`, status, hours });
const OPEN = { index: "by_status", key: ["open"] } as const;

describe("a collection in plain code", () => {
  test("[R92] [R94] has an element in each document, ids, pages, counts and sums", async () => {
    const { space, quiet } = await setup();
    const tasks = tasksOf(space);
    await quiet();
    tasks.set("b", task(2));
    await quiet();
    tasks.set("a", task(1));
    tasks.set("c", task(3, "done"));
    await quiet();
    expect(tasks.ids()).toEqual(["a", "b", "c"]);
    expect(tasks.all()).toEqual([
      { id: "a", value: task(1) },
      { id: "b", value: task(2) },
      { id: "c", value: task(3, "done") },
    ]);
    expect([tasks.count(), tasks.sum("hours"), tasks.count(OPEN), tasks.sum("hours", OPEN)]).toEqual([3, 6, 2, 3]);
    expect([tasks.has("a"), tasks.has("x"), tasks.get("x")]).toEqual([true, false, undefined]);
    tasks.at("a").key("status").set("done");
    await quiet();
    expect([tasks.count(OPEN), tasks.sum("hours", OPEN), tasks.count()]).toEqual([1, 2, 3]);
    expect(tasks.page({ index: "by_status", from: ["done"], to: ["done"] }).elements.map(({ id }) => id)).toEqual([
      "a",
      "c",
    ]);
    tasks.delete("b");
    tasks.update("c", (value) => ({ ...(value as Task), hours: 10 }));
    await quiet();
    expect([tasks.ids(), tasks.count(), tasks.sum("hours"), tasks.count(OPEN)]).toEqual([["a", "c"], 2, 11, 0]);
    expect(tasks.get("a")?.hours).toBe(1);
  });
});

describe("a collection in computed values and effects", () => {
  test("[R95] a reader of a page runs when an element comes into it, leaves it or changes, and not for others", async () => {
    const { space, quiet } = await setup();
    const tasks = tasksOf(space);
    for (const [id, hours] of Object.entries({ a: 1, b: 2, c: 3, d: 4 })) tasks.set(id, task(hours));
    await quiet();
    const pages = new Calls<string>();
    const first = space.computed("first", () => {
      const { elements } = tasks.page({ index: "by_status", from: ["open"], to: ["open"], limit: 2 });
      return elements.map(({ id, value }) => `${id}${value.title}`).join();
    });
    first.sink((text) => pages.note(text));
    await quiet();
    expect(pages.take()).toEqual(["at1,bt2"]);
    const { runs } = first.node;
    tasks.set("e", task(9));
    tasks.at("d").key("title").set("later");
    tasks.delete("d");
    await quiet();
    expect([first.node.runs - runs, pages.take()]).toEqual([0, []]);
    tasks.set("aa", task(0));
    await quiet();
    expect(pages.take()).toEqual(["aat0,at1"]);
    tasks.at("a").key("title").set("new");
    await quiet();
    expect(pages.take()).toEqual(["aat0,anew"]);
    tasks.at("a").key("status").set("done");
    await quiet();
    expect(pages.take()).toEqual(["aat0,bt2"]);
  });

  test("[R99] a reader of a count or a sum runs when that number changes", async () => {
    const { space, quiet } = await setup();
    const tasks = tasksOf(space);
    tasks.set("a", task(1));
    await quiet();
    const open = space.computed("open", () => tasks.count(OPEN));
    const hours = space.computed("hours", () => tasks.sum("hours"));
    const seen = new Calls<unknown>();
    space.effect(() => seen.note([open.get(), hours.get()]));
    await quiet();
    const [opens, sums] = [open.node.runs, hours.node.runs];
    tasks.set("b", task(5, "done"));
    await quiet();
    expect([open.node.runs - opens, hours.node.runs - sums]).toEqual([0, 1]);
    tasks.at("a").key("title").set("other");
    await quiet();
    expect([open.node.runs - opens, hours.node.runs - sums]).toEqual([0, 1]);
    tasks.at("b").key("status").set("open");
    await quiet();
    expect(seen.take()).toEqual([
      [1, 1],
      [1, 6],
      [2, 6],
    ]);
  });

  test("[R95] a computed value reads a collection that another process has written, and pull waits for its pages", async () => {
    const { host, space, open } = await setup();
    const tasks = tasksOf(space);
    await host.run(() =>
      space.transact(() => {
        for (let n = 0; n < 500; n++) tasks.set(`t${n}`, task(n));
      }),
    );
    const other = await open();
    const there = tasksOf(other.space);
    expect(() => there.ids()).toThrow("is not loaded");
    const sum = other.space.computed("sum", () => there.all().reduce((all, { value }) => all + value.hours, 0));
    expect(await host.run(() => sum.pull())).toBe(124_750);
    expect(await host.run(() => there.pull((all) => all.ids().length))).toBe(500);
    expect(await host.run(() => there.pull((all) => [all.count(), all.sum("hours")]))).toEqual([500, 124_750]);
  });

  test("[R93] a computed value must not write to a collection", async () => {
    const { space } = await setup();
    const tasks = tasksOf(space);
    const wrong = space.computed("wrong", () => tasks.set("a", task(1)));
    expect(() => wrong.get()).toThrow("must not write to collection");
  });

  test("[R93] an effect writes to a collection with its run", async () => {
    const { space, quiet } = await setup();
    const tasks = tasksOf(space);
    const n = space.cell("n", 1);
    space.effect(() => tasks.set(`task ${n.get()}`, task(n.get())));
    await quiet();
    n.set(2);
    await quiet();
    expect([tasks.ids(), tasks.sum("hours")]).toEqual([["task 1", "task 2"], 3]);
  });
});

describe("a collection in transactions", () => {
  test("[R93] a transaction sees its own writes in ids, pages and totals; if it throws, they are undone", async () => {
    const { host, space, quiet } = await setup();
    const tasks = tasksOf(space);
    tasks.set("a", task(1));
    await quiet();
    const seen = await host.run(() =>
      space.transact(() => {
        tasks.set("b", task(2));
        tasks.delete("a");
        tasks
          .at("b")
          .key("hours")
          .update((hours) => (hours ?? 0) + 5);
        return [tasks.ids(), tasks.count(), tasks.sum("hours"), tasks.page({ index: "by_status" }).elements.length];
      }),
    );
    expect(seen).toEqual([["b"], 1, 7, 1]);
    await expect(
      host.run(() =>
        space.transact(() => {
          tasks.set("c", task(3));
          throw new Error("given up");
        }),
      ),
    ).rejects.toThrow("given up");
    await quiet();
    expect([tasks.ids(), tasks.count(), tasks.sum("hours"), tasks.get("c")]).toEqual([["b"], 1, 7, undefined]);
  });

  test("[R97] a transaction that read ids, a page or a count is stale after an insert of another process that changes them", async () => {
    for (const read of ["ids", "page", "count"] as const) {
      const { host, space, open, quiet } = await setup();
      const [tasks, there] = [tasksOf(space), tasksOf((await open()).space)];
      tasks.set("a", task(1));
      await quiet();
      const looks = {
        ids: () => there.ids().length,
        page: () => there.page().elements.length,
        count: () => there.count(),
      };
      const seen: number[] = [];
      const other = (await open()).space;
      const theirs = tasksOf(other);
      await host.run(() => there.pull(() => [there.ids(), there.page(), there.count(), there.get("seen")]));
      await host.run(() =>
        theirs.pull((all) => [all.all(), all.page({ index: "by_status" }), all.count(), all.count(OPEN)]),
      );
      // Both are on their way at once: the second one was made without the first.
      const [first, second] = [
        other.transact(() => theirs.set("b", task(2))),
        there.count() === 1 &&
          spaceOf(there).transact(() => {
            seen.push(looks[read]());
            spaceOf(there).cell("seen").set(seen.length);
          }),
      ];
      await host.run(() => Promise.all([first, second]));
      expect([read, seen]).toEqual([read, [1, 2]]);
    }
  });

  test("[R97] inserts of two processes at once do not conflict; of one process they build on each other", async () => {
    const { host, space, open, quiet } = await setup();
    const other = (await open()).space;
    const [here, there] = [tasksOf(space), tasksOf(other)];
    for (const [at, tasks] of [here, there].entries()) {
      await host.run(() => spaceOf(tasks).transact(() => tasks.set(`first ${at}`, task(at))));
      await host.advance(200);
    }
    await host.run(() =>
      there.pull((all) => [all.ids(), all.page({ index: "by_status" }), all.count(), all.count(OPEN)]),
    );
    let runs = 0;
    const inserts = [here, there].flatMap((tasks, of) =>
      Array.from({ length: 20 }, (_, n) =>
        spaceOf(tasks).transact(() => {
          runs++;
          tasks.set(`${of} ${n}`, task(n));
        }),
      ),
    );
    await host.run(() => Promise.all(inserts));
    await host.advance(200);
    expect(runs).toBe(40);
    await quiet();
    expect([here.count(), there.count(), here.sum("hours"), here.count(OPEN)]).toEqual([42, 42, 381, 42]);
  });

  test("[R93] plain writes to a collection that is not loaded are made when it is", async () => {
    const { host, space, open } = await setup();
    await host.run(() =>
      space.transact(() => {
        for (let n = 0; n < 300; n++) tasksOf(space).set(`t${n}`, task(n));
      }),
    );
    const there = tasksOf((await open()).space);
    there.set("t7", task(1_007));
    there.set("new", task(5));
    there.delete("t8");
    await host.run(() => spaceOf(there).settled());
    await host.advance(200);
    const seen = await host.run(() => there.pull((all) => [all.count(), all.sum("hours"), all.get("t7")?.hours]));
    expect(seen).toEqual([300, 44_850 + 1_000 + 5 - 8, 1_007]);
  });
});

/** The space of a collection, which was made by `tasksOf`. */
function spaceOf(tasks: object): Space {
  return spaces.get(tasks) as Space;
}

describe("misuse of a collection", () => {
  test("[R96] keys have an order: null, booleans, numbers, texts, and a key before those that it begins", () => {
    const random = new SeededRandom(7);
    const values: IndexValue[] = [
      ...[null, false, true, Number.NEGATIVE_INFINITY, -1e300, -2.5, -1, -5e-324, 0, 5e-324, 1, 1.5, 2 ** 53, 1e300],
      ...[
        Number.POSITIVE_INFINITY,
        "",
        "\u0001",
        "\u0001b",
        "\u0002",
        "a",
        "a\u0001",
        "a\u0002",
        "a\u0003",
        "aa",
        "b",
        "ü",
        "\u{1f600}",
      ],
    ];
    for (const [at, low] of values.entries())
      for (const high of values.slice(at + 1)) {
        const after: IndexValue[] = [values[random.below(values.length)] ?? null];
        expect(encodeKey([low, ...after], "test") < encodeKey([high], "test")).toBe(true);
        expect(encodeKey([low], "test") < encodeKey([low, ...after], "test")).toBe(true);
      }
    expect(encodeKey([-0], "test")).toBe(encodeKey([0], "test"));
    expect(encodeKey([undefined], "test")).toBe(encodeKey([null], "test"));
  });

  test("[R96] a bad key, id, index, limit or total is refused with the remedy, and changes no state", async () => {
    const { host, space } = await setup();
    const tasks = space.collection<{ at: unknown }, string>("wrong", {
      indexes: [index("by_at", (element) => [element.at as string])],
      sums: { n: () => Number.NaN },
    });
    expect(() => tasks.set("a", { at: "x".repeat(1_000) })).toThrow("use a shorter text");
    expect(() => tasks.set("a", { at: [1] })).toThrow("use texts, numbers, booleans and null");
    expect(() => tasks.set("a", { at: 1 })).toThrow('sum "n" of collection "wrong" is NaN');
    expect(() => tasks.set("", { at: 1 })).toThrow("as its id");
    expect(() => tasks.page({ index: "by_none" })).toThrow("declare it with index(");
    expect(() => tasks.page({ limit: 0 })).toThrow("1 to 1000 elements");
    expect(() => tasks.sum("m")).toThrow("declares no sum");
    expect(() => tasks.count({ index: "by_at", key: ["x"] })).toThrow("{ totals: 1 }");
    expect(() => space.collection("twice", { indexes: [index("a", () => []), index("a", () => [])] })).toThrow("twice");
    const seen = await host.run(() => tasks.pull((all) => [all.get("a"), all.ids(), all.count()]));
    expect(seen).toEqual([undefined, [], 0]);
  });

  test("[R92] a schema checks every element that is written", async () => {
    const { space, quiet } = await setup();
    const positive = {
      "~standard": {
        version: 1 as const,
        vendor: "test",
        validate: (value: unknown) =>
          (value as number) > 0 ? { value } : { issues: [{ message: "must be positive" }] },
      },
    };
    const numbers = space.collection<number>("numbers", { schema: positive });
    expect(() => numbers.set("a", -1)).toThrow("must be positive");
    numbers.set("a", 1);
    await quiet();
    expect([numbers.ids(), numbers.count()]).toEqual([["a"], 1]);
  });
});

/** Elements before the inserts that are counted. The long run adds 100,000. */
const SIZES = isLongRun ? [100, 10_000, 100_000] : [100, 1_000, 10_000];
const INSERTS = 20;

describe("the work of an insert", () => {
  test("[R98] an insert reads and writes as many documents among many elements as among few", async () => {
    const host = simulatedHost(1);
    const work = { reads: 0, writes: 0, bytes: 0, loads: 0 };
    const space = await Space.open({ store: counted(memoryStore({ host }), work), host, name: "s" });
    const tasks = tasksOf(space);
    let size = 0;
    const grow = async (to: number) => {
      const from = size;
      await host.run(() =>
        space.transact(() => {
          for (let n = from; n < to; n++) tasks.set(`task ${(n * 7_919) % 1_000_003}`, task(n % 50));
        }),
      );
      size = to;
    };
    const costs: (typeof work)[] = [];
    for (const target of SIZES) {
      while (size < target) await grow(Math.min(size + 100, target));
      Object.assign(work, { reads: 0, writes: 0, bytes: 0, loads: 0 });
      for (let n = 0; n < INSERTS; n++) await grow(size + 1);
      costs.push({ ...work });
    }
    expect(tasks.count()).toBe((SIZES.at(-1) as number) + INSERTS);
    for (const { reads, writes, bytes, loads } of costs) {
      // The element, two leaves, two totals. A split writes two pages more, and is rare.
      expect(writes / INSERTS).toBeLessThan(6);
      // The element, two totals and, for each of two indexes, one page for each level of its tree.
      expect(reads / INSERTS).toBeLessThanOrEqual(11);
      // The element. Among 100,000 the memory does not hold every leaf: at most one of each index.
      expect(loads / INSERTS).toBeLessThanOrEqual((SIZES.at(-1) as number) > 10_000 ? 3 : 1);
      // A split rewrites a page of at most 128 keys.
      expect(bytes / INSERTS).toBeLessThan(3_000);
    }
  }, 600_000);
});

/** Counts the documents that commits claim and write, their bytes, and the documents that are loaded. */
function counted(store: Store, work: { reads: number; writes: number; bytes: number; loads: number }): Store {
  return new Proxy(store, {
    get(target, name) {
      const member = Reflect.get(target, name) as unknown;
      if (typeof member !== "function") return member;
      return (...parameters: unknown[]) => {
        if (name === "commit") {
          const { reads, patches } = parameters[0] as {
            reads: readonly { id: string }[];
            patches: readonly { id: string }[];
          };
          work.reads += new Set(reads.map(({ id }) => id)).size;
          work.writes += new Set(patches.map(({ id }) => id)).size;
          work.bytes += JSON.stringify(patches).length;
        }
        if (name === "load") work.loads += (parameters[1] as readonly unknown[]).length;
        return (member as (...parameters: unknown[]) => unknown).apply(target, parameters);
      };
    },
  });
}
