/** How often the server flushes its log to disk, by its own count. */
import { describe, expect, test } from "vitest";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import { commitBy, committed, entry, set } from "../conformance/requests.ts";
import { freshSchema, NO_LOCAL_POSTGRES, testServer, type UserClient, userClient } from "./server.ts";

const server = testServer({ crashes: true });
const BATCHES = 60;
/** Flushes by processes of the server, like a checkpoint. */
const OTHERS_MAX = 5;

async function flushes(client: UserClient): Promise<number> {
  const { rows } = await client.query("SELECT current_setting('server_version_num')::int AS version");
  const text =
    Number(rows[0]?.["version"]) >= 180_000
      ? "SELECT sum(fsyncs) AS n FROM pg_stat_io WHERE object = 'wal'"
      : "SELECT wal_sync AS n FROM pg_stat_wal";
  return Number((await client.query(text)).rows[0]?.["n"]);
}

describe.skipIf(NO_LOCAL_POSTGRES !== undefined)("flushes of the log", () => {
  test("[S290] a batch of commits, appends and settlements is flushed once", async () => {
    await using client = await userClient(server.url);
    await client.query("ALTER SYSTEM SET wal_writer_delay = '10s'");
    await client.query("SELECT pg_reload_conf()");
    await using store = await openPostgresStore({ url: server.url, schema: freshSchema() });
    await client.query("CHECKPOINT");
    await store.append([entry()]);
    const before = await flushes(client);
    const from = store.stats().batches;
    const batch = async (n: number) => {
      const commits = [1, 2, 3].map((at) =>
        store.commit(commitBy("s", n * 10 + at, { patches: [set(`d${at}`, [], n)], entries: [entry()] })),
      );
      const appended = store.append([entry()]);
      for (const commit of commits) committed(await commit);
      await appended;
    };
    for (let n = 1; n <= BATCHES; n++) await batch(n);
    // A connection reports its counts once a second, with a later batch.
    for (let n = BATCHES + 1; (await flushes(client)) - before < BATCHES; n++) await batch(n);
    const made = store.stats().batches - from;
    expect((await flushes(client)) - before).toBeLessThanOrEqual(made + OTHERS_MAX);
  });
});
