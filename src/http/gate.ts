/**
 * Checks of a request before any of it is parsed: `Host` against DNS rebinding, `Origin` and `Sec-Fetch-Site` against
 * pages of other sites. SPEC: W26.
 */
import { Failure } from "../message/error-data.ts";

export interface GateOptions {
  /** Names that `Host` may have, without port; `["*"]` for any, where a proxy checks it. */
  readonly hosts: readonly string[];
  /** Origins of foreign pages that may send requests, like `https://app.example.com`. */
  readonly cors: readonly string[];
}

export const LOOPBACK_HOSTS: readonly string[] = ["localhost", "127.0.0.1", "[::1]"];

/** Throws a `Failure` if the request may not pass. */
export function checkGate({ hosts, cors }: GateOptions, headers: Headers): void {
  const host = checkHost(hosts, headers);
  const origin = headers.get("origin");
  if (origin !== null && !cors.includes(origin) && !isOwn(origin, host))
    throw new Failure(403, `pages of ${origin} may not use this server; allow the origin with cors`);
  if (origin === null && headers.get("sec-fetch-site") === "cross-site")
    throw new Failure(403, "a page of another site may not use this server");
}

/** Returns the host of the request. */
export function checkHost(hosts: readonly string[], headers: Headers): string {
  const host = headers.get("host") ?? "";
  if (hosts.includes("*") || hosts.includes(nameOf(host))) return host;
  throw new Failure(421, `this server is not ${host || "nameless"}; name the host with --http-host`, {
    reason: "MISDIRECTED",
  });
}

/** The host without its port. */
function nameOf(host: string): string {
  return host.replace(/:\d*$/, "").toLowerCase();
}

function isOwn(origin: string, host: string): boolean {
  return origin === `http://${host}` || origin === `https://${host}`;
}
