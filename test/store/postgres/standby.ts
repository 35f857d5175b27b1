/** A standby of a test server: a copy of its data directory that follows its log. */
import { spawnSync } from "node:child_process";
import { appendFileSync, chmodSync, chownSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LocalServer } from "../../../src/store/postgres/local-server.ts";
import { type UserClient, userClient } from "./server.ts";

/** Files of the running server, which a copy must not have. */
const NOT_COPIED = ["postmaster.pid", "postmaster.opts"];

export class Standby implements AsyncDisposable {
  readonly server: LocalServer;
  readonly #folder: string;

  private constructor(server: LocalServer, folder: string) {
    this.server = server;
    this.#folder = folder;
  }

  /** Copies the primary and follows it. Resolves when it has caught up. */
  static async of(primary: LocalServer, settings: Readonly<Record<string, string>>): Promise<Standby> {
    const folder = mkdtempSync(join(tmpdir(), "millrace-standby-"));
    chmodSync(folder, 0o755);
    const data = join(folder, "data");
    await using client = await userClient(primary.url);
    await client.query("SELECT pg_backup_start('standby', true)");
    // With the owner of the files: Postgres does not run as root.
    spawnSync("cp", ["-a", primary.data, data]);
    for (const name of NOT_COPIED) rmSync(join(data, name), { force: true });
    const { rows } = await client.query("SELECT labelfile FROM pg_backup_stop(false)");
    const { uid, gid } = statSync(data);
    for (const [name, text] of [
      ["backup_label", String(rows[0]?.["labelfile"])],
      ["standby.signal", ""],
    ] as const) {
      writeFileSync(join(data, name), text);
      chownSync(join(data, name), uid, gid);
    }
    const from = new URL(primary.url);
    const source = `host=${from.hostname} port=${from.port} user=${from.username} application_name=standby`;
    appendFileSync(join(data, "postgresql.auto.conf"), `\nprimary_conninfo = '${source}'\n`);
    const server = await LocalServer.start({ data, settings });
    const standby = new Standby(server, folder);
    await standby.#caughtUp(client);
    return standby;
  }

  /** Commits of the primary wait for this standby from now on. */
  static async makeSynchronous(primary: LocalServer): Promise<void> {
    await using client = await userClient(primary.url);
    await client.query("ALTER SYSTEM SET synchronous_standby_names = 'standby'");
    await client.query("SELECT pg_reload_conf()");
    await until(client, "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'");
  }

  /** Takes no more of the primary's log: later commits of the primary are lost with it. */
  async stopFollowing(primary: LocalServer): Promise<void> {
    await using client = await userClient(this.server.url);
    await client.query("ALTER SYSTEM SET primary_conninfo = ''");
    await client.query("SELECT pg_reload_conf()");
    await using source = await userClient(primary.url);
    await until(source, "SELECT 1 WHERE NOT EXISTS (SELECT FROM pg_stat_replication)");
  }

  async promote(): Promise<void> {
    await using client = await userClient(this.server.url);
    await client.query("SELECT pg_promote(true, 60)");
    await until(client, "SELECT 1 WHERE NOT pg_is_in_recovery()");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #caughtUp(primary: UserClient): Promise<void> {
    const behind = "pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)";
    await until(primary, `SELECT 1 FROM pg_stat_replication WHERE application_name = 'standby' AND ${behind} = 0`);
  }
}

async function until(client: UserClient, text: string): Promise<void> {
  while ((await client.query(text)).rows.length === 0);
}
