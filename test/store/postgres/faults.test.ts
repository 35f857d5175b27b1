/** Lost connections, killed servers and fenced writers: an acknowledged write is there, and no write is there twice. */
import { describe, expect, test } from "vitest";
import { SeededRandom } from "../../../src/host/seeded-random.ts";
import { DatabaseLink } from "../../../src/store/postgres/link.ts";
import { resolveOptions } from "../../../src/store/postgres/options.ts";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import type { Store } from "../../../src/store/store.ts";
import { commitBy, committed, entry, ref, SPACE, set, splice } from "../conformance/requests.ts";
import { CuttingProxy } from "./cutting-proxy.ts";
import { freshSchema, NO_POSTGRES, testServer } from "./server.ts";

const server = testServer({ crashes: true });

interface Under extends AsyncDisposable {
  readonly store: Store;
  readonly proxy: CuttingProxy;
  readonly schema: string;
  /** Another store object, without the proxy. */
  other(): Promise<Store>;
  /** Runs a statement of an operator. */
  sql(text: string): Promise<readonly Readonly<Record<string, unknown>>[]>;
}

async function setup(deadlineMs = 30_000): Promise<Under> {
  const proxy = await CuttingProxy.start(server.url);
  const schema = freshSchema();
  const opened: Store[] = [];
  const open = async (url: string, tuning: { deadlineMs?: number } = {}) => {
    const store = await openPostgresStore({ url, schema, tuning: { ...tuning, closeWaitMs: 1_000 } });
    opened.push(store);
    return store;
  };
  const store = await open(proxy.urlOf(server.url), { deadlineMs });
  return {
    store,
    proxy,
    schema,
    other: () => open(server.url),
    sql: async (text) => {
      const link = await DatabaseLink.open(resolveOptions({ url: server.url }));
      const rows = await link.query(text);
      await link.close();
      return rows;
    },
    [Symbol.asyncDispose]: async () => {
      for (const one of opened) await one.close();
      await proxy.close();
    },
  };
}

function isAway(store: Store): Promise<void> {
  return until(store, () => store.connection.state !== "connected");
}

function isBack(store: Store): Promise<void> {
  return until(store, () => store.connection.state === "connected");
}

function until(store: Store, holds: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    const check = () => {
      if (!holds()) return;
      stop();
      resolve();
    };
    const stop = store.watch(check);
    check();
  });
}

