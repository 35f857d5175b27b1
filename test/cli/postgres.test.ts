/** The command on a store in Postgres: kernels as processes, and the verbs that look, migrate and repair. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { databaseFindings } from "../../src/cli/check-database.ts";
import type { DatabaseFacts } from "../../src/kernel/database.ts";
import { openDocumentNames } from "../../src/kernel/document-names.ts";
import type { Message } from "../../src/message/envelope.ts";
import type { Json } from "../../src/message/json.ts";
import type { DocumentRef } from "../../src/store/document.ts";
import { DatabaseLink } from "../../src/store/postgres/link.ts";
import { resolveOptions } from "../../src/store/postgres/options.ts";
import { openPostgresStore } from "../../src/store/postgres/store.ts";
import { openSqliteStore } from "../../src/store/sqlite/index.ts";
import { COMPILE_CACHE, KernelProcess, MAIN } from "../kernel/kernel-process.ts";
import { runProgram, scratchFolder } from "../repo/program.ts";
import { NO_POSTGRES, testServer } from "../store/postgres/server.ts";
import { contentsOf } from "../store/postgres/store-contents.ts";
import { INSPECTED_APP } from "./cli-setup.ts";

const ORDER: Message = {
  ...{ kind: "command", type: "Shop.Order", data: { price: 7 } },
  metadata: { id: "order-1", timestamp: 1 },
};

const server = testServer();
let databases = 0;

/** A database of its own, and the command with it in `MILLRACE_STORE`. */
async function setup() {
  const cwd = scratchFolder();
  const name = `c${process.pid}_${++databases}`;
  const sql = async (text: string, url: string) => {
    const link = await DatabaseLink.open(resolveOptions({ url }));
    const rows = await link.query(text);
    await link.close();
    return rows;
  };
  await sql(`CREATE DATABASE ${name}`, server.url);
  const at = new URL(server.url);
  at.pathname = `/${name}`;
  at.password = "not-shown";
  const url = at.href;
  const env = { ...COMPILE_CACHE, MILLRACE_STORE: url };
  const millrace = (...args: string[]) => runProgram(process.execPath, [MAIN, ...args], { cwd, env });
  const json = async (...args: string[]) => {
    const { stdout, stderr, code } = await millrace(...args, "--json");
    if (code !== 0) throw new Error(`${args.join(" ")} ended with ${code}: ${stderr}`);
    return stdout
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line));
  };
  /** Each kernel has a directory of its own, for its socket. */
  const start = () => KernelProcess.start(scratchFolder(), INSPECTED_APP, MAIN, ["--store", url]);
  return { cwd, url, millrace, json, start, sql: (text: string) => sql(text, url) };
}

