/** Which commands are known to be new, and the cost of knowing it. */

import { describe, expect, test } from "#test";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { HANDLED_IDS_MAX, ID_AHEAD_MS_MAX } from "../../src/limits.ts";
import { HandledIds } from "../../src/work/handled-ids.ts";
import type { Tx } from "../../src/work/tx.ts";
import { commandEntry, streamEntry } from "./entry-points.ts";
import { memoryWorlds, type Process, World } from "./world.ts";

function opened() {
  const host = simulatedHost(7);
  const ids = new HandledIds();
  ids.floorMs = host.now() - 1;
  return { host, ids };
}

describe("ids of handled commands", () => {
  test("[U6] of 200,000 ids no repeated one is taken for new, and few new ones are in doubt", () => {
    const { host, ids } = opened();
    const seen: string[] = [];
    let doubts = 0;
    let wrong = 0;
    for (let n = 0; n < 200_000; n++) {
      if (n % 50 === 0) host.elapse(1);
      const id = host.id();
      if (!ids.isNew(id, host.now())) doubts++;
      seen.push(id);
      const earlier = seen[Math.floor(host.random() * seen.length)] as string;
      if (ids.isNew(earlier, host.now())) wrong++;
    }
    expect(wrong).toBe(0);
    expect(doubts).toBeLessThan(400);
    expect(seen.length).toBeGreaterThan(2 * HANDLED_IDS_MAX);
  });

  test("[U6] ids without a time, from below the floor, and from too far ahead are in doubt", () => {
    const { host, ids } = opened();
    const early = host.id(host.now() - 10_000);
    expect(ids.isNew("order-17", host.now())).toBe(false);
    expect(ids.isNew(early, host.now())).toBe(false);
    ids.floorMs = host.now() + 5;
    expect(ids.isNew(host.id(), host.now())).toBe(false);
    host.elapse(10);
    expect(ids.isNew(host.id(), host.now())).toBe(true);
    host.stepClock(2 * ID_AHEAD_MS_MAX);
    const ahead = host.id();
    host.stepClock(-2 * ID_AHEAD_MS_MAX);
    expect(ids.isNew(ahead, host.now())).toBe(false);
  });

  test("[U6] every id is in doubt until the floor is known, and after receipts were missed", () => {
    const host = simulatedHost(1);
    const ids = new HandledIds();
    expect(ids.isNew(host.id(), host.now())).toBe(false);
    ids.floorMs = host.now() - 1;
    expect(ids.isNew(host.id(), host.now())).toBe(true);
    ids.forget(host.now());
    expect(ids.isNew(host.id(), host.now())).toBe(false);
  });
});

/** A process whose command adds to a counter, with the loads that reach its store counted. */
async function counting(world: World, before?: (id: string) => Promise<void> | undefined) {
  const process = await world.process();
  const total = process.space.cell<number>("total", 0);
  await world.run(() => total.pull());
  let loads = 0;
  let calls = 0;
  process.line.plan = ({ method }) => {
    if (method === "load") loads++;
    return {};
  };
  const increase = (tx: Tx) => {
    tx.set(total, (tx.get(total) ?? 0) + 1);
    return null;
  };
  const add = (_data: unknown, tx: Tx) => {
    calls++;
    const waited = before?.(tx.message?.metadata.id ?? "");
    return waited === undefined ? increase(tx) : waited.then(() => increase(tx));
  };
  const entry = await commandEntry.open(process as Process, add);
  await world.settle();
  const send = (id: string) => entry.handle(id, null);
  const handle = (id: string) => world.run(() => send(id));
  return { process, total, handle, send, loads: () => loads, calls: () => calls };
}

