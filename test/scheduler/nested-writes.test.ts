import { describe, expect, test } from "#test";
import { SeededRandom } from "../../src/host/seeded-random.ts";
import { equal } from "../../src/message/equality.ts";
import type { Json } from "../../src/message/json.ts";
import { differsShallow } from "../../src/scheduler/invalidation.ts";
import { type LongPart, rounds, timeoutMs } from "../portable/long-run.ts";
import { Calls, openSite, type Site, setup } from "./scheduler-setup.ts";

const PART: LongPart = { name: "writes at several depths", short: 100, long: 5_000, minutes: 0.5 };
const KEYS = ["a", "b", "list"];

/** Every place that the random documents can have. */
const PLACES: readonly string[][] = [
  [],
  ...KEYS.map((key) => [key]),
  ...KEYS.flatMap((key) => ["a", "b", "0", "1", "2"].map((below) => [key, below])),
];

interface Watch {
  readonly path: readonly string[];
  readonly shallow: boolean;
  last: Json | undefined;
  runs: number;
}

/** Effects that read one place each. */
function watch({ space, scheduler }: Site): Watch[] {
  const { address } = space.cell<Json>("doc");
  return PLACES.flatMap((path) =>
    [false, true].map((shallow) => {
      const seen: Watch = { path, shallow, last: undefined, runs: 0 };
      const at = address.at(path);
      scheduler.register({
        kind: "effect",
        id: `${shallow ? "shape" : "value"} of ${path.join("/")}`,
        run: (run) => {
          seen.last = structuredClone(run.read(at, shallow));
          seen.runs++;
        },
      });
      return seen;
    }),
  );
}

class Writer {
  readonly #random: SeededRandom;
  readonly #site: Site;

  constructor(seed: number, site: Site) {
    this.#random = new SeededRandom(seed, 5);
    this.#site = site;
  }

  pick<T>(items: readonly T[]): T {
    return items[this.#random.below(items.length)] as T;
  }

  #leaf(): Json {
    return this.pick<Json>([1, 2, { a: this.pick([1, 2]) }, [1, this.pick([1, 2])]]);
  }

  #document(): Json {
    return { a: this.#leaf(), b: this.#leaf(), list: [this.#leaf(), this.#leaf()] };
  }

  /** One write at any depth; one that does not fit the document is none. */
  write(): void {
    const doc = this.#site.space.cell<{ a: Json; b: Json; list: Json[] }>("doc");
    const key = this.pick(KEYS) as "a";
    const below = this.pick(["a", "b", "0", "1"]);
    try {
      switch (this.pick(["whole", "key", "key", "below", "below", "push", "splice", "delete", "read"])) {
        case "whole":
          return this.#site.space.cell<Json>("doc").set(this.#document());
        case "key":
          return doc.key(key).set(this.#leaf());
        case "below":
          return doc
            .key(key)
            .key(below as never)
            .set(this.#leaf() as never);
        case "push":
          return doc.key("list").push(this.#leaf());
        case "splice":
          return doc.key("list").splice(0, this.pick([0, 1]), this.#leaf());
        case "delete":
          return doc.key(key).delete();
        case "read":
          // A returned value is frozen, and later writes copy it.
          doc.get();
      }
    } catch {
      // There is no container at that place.
    }
  }
}

describe("writes at several depths of one document in one turn", () => {
  test("[I3] a value that is changed and put back by a write above it calls no sink", async () => {
    const { space, quiet } = await setup();
    const profile = space.cell<{ name: string; age: number }>("profile");
    profile.set({ name: "ada", age: 1 });
    const seen = new Calls();
    profile.key("name").sink(seen.note);
    await quiet();
    profile.key("name").set("draft");
    profile.set({ name: "ada", age: 2 });
    await quiet();
    expect(seen.seen).toEqual(["ada"]);
  });

  test("[R54] writes into a value that is put and replaced in the same turn are committed as their last state", async () => {
    const { space, line, host, quiet } = await setup();
    const doc = space.cell<{ a: Json }>("doc");
    space.cell<Json>("doc").set({ a: [1] });
    doc
      .key("a")
      .key("1" as never)
      .set(2 as never);
    doc.key("a").set(3);
    await quiet();
    await host.run(() => space.settled());
    expect(doc.get()).toEqual({ a: 3 });
    expect(line.arrived).toHaveLength(1);
  });

  test("[I3] a value that a transaction changes and puts back by a write above it calls no sink", async () => {
    const { host, space, quiet } = await setup();
    const profile = space.cell<{ name: string; age: number }>("profile");
    profile.set({ name: "ada", age: 1 });
    const seen = new Calls();
    profile.key("name").sink(seen.note);
    await quiet();
    await host.run(() =>
      space.transact(() => {
        profile.key("name").set("draft");
        profile.set({ name: "ada", age: 2 });
      }),
    );
    await quiet();
    expect(profile.get()).toEqual({ name: "ada", age: 2 });
    expect(seen.seen).toEqual(["ada"]);
  });

  for (const where of ["here", "here, by transactions", "in another process"] as const) {
    test(
      `[I3] random writes run exactly the readers of changed values, ${where}`,
      async () => {
        for (const seed of rounds(PART)) {
          const { host, disk, space, scheduler, line } = await setup({ seed });
          const here: Site = { line, space, scheduler };
          const there = await openSite(host, disk);
          const writer = new Writer(seed, here);
          space.cell<Json>("doc").set({ a: 1, b: { a: 1 }, list: [1] });
          await host.advance(0);
          const watched = where === "in another process" ? there : here;
          const watches = watch(watched);
          await host.advance(0);
          for (let turn = 0; turn < 8; turn++) {
            const before = watches.map(({ last, runs }) => ({ last, runs }));
            const writes = writer.pick([1, 2, 3, 5]);
            const writeAll = () => {
              for (let i = 0; i < writes; i++) writer.write();
            };
            if (where === "here, by transactions") await host.run(() => space.transact(writeAll));
            else writeAll();
            await host.advance(0);
            watches.forEach(({ path, shallow, last, runs }, i) => {
              const old = before[i] as (typeof before)[number];
              const differs = shallow ? differsShallow(old.last, last) : !equal(old.last, last);
              const now = watched.space.cell<Json>("doc").address.at(path).value;
              const place = `seed ${seed}, turn ${turn}: ${shallow ? "shape" : "value"} of /${path.join("/")}`;
              if (!equal(now, last) && !shallow) throw new Error(`${place} is not up to date`);
              if (runs - old.runs !== Number(differs)) throw new Error(`${place} ran ${runs - old.runs} times`);
            });
            watched.scheduler.checkInvariants();
          }
          for (const { scheduler: one } of [here, there]) one.dispose();
        }
      },
      timeoutMs(PART),
    );
  }
});