describe.skipIf(NO_POSTGRES !== undefined)("the command on Postgres", () => {
  test("[K191] [K192] [K190] kernels started with --store share the data; verbs see them by MILLRACE_STORE", async () => {
    const { url, millrace, json, start } = await setup();
    const kernels = [await start(), await start()];
    expect(kernels[0]!.output).toMatch(
      /store postgres:\/\/millrace@127\.0\.0\.1:\d+\/c\w+ \(postgres, durability power\)/,
    );
    const [first, second] = await Promise.all(kernels.map((kernel) => kernel.connect()));
    expect(await first!.command("Shop.Order", { price: 3 })).toBeDefined();
    await second!.command("Shop.Order", { price: 4 });
    expect(await json("show", "orders")).toMatchObject([{ value: { value: [3, 4] } }]);
    expect(await json("ls", "documents", "--prefix", "orders")).toMatchObject([{ id: "orders" }]);
    expect((await json("ls", "events", "--topic", "Order.Placed")).length).toBe(2);
    const rows = (await json("ls", "kernels")) as { about: string; state: string; lane: number }[];
    expect(rows.map(({ state }) => state)).toEqual(["live", "live"]);
    expect(new Set(rows.map(({ lane }) => lane)).size).toBe(2);
    const pids = kernels.map((kernel) => /pid (\d+)/.exec(kernel.output)?.[1]);
    expect(rows.map(({ about }) => about.split(" ").at(-1))).toEqual(pids);
    expect((await json("ls", "consumers")).length).toBeGreaterThan(0);
    const doctor = await millrace("doctor");
    expect([doctor.code, doctor.stdout]).toEqual([0, expect.stringMatching(/kernels +2 kernels on it/)]);
    for (const check of ["lag", "consumers", "snapshots", "dead rows", "standbys", "store"])
      expect(doctor.stdout).toMatch(new RegExp(`^(ok|note) +${check} `, "m"));
    expect(doctor.stdout).toContain("a failover may lose acknowledged work");
    expect(doctor.stdout + kernels[0]!.output).not.toContain(new URL(url).password);
    await first!.close();
    await second!.close();
    for (const kernel of kernels) expect(await kernel.stop()).toBe(0);
    expect((await millrace("ls", "kernels")).stdout).toBe("no kernels\n");
    expect((await millrace("verify")).stdout).toContain("sound");
  });

  test("[K193] [K190] migrate makes the schema once; reading verbs name it and do not make it", async () => {
    const { url, millrace, sql } = await setup();
    const before = await millrace("ls", "events");
    expect([before.code, before.stderr]).toEqual([1, expect.stringContaining("run: millrace migrate")]);
    expect(await sql("SELECT 1 FROM pg_namespace WHERE nspname = 'millrace'")).toEqual([]);
    expect((await millrace("migrate")).stdout).toMatch(/the schema was made, version \d+\n$/);
    expect((await millrace("migrate", url)).stdout).toMatch(/has version \d+ already\n$/);
    expect((await millrace("ls", "events")).stdout).toBe("no events\n");
    expect(await sql("SELECT * FROM millrace.writer")).toEqual([]);
    expect((await millrace("migrate", "kernel.db")).stderr).toContain("name a postgres:// URL");
    expect((await millrace("backup", "copy.db")).stderr).toContain("use pg_dump or pg_basebackup");
  });

  test("[K195] doctor names a consumer without a kernel that events wait for", async () => {
    const { millrace, start, sql } = await setup();
    const kernel = await start();
    const client = await kernel.connect();
    await sql("INSERT INTO millrace.consumer (name, pattern, declared_at) VALUES ('ghost', 'Order.Placed', 0)");
    await sql("UPDATE millrace.meta SET consumers_version = consumers_version + 1");
    await client.command("Shop.Order", { price: 1 });
    for (;;) {
      const rows = await sql("SELECT 1 FROM millrace.open WHERE 'ghost Order.Placed' = ANY (awaits)");
      if (rows.length > 0) break;
    }
    await client.close();
    const doctor = await millrace("doctor");
    expect([doctor.code, doctor.stdout]).toEqual([1, expect.stringMatching(/ghost on Order.Placed \(1 event wait/)]);
    expect((await millrace("consumers", "remove", "ghost")).stdout).toContain("ghost on Order.Placed removed");
    expect((await millrace("doctor")).code).toBe(0);
    await kernel.stop();
  });

  test("[K195] doctor reports lag, old snapshots, dead rows and standbys", () => {
    const sound: DatabaseFacts = {
      ...{ server: "18.4", schema: 1, bytes: 1, history: "h", kernels: 1, synchronousCommit: "on" },
      ...{ lag: { oldestMs: 5, waiting: 2, failed: 1 }, holders: [], deadRows: [], unserved: [] },
      replicas: [{ name: "b", state: "sync", lagBytes: 7 }],
    };
    const wrong = (parts: Partial<DatabaseFacts>) =>
      databaseFindings({ ...sound, ...parts }, "db").flatMap(({ check, ok, isNote, found }) =>
        ok && !isNote ? [] : [`${check}: ${found}`],
      );
    expect(wrong({})).toEqual([]);
    expect(wrong({ lag: { oldestMs: 90_000, waiting: 2, failed: 1 } })).toEqual([
      expect.stringMatching(/^lag: .* 90\.0 s/),
    ]);
    const holders = [{ holder: "session 7 (psql, idle in transaction)", ageMs: 61_000 }];
    expect(wrong({ holders })).toEqual([expect.stringMatching(/^snapshots: held by session 7 .* for 61 s/)]);
    expect(wrong({ deadRows: [{ table: "open", dead: 50_000, live: 3 }] })).toEqual([
      expect.stringMatching(/^dead rows: vacuum is behind: open 50000 dead and 3 live rows/),
    ]);
    const risk = expect.stringMatching(/^standbys: .*a failover may lose acknowledged work/);
    expect(wrong({ replicas: [{ name: "b", state: "async", lagBytes: 7 }] })).toEqual([risk]);
    expect(wrong({ synchronousCommit: "off" })).toEqual([risk]);
  });

  test("[K194] pg start runs a server that a kernel can use, and a signal ends it", async () => {
    const cwd = scratchFolder();
    const parent = scratchFolder();
    // As root, the server runs as another user, with access to the folder.
    chmodSync(parent, 0o755);
    const data = join(parent, "postgres");
    const port = 20_000 + (process.pid % 20_000);
    const child = spawn(process.execPath, [MAIN, "pg", "start", "--port", String(port), "--data", data], {
      ...{ cwd, env: { ...process.env, ...COMPILE_CACHE }, stdio: ["ignore", "pipe", "inherit"] },
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    let said = "";
    child.stdout!.on("data", (chunk: Buffer) => {
      said += chunk;
    });
    const ended = once(child, "exit");
    while (!said.includes("millrace start app.ts\n")) {
      await Promise.race([once(child.stdout!, "data"), ended]);
      expect(child.exitCode).toBe(null);
    }
    const [, url = ""] = /MILLRACE_STORE=(\S+)/.exec(said) ?? [];
    const kernel = await KernelProcess.start(cwd, INSPECTED_APP, MAIN, ["--store", url]);
    expect(await kernel.stop()).toBe(0);
    child.kill("SIGTERM");
    expect(await ended).toEqual([0, null]);
    expect((await runProgram(process.execPath, [MAIN, "pg", "stop"], { cwd, env: COMPILE_CACHE })).code).toBe(2);
  });

  test("[K196] [S280] [S281] copy moves a file to a database without loss, and a kernel goes on there", async () => {
    const { cwd, url, millrace, json } = await setup();
    const onFile = await KernelProcess.start(cwd, INSPECTED_APP);
    const client = await onFile.connect();
    const answer = await client.request(ORDER);
    await client.command("Shop.Order", { price: 4 });
    await client.command("Shop.Plan", { due: 5 });
    await client.command("Memory.Set", { key: "/a", value: { text: "\u202e\u2028 ü" } });
    const later = { kind: "command", type: "Syscall.Ping", data: null } as const;
    await client.command("Timer.Set", { delayMs: 100_000_000, message: later });
    await client.emit("Order.Refused", { price: 8 });
    const file = join(cwd, ".millrace", "kernel.db");
    const copy = () => millrace("copy", file, url);
    const isFailed = async () => {
      await using store = await openSqliteStore({ path: file, readOnly: true });
      return (await store.count()).failed > 0;
    };
    while (!(await isFailed()));
    expect((await copy()).stderr).toContain("a kernel is running");
    await client.close();
    await onFile.stop();

    const copied = await copy();
    expect([copied.code, copied.stdout]).toEqual([
      0,
      expect.stringMatching(/journal rows, \d+ documents, \d+ consumers and 1 timers, verified\n$/),
    ]);
    await using source = await openSqliteStore({ path: file, readOnly: true });
    await using target = await openPostgresStore({ url, readOnly: true });
    await using named = await openDocumentNames(file);
    const names = new Map<string, readonly DocumentRef[]>();
    for (const space of await named.spaces())
      names.set(space, [
        ...(await named.page({ space, prefix: "", after: undefined, limit: 10_000 })),
        ...(await named.page({ space, prefix: "receipt", after: undefined, limit: 10_000 })),
      ]);
    expect([...names.values()].flat().length).toBeGreaterThan(8);
    const [original, same] = [await contentsOf(source, names), await contentsOf(target, names, (id) => id / 4_096)];
    expect(original.journal.length).toBeGreaterThan(4);
    expect(original).toMatchObject({ counts: { failed: 1 }, due: [{ kind: "timer" }], ok: true });
    expect(same).toEqual(original);

    const again = await copy();
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining("copy into another database")]);
    const kernel = await KernelProcess.start(scratchFolder(), INSPECTED_APP, MAIN, ["--store", url]);
    const onPostgres = await kernel.connect();
    // The receipt answers; the same id with other data is refused.
    expect(await onPostgres.request(ORDER)).toMatchObject({ data: (answer as { data: Json }).data });
    expect(await onPostgres.request({ ...ORDER, data: { price: 9 } })).toMatchObject({ data: { code: 409 } });
    await onPostgres.command("Shop.Order", { price: 5 });
    expect(await json("show", "orders")).toMatchObject([{ value: { value: [7, 4, 5] } }]);
    const [failure] = (await json("ls", "failures")) as { id: number }[];
    expect((await millrace("requeue", String(failure!.id))).stdout).toBe("1 put back\n");
    const rows = (await json("ls", "events", "--topic", "Order.Placed")) as { id: number }[];
    expect(rows.length).toBe(3);
    expect(rows[0]!.id).toBeGreaterThan(Math.max(...same.journal.map(({ id }) => id * 4_096)));
    await onPostgres.close();
    expect(await kernel.stop()).toBe(0);
    expect((await millrace("verify")).stdout).toContain("sound");
  });

  test("[K191] another text than a URL is refused with the remedy", async () => {
    const cwd = scratchFolder();
    const started = await runProgram(process.execPath, [MAIN, "start", "--store", "kernel.db"], {
      cwd,
      env: COMPILE_CACHE,
    });
    expect([started.code, started.stderr]).toEqual([1, expect.stringContaining("store must be a postgres:// URL")]);
    const env = { ...COMPILE_CACHE, MILLRACE_STORE: "kernel.db" };
    const listed = await runProgram(process.execPath, [MAIN, "ls", "events"], { cwd, env });
    expect([listed.code, listed.stderr]).toEqual([
      1,
      expect.stringContaining("MILLRACE_STORE must be a postgres:// URL"),
    ]);
  });
});
