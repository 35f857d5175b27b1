/** The ledger app from outside: its state, and a load with an account of its own, to be compared with the kernel's. */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect } from "vitest";
import type { Client } from "../../src/client/client.ts";
import { systemHost } from "../../src/host/system-host.ts";
import type { Json } from "../../src/message/json.ts";
import { commandMessage } from "../../src/message/lineage.ts";

export interface Ledger {
  readonly entries: Readonly<Record<string, number>>;
  readonly total: number;
  readonly heard: readonly string[];
}

export async function read(client: Client): Promise<Ledger> {
  const answer = (await client.query("Ledger.Read", null)) as never as { entries: [string, number][] } & Ledger;
  return { ...answer, entries: Object.fromEntries(answer.entries) };
}

/** While the kernel is down there is no answer, and the state is unknown. */
export function totalOf(answer: Json): number {
  return (answer as never as Ledger | null)?.total ?? 0;
}

/** Asks until the answer is as wanted; the time limit of the test ends a vain wait. */
export async function until(
  client: Client,
  type: string,
  data: Json,
  wanted: (answer: Json) => boolean,
): Promise<void> {
  const host = systemHost();
  for (;;) {
    const answer = await client.query(type, data).catch(() => null);
    if (wanted(answer)) return;
    await host.yield();
  }
}

/** Sends commands from several clients until it is stopped; keeps account of acknowledged ones. */
export class Load {
  readonly acknowledged = new Set<string>();
  readonly #client: Client;
  readonly #senders: Promise<void>[];
  #sending = true;

  constructor(client: Client) {
    this.#client = client;
    this.#senders = Array.from({ length: 8 }, (_, sender) => this.#send(sender));
  }

  async #send(sender: number): Promise<void> {
    for (let n = 0; this.#sending; n++) {
      const key = `${sender}-${n}`;
      const request = commandMessage(systemHost(), "Ledger.Add", { key, amount: 1 });
      // 503 means that it was not done: the same request, under the same id, is repeated until it is.
      for (let answer = await this.#client.request(request); answer.kind === "error"; ) {
        expect(answer.data).toMatchObject({ code: 503 });
        answer = await this.#client.request(request);
      }
      this.acknowledged.add(key);
    }
  }

  /** Resolves when so many more are acknowledged. */
  async more(count: number): Promise<void> {
    const enough = this.acknowledged.size + count;
    while (this.acknowledged.size < enough) await systemHost().yield();
  }

  async end(): Promise<void> {
    this.#sending = false;
    await Promise.all(this.#senders);
  }

  /** Acknowledged entries are there once, and no others are. */
  async check(): Promise<void> {
    const { entries, total } = await read(this.#client);
    expect(total).toBe(this.acknowledged.size);
    expect(Object.keys(entries).sort()).toEqual([...this.acknowledged].sort());
    expect(new Set(Object.values(entries))).toEqual(new Set([1]));
  }
}

/**
 * An event that was heard and not settled when its process was killed is delivered again. An event with five dead
 * processes has failed, because the guilty part is unknown. The operator requeues it. Resolves with their number.
 */
export async function untilNothingIsOpen(client: Client, folder: string): Promise<number> {
  for (let requeued = 0; ; ) {
    await until(client, "Syscall.Ping", null, () => inTheFile(folder).open === 0);
    const { failed } = inTheFile(folder);
    if (failed.length === 0) return requeued;
    for (const { error } of failed) expect(error).toMatch(/its process died 5 times/);
    requeued += failed.length;
    await client.command("Kernel.Requeue", { ids: failed.map(({ id }) => Number(id)) });
  }
}

/** Counts that the `sqlite3` shell would give: rows that are there once each, and unfinished rows. */
export function inTheFile(folder: string) {
  using database = new DatabaseSync(join(folder, ".millrace", "kernel.db"), { readOnly: true, timeout: 10_000 });
  const count = (sql: string) => Number(Object.values(database.prepare(sql).get() ?? {})[0]);
  return {
    commands: count("SELECT count(*) FROM event_journal WHERE type = 'Ledger.Add' AND status = 'done'"),
    events: count("SELECT count(*) FROM event_journal WHERE type = 'Entry.Added'"),
    open: count("SELECT count(*) FROM event_journal WHERE status IN ('pending', 'processing')"),
    failed: database.prepare("SELECT id, type, error FROM event_journal WHERE status = 'failed'").all(),
  };
}
