import { createHash } from "node:crypto";
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { compareVersions, configure, openConnection, readPragma } from "../../../src/store/sqlite/connection.ts";
import { resolveOptions, type SqliteStoreOptions } from "../../../src/store/sqlite/options.ts";
import { APPLICATION_ID, SCHEMA_VERSION } from "../../../src/store/sqlite/schema.ts";
import { append, currentValue, entry, ref, SPACE, set, write } from "../conformance/requests.ts";
import { startProgram } from "./program.ts";
import { StoreFile } from "./store-file.ts";

describe("opening a file", () => {
  test("[S80] a new file and its directories are created for their owner only", async () => {
    await using file = new StoreFile();
    const path = join(file.directory, "deeper", "still", "app.db");
    const store = await file.open({ path });
    await append(store, entry());
    const mode = (name: string) => statSync(name).mode & 0o777;
    expect(mode(join(file.directory, "deeper"))).toBe(0o700);
    for (const name of readdirSync(join(file.directory, "deeper", "still"))) {
      expect([name, mode(join(file.directory, "deeper", "still", name))]).toEqual([name, 0o600]);
    }
  });

  test("[S80] an empty file is initialized", async () => {
    await using file = new StoreFile();
    writeFileSync(file.path, "");
    expect(await append(await file.open(), entry())).toEqual([1]);
  });

  test("[S80] several stores that open a new file at once all work on it", async () => {
    await using file = new StoreFile();
    const stores = await Promise.all(Array.from({ length: 8 }, () => file.open()));
    const ids = await Promise.all(stores.map((store) => append(store, entry())));
    expect(ids.flat().sort((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });

  test("[S81] the file has our application id, its format number and WAL mode", async () => {
    await using file = new StoreFile();
    await file.open();
    const pragma = (name: string) => Object.values(file.database().prepare(`PRAGMA ${name}`).get() ?? {})[0];
    expect(pragma("application_id")).toBe(APPLICATION_ID);
    expect(pragma("user_version")).toBe(SCHEMA_VERSION);
    expect(pragma("journal_mode")).toBe("wal");
  });

  test.each([
    ["power", 2],
    ["process", 1],
  ] as const)(
    "[S81] durability %s reads back as synchronous %i, and no setting is left to the driver",
    async (durability, synchronous) => {
      await using file = new StoreFile();
      await (await file.open()).close();
      const options = resolveOptions({ path: file.path, durability });
      const connection = openConnection(options, false);
      configure(connection, options, false);
      const read = (name: string) => readPragma(connection, name);
      expect(read("synchronous")).toBe(synchronous);
      expect(read("journal_mode")).toBe("wal");
      expect(read("busy_timeout")).toBe(0);
      expect(read("wal_autocheckpoint")).toBe(0);
      expect(read("trusted_schema")).toBe(0);
      expect(read("cell_size_check")).toBe(1);
      expect(read("journal_size_limit")).toBe(64 * 1_048_576);
      connection.close();
    },
  );

  test("[S81] a setting that does not take is an error", async () => {
    await using file = new StoreFile();
    await (await file.open()).close();
    // The engine takes at most 2^31 - 1 pages of cache and silently changes larger numbers.
    const options = resolveOptions({ path: file.path, tuning: { cacheBytes: 2 ** 50 } });
    const connection = openConnection(options, false);
    expect(() => configure(connection, options, false)).toThrow(/cache_size/);
    connection.close();
  });

  test("[S185] engine versions are compared number by number", () => {
    expect(compareVersions("3.53.4", "3.51.3")).toBeGreaterThan(0);
    expect(compareVersions("3.51.3", "3.51.3")).toBe(0);
    expect(compareVersions("3.9.9", "3.51.3")).toBeLessThan(0);
    expect(compareVersions("3.51", "3.51.3")).toBeLessThan(0);
    expect(compareVersions("4.0.0", "3.51.3")).toBeGreaterThan(0);
  });
});

describe("files that are refused", () => {
  /** Opens the file of `make`, and expects a refusal that leaves the directory unchanged. */
  async function expectRefusal(
    make: (file: StoreFile) => void,
    expected: { code: string; message: RegExp },
    options: Partial<SqliteStoreOptions> = {},
  ): Promise<void> {
    await using file = new StoreFile();
    make(file);
    const before = contentOf(file.directory);
    await expect(file.open(options)).rejects.toMatchObject({
      code: expected.code,
      message: expect.stringMatching(expected.message),
    });
    expect(contentOf(file.directory)).toEqual(before);
  }

  function contentOf(directory: string): unknown {
    const names = readdirSync(directory, { recursive: true, encoding: "utf8" }).sort();
    return names.map((name) => {
      const path = join(directory, name);
      if (!statSync(path).isFile()) return [name];
      return [name, createHash("sha256").update(readFileSync(path)).digest("hex"), statSync(path).mtimeMs];
    });
  }

  function database(path: string, sql: string): void {
    const made = new DatabaseSync(path);
    made.exec(sql);
    made.close();
  }

  test("[S82] [S181] a text file is refused as not a database", () =>
    expectRefusal((file) => writeFileSync(file.path, "dear diary\n".repeat(1_000)), {
      code: "STORE_NOT_OURS",
      message: /not a SQLite database/,
    }));

  test("[S82] [S181] a file of a few bytes is refused as not a database", () =>
    expectRefusal((file) => writeFileSync(file.path, "SQLite"), { code: "STORE_NOT_OURS", message: /not a SQLite/ }));

  test("[S82] [S181] a database of another program is refused", () =>
    expectRefusal((file) => database(file.path, "CREATE TABLE diary (day TEXT)"), {
      code: "STORE_NOT_OURS",
      message: /another program/,
    }));

  test("[S82] [S181] a database in WAL mode with another application id is refused", () =>
    expectRefusal(
      (file) => database(file.path, "PRAGMA application_id = 42; PRAGMA journal_mode = wal; CREATE TABLE t (x)"),
      { code: "STORE_NOT_OURS", message: /another program/ },
    ));

  test("[S82] [S182] a file of a newer version is refused with both versions", () =>
    expectRefusal(
      (file) =>
        database(file.path, `PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = 99; CREATE TABLE t (x)`),
      { code: "STORE_TOO_NEW", message: new RegExp(`format is 99, this one knows ${SCHEMA_VERSION}`) },
    ));

  test.each([1, 9])(
    "[S82] [S182] a file of format %i, from before the first release, is refused with both versions",
    (format) =>
      expectRefusal(
        (file) =>
          database(
            file.path,
            `PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${format}; CREATE TABLE t (x)`,
          ),
        {
          code: "STORE_TOO_OLD",
          message: new RegExp(`before its first release: its format is ${format}, this one knows`),
        },
      ),
  );

  test("[S82] [S182] a newer version that is still in the log is refused and the log unchanged", async () => {
    await using file = new StoreFile();
    const store = await file.open();
    await append(store, entry());
    const other = file.database();
    other.exec("PRAGMA user_version = 99");
    // While `other` is open the log is not copied into the file, so its first bytes still say 1.
    await store.close();
    const logBefore = readFileSync(`${file.path}-wal`);
    expect(readFileSync(file.path).readInt32BE(60)).not.toBe(99);
    await expect(file.open()).rejects.toMatchObject({ code: "STORE_TOO_NEW" });
    expect(readFileSync(`${file.path}-wal`).equals(logBefore)).toBe(true);
  });

  test("[S109] after a newer version takes over an open file, the store neither reads nor writes it", async () => {
    await using file = new StoreFile();
    const [writes, reads, loads] = [await file.open(), await file.open(), await file.open()];
    const ids = await append(writes, entry());
    const asksAgain = append(writes, entry());
    const other = file.database();
    other.exec(`PRAGMA user_version = ${SCHEMA_VERSION + 1}`);
    await asksAgain.catch(() => undefined);
    const rowsBefore = other.prepare("SELECT count(*) AS n FROM event_journal").get();
    const why = new RegExp(`format is ${SCHEMA_VERSION + 1}, this one knows ${SCHEMA_VERSION}`);
    for (let times = 0; times < 2; times++) {
      await expect(writes.append([entry()])).rejects.toMatchObject({ code: "STORE_STOPPED", message: why });
      await expect(reads.query({ limit: 10 })).rejects.toMatchObject({ code: "STORE_STOPPED", message: why });
      const many = Array.from({ length: 1_000 }, (_, n) => ref(`document ${n}`));
      await expect(loads.load(SPACE, many)).rejects.toMatchObject({ code: "STORE_STOPPED", message: why });
    }
    expect(ids).toEqual([1]);
    expect(other.prepare("SELECT count(*) AS n FROM event_journal").get()).toEqual(rowsBefore);
  });

  test("[S109] a read that notices a newer version stops the write that was just queued", async () => {
    await using file = new StoreFile();
    const store = await file.open();
    await append(store, entry());
    file.database().exec(`PRAGMA user_version = ${SCHEMA_VERSION + 1}`);
    const asked = store.append([entry()]);
    await expect(store.count()).rejects.toMatchObject({ code: "STORE_STOPPED" });
    expect(await asked).toMatchObject({ kind: "rejected", reason: "store-stopped" });
    await expect(store.append([entry()])).rejects.toMatchObject({ code: "STORE_STOPPED" });
  });

  test("[S183] a directory is refused", () =>
    expectRefusal((file) => mkdirSync(file.path), { code: "STORE_OPEN_FAILED", message: /is a directory/ }));

  test("[S183] a device is refused", () =>
    expectRefusal((file) => symlinkSync("/dev/null", file.path), {
      code: "STORE_OPEN_FAILED",
      message: /not a regular file/,
    }));

  test("[S183] a path through a file is refused", async () => {
    await using file = new StoreFile();
    writeFileSync(join(file.directory, "plain"), "x");
    await expect(file.open({ path: join(file.directory, "plain", "app.db") })).rejects.toMatchObject({
      code: "STORE_OPEN_FAILED",
    });
  });

  test.each(["", ":memory:", "a\0b"])("[S82] %j is refused as a path", async (path) => {
    await using file = new StoreFile();
    await expect(async () => file.open({ path })).rejects.toMatchObject({ code: "STORE_MISUSE" });
  });

  test("[S184] a file and a directory that this process may not write are refused", async () => {
    await using file = new StoreFile();
    await (await file.open()).close();
    chmodSync(file.directory, 0o755);
    chmodSync(file.path, 0o444);
    const before = contentOf(file.directory);
    // The super-user may write to any file, so another user has to try.
    await using stranger = startProgram("open", { path: file.path }, { asStranger: true });
    expect(await stranger.next()).toMatchObject({ code: "STORE_READ_ONLY", message: expect.stringMatching(/app\.db/) });
    chmodSync(file.path, 0o666);
    await using second = startProgram("open", { path: file.path }, { asStranger: true });
    expect(await second.next()).toMatchObject({
      code: "STORE_READ_ONLY",
      message: expect.not.stringMatching(/app\.db/),
    });
    expect(contentOf(file.directory)).toEqual(before);
  });

  test("[S83] with readOnly no file is created", () =>
    expectRefusal(() => {}, { code: "STORE_OPEN_FAILED", message: /There is no/ }, { readOnly: true }));
});

describe("a read-only store", () => {
  test("[S83] a read-only store reads the writes of others and refuses every write", async () => {
    await using file = new StoreFile();
    const writer = await file.open();
    await write(writer, set("a", [], 1));
    const reader = await file.open({ readOnly: true });
    expect(await currentValue(reader, "a")).toBe(1);
    await write(writer, set("a", [], 2));
    expect(await currentValue(reader, "a")).toBe(2);
    await expect(append(reader, entry())).rejects.toMatchObject({ code: "STORE_READ_ONLY" });
    await expect(write(reader, set("a", [], 3))).rejects.toMatchObject({ code: "STORE_READ_ONLY" });
    await expect(reader.openLease(1_000)).rejects.toMatchObject({ code: "STORE_READ_ONLY" });
    expect(await reader.verify()).toMatchObject({ ok: true, documents: 1 });
  });
});
