/** A backup continues under another history, so that followers and replicas of the original notice it. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { systemHost } from "../../src/host/system-host.ts";
import { backUp } from "../../src/kernel/store-copy.ts";
import { cursorOf, positionOf } from "../../src/store/journal-position.ts";
import { openSqliteStore } from "../../src/store/sqlite/index.ts";
import { scratchDirectory } from "../bus-sqlite/bus-processes.ts";
import { append, commitBy, committed, entries, set } from "../store/conformance/requests.ts";

test("[S231] [S230] [J174] a backup has another history: cursors and commits of the original are told so", async () => {
  using directory = scratchDirectory();
  const host = systemHost();
  const [file, copy] = ["store.db", "copy.db"].map((name) => join(directory.path, name)) as [string, string];
  const store = await openSqliteStore({ path: file, host, durability: "process" });
  await append(store, ...entries(2));
  committed(await store.commit(commitBy("s", 1, { patches: [set("a", [], 1)] })));
  await backUp(host, file, copy);
  await append(store, ...entries(2));
  const { history } = store.connection;
  const cursor = cursorOf(await store.journalEnd());
  await store.close();
  const restored = await openSqliteStore({ path: copy, host, durability: "process" });
  expect(restored.connection.history).not.toBe(history);
  const page = await restored.follow(positionOf(cursor)!, 10);
  expect(page).toEqual({ rows: [], end: await restored.journalEnd(), isFull: true, gone: [] });
  // The ids of the lost rows are given again, and the follower gets the new rows.
  const ids = await append(restored, ...entries(1));
  expect((await restored.follow(page.end, 10)).rows.map(({ id }) => id)).toEqual(ids);
  expect(await restored.commit(commitBy("s", 1, { patches: [set("a", [], 1)] }))).toMatchObject({ replayed: true });
  const late = commitBy("s", 2, { history, patches: [set("a", [], 2)] });
  expect(await restored.commit(late)).toMatchObject({ class: "stale", reason: "history-lost" });
  await restored.close();
});
