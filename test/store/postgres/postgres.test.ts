/** Behaviour of Postgres beyond the common contract: cost of a batch, idle cost, notices, the schema, the view. */
import { describe, expect, test } from "vitest";
import { systemHost } from "../../../src/host/system-host.ts";
import { DatabaseLink } from "../../../src/store/postgres/link.ts";
import { resolveOptions } from "../../../src/store/postgres/options.ts";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import type { Store } from "../../../src/store/store.ts";
import { append, commitBy, committed, entries, entry, set } from "../conformance/requests.ts";
import { freshSchema, NO_POSTGRES, testServer } from "./server.ts";

const server = testServer();

function open(schema: string): Promise<Store> {
  return openPostgresStore({ url: server.url, schema });
}

async function sql(text: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const link = await DatabaseLink.open(resolveOptions({ url: server.url }));
  const rows = await link.query(text);
  await link.close();
  return rows;
}

function told(store: Store, act = () => {}): Promise<void> {
  return new Promise((resolve) => {
    const stop = store.watch(({ journal }) => {
      if (!journal) return;
      stop();
      resolve();
    });
    act();
  });
}

/** The connection of the watch is there: it has sent a statement. */
async function looked(store: Store): Promise<void> {
  const host = systemHost();
  const before = store.stats().statements;
  store.watch(() => {});
  while (store.stats().statements === before) await host.yield();
  await told(store, () => void store.append([entry()]));
}

describe.skipIf(NO_POSTGRES !== undefined)("the store on Postgres", () => {
  test("[S264] commits and appends that are asked for at once are one statement", async () => {
    await using store = await open(freshSchema());
    await looked(store);
    const before = store.stats();
    const commits = Array.from({ length: 40 }, (_, n) =>
      store.commit(
        commitBy("s", n, { patches: [set("n", [], n)], entries: entries(1), dependsOn: n === 0 ? [] : [n - 1] }),
      ),
    );
    const appended = store.append(entries(5));
    for (const commit of commits) committed(await commit);
    await appended;
    const after = store.stats();
    expect([after.batches - before.batches, after.statements - before.statements]).toEqual([1, 1]);
  });

  test("[S265] an idle store with a watcher sends at most two statements a second", async () => {
    await using store = await open(freshSchema());
    await looked(store);
    const host = systemHost();
    const count = () => store.stats().statements;
    const reached = async (statements: number) => {
      while (count() < statements) await host.yield();
    };
    await reached(count() + 1);
    const [from, before] = [host.monotonic(), count()];
    await reached(before + 4);
    expect(host.monotonic() - from).toBeGreaterThanOrEqual(2_000);
  });

  test("[S266] a change whose notification is lost is noticed by the next look", async () => {
    const schema = freshSchema();
    await using store = await open(schema);
    await using other = await open(schema);
    const stop = store.watch(() => {});
    await looked(store);
    const noticed = told(store);
    // A batch of the other writer without its notification.
    await sql(
      `UPDATE ${schema}.writer SET moves = moves + 1 WHERE incarnation = (SELECT max(incarnation) FROM ${schema}.writer)`,
    );
    await noticed;
    stop();
    expect(other.connection.state).toBe("connected");
  });

  test("[S267] stores that open an empty schema at once make it once; a newer schema is refused", async () => {
    const schema = freshSchema();
    const stores = await Promise.all([1, 2, 3, 4].map(() => open(schema)));
    const histories = new Set(stores.map((store) => store.connection.history));
    expect(histories.size).toBe(1);
    for (const store of stores) await append(store, entry());
    expect((await stores[0]!.count()).pending).toBe(4);
    for (const store of stores) await store.close();
    await sql(`UPDATE ${schema}.meta SET version = 99`);
    await expect(open(schema)).rejects.toMatchObject({ code: "STORE_TOO_NEW" });
  });

  test("[S291] a transaction whose process stands still is ended, and its locks with it", async () => {
    const schema = freshSchema();
    await using store = await open(schema);
    const commit = (n: number) => store.commit(commitBy("s", n, { patches: [set("n", [], n)] }));
    committed(await commit(0));
    const link = await DatabaseLink.open(resolveOptions({ url: server.url }));
    const ended = new Promise<void>((resolve) => link.onEnd(resolve));
    let isLocked = () => {};
    const locked = new Promise<void>((resolve) => {
      isLocked = resolve;
    });
    const still = link.transaction(async () => {
      await link.query(`LOCK TABLE ${schema}.space IN ACCESS EXCLUSIVE MODE`);
      isLocked();
      await ended;
    });
    const fails = expect(still).rejects.toThrow();
    await locked;
    committed(await commit(1));
    await fails;
    await link.close();
  });

  test("[S270] the view event_journal has the columns of ADR 004, with the status of each row", async () => {
    const schema = freshSchema();
    await using store = await open(schema);
    await append(
      store,
      entry({ correlation: "c" }),
      entry({}, { status: "done" }),
      entry({}, { status: "failed", error: "no" }),
    );
    const rows = await sql(
      `SELECT id, correlation_id, topic, source, payload, status, created_at, processed_at, error FROM ${schema}.event_journal ORDER BY id`,
    );
    expect(rows.map(({ topic, status, error }) => [topic, status, error])).toEqual([
      ["test.happened", "pending", null],
      ["test.happened", "done", null],
      ["test.happened", "failed", "no"],
    ]);
    expect(rows[0]).toMatchObject({ correlation_id: "c", payload: "null", processed_at: null });
  });
});
