/**
 * The ledger of deliveries: kernel processes on one database are killed, or stopped for longer than their lease, while
 * events come. Each event takes effect once, and plain handlers run no more often than their event was claimed.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { SeededRandom } from "../../src/host/seeded-random.ts";
import { openPostgresStore } from "../../src/store/postgres/store.ts";
import { KernelProcess, MAIN } from "../kernel/kernel-process.ts";
import { counted, type LongPart, rounds, timeoutMs } from "../portable/long-run.ts";
import { scratchFolder } from "../repo/program.ts";
import { NO_POSTGRES, testServer, type UserClient, userClient } from "../store/postgres/server.ts";
import { BUCKETS, bucketOf } from "./ticks-app.ts";

const LEDGER: LongPart = { name: "the ledger of deliveries", short: 1, long: 30, minutes: 2 };
const APP = join(import.meta.dirname, "ticks-app.ts");
/** Short, so that a round waits seconds for the events of a dead process. */
const LEASE_MS = 2_000;
const KERNELS = 3;
const EVENTS = 60;
const FAULTS = 4;

const server = testServer();

class Ticks {
  readonly ticksFile = join(scratchFolder(), "ticks");
  readonly #client: UserClient;
  readonly #url: string;
  readonly #folders = Array.from({ length: KERNELS }, () => scratchFolder());
  #kernels: KernelProcess[] = [];
  #published = 0;

  constructor(client: UserClient, url: string) {
    this.#client = client;
    this.#url = url;
    writeFileSync(this.ticksFile, "");
  }

  async start(): Promise<void> {
    this.#kernels = await Promise.all(this.#folders.map((folder) => this.#launch(folder)));
  }

  #launch(folder: string): Promise<KernelProcess> {
    writeFileSync(join(folder, "millrace.config.json"), JSON.stringify({ leaseMs: LEASE_MS }));
    process.env["TICKS_FILE"] = this.ticksFile;
    return KernelProcess.start(folder, APP, MAIN, ["--store", this.#url]);
  }

  kernel(at: number): KernelProcess {
    return this.#kernels[at] as KernelProcess;
  }

  async publish(count: number): Promise<void> {
    const from = this.#published;
    this.#published += count;
    await this.#client.query(
      `SELECT millrace.publish('Tick.Happened', jsonb_build_object('n', n)) FROM generate_series(${from}, ${from + count - 1}) n`,
    );
  }

  get published(): readonly number[] {
    return Array.from({ length: this.#published }, (_, n) => n);
  }

  async rows(text: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
    return (await this.#client.query(text)).rows;
  }

  /** Resolves when at most this many events are not done. */
  async left(most: number): Promise<void> {
    const count = "(SELECT count(*) FROM millrace.open) + (SELECT count(*) FROM millrace.outbox)";
    while (Number((await this.rows(`SELECT ${count} AS n`))[0]?.["n"]) > most);
  }

  async kill(at: number): Promise<void> {
    await this.kernel(at).kill();
    this.#kernels[at] = await this.#launch(this.#folders[at] as string);
  }

  async stop(): Promise<void> {
    for (const kernel of this.#kernels) expect(await kernel.stop()).toBe(0);
  }

  /** Each event has one effect, and plain runs are bounded by claims. */
  async check(): Promise<void> {
    expect(
      await this.rows("SELECT DISTINCT outcome, error FROM millrace.event_journal WHERE topic = 'Tick.Happened'"),
    ).toEqual([{ outcome: null, error: null }]);
    await using store = await openPostgresStore({ url: this.#url, readOnly: true });
    expect(await store.verify()).toMatchObject({ ok: true });
    const refs = Array.from({ length: BUCKETS }, (_, at) => ({ scope: "space", id: bucketOf(at) }));
    const { documents } = await store.load("ticks", refs);
    const seen = documents.flatMap(({ value }) => (value ?? []) as number[]);
    expect(seen.sort((a, b) => a - b)).toEqual(this.published);
    const ran = new Map<number, number>();
    for (const line of readFileSync(this.ticksFile, "utf8").trim().split("\n"))
      ran.set(Number(line), (ran.get(Number(line)) ?? 0) + 1);
    const claims = await this.rows(
      "SELECT (payload::json ->> 'n')::int AS n, attempts FROM millrace.event_journal WHERE topic = 'Tick.Happened'",
    );
    expect(claims.length).toBe(this.#published);
    const tooOften = claims.filter(({ n, attempts }) => {
      const runs = ran.get(Number(n)) ?? 0;
      return runs < 1 || runs > Number(attempts);
    });
    expect(tooOften).toEqual([]);
  }
}

async function setup(seed: number) {
  const name = `l${process.pid}_${seed}`;
  await using admin = await userClient(server.url);
  await admin.query(`CREATE DATABASE ${name}`);
  const at = new URL(server.url);
  at.pathname = `/${name}`;
  const client = await userClient(at.href);
  const ticks = new Ticks(client, at.href);
  await ticks.start();
  return { ticks, [Symbol.asyncDispose]: () => client[Symbol.asyncDispose]() };
}

describe.skipIf(NO_POSTGRES !== undefined)("deliveries on Postgres", () => {
  test(
    "[S286] events take effect once while kernels are killed and stopped beyond their lease",
    async () => {
      let events = 0;
      for (const seed of rounds(LEDGER)) {
        await using under = await setup(seed);
        const { ticks } = under;
        const random = new SeededRandom(seed, 0);
        for (let fault = 0; fault < FAULTS; fault++) {
          await ticks.publish(EVENTS);
          await ticks.left(EVENTS / 2);
          const at = random.below(KERNELS);
          if (fault % 2 === 0) await ticks.kill(at);
          else {
            ticks.kernel(at).signal("SIGSTOP");
            await ticks.publish(EVENTS);
            // The others have taken over its events when none is left.
            await ticks.left(0);
            ticks.kernel(at).signal("SIGCONT");
          }
        }
        await ticks.publish(EVENTS);
        await ticks.left(0);
        await ticks.stop();
        await ticks.check();
        events += ticks.published.length;
      }
      counted(events, "events in the ledger of deliveries");
    },
    timeoutMs(LEDGER),
  );
});
