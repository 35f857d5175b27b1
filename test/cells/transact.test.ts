import { describe, expect, test } from "#test";
import type { StandardSchema } from "../../src/cells/schema.ts";
import { Space } from "../../src/cells/space.ts";
import { TransactionError } from "../../src/cells/transact.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { rejected } from "../../src/store/rejection.ts";
import { Calls, setup } from "../scheduler/scheduler-setup.ts";
import { Gate } from "../store/faulty-store.ts";

describe("transact", () => {
  test("[R28] the writes of transact are one commit, visible at once to plain code and observers", async () => {
    const { space, line, quiet } = await setup();
    const [a, b] = [space.cell<number>("a"), space.cell<number>("b")];
    const seen = new Calls();
    space.effect(() => seen.note([a.get(), b.get()]));
    await quiet();
    seen.take();
    const before = line.arrived.length;
    const done = space.transact(() => {
      a.set(1);
      b.set((a.get() ?? 0) + 1);
      return "done";
    });
    expect([a.get(), b.get()]).toEqual([1, 2]);
    space.flush();
    expect(seen.take()).toEqual([[1, 2]]);
    expect(await done).toBe("done");
    expect(line.arrived.length - before).toBe(1);
  });

  test("[R28] transact that throws undoes its writes and keeps earlier writes", async () => {
    const { space, quiet } = await setup();
    const [a, list] = [space.cell<{ x: number }>("a"), space.cell<number[]>("list")];
    a.set({ x: 1 });
    list.set([1]);
    await quiet();
    const seen = new Calls();
    a.sink(seen.note);
    space.flush();
    a.key("x").set(2);
    const failing = space.transact(() => {
      a.key("x").set(3);
      list.push(2);
      list.splice(0, 1);
      a.set({ x: 4 });
      a.delete();
      throw new Error("given up");
    });
    await expect(failing).rejects.toThrow("given up");
    space.flush();
    expect([a.get(), list.get()]).toEqual([{ x: 2 }, [1]]);
    expect(seen.take()).toEqual([{ x: 1 }, { x: 2 }]);
    a.address.home.replica.checkInvariants();
  });

  test("[R28] transact runs again if another process changed a value that it read", async () => {
    const { space, host, open, quiet } = await setup();
    const other = await open();
    const counter = space.cell<number>("counter");
    counter.set(0);
    await quiet();
    await other.space.cell("counter").pull();
    let runs = 0;
    const count = (site: Space) =>
      site.transact(() => {
        runs++;
        const cell = site.cell<number>("counter");
        cell.set((cell.get() ?? 0) + 1);
      });
    await host.run(() => Promise.all(Array.from({ length: 10 }, (_, i) => count(i % 2 === 0 ? space : other.space))));
    await quiet();
    expect([counter.get(), other.space.cell("counter").get()]).toEqual([10, 10]);
    expect(runs).toBeGreaterThan(10);
  });

  test("[R28] a read through a computed value is part of a transaction's read set", async () => {
    const { space, host, line, open, quiet } = await setup();
    const other = await open();
    const [stock, orders] = [space.cell<number>("stock"), space.cell<number[]>("orders")];
    stock.set(1);
    orders.set([]);
    await quiet();
    await other.space.cell("stock").pull();
    const left = space.computed("left", () => (stock.get() ?? 0) - (orders.get()?.length ?? 0));
    left.sink(() => undefined);
    await quiet();
    const gate = new Gate();
    line.plan = ({ method }) => (method === "changesSince" ? { arrives: gate.opened } : {});
    other.space.cell<number>("stock").set(0);
    await quiet();
    const found = new Calls();
    const sold = space.transact(() => {
      found.note(left.get());
      if ((left.get() ?? 0) > 0) orders.push(1);
    });
    await quiet();
    gate.open();
    await host.run(() => sold);
    expect(found.take()).toEqual([1, 0]);
    expect(orders.get()).toEqual([]);
  });

  test("[R28] a rejection that is not to be repeated is thrown with its class; a stale one only when its time is over", async () => {
    const { space, line, host } = await setup();
    let answer = rejected("refused", "too-large", "too large");
    line.plan = ({ method }) => (method === "commit" ? { instead: answer } : {});
    const refused = space.transact(() => space.cell("a").set(1));
    await expect(refused).rejects.toThrow("did not last: too large");
    await refused.catch((error: TransactionError) => {
      expect(error).toBeInstanceOf(TransactionError);
      expect([error.code, error.rejection.class]).toEqual(["TRANSACTION_REJECTED", "refused"]);
    });
    answer = rejected("stale", "read-moved", "moved");
    const from = host.monotonic();
    let runs = 0;
    const stale = space.transact(
      () => {
        runs++;
        space.cell("a").set(runs);
      },
      { windowMs: 1_000 },
    );
    await expect(host.run(() => stale)).rejects.toThrow("moved");
    expect(host.monotonic() - from).toBeGreaterThanOrEqual(1_000);
    expect(runs).toBeGreaterThan(5);
  });

  test("[R28] transact runs again if a commit that it has read from is rolled back", async () => {
    const { space, line, host, quiet } = await setup();
    const [a, b] = [space.cell<number>("a"), space.cell<number>("b")];
    a.set(1);
    await quiet();
    line.plan = ({ method, request }) => {
      const isFirst = request?.patches.some(({ id }) => id === "a");
      return method === "commit" && isFirst ? { instead: rejected("refused", "too-large", "no") } : {};
    };
    a.set(2);
    const found = new Calls();
    const done = space.transact(() => {
      found.note(a.get());
      b.set((a.get() ?? 0) * 10);
    });
    await host.run(() => done);
    expect(found.take()).toEqual([2, 1]);
    expect(b.get()).toBe(10);
  });

  test("[R28] a transaction inside a transaction is part of it; one of another space is refused", async () => {
    const { space, host, line, quiet } = await setup();
    const other = await Space.open({ store: memoryStore({ host }), host, name: "t", scheduler: space.scheduler });
    const before = line.arrived.length;
    await space.transact(() => {
      space.cell("a").set(1);
      void space.transact(() => space.cell("b").set(2));
    });
    expect(line.arrived.length - before).toBe(1);
    const crossing = space.transact(() => {
      space.cell("a").set(9);
      other.cell("c").set(3);
    });
    await expect(crossing).rejects.toThrow("one commit of one space");
    await quiet();
    expect([space.cell("a").get(), space.cell("b").get(), other.cell("c").get()]).toEqual([1, 2, undefined]);
  });

  test("[R28] a transaction does not write to another space either where plain code has just written there", async () => {
    const { space, host, quiet } = await setup();
    const other = await Space.open({ store: memoryStore({ host }), host, name: "t", scheduler: space.scheduler });
    const [a, c] = [space.cell<number>("a"), other.cell<number>("c")];
    c.set(1);
    const crossing = space.transact(() => {
      a.set(9);
      c.set(3);
    });
    await expect(crossing).rejects.toThrow("one commit of one space");
    await quiet();
    expect([a.get(), c.get()]).toEqual([undefined, 1]);
    c.set(2);
    let inside: Promise<void> | undefined;
    const outside = space.transact(() => {
      inside = other.transact(() => c.set(3));
      a.set(9);
    });
    await expect(inside).rejects.toThrow("one commit of one space");
    await outside;
    expect([a.get(), c.get()]).toEqual([9, 2]);
  });

  test("[R28] inside a node's run it is part of that run's commit", async () => {
    const { space, line, quiet } = await setup();
    const [a, b] = [space.cell<number>("a"), space.cell<number>("b")];
    const before = line.arrived.length;
    space.effect(() => {
      a.set(1);
      void space.transact(() => b.set(2));
    });
    await quiet();
    expect(line.arrived.length - before).toBe(1);
  });

  test("[R20] [R21] [R29] a transaction knows defaults, schemas, and that a computed value is not written", async () => {
    const { space, open, quiet } = await setup();
    const other = await open();
    const votes = (of: Space) => of.cell<Record<string, number>>("votes", {});
    const never: StandardSchema<number> = {
      "~standard": { version: 1, vendor: "test", validate: () => ({ issues: [{ message: "is never right" }] }) },
    };
    using first = space.begin();
    using second = other.space.begin();
    expect(first.get(votes(space))).toEqual({});
    expect(() => first.set(space.cell("strict", undefined, { schema: never }), 1)).toThrow("is never right");
    expect(() =>
      first.set(
        space.computed("derived", () => 1),
        2,
      ),
    ).toThrow("is a computed value");
    first.set(votes(space).key("ada"), 1);
    second.set(votes(other.space).key("bob"), 1);
    expect(await first.commit()).toMatchObject({ kind: "committed" });
    await quiet();
    expect(await second.commit()).toMatchObject({ kind: "rejected", class: "stale" });
    using third = other.space.begin();
    third.set(votes(other.space).key("bob"), 1);
    expect(await third.commit()).toMatchObject({ kind: "committed" });
    await quiet();
    expect(votes(space).get()).toEqual({ ada: 1, bob: 1 });
  });

  test("[R29] a transaction across awaits reads its own writes and is stale when others were faster", async () => {
    const { space, open, quiet } = await setup();
    const other = await open();
    const [a, b] = [space.cell<number>("a"), space.cell<number>("b")];
    a.set(1);
    space.cell("link").set(a.asLink());
    await quiet();
    await other.space.cell("a").pull();
    const first = space.begin();
    first.set(b, (first.get(space.cell<number>("link")) ?? 0) + 1);
    expect(first.get(b)).toBe(2);
    expect(b.get()).toBeUndefined();
    await quiet();
    expect(await first.commit()).toMatchObject({ kind: "committed" });
    expect(b.get()).toBe(2);
    using second = space.begin();
    second.set(b, (second.get(a) ?? 0) + 10);
    other.space.cell<number>("a").set(5);
    await quiet();
    expect(await second.commit()).toMatchObject({ kind: "rejected", class: "stale" });
    expect(b.get()).toBe(2);
    const third = space.begin();
    third.delete(b);
    third.abort();
    expect(b.get()).toBe(2);
  });

  test("[R29] begin has every write of a cell, and refuses all of them after its end", async () => {
    const { space, host } = await setup();
    const [count, list] = [space.cell<number>("count", 1), space.cell<string[]>("list", ["a"])];
    await host.run(() => Promise.all([count.pull(), list.pull()]));
    const tx = space.begin();
    tx.update(count, (value) => (value ?? 0) + 1);
    tx.push(list, "b", "c");
    tx.splice(list, 0, 1);
    expect([tx.get(count), tx.get(list), count.get(), list.get()]).toEqual([2, ["b", "c"], 1, ["a"]]);
    expect(await host.run(() => tx.commit())).toMatchObject({ kind: "committed" });
    expect([count.get(), list.get()]).toEqual([2, ["b", "c"]]);
    expect(() => tx.push(list, "d")).toThrow("has ended");
    expect(() => tx.commit()).toThrow("has ended");
    tx.abort();
  });
});
