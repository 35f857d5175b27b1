/**
 * A kernel over HTTP: a Hono app, to be mounted by its `fetch` in any server. SPEC: W20-W27.
 *
 *     gate (Host, Origin) -> token -> route -> one message to the loop -> answer, problem or stream
 */
import { Hono } from "hono";
import { routePath } from "hono/route";
import type { Host } from "../host/host.ts";
import { systemHost } from "../host/system-host.ts";
import { AUTH_FAILURE_ADDRESSES_MAX, AUTH_FAILURES_A_MINUTE_MAX } from "../limits.ts";
import { Failure } from "../message/error-data.ts";
import { unknownOption } from "../message/near-word.ts";
import { KERNEL_REASONS } from "../message/reasons.ts";
import { addEventRoutes } from "./event-routes.ts";
import { HttpExchanges } from "./exchanges.ts";
import { checkGate, checkHost, type GateOptions, LOOPBACK_HOSTS } from "./gate.ts";
import type { HttpContext, HttpEnv, HttpKernel, HttpParts } from "./http-context.ts";
import { addWebhookRoutes, type IncomingWebhook } from "./incoming-webhook.ts";
import { addLineRoutes } from "./line-routes.ts";
import { addMcpRoutes, type McpRouteOptions } from "./mcp-routes.ts";
import type { MeasuredText } from "./metrics-text.ts";
import { METRICS_TYPE, metricsText } from "./metrics-text.ts";
import type { DescribedType } from "./openapi.ts";
import { openApi } from "./openapi.ts";
import type { Principal } from "./principal.ts";
import { requireScope } from "./principal.ts";
import { problemOf } from "./problem.ts";
import { RequestCounts } from "./request-counts.ts";
import { RequestRoutes } from "./request-routes.ts";

/** Options of `httpApp`: tokens, hosts and origins. */
export interface HttpAppOptions extends Partial<GateOptions> {
  /**
   * Who sends a request: the principal, or undefined for none. Default: the holder of the token in `Authorization:
   * Bearer`. `"none"` lets every request pass as `anonymous` with all scopes; it is for loopback.
   */
  readonly authenticate?: Authenticate | "none";
  /**
   * Answers requests at all other paths: the pages of the app. They are open to every browser that reaches the server,
   * without a token.
   */
  readonly pages?: (request: Request) => Response | Promise<Response>;
  /** Serves agents at `/mcp`, by the Model Context Protocol. Needs `@modelcontextprotocol/server`. */
  readonly mcp?: McpRouteOptions;
  /** Webhooks of other services, at `/hooks/{name}`. They bring a signature in place of a token. */
  readonly webhooks?: readonly IncomingWebhook[];
  readonly host?: Host;
}

/** Finds the principal of a request; undefined refuses it with 401. */
export type Authenticate = (request: Request) => Principal | undefined | Promise<Principal | undefined>;

const KNOWN = {
  ...({ hosts: true, cors: true, authenticate: true, pages: true, mcp: true, webhooks: true, host: true } as const),
};
const ANONYMOUS: Principal = { name: "anonymous", scopes: ["read", "send", "publish", "operate"] };
const OPEN_PATHS = ["/livez", "/readyz"];
/** Paths of the kernel; all others may be those of pages. */
const OWN_PATH = /^\/(?:v1|hooks|mcp|studio|livez|readyz|metrics|openapi\.json|asyncapi\.json)(?:\/|$)/;
const MINUTE_MS = 60_000;

/** A kernel, or the kernel of `open`. */
export type Served = HttpKernel | { readonly kernel: HttpKernel };

/** The app, and the control of its streams. */
export interface HttpApp {
  readonly app: Hono<HttpEnv>;
  readonly parts: HttpParts;
  /**
   * The principal of a request for a WebSocket; undefined if it brings no token. Throws a `Failure` if it may not
   * pass.
   */
  admit(request: Request, address: string): Promise<Principal | undefined>;
  /** The principal of a token that came in a frame, by the rules of a token in a header. */
  authenticate(token: string, address: string): Promise<Principal | undefined>;
}

