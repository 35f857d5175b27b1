/** A database whose disk is really full. Mounting a small one needs root; elsewhere the file says why it is skipped. */
import { chmodSync, chownSync, mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import type { Store } from "../../../src/store/store.ts";
import { mountSmallDisk } from "../../crash/small-disk.ts";
import { commitBy, entry, SPACE, set } from "../conformance/requests.ts";
import { NO_LOCAL_POSTGRES, testServer, userClient } from "./server.ts";

const DISK_BYTES = 24 * 1_048_576;
const BALLAST_BYTES = 6 * 1_048_576;
/** Random elements of one document: the database compresses others. */
const ELEMENTS = 5_000;

const server = testServer({ crashes: true });
const disk = NO_LOCAL_POSTGRES === undefined ? mountSmallDisk(DISK_BYTES) : undefined;

/** A database on the small disk. */
async function database(): Promise<string> {
  const { local } = server;
  if (local === undefined || disk === undefined) throw new Error("this test needs a server and a disk of its own");
  const { uid, gid } = statSync(local.data);
  const folder = join(disk, "tables");
  mkdirSync(folder);
  chownSync(folder, uid, gid);
  // The server's user has to reach it.
  for (const above of [disk, dirname(disk)]) chmodSync(above, 0o755);
  await using client = await userClient(server.url);
  await client.query(`CREATE TABLESPACE small LOCATION '${folder}'`);
  await client.query("CREATE DATABASE small TABLESPACE small");
  return local.urlOf("small");
}

/** Writes until one is refused; gives the number of acknowledged ones. */
async function fill(store: Store, session: string): Promise<{ acknowledged: number; reason: string }> {
  for (let n = 1; ; n++) {
    const big = Array.from({ length: ELEMENTS }, () => crypto.randomUUID());
    const patches = [set(`${session} ${n}`, [], big)];
    const outcome = await store.commit(commitBy(session, n, { patches, entries: [entry({ id: `${session} ${n}` })] }));
    if (outcome.kind === "rejected") return { acknowledged: n - 1, reason: outcome.reason };
  }
}

describe.skipIf(disk === undefined)("a database on a full disk", () => {
  test("[S289] a full disk refuses writes, serves reads, keeps acknowledged data, and takes writes when there is room", async () => {
    const ballast = join(disk ?? "", "ballast");
    const url = await database();
    await using store = await openPostgresStore({ url });
    writeFileSync(ballast, Buffer.alloc(BALLAST_BYTES));
    const before = await fill(store, "before");
    expect(before.reason).toBe("store-full");
    expect(before.acknowledged).toBeGreaterThan(2);
    expect((await store.count()).pending).toBe(before.acknowledged);
    rmSync(ballast);
    const after = await fill(store, "after");
    expect(after.reason).toBe("store-full");
    expect(after.acknowledged).toBeGreaterThan(2);
    expect((await store.count()).pending).toBe(before.acknowledged + after.acknowledged);
    const all = [
      ...Array.from({ length: before.acknowledged }, (_, n) => `before ${n + 1}`),
      ...Array.from({ length: after.acknowledged }, (_, n) => `after ${n + 1}`),
    ];
    const { documents } = await store.load(
      SPACE,
      all.map((id) => ({ scope: "space", id })),
    );
    expect(documents.map(({ value }) => (value as unknown[] | undefined)?.length)).toEqual(all.map(() => ELEMENTS));
    expect(await store.verify()).toMatchObject({ ok: true });
  });
});