describe("looking for receipts", () => {
  test("[U6] a command with a fresh id costs no look at the store, a repeated one costs one", async () => {
    const world = new World(memoryWorlds);
    const { handle, loads } = await counting(world);
    const ids = Array.from({ length: 100 }, () => world.host.id());
    for (const id of ids) await handle(id);
    expect(loads()).toBe(0);
    await handle(ids[3] as string);
    expect(loads()).toBe(1);
  });

  test("[U8] a command of a client with a fast clock is known after a restart", async () => {
    const world = new World(memoryWorlds);
    const before = await counting(world);
    world.host.stepClock(600_000);
    const id = world.host.id();
    world.host.stepClock(-600_000);
    await before.handle(id);
    const after = await counting(world);
    await after.handle(id);
    expect([after.loads(), after.calls(), await world.stored("total")]).toEqual([1, 0, 1]);
  });

  test("[U8] a command that another process has handled is known when the feed has told of it", async () => {
    const world = new World(memoryWorlds);
    const [here, there] = [await counting(world), await counting(world)];
    world.host.elapse(10);
    const id = world.host.id();
    const seen: unknown[] = [];
    await here.handle(id);
    await world.settle();
    there.total.sink((value) => void seen.push(value));
    await world.settle();
    await there.handle(id);
    await world.settle();
    expect(seen).toEqual([1]);
  });

  test("[U6] a send with an id leaves the notices of commands of other processes to the commands", async () => {
    const world = new World(memoryWorlds);
    const here = await counting(world);
    const there = await counting(world);
    there.total.sink(() => undefined);
    await there.handle(world.host.id());
    const stream = await streamEntry.open(there.process, () => null);
    await world.settle();
    await world.run(() => stream.handle("send-1", 1));
    // Made after the process that gets the repeat has begun.
    world.host.elapse(10);
    const id = world.host.id();
    await here.handle(id);
    await world.settle();
    const before = there.calls();
    await there.handle(id);
    expect([there.calls() - before, await world.stored("total")]).toEqual([0, 2]);
  });

  test("[U6] the receipts of commands that come together are looked up in few calls", async () => {
    const world = new World(memoryWorlds);
    const { process, send, loads, calls } = await counting(world);
    const ids = Array.from({ length: 50 }, (_, n) => `order-${n}`);
    const handleAll = () => world.run(() => Promise.all(ids.map(send)));
    expect((await handleAll()).map(({ kind }) => kind)).toEqual(ids.map(() => "done"));
    expect(await world.stored("total")).toBe(50);
    const before = calls();
    await handleAll();
    expect([calls(), await world.stored("total")]).toEqual([before, 50]);
    expect(loads()).toBeLessThan(10);
    expect(process.errors).toEqual([]);
  });

  test("[U6] a look ahead that failed is repeated at the turn of its command", async () => {
    const world = new World(memoryWorlds);
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const { process, send, loads } = await counting(world, (id) => (id === "slow" ? held : undefined));
    const slow = send("slow");
    await world.settle();
    const { plan } = process.line;
    let failed = 0;
    process.line.plan = (call) => {
      if (call.method !== "load") return plan(call);
      failed++;
      return { instead: new Error("the store is away") };
    };
    const others = [1, 2, 3].map((n) => send(`order-${n}`));
    await world.settle();
    process.line.plan = plan;
    const before = loads();
    release();
    const ends = await world.run(() => Promise.all([slow, ...others]));
    expect(ends.map(({ kind }) => kind)).toEqual(["done", "done", "done", "done"]);
    expect([failed, loads() - before]).toEqual([1, 3]);
    expect(await world.stored("total")).toBe(4);
  });

  test("[U6] a command that another process handles while it waits in a mailbox is answered from that receipt", async () => {
    const world = new World(memoryWorlds);
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const here = await counting(world, (id) => (id === "slow" ? held : undefined));
    const there = await counting(world);
    const ended = [here.send("slow"), here.send("order-1")];
    await world.settle();
    expect([here.calls(), here.loads()]).toEqual([1, 1]);
    await there.handle("order-1");
    await world.settle();
    release();
    expect((await world.run(() => Promise.all(ended))).map(({ kind }) => kind)).toEqual(["done", "done"]);
    expect([here.calls(), there.calls(), await world.stored("total")]).toEqual([1, 1, 2]);
  });
});