/** All routes of a kernel: `export default { fetch: httpApp(kernel).fetch }`. */
export function httpApp(served: Served, options: HttpAppOptions = {}): Hono<HttpEnv> {
  return makeHttpApp(served, options).app;
}

export function makeHttpApp(served: Served, options: HttpAppOptions = {}): HttpApp {
  const problem = unknownOption(options, KNOWN);
  if (problem !== undefined) throw new TypeError(`httpApp: ${problem}`);
  const { host = systemHost(), hosts = LOOPBACK_HOSTS, cors = [], authenticate, pages, mcp } = options;
  const { webhooks = [] } = options;
  const kernel = "kernel" in served ? served.kernel : served;
  const requests = new RequestCounts();
  const parts: HttpParts = { host, kernel, streams: new Set(), webSockets: new Set(), requests, isDraining: false };
  const app = new Hono<HttpEnv>();
  const identify = new Identification(host, kernel, authenticate);
  app.use(async (context, next) => {
    await next();
    const isPage = pages !== undefined && !OWN_PATH.test(context.req.path);
    requests.add(isPage ? "pages" : routePath(context, -1), context.res.status);
  });
  app.use(async (context, next) => {
    if (OPEN_PATHS.includes(context.req.path)) return next();
    if (pages !== undefined && !OWN_PATH.test(context.req.path)) {
      checkHost(hosts, context.req.raw.headers);
      return pages(context.req.raw);
    }
    if (context.req.path.startsWith("/hooks/")) {
      checkHost(hosts, context.req.raw.headers);
      return next();
    }
    checkGate({ hosts, cors }, context.req.raw.headers);
    const origin = context.req.header("origin");
    const isForeign = origin !== undefined && cors.includes(origin);
    if (isForeign && context.req.method === "OPTIONS") return preflight(origin);
    context.set("principal", await identify.principalOf(context.req.raw, addressOf(context)));
    await next();
    // The client opens another connection, to another kernel.
    if (parts.isDraining) context.res.headers.set("connection", "close");
    if (isForeign) allowOrigin(context.res.headers, origin);
  });
  app.onError((error) => problemOf(error));
  app.notFound(({ req }) => problemOf(new Failure(404, `nothing is at ${req.method} ${req.path}; see /openapi.json`)));
  const exchanges = new HttpExchanges(parts);
  new RequestRoutes(parts, exchanges).addTo(app);
  addEventRoutes(app, parts);
  addLineRoutes(app, parts);
  addMetaRoutes(app, parts);
  if (mcp !== undefined) addMcpRoutes(app, parts, exchanges, mcp);
  addWebhookRoutes(app, parts, webhooks);
  const admit = async (request: Request, address: string) => {
    checkGate({ hosts, cors }, request.headers);
    if (authenticate === "none" || request.headers.has("authorization")) return identify.principalOf(request, address);
    // Without a cookie that the app knows, the client sends its token in the first frame.
    return authenticate?.(request);
  };
  const check = (token: string, address: string) =>
    identify.principalOf(
      new Request("http://localhost/", { headers: { authorization: `Bearer ${encodeURIComponent(token)}` } }),
      address,
    );
  return { app, parts, admit, authenticate: check };
}

/** Finds the principal of a request. Addresses that send many bad tokens are refused for the rest of the minute. */
class Identification {
  readonly #host: Host;
  readonly #kernel: HttpKernel;
  readonly #authenticate: HttpAppOptions["authenticate"];
  readonly #failures = new Map<string, number>();
  #minute = 0;

  constructor(host: Host, kernel: HttpKernel, authenticate: HttpAppOptions["authenticate"]) {
    this.#host = host;
    this.#kernel = kernel;
    this.#authenticate = authenticate;
  }

