/**
 * Facts about a database for the command: kernels, names of documents, and what slows or endangers the store. Reads
 * only, also while kernels run.
 */
import type { DocumentRef } from "../document.ts";
import { listConsumers } from "./journal-work.ts";
import { commitLevel, DatabaseLink } from "./link.ts";
import { requireSchema } from "./migrations.ts";
import { type PostgresStoreOptions, type ResolvedOptions, resolveOptions } from "./options.ts";

/** A store object of a kernel or another program. */
export interface KernelFacts {
  /** Its machine and process. */
  readonly about: string;
  readonly incarnation: number;
  /** Its lane of the journal. */
  readonly lane: number;
  readonly openedAtMs: number;
  /** Its last write; a kernel renews its leases every few seconds. */
  readonly seenAtMs: number;
  /** Since then, by the database's clock. */
  readonly silentMs: number;
  readonly batches: number;
}

/** A transaction that keeps vacuum from removing dead rows. */
export interface SnapshotHolder {
  readonly holder: string;
  readonly ageMs: number;
}

export interface ReplicaFacts {
  readonly name: string;
  /** `sync`, `quorum`, `potential` or `async`. */
  readonly state: string;
  readonly lagBytes: number;
}

export interface DatabaseFacts {
  readonly server: string;
  readonly schema: number;
  readonly bytes: number;
  readonly history: string;
  /** The oldest event that could run now, and how many wait. */
  readonly lag: { readonly oldestMs: number; readonly waiting: number; readonly failed: number };
  readonly holders: readonly SnapshotHolder[];
  /** Tables with many dead rows, the most first. */
  readonly deadRows: readonly { readonly table: string; readonly dead: number; readonly live: number }[];
  /** Consumers without a live kernel that events wait for. */
  readonly unserved: readonly { readonly name: string; readonly pattern: string; readonly waiting: number }[];
  readonly replicas: readonly ReplicaFacts[];
  readonly synchronousCommit: string;
  readonly kernels: number;
}

const SNAPSHOT_OLD_MS = 60_000;
const SEEN_MS = 60_000;
const DEAD_ROWS_MIN = 20_000;
const RECEIPT = "receipt";

export class DatabaseInspection implements AsyncDisposable {
  readonly #link: DatabaseLink;
  readonly #m: string;

  readonly #synchronousCommit: string;

  private constructor(link: DatabaseLink, options: ResolvedOptions) {
    this.#link = link;
    this.#m = options.schema;
    this.#synchronousCommit = commitLevel(options);
  }

  /** Throws if the database has no store of this version. */
  static async open(options: PostgresStoreOptions): Promise<DatabaseInspection> {
    const resolved = resolveOptions(options);
    const link = await DatabaseLink.open(resolved);
    try {
      await requireSchema(link, resolved.schema);
    } catch (error) {
      await link.close();
      throw error;
    }
    return new DatabaseInspection(link, resolved);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#link.close();
  }

