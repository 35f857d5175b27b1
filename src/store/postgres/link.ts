/**
 * One connection to the database. Each call has a deadline: after it the socket is destroyed and the outcome is
 * unknown (`lost`). The answer of a client library alone is not trusted, because a lost connection may lose it.
 */

import type { Timer } from "../../host/host.ts";
import { POSTGRES_IDLE_TRANSACTION_MS } from "../../limits.ts";
import { StoreError } from "../store.ts";
import { DatabaseError, databaseError } from "./database-error.ts";
import type { ResolvedOptions } from "./options.ts";
import { CURRENT_TIMELINE, type ServerChoice, type ServerTimeline } from "./server-choice.ts";

export type Row = Readonly<Record<string, unknown>>;
/** A value bound to a statement. */
export type Bound = string | number | boolean | null | readonly (string | number | null)[];

/** The parts of the package `pg` that are used. Its own types are not installed with the package. */
interface Client {
  connect(): Promise<unknown>;
  query(statement: { text: string; values: Bound[]; name?: string; queryMode?: "extended" }): Promise<Result>;
  end(): Promise<void>;
  on(event: "error" | "end", listener: (error: Error) => void): unknown;
  on(event: "notification", listener: (notice: { readonly payload?: string | undefined }) => void): unknown;
  once(event: "error" | "end", listener: () => void): unknown;
  readonly connection?: { readonly stream?: { destroy(): void } };
}

interface Result {
  readonly rows: readonly Row[];
  readonly rowCount: number | null;
}

interface Driver {
  readonly Client: new (config: object) => Client;
  readonly types: { getTypeParser(oid: number, format?: string): (text: string) => unknown };
}

const PACKAGE: string = "pg";
const INT8 = 20;
const INT8_ARRAY = 1016;
/** How long further servers may take to answer once one has connected. */
const OTHERS_MS = 1_000;

export class DatabaseLink {
  readonly #client: Client;
  readonly #host: ResolvedOptions["host"];
  readonly #deadlineMs: number;
  readonly #prepares: boolean;
  readonly #begin: string;
  readonly #servers: ServerChoice;
  #server: ServerTimeline | undefined;
  #state: "open" | "closed" = "open";
  /** Rejects the calls that have no answer yet. */
  readonly #waiting = new Set<(error: Error) => void>();
  /** Statements sent. */
  statements = 0;
  /** The last statement: the client sends one at a time. */
  #last: Promise<void> = Promise.resolve();

  private constructor(client: Client, options: ResolvedOptions) {
    const { host, tuning, notice, servers } = options;
    this.#client = client;
    this.#servers = servers;
    this.#host = host;
    this.#deadlineMs = tuning.deadlineMs;
    // A transaction pooler gives each statement another connection, which does not know the prepared one.
    this.#prepares = notice === "listen";
    const local = [
      `SET LOCAL idle_in_transaction_session_timeout = ${POSTGRES_IDLE_TRANSACTION_MS}`,
      `SET LOCAL synchronous_commit = ${commitLevel(options)}`,
    ];
    this.#begin = ["BEGIN", ...local].join("; ");
  }

  /** Connects to the first server that takes writes. The first connection of a store compares the servers. */
  static async open(options: ResolvedOptions): Promise<DatabaseLink> {
    if (options.urls.length > 1 && !options.servers.isKnown) return DatabaseLink.#openNewest(options);
    let problem: unknown;
    for (const url of options.urls) {
      try {
        return await DatabaseLink.#openAt(url, options);
      } catch (error) {
        problem = error;
      }
    }
    throw problem;
  }

