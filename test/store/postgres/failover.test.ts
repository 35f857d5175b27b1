/** A primary that dies, a standby that is promoted, and an old primary that comes back. */
import { describe, expect, test } from "vitest";
import { type AppTx, app, open } from "../../../src/index.ts";
import { LocalServer } from "../../../src/store/postgres/local-server.ts";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import { entry } from "../conformance/requests.ts";
import { CuttingProxy } from "./cutting-proxy.ts";
import { freshSchema, NO_LOCAL_POSTGRES, userClient } from "./server.ts";
import { Standby } from "./standby.ts";

const SETTINGS = { max_connections: "50", shared_buffers: "64MB", fsync: "off" };

const numbers = app("numbers", ({ cell }) => {
  const list = cell<number[]>("list", []);
  return {
    commands: { "Numbers.Add": ({ n }: { n: number }, tx: AppTx) => tx.push(list, n) },
    queries: { "Numbers.All": () => list.get() },
  };
});

async function pair() {
  await using opening = new AsyncDisposableStack();
  const primary = await LocalServer.start({ settings: SETTINGS });
  opening.defer(() => primary.stop());
  const standby = opening.use(await Standby.of(primary, SETTINGS));
  const store = [primary.url, standby.server.url].join(",");
  const kernels = [await open(numbers, { store }), await open(numbers, { store })] as const;
  for (const kernel of kernels) opening.defer(() => kernel.close());
  const opened = opening.move();
  return { primary, standby, kernels, store, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

type Pair = Awaited<ReturnType<typeof pair>>;

/** Adds numbers on both kernels by turns until `over`; resolves with those that were acknowledged. */
async function addNumbers(kernels: Pair["kernels"], from: number, count: number): Promise<number[]> {
  const acknowledged: number[] = [];
  const ended = Array.from({ length: count }, async (_, at) => {
    await kernels[at % 2]!.command("Numbers.Add", { n: from + at });
    acknowledged.push(from + at);
  });
  await Promise.all(ended);
  return acknowledged;
}

async function listed({ kernels }: Pair, count: number): Promise<readonly number[]> {
  for (const kernel of kernels)
    while ((await kernel.query("Numbers.All")).length !== count) await new Promise<void>((done) => setImmediate(done));
  const [first, second] = [await kernels[0].query("Numbers.All"), await kernels[1].query("Numbers.All")];
  expect(second).toEqual(first);
  return first;
}

function sorted(list: readonly number[]): number[] {
  return [...list].sort((a, b) => a - b);
}

describe.skipIf(NO_LOCAL_POSTGRES !== undefined)("failover", () => {
  test("[S284] after the promotion of a synchronous standby each acknowledged write is there, and parked ones are made once", async () => {
    await using under = await pair();
    const { primary, standby, kernels } = under;
    await Standby.makeSynchronous(primary);
    const before = await addNumbers(kernels, 0, 20);
    const during = addNumbers(kernels, 100, 20);
    await kernels[0].query("Numbers.All");
    await primary.kill();
    const parked = addNumbers(kernels, 200, 20);
    await standby.promote();
    const all = [...before, ...(await during), ...(await parked), ...(await addNumbers(kernels, 300, 5))];
    expect(sorted(await listed(under, all.length))).toEqual(sorted(all));
    for (const kernel of kernels) expect(kernel.health().store).toEqual({ backend: "postgres" });
  });

  test("[S284] the promotion of an asynchronous standby is reported: the lost commits are named, and the kernels go on", async () => {
    await using under = await pair();
    const { primary, standby, kernels } = under;
    const before = await addNumbers(kernels, 0, 10);
    await standby.stopFollowing(primary);
    const lost = await addNumbers(kernels, 100, 6);
    expect((await listed(under, 16)).length).toBe(before.length + lost.length);
    await primary.kill();
    await standby.promote();
    const after = await addNumbers(kernels, 200, 4);
    // The replica learns it with the first page of the new history.
    const reported = () => kernels.map((kernel) => kernel.health().store.historyLost ?? "");
    while (reported().includes("")) await new Promise<void>((done) => setImmediate(done));
    for (const text of reported()) expect(text).toContain("lost 3 acknowledged commits of this process");
    for (const kernel of kernels) expect(kernel.health().state).toBe("degraded");
    expect(sorted(await listed(under, 14))).toEqual(sorted([...before, ...after]));
  });

  test("[S285] an old primary that comes back is not used by stores that know its promoted standby", async () => {
    await using under = await pair();
    const { primary, standby, kernels } = under;
    await Standby.makeSynchronous(primary);
    await addNumbers(kernels, 0, 4);
    await primary.kill();
    await standby.promote();
    const proxy = await CuttingProxy.start(standby.server.url);
    const schema = freshSchema();
    const urls = [primary.url, proxy.urlOf(standby.server.url)];
    const store = await openPostgresStore({ url: urls, schema });
    await addNumbers(kernels, 100, 4);
    await primary.launch();
    await using old = await userClient(primary.url);
    expect((await old.query("SELECT pg_is_in_recovery() AS standby")).rows).toEqual([{ standby: false }]);
    // Its connection is lost while both servers take writes.
    proxy.cut();
    await store.append([entry()]);
    expect((await store.count()).pending).toBe(1);
    // A new store compares the two before it takes one.
    const fresh = await openPostgresStore({ url: urls, schema });
    await fresh.append([entry()]);
    expect((await store.count()).pending).toBe(2);
    const here = await old.query("SELECT 1 FROM pg_namespace WHERE nspname = $1", [schema]);
    expect(here.rows).toEqual([]);
    await addNumbers(kernels, 200, 4);
    expect((await listed(under, 12)).length).toBe(12);
    await fresh.close();
    await store.close();
    await proxy.close();
  });
});