  async kernels(): Promise<readonly KernelFacts[]> {
    const rows = await this.#link.query(
      `SELECT incarnation, lane, about, batch, extract(epoch FROM opened_at) * 1000 AS opened,
         extract(epoch FROM seen_at) * 1000 AS seen, extract(epoch FROM clock_timestamp() - seen_at) * 1000 AS silent
       FROM ${this.#m}.writer WHERE NOT ended ORDER BY incarnation`,
    );
    return rows.map(({ incarnation, lane, about, batch, opened, seen, silent }) => ({
      about: String(about),
      incarnation: Number(incarnation),
      lane: Number(lane),
      openedAtMs: Math.floor(Number(opened)),
      seenAtMs: Math.floor(Number(seen)),
      silentMs: Math.max(0, Math.floor(Number(silent))),
      batches: Number(batch),
    }));
  }

  async spaces(): Promise<readonly string[]> {
    const rows = await this.#link.query(`SELECT name FROM ${this.#m}.space ORDER BY name`);
    return rows.map(({ name }) => String(name));
  }

  /**
   * Names of documents that exist or existed, in the order of scope and id. Receipts only if the prefix asks for them.
   */
  async names(
    space: string,
    prefix: string,
    after: DocumentRef | undefined,
    limit: number,
  ): Promise<readonly DocumentRef[]> {
    const rows = await this.#link.query(
      `SELECT scope, id FROM ${this.#m}.document
       WHERE space = $1 AND value IS NOT NULL AND (scope, id) > ($2, $3) AND starts_with(id, $4)
         AND ($5 OR (NOT starts_with(id, 'receipt/') AND NOT starts_with(id, 'receipt:')))
       ORDER BY scope, id LIMIT $6`,
      [space, after?.scope ?? "", after?.id ?? "", prefix, prefix.startsWith(RECEIPT), limit],
    );
    return rows.map(({ scope, id }) => ({ scope: String(scope), id: String(id) }));
  }

  async facts(): Promise<DatabaseFacts> {
    const m = this.#m;
    const [of] = await this.#link.query(
      `SELECT current_setting('server_version') AS server, version, history,
         pg_database_size(current_database()) AS bytes,
         (SELECT count(*) FROM ${m}.writer WHERE NOT ended AND seen_at > clock_timestamp() - make_interval(secs => $1)) AS kernels
       FROM ${m}.meta`,
      [SEEN_MS / 1_000],
    );
    return {
      server: String(of?.["server"]),
      schema: Number(of?.["version"]),
      bytes: Number(of?.["bytes"]),
      history: String(of?.["history"]),
      lag: await this.#lag(),
      holders: await this.#holders(),
      deadRows: await this.#deadRows(),
      unserved: await this.#unserved(),
      replicas: await this.#replicas(),
      synchronousCommit: this.#synchronousCommit,
      kernels: Number(of?.["kernels"]),
    };
  }

  async #lag(): Promise<DatabaseFacts["lag"]> {
    const m = this.#m;
    const [row] = await this.#link.query(
      `SELECT count(*) FILTER (WHERE status = 'pending') AS waiting, count(*) FILTER (WHERE status = 'failed') AS failed,
         coalesce(${m}.now_ms() - (SELECT j.created_at * 1000 FROM ${m}.open o JOIN ${m}.journal j ON j.id = o.id
           WHERE o.status = 'pending' AND o.next_at IS NULL ORDER BY o.id LIMIT 1), 0) AS oldest
       FROM ${m}.open`,
    );
    return {
      oldestMs: Math.max(0, Math.round(Number(row?.["oldest"]))),
      waiting: Number(row?.["waiting"]),
      failed: Number(row?.["failed"]),
    };
  }

  /** Sessions, prepared transactions and replication slots with an old snapshot. */
  async #holders(): Promise<readonly SnapshotHolder[]> {
    const rows = await this.#link.query(
      `SELECT 'session ' || pid || ' (' || coalesce(nullif(application_name, ''), usename) || ', ' || coalesce(state, '?') || ')' AS holder,
         extract(epoch FROM clock_timestamp() - xact_start) * 1000 AS age
       FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND xact_start IS NOT NULL AND pid <> pg_backend_pid()
       UNION ALL SELECT 'prepared transaction ' || gid, extract(epoch FROM clock_timestamp() - prepared) * 1000
       FROM pg_prepared_xacts WHERE database = current_database()
       UNION ALL SELECT 'replication slot ' || slot_name || ' (not in use)', $1
       FROM pg_replication_slots WHERE NOT active AND (xmin IS NOT NULL OR catalog_xmin IS NOT NULL OR restart_lsn IS NOT NULL)`,
      [SNAPSHOT_OLD_MS],
    );
    const all = rows.map(({ holder, age }) => ({ holder: String(holder), ageMs: Math.round(Number(age)) }));
    return all.filter(({ ageMs }) => ageMs >= SNAPSHOT_OLD_MS);
  }

  async #deadRows(): Promise<DatabaseFacts["deadRows"]> {
    const rows = await this.#link.query(
      `SELECT relname AS name, n_dead_tup AS dead, n_live_tup AS live FROM pg_stat_user_tables
       WHERE schemaname = $1 AND n_dead_tup > greatest($2, n_live_tup) ORDER BY n_dead_tup DESC`,
      [this.#m, DEAD_ROWS_MIN],
    );
    return rows.map(({ name, dead, live }) => ({ table: String(name), dead: Number(dead), live: Number(live) }));
  }

  async #unserved(): Promise<DatabaseFacts["unserved"]> {
    const [row] = await this.#link.query(`SELECT ${this.#m}.now_ms() AS now`);
    const { consumers } = await listConsumers(this.#link, this.#m, Number(row?.["now"]));
    return consumers
      .filter(({ leases, waiting }) => leases.length === 0 && waiting > 0)
      .map(({ name, pattern, waiting }) => ({ name, pattern, waiting }));
  }

  async #replicas(): Promise<readonly ReplicaFacts[]> {
    const rows = await this.#link.query(
      `SELECT coalesce(nullif(application_name, ''), client_addr::text, 'standby') AS name, sync_state AS state,
         coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn), 0) AS lag
       FROM pg_stat_replication ORDER BY application_name`,
    );
    return rows.map(({ name, state, lag }) => ({
      name: String(name),
      state: String(state),
      lagBytes: Number(lag),
    }));
  }
}
