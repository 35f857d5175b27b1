/** The functions of the store's schema, called by a client without a kernel: one call in flight, texts made by hand. */
import { openPostgresStore } from "millrace/postgres";
import type { JournalEntry } from "millrace/store";
import { loadPeer } from "../bus/peer-queue.ts";

interface PgModule {
  readonly default: { readonly Client: new (url: string) => PgClient };
}

interface PgClient {
  connect(): Promise<void>;
  query(statement: { readonly text: string; readonly values?: readonly unknown[]; readonly name?: string }): Promise<{
    readonly rows: readonly Readonly<Record<string, unknown>>[];
  }>;
  end(): Promise<void>;
}

const LANES = 4_096;
const LEASE = 1;

export class BarePostgres implements AsyncDisposable {
  readonly #client: PgClient;
  readonly #writer: number;
  readonly #lane: number;
  #batch = 0;
  #n = 0;
  #lastId = 0;
  /** Claimed rows that the next call settles. */
  #claimed: readonly number[] = [];

  static async open(url: string): Promise<BarePostgres> {
    await (await openPostgresStore({ url })).close();
    const { Client } = (await loadPeer<PgModule>("pg")).default;
    const client = new Client(url);
    await client.connect();
    const { rows } = await client.query({ text: "SELECT incarnation, lane FROM millrace.register_v1('bench')" });
    return new BarePostgres(client, Number(rows[0]?.["incarnation"]), Number(rows[0]?.["lane"]));
  }

  private constructor(client: PgClient, writer: number, lane: number) {
    this.#client = client;
    this.#writer = writer;
    this.#lane = lane;
  }

  async append(entries: readonly JournalEntry[]): Promise<void> {
    await this.#run({ entries: entries.map((one) => this.#row(one, { st: "p" })) });
  }

  /** Appends claimed rows, as a kernel does for its own subscribers, and settles those of the last call. */
  async appendClaimedAndSettleLast(entries: readonly JournalEntry[]): Promise<void> {
    const settles = this.#claimed.map((id) => ({ id, lease: LEASE, att: 1, own: true, op: "d" }));
    const rows = entries.map((one) => this.#row(one, { st: "c", lease: LEASE }));
    await this.#run({
      ...(settles.length > 0 ? { settles } : {}),
      ...(rows.length > 0 ? { entries: rows } : {}),
    });
    this.#claimed = rows.map(({ id }) => id);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client.end();
  }

  #row({ message: { kind, type, data, metadata }, topic, source }: JournalEntry, state: object) {
    const id = ++this.#n * LANES + this.#lane;
    const prev = this.#lastId;
    this.#lastId = id;
    return {
      ...{ id, m: metadata.id, kind, type, topic, source, payload: JSON.stringify(data), corr: metadata.correlation },
      ...{
        at: metadata.timestamp / 1_000,
        ts: metadata.timestamp,
        place: this.#n,
        hash: "0".repeat(64),
        prev,
        ...state,
      },
    };
  }

  async #run(parts: object): Promise<void> {
    const text = JSON.stringify({ spaces: [], last: this.#lastId, kept: 10_000, ...parts });
    await this.#client.query({
      text: "SELECT millrace.run_v1($1, $2, $3, NULL)",
      values: [this.#writer, ++this.#batch, text],
      name: "run",
    });
  }
}
