/** Options of a Postgres store. */
import type { ConnectionOptions as TlsOptions } from "node:tls";
import type { Host } from "../../host/host.ts";
import { systemHost } from "../../host/system-host.ts";
import { CHANGES_KEPT_MAX, PAYLOAD_BYTES_MAX } from "../../limits.ts";
import { checkPayloadBound } from "../request-check.ts";
import { StoreError } from "../store.ts";
import { DEFAULT_SCHEMA } from "./schema.ts";
import { ServerChoice } from "./server-choice.ts";

/** Options of `openPostgresStore`. */
export interface PostgresStoreOptions {
  /** `postgres://user:password@host:port/database`. Several URLs: the first server that takes writes is used. */
  readonly url: string | readonly string[];
  /** The schema with the store's tables; default: `millrace`. Several stores can share a database. */
  readonly schema?: string;
  /** `power`, the default: `synchronous_commit = on`. `process`: `off`. */
  readonly durability?: "power" | "process";
  /** TLS options of `node:tls`; `true` uses TLS with the defaults. Also `?sslmode=` in the URL. */
  readonly tls?: boolean | TlsOptions;
  /**
   * How changes by other kernels are noticed. `poll`: for connection poolers without LISTEN. Also `?notice=` in the
   * URL.
   */
  readonly notice?: "listen" | "poll";
  /** Writes are refused, and a schema that is missing or older is not made. */
  readonly readOnly?: boolean;
  readonly host?: Host;
  readonly tuning?: PostgresTuning;
}

/** Limits and times of a Postgres store. */
export interface PostgresTuning {
  /** Commits of a space that the feed reaches back to. */
  readonly feedCommits?: number;
  /** Bytes of one message's data in the journal. */
  readonly payloadBytesMax?: number;
  /** A batch without an answer after this time is sent again on a new connection. Default: 30 s. */
  readonly deadlineMs?: number;
  /** How long `close` waits for a database that does not answer. Default: 5 s. */
  readonly closeWaitMs?: number;
  /** `host`: the host's clock replaces the database's, for tests with simulated time. */
  readonly clock?: "database" | "host";
}

const NOTICE = "notice";

export interface ResolvedOptions {
  readonly urls: readonly string[];
  readonly schema: string;
  readonly durability: "power" | "process";
  readonly tls: boolean | TlsOptions | undefined;
  readonly notice: "listen" | "poll";
  readonly readOnly: boolean;
  readonly host: Host;
  readonly tuning: Required<PostgresTuning>;
  readonly servers: ServerChoice;
}

export function resolveOptions(options: PostgresStoreOptions): ResolvedOptions {
  const { url, schema = DEFAULT_SCHEMA, durability = "power", readOnly = false, tls } = options;
  const { host = systemHost() } = options;
  const given = typeof url === "string" ? [url] : [...url];
  if (given.length === 0) throw new StoreError("STORE_MISUSE", "url: give at least one postgres:// URL");
  for (const one of given) {
    if (isPostgresUrl(one)) continue;
    throw new StoreError(
      "STORE_MISUSE",
      `url: a postgres:// URL is needed, got one that begins with "${one.slice(0, 9)}"`,
    );
  }
  if (!/^[a-z_][a-z0-9_]{0,40}$/.test(schema)) {
    throw new StoreError("STORE_MISUSE", `schema: "${schema}" must be a name of lower-case letters, digits and _`);
  }
  const urls = given.map(withoutNotice);
  const notice = options.notice ?? given.map(noticeOf).find((one) => one !== undefined) ?? "listen";
  const tuning = {
    feedCommits: CHANGES_KEPT_MAX,
    payloadBytesMax: PAYLOAD_BYTES_MAX,
    deadlineMs: 30_000,
    closeWaitMs: 5_000,
    clock: "database" as const,
    ...options.tuning,
  };
  checkPayloadBound(tuning.payloadBytesMax);
  return { urls, schema, durability, tls, notice, readOnly, host, tuning, servers: new ServerChoice() };
}

/** `?notice=poll` is a parameter of ours, for places where a URL is all that can be given. */
function noticeOf(url: string): "listen" | "poll" | undefined {
  const text = URL.canParse(url) ? new URL(url).searchParams.get(NOTICE) : null;
  if (text === null) return undefined;
  if (text === "listen" || text === "poll") return text;
  throw new StoreError("STORE_MISUSE", `url: notice=${text} is unknown; give notice=listen or notice=poll`);
}

function withoutNotice(url: string): string {
  if (noticeOf(url) === undefined) return url;
  const own = new URL(url);
  own.searchParams.delete(NOTICE);
  return own.href;
}

export function isPostgresUrl(text: string): boolean {
  return text.startsWith("postgres://") || text.startsWith("postgresql://");
}