describe.skipIf(NO_POSTGRES !== undefined)("lost connections", () => {
  test("[S260] writes whose connection is cut at random are made once, in any order of cuts", async () => {
    for (const seed of [1, 2, 3]) {
      await using under = await setup();
      const random = new SeededRandom(seed, 0);
      under.proxy.cutsBefore = () => random.below(12) === 0;
      committed(await under.store.commit(commitBy("s", 0, { patches: [set("list", [], [])] })));
      const rounds = 60;
      for (let n = 1; n <= rounds; n++) {
        under.proxy.dropsAnswers = random.below(8) === 0;
        const write = under.store.commit(
          commitBy("s", n, { patches: [splice("list", [], n - 1, 0, [n])], entries: [entry({ id: `${seed} ${n}` })] }),
        );
        // The cut connection is replaced, so the answers of the next one must pass.
        await Promise.race([write, isAway(under.store)]);
        under.proxy.dropsAnswers = false;
        expect([seed, n, (await write).kind]).toEqual([seed, n, "committed"]);
      }
      under.proxy.cutsBefore = undefined;
      const other = await under.other();
      const { documents } = await other.load(SPACE, [ref("list")]);
      expect(documents[0]?.value).toEqual(Array.from({ length: rounds }, (_, n) => n + 1));
      expect((await other.count()).pending).toBe(rounds);
      expect((await other.changesSince(SPACE, 0, 1_000)).commits.length).toBe(rounds + 1);
      expect(await other.verify()).toMatchObject({ ok: true });
    }
  });

  test("[S237] [S238] while the database is away, writes wait and are made when it is back; claims and reads fail", async () => {
    await using under = await setup();
    const { store, proxy } = under;
    proxy.isDown = true;
    proxy.cut();
    await isAway(store);
    const writes = [1, 2, 3].map((n) => store.commit(commitBy("s", n, { patches: [set("n", [], n)] })));
    const appended = store.append([entry()]);
    await expect(store.openLease(1_000)).rejects.toMatchObject({ code: "STORE_AWAY" });
    await expect(store.claim({ lease: 1, limit: 1, kinds: ["event"] })).rejects.toMatchObject({ code: "STORE_AWAY" });
    await expect(store.load(SPACE, [])).rejects.toMatchObject({ code: "STORE_AWAY" });
    expect(store.connection).toMatchObject({ state: "away", parked: 4, reason: expect.any(String) });
    proxy.isDown = false;
    for (const write of writes) committed(await write);
    expect(await appended).toMatchObject({ kind: "appended" });
    await isBack(store);
    expect((await store.load(SPACE, [ref("n")])).documents[0]?.value).toBe(3);
    expect(store.connection.parked).toBe(0);
  });

  test("[S260] a stalled connection is given up at the deadline, and the batch is made once", async () => {
    await using under = await setup(2_000);
    const { store, proxy } = under;
    committed(await store.commit(commitBy("s", 1, { patches: [set("n", [], 1)] })));
    proxy.isStalled = true;
    const write = store.commit(commitBy("s", 2, { patches: [set("n", [], 2)], entries: [entry()] }));
    await isAway(store);
    proxy.cut();
    proxy.isStalled = false;
    committed(await write);
    // Without the deadline, which a busy machine may pass.
    expect((await (await under.other()).count()).pending).toBe(1);
  });

  test("[S260] [S261] a backend that is ended in the middle of a batch leaves no part of it twice", async () => {
    await using under = await setup();
    const { store, schema } = under;
    for (let n = 1; n <= 10; n++) {
      const writes = Array.from({ length: 20 }, (_, at) =>
        store.commit(commitBy("s", n * 100 + at, { patches: [set(`d${at}`, [], n)], entries: [entry()] })),
      );
      await under.sql(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'millrace' AND pid <> pg_backend_pid() AND query LIKE '%${schema}%'`,
      );
      for (const write of writes) committed(await write);
    }
    await isBack(store);
    expect((await store.count()).pending).toBe(200);
    expect((await store.load(SPACE, [])).sequence).toBe(200);
  });

  test("[S262] a writer whose place was taken is fenced: its next batch is made under a new lane, once", async () => {
    await using under = await setup();
    const { store, schema } = under;
    await store.append([entry()]);
    await under.sql(`UPDATE ${schema}.writer SET ended = true`);
    const other = await under.other();
    await other.append([entry()]);
    const [first, second] = await Promise.all([store.append([entry()]), store.append([entry()])]);
    expect([first.kind, second.kind]).toEqual(["appended", "appended"]);
    const rows = await other.query({ limit: 10 });
    expect(rows.length).toBe(4);
    expect(new Set(rows.map(({ lane = 0 }) => lane)).size).toBe(2);
    expect(await other.verify()).toMatchObject({ ok: true });
  });

  test("[S261] after kill -9 of the server, each acknowledged write is there, and the others are made once", async () => {
    const { local } = server;
    if (local === undefined) throw new Error("this test needs a server of its own");
    await using under = await setup();
    const { store } = under;
    let acknowledged = 0;
    for (let round = 1; round <= 3; round++) {
      const writes = Array.from({ length: 30 }, (_, n) =>
        store.commit(commitBy("s", round * 100 + n, { patches: [set(`d${round}-${n}`, [], n)], entries: [entry()] })),
      );
      for (const write of writes) void write.then(() => acknowledged++);
      await writes[0];
      await local.kill();
      await local.launch();
      for (const write of writes) committed(await write);
    }
    await isBack(store);
    expect(acknowledged).toBe(90);
    expect((await store.count()).pending).toBe(90);
    expect((await store.load(SPACE, [])).sequence).toBe(90);
    expect(await store.verify()).toMatchObject({ ok: true, documents: 90 });
  });

  test("[S263] [S230] a server that has lost acknowledged writes has another history", async () => {
    await using under = await setup();
    const { store, schema, proxy } = under;
    const { history } = store.connection;
    for (let n = 1; n <= 3; n++)
      committed(await store.commit(commitBy("s", n, { history, patches: [set("n", [], n)] })));
    // As after a restore: the writer's row and the last commits are those of an earlier moment.
    await under.sql(
      `UPDATE ${schema}.writer SET batch = batch - 1; DELETE FROM ${schema}.made WHERE id = (SELECT max(id) FROM ${schema}.made)`,
    );
    proxy.isDown = true;
    proxy.cut();
    await isAway(store);
    const parked = store.commit(commitBy("s", 4, { history, patches: [set("n", [], 4)] }));
    proxy.isDown = false;
    expect(await parked).toMatchObject({ kind: "rejected", class: "stale", reason: "history-lost" });
    await isBack(store);
    expect(store.connection.history).not.toBe(history);
    const identities = [1, 2, 3].map((localSequence) => ({ session: "s", localSequence }));
    expect(await store.hasCommits(identities)).toEqual([true, true, false]);
  });

  test("[S263] a store that stays connected takes over the history that another one has begun", async () => {
    await using under = await setup();
    const { store, schema, proxy } = under;
    const other = await under.other();
    const { history } = other.connection;
    committed(await store.commit(commitBy("s", 1, { history, patches: [set("n", [], 1)] })));
    await under.sql(`UPDATE ${schema}.writer SET batch = batch - 1 WHERE batch > 0`);
    proxy.cut();
    await until(store, () => store.connection.state === "connected" && store.connection.history !== history);
    const begun = store.connection.history;
    expect(await other.load(SPACE, [])).toMatchObject({ history: begun });
    await until(other, () => other.connection.history === begun);
    committed(await other.commit(commitBy("o", 1, { history: begun, patches: [set("n", [], 2)] })));
  });
});