  async principalOf(request: Request, address: string): Promise<Principal> {
    if (this.#authenticate === "none") return ANONYMOUS;
    const minute = Math.floor(this.#host.monotonic() / MINUTE_MS);
    if (minute !== this.#minute) this.#failures.clear();
    this.#minute = minute;
    const failures = this.#failures.get(address) ?? 0;
    if (failures >= AUTH_FAILURES_A_MINUTE_MAX)
      throw new Failure(429, "too many requests with a bad token; wait a minute", { retryable: true });
    const principal = await this.#find(request);
    if (principal !== undefined) return principal;
    // Requests that bring no token guess none.
    if (request.headers.has("authorization")) this.#noteFailure(address);
    throw new Failure(401, "a request needs a token: Authorization: Bearer …; make one with: millrace token add NAME", {
      reason: "UNAUTHENTICATED",
    });
  }

  /** Counted after the check: requests that were checked at the same time count too. */
  #noteFailure(address: string): void {
    if (!this.#failures.has(address) && this.#failures.size >= AUTH_FAILURE_ADDRESSES_MAX) this.#failures.clear();
    this.#failures.set(address, (this.#failures.get(address) ?? 0) + 1);
  }

  #find(request: Request): Principal | undefined | Promise<Principal | undefined> {
    if (typeof this.#authenticate === "function") return this.#authenticate(request);
    const [, token] = /^Bearer ([\w.~+/=-]+)$/.exec(request.headers.get("authorization") ?? "") ?? [];
    return token === undefined ? undefined : this.#kernel.authenticate(token);
  }
}

/** The address of the client, where the server tells it. */
function addressOf({ env }: HttpContext): string {
  const { incoming } = (env ?? {}) as { incoming?: { socket?: { remoteAddress?: string } } };
  return incoming?.socket?.remoteAddress ?? "unknown";
}

function preflight(origin: string): Response {
  const headers = new Headers({
    "access-control-allow-methods": "GET, POST",
    "access-control-allow-headers": "authorization, content-type, idempotency-key, last-event-id, prefer, traceparent",
    "access-control-max-age": "600",
  });
  allowOrigin(headers, origin);
  return new Response(null, { status: 204, headers });
}

function allowOrigin(headers: Headers, origin: string): void {
  headers.set("access-control-allow-origin", origin);
  headers.set(
    "access-control-expose-headers",
    "millrace-request-id, millrace-journal-id, idempotency-replayed, location, retry-after, server-timing",
  );
  headers.append("vary", "origin");
}

/**
 * Health for load balancers, metrics, and the description of the types. SPEC: W20, W24.
 */
function addMetaRoutes(app: Hono<HttpEnv>, parts: HttpParts): void {
  const { kernel } = parts;
  app.get("/livez", () => new Response("live\n"));
  app.get("/readyz", () => (parts.isDraining ? new Response("draining\n", { status: 503 }) : new Response("ready\n")));
  app.get("/openapi.json", async (context) => {
    requireScope(context.get("principal"), "read");
    const { types } = (await kernel.query("Syscall.Describe", null)) as unknown as { types: readonly DescribedType[] };
    return Response.json(openApi(types));
  });
  app.get("/metrics", async (context) => {
    requireScope(context.get("principal"), "read");
    if (context.get("principal").clearance !== undefined)
      throw new Failure(403, "metrics may reveal data above the clearance of the token; use one without a clearance");
    const measured = (await kernel.query("Kernel.Metrics", null)) as never as MeasuredText;
    const server = {
      requests: parts.requests.all,
      ...{ streams: parts.streams.size, webSockets: parts.webSockets.size },
    };
    return new Response(metricsText(measured, server), { headers: { "content-type": METRICS_TYPE } });
  });
  app.get("/v1/problems/:reason", (context) => {
    const reason = context.req.param("reason").toUpperCase().replaceAll("-", "_");
    const code = KERNEL_REASONS[reason as keyof typeof KERNEL_REASONS];
    if (code === undefined) return Response.json({ reason, origin: "an app of this kernel" });
    return Response.json({ reason, status: code, origin: "the kernel" });
  });
}
