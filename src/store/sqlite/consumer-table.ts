/**
 * Declared consumers in the file. The version is cached while no other process writes, so a settlement is compared with
 * an integer in memory. The consumers that run under a lease are a column of the lease's row. SPEC: S150-S154.
 */
import { CONSUMERS_MAX } from "../../limits.ts";
import {
  type Consumer,
  type ConsumerDeclaration,
  type ConsumerTable as ConsumerList,
  consumerKey,
  type DeclaredConsumer,
} from "../consumer.ts";
import { tooManyConsumers } from "../request-check.ts";
import type { SqliteConnection } from "./connection.ts";
import type { LeaseTable } from "./lease-table.ts";
import type { TableCache } from "./table-cache.ts";

export class ConsumerRows implements TableCache {
  readonly #leases: LeaseTable;
  /** Undefined if it must be read. */
  #version: number | undefined;
  readonly #sql;

  constructor(connection: SqliteConnection, leases: LeaseTable) {
    this.#leases = leases;
    this.#sql = {
      version: connection.prepare("SELECT version FROM consumer_version"),
      raise: connection.prepare("UPDATE consumer_version SET version = version + 1"),
      declare: connection.prepare(
        "INSERT INTO consumer (name, pattern, declared_at_ms) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
      ),
      count: connection.prepare("SELECT count(*) AS n FROM consumer"),
      has: connection.prepare("SELECT 1 FROM consumer WHERE name = ? AND pattern = ?"),
      remove: connection.prepare("DELETE FROM consumer WHERE name = ? AND pattern = ?"),
      all: connection.prepare("SELECT name, pattern, declared_at_ms FROM consumer"),
      waiting: connection.prepare("SELECT count(*) AS n FROM delivery WHERE awaits = ?"),
    };
  }

  get version(): number {
    this.#version ??= Number(this.#sql.version.get()?.["version"] ?? 0);
    return this.#version;
  }

  declare({ consumers, running }: ConsumerDeclaration, nowMs: number): void {
    const fresh = consumers.filter((consumer) => !this.has(consumer));
    if (fresh.length > 0) {
      if (Number(this.#sql.count.get()?.["n"]) + fresh.length > CONSUMERS_MAX) throw tooManyConsumers();
      for (const { name, pattern } of fresh) this.#sql.declare.run(name, pattern, nowMs);
      this.#moved();
    }
    if (running !== undefined) this.#leases.run(running.lease, running.keys);
  }

  has({ name, pattern }: Consumer): boolean {
    return this.#sql.has.get(name, pattern) !== undefined;
  }

  remove({ name, pattern }: Consumer): void {
    if (this.#sql.remove.run(name, pattern) > 0) this.#moved();
  }

  /** Whether it runs under a live lease other than `exceptLease`. */
  isRunning(consumer: Consumer, nowMs: number, exceptLease: number | undefined): boolean {
    const key = consumerKey(consumer);
    return this.#leases.running(nowMs).some(({ lease, keys }) => lease !== exceptLease && keys.has(key));
  }

  list(nowMs: number): ConsumerList {
    const leases = this.#leases.running(nowMs);
    const consumers = this.#sql.all.all().map((row): DeclaredConsumer => {
      const consumer = { name: String(row["name"]), pattern: String(row["pattern"]) };
      const key = consumerKey(consumer);
      const waiting = Number(this.#sql.waiting.get(key)?.["n"]);
      const running = leases.filter(({ keys }) => keys.has(key)).map(({ lease }) => lease);
      return { ...consumer, declaredAtMs: Number(row["declared_at_ms"]), leases: running, waiting };
    });
    return { version: this.version, consumers: consumers.sort((a, b) => (consumerKey(a) < consumerKey(b) ? -1 : 1)) };
  }

  /** There are no buffered writes. */
  flush(): void {}

  forget(): void {
    this.#version = undefined;
  }

  #moved(): void {
    this.#sql.raise.run();
    this.#version = undefined;
  }
}