  /** An old primary that was started again takes writes, too. */
  static async #openNewest(options: ResolvedOptions): Promise<DatabaseLink> {
    const opened: (DatabaseLink | undefined)[] = [];
    const tries = options.urls.map(async (url, at) => {
      opened[at] = await DatabaseLink.#openAt(url, options);
    });
    const all = Promise.allSettled(tries);
    try {
      await Promise.any(tries);
    } catch (error) {
      throw (error as AggregateError).errors[0];
    }
    let timer: Timer | undefined;
    const enough = new Promise<void>((resolve) => {
      timer = options.host.timer(OTHERS_MS, resolve);
    });
    await Promise.race([all, enough]);
    timer?.cancel();
    const chosen = opened.find((link) => link?.isOpen);
    void all.then(() => {
      for (const link of opened) if (link !== chosen) void link?.close();
    });
    if (chosen === undefined) throw new DatabaseError("lost", "the connection ended");
    return chosen;
  }

  static async #openAt(url: string, options: ResolvedOptions): Promise<DatabaseLink> {
    const { Client, types } = await driver();
    const { tls, tuning } = options;
    const config = {
      connectionString: url,
      application_name: "millrace",
      connectionTimeoutMillis: Math.min(tuning.deadlineMs, 10_000),
      keepAlive: true,
      types: typesOf(types),
      ...(tls === undefined ? {} : { ssl: tls }),
    };
    const client = new Client(config);
    const link = new DatabaseLink(client, options);
    client.on("error", (error) => link.#fail(error));
    client.on("end", () => link.#fail(new Error("the connection ended")));
    try {
      await link.#within(client.connect());
      const [state] = await link.query(
        `SELECT pg_is_in_recovery() AS standby, current_setting('transaction_read_only') AS read_only,
          set_config('client_min_messages', 'warning', false)`,
      );
      if (state?.["standby"] === true || state?.["read_only"] === "on")
        throw new DatabaseError("lost", "the server is a standby or read-only");
      link.#server = await link.#timeline();
      if (options.servers.isOutdated(link.#server))
        throw new DatabaseError("lost", "the server is an old primary: a standby of it was promoted");
      options.servers.note(link.#server);
    } catch (error) {
      link.destroy();
      throw databaseError(error);
    }
    return link;
  }

  /** Undefined where the server does not tell it. */
  async #timeline(): Promise<ServerTimeline | undefined> {
    try {
      const [row] = await this.query(
        `SELECT system_identifier::text AS system, ${CURRENT_TIMELINE} AS timeline FROM pg_control_system()`,
      );
      return { system: String(row?.["system"]), timeline: Number(row?.["timeline"]) };
    } catch (error) {
      if (databaseError(error).kind === "lost") throw error;
      return undefined;
    }
  }

  /** Also false when a promoted standby of its server has been seen. */
  get isOpen(): boolean {
    return this.#state === "open" && !this.#servers.isOutdated(this.#server);
  }

  /** Called for each notification of the database. */
  onNotice(listen: (payload: string) => void): void {
    this.#client.on("notification", ({ payload }) => listen(payload ?? ""));
  }

  onEnd(ended: () => void): void {
    this.#client.once("end", ended);
    this.#client.once("error", ended);
  }

  /** Runs one statement after the earlier ones. `name` prepares it once for the connection. */
  async query(text: string, values: readonly Bound[] = [], name?: string): Promise<readonly Row[]> {
    return (
      await this.#inTurn({ text, values: [...values], ...(name !== undefined && this.#prepares ? { name } : {}) })
    ).rows;
  }

  /** Runs a statement of the user, and only one; returns the number of rows that it changed or returned. */
  async execute(text: string, values: readonly Bound[]): Promise<number> {
    return (await this.#inTurn({ text, values: [...values], queryMode: "extended" })).rowCount ?? 0;
  }

  #inTurn(statement: Parameters<Client["query"]>[0]): Promise<Result> {
    const result = this.#last.then(() => this.#send(statement));
    this.#last = result.then(ignore, ignore);
    return result;
  }

  async #send(statement: Parameters<Client["query"]>[0]): Promise<Result> {
    if (this.#state === "closed") throw new DatabaseError("lost", "the connection is closed");
    this.statements++;
    try {
      return await this.#within(this.#client.query(statement));
    } catch (error) {
      throw databaseError(error);
    }
  }

  /**
   * Runs several statements in one transaction. The server ends it if this process stands still, because its locks hold
   * up the others.
   */
  async transaction<T>(work: () => Promise<T>): Promise<T> {
    await this.query(this.#begin);
    try {
      const result = await work();
      await this.query("COMMIT");
      return result;
    } catch (error) {
      // Also after an error of ours: the connection must not stay inside the transaction.
      if (this.isOpen) await this.query("ROLLBACK");
      throw error;
    }
  }

  /** Ends the connection at once. */
  destroy(): void {
    this.#fail(new Error("the connection was destroyed"));
  }

  async close(): Promise<void> {
    if (this.#state === "closed") return;
    this.#state = "closed";
    try {
      await this.#within(this.#client.end());
    } catch (error) {
      // The server is gone, or it did not answer: there is no connection to end.
      databaseError(error);
    }
    this.#destroySocket();
  }

  #fail(error: Error): void {
    this.#state = "closed";
    for (const lose of [...this.#waiting]) lose(error);
    this.#destroySocket();
  }

  #destroySocket(): void {
    this.#client.connection?.stream?.destroy();
  }

  /** The result, unless the connection fails or the deadline passes before. */
  #within<T>(result: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const over = () => {
        timer.cancel();
        this.#waiting.delete(lose);
      };
      const lose = (error: Error) => {
        over();
        reject(new DatabaseError("lost", error.message, { cause: error }));
      };
      const fire = () => this.#fail(new Error(`no answer within ${this.#deadlineMs} ms`));
      const timer = this.#host.timer(this.#deadlineMs, fire, { keepAlive: false });
      this.#waiting.add(lose);
      result.then(
        (value) => {
          over();
          resolve(value);
        },
        (error) => {
          over();
          reject(error);
        },
      );
    });
  }
}

/** The value of `synchronous_commit` for the commits of a store. */
export function commitLevel({ durability }: ResolvedOptions): "on" | "off" {
  return durability === "power" ? "on" : "off";
}

/** Sets the level for one commit: behind a pooler a session is shared with other stores and apps. */
export function withCommitLevel(options: ResolvedOptions): string {
  return `set_config('synchronous_commit', '${commitLevel(options)}', true)`;
}

function ignore(): void {}

/** `bigint` columns hold ids below 2^53, so they are read as numbers. */
function typesOf(types: Driver["types"]): Driver["types"] {
  return {
    getTypeParser: (oid, format) => {
      if (oid === INT8) return Number;
      if (oid === INT8_ARRAY) return (text) => (text === "{}" ? [] : text.slice(1, -1).split(",").map(Number));
      return types.getTypeParser(oid, format);
    },
  };
}

async function driver(): Promise<Driver> {
  try {
    const loaded: { readonly default: Driver } = await import(PACKAGE);
    return loaded.default;
  } catch (error) {
    if ((error as { code?: unknown }).code !== "ERR_MODULE_NOT_FOUND") throw error;
    throw new StoreError("STORE_OPEN_FAILED", 'the package "pg" is missing; run: npm install pg', { cause: error });
  }
}
