/**
 * Commands and queries over HTTP, and the status of a request. SPEC: W20-W23.
 *
 *     POST /v1/commands/{Type}      body: its data; 200 with the answer, 202 while it runs, a problem if it failed
 *     POST /v1/queries/{Type}       the same for queries; GET with ?data= too
 *     GET  /v1/requests/{id}        the answer of an earlier command, also after a restart
 */
import type { Hono } from "hono";
import { HTTP_WAIT_MS } from "../limits.ts";
import { contentId } from "../message/content-id.ts";
import { isMessageType, type Message } from "../message/envelope.ts";
import { type ErrorData, errorData, Failure } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import type { HttpExchanges } from "./exchanges.ts";
import type { HttpContext, HttpEnv, HttpParts } from "./http-context.ts";
import { idOfKey } from "./idempotency.ts";
import { parseJson, readBytes } from "./json-body.ts";
import { requireCommand } from "./message-scope.ts";
import { actionOf, type Principal, requireScope } from "./principal.ts";
import { problemResponse } from "./problem.ts";

/** A client that waits for a request is answered within this time, and may ask again. */
const POLL_MS = 100;
const JSON_HEADERS = { "content-type": "application/json" } as const;

/** What the kernel knows of a request (`Kernel.Request`). */
interface RequestStatus {
  readonly state: "running" | "done" | "failed" | "unknown" | "forgotten" | "erased";
  readonly answer?: Json;
  readonly error?: ErrorData;
  readonly principal?: string;
}

export class RequestRoutes {
  readonly #parts: HttpParts;
  readonly #exchanges: HttpExchanges;

  constructor(parts: HttpParts, exchanges: HttpExchanges) {
    this.#parts = parts;
    this.#exchanges = exchanges;
  }

  addTo(app: Hono<HttpEnv>): void {
    app.post("/v1/commands/:type", (context) => this.#command(context));
    app.post("/v1/queries/:type", async (context) => this.#query(context, await bodyOf(context)));
    app.get("/v1/queries/:type", (context) => this.#query(context, dataInUrl(context)));
    app.get("/v1/requests/:id", (context) => this.#status(context));
  }

  async #command(context: HttpContext): Promise<Response> {
    const type = typeOf(context);
    const principal = context.get("principal");
    // Before the body is read; the body may need more.
    requireScope(principal, actionOf(type), type);
    const key = context.req.header("idempotency-key");
    const id = key === undefined ? this.#parts.host.id() : idOfKey(principal, key);
    const data = await bodyOf(context);
    requireCommand(principal, type, data);
    const { wait, isAsync } = preferenceOf(context);
    if (isAsync) return this.#sendLater(context, { type, data, id });
    return this.#ask(context, { kind: "command", type, data, id }, wait);
  }

  #query(context: HttpContext, data: Json): Promise<Response> {
    const type = typeOf(context);
    requireScope(context.get("principal"), "read", type);
    return this.#ask(context, { kind: "query", type, data, id: this.#parts.host.id() }, HTTP_WAIT_MS);
  }

  async #ask(
    context: HttpContext,
    { kind, type, data, id }: { kind: "command" | "query"; type: string; data: Json; id: string },
    waitMs: number,
  ): Promise<Response> {
    const message = this.#message({ kind, type, data, id }, context);
    const exchange = this.#exchanges.open(context.get("principal"));
    const askedAt = this.#parts.host.monotonic();
    const answer = await this.#exchanges.ask(exchange, message, { ms: waitMs, signal: context.req.raw.signal });
    if (answer === undefined) return running(id);
    const response = answerResponse(context, kind, answer, id);
    response.headers.set("server-timing", timing(askedAt, exchange.begunAt, this.#parts.host.monotonic()));
    return response;
  }

  /** `Prefer: respond-async`: the command is in the journal when the client gets its address. */
  async #sendLater(context: HttpContext, { type, data, id }: { type: string; data: Json; id: string }) {
    const message = this.#message({ kind: "command", type: "Journal.Send", data: { type, data }, id }, context);
    const answer = await this.#exchanges.ask(this.#exchanges.open(context.get("principal")), message);
    if (answer.kind === "error") return problemResponse(answer.data as ErrorData, { requestId: id });
    return running((answer.data as { id: string }).id);
  }

  #message(
    { kind, type, data, id }: { kind: "command" | "query"; type: string; data: Json; id: string },
    context: HttpContext,
  ): Message {
    const traceparent = context.req.header("traceparent");
    const tracestate = context.req.header("tracestate");
    return {
      ...{ kind, type, data },
      metadata: {
        ...{ id, timestamp: this.#parts.host.now(), principal: context.get("principal").name },
        ...(traceparent === undefined ? {} : { traceparent }),
        ...(tracestate === undefined ? {} : { tracestate }),
      },
    };
  }

  // Earlier requests
  // -------------------------------------------------------------------------------------------------

  /** Waits for the answer of a request as long as `wait` says, in seconds. */
  async #status(context: HttpContext): Promise<Response> {
    const principal = context.get("principal");
    using _ = this.#exchanges.count(principal.name);
    return await this.#untilDone(context, principal);
  }

  async #untilDone(context: HttpContext, principal: Principal): Promise<Response> {
    const id = context.req.param("id") ?? "";
    const { signal } = context.req.raw;
    const { host, kernel } = this.#parts;
    const until = host.monotonic() + Math.min(secondsIn(context.req.query("wait")) * 1_000, HTTP_WAIT_MS);
    for (;;) {
      const status = (await kernel.query("Kernel.Request", { id })) as unknown as RequestStatus;
      const isOwn = status.principal === principal.name || principal.scopes.includes("operate");
      if (!isOwn || status.state === "unknown") throw new Failure(404, `no request has the id ${id}`);
      if (status.state === "erased") throw new Failure(410, `the answer to ${id} was erased`, { reason: "ERASED" });
      if (status.state === "forgotten")
        throw new Failure(410, `the answer to ${id} is no longer kept`, { reason: "TOO_OLD" });
      if (status.state === "failed") {
        return problemResponse(status.error ?? errorData(500), { requestId: id });
      }
      if (status.state === "done") return Response.json(status.answer ?? null, { headers: requestHeaders(id) });
      if (host.monotonic() >= until || this.#parts.isDraining || signal.aborted) return running(id);
      await new Promise<void>((resolve) => host.timer(POLL_MS, resolve, { keepAlive: false }));
    }
  }
}

function answerResponse(context: HttpContext, kind: "command" | "query", answer: Message, id: string): Response {
  if (answer.kind === "error") {
    const refused = answer.metadata["refused"] === true;
    const requestId = kind === "command" ? id : undefined;
    return problemResponse(answer.data as ErrorData, { requestId, refused, headers: requestHeaders(id) });
  }
  const text = JSON.stringify(answer.data);
  if (kind === "command") {
    const replayed = answer.metadata["replayed"] === true ? { "idempotency-replayed": "true" } : {};
    return new Response(text, { headers: { ...JSON_HEADERS, ...requestHeaders(id), ...replayed } });
  }
  if (context.req.method !== "GET") return new Response(text, { headers: JSON_HEADERS });
  const etag = `"${contentId(answer.data).slice(0, 32)}"`;
  const headers = { ...JSON_HEADERS, etag, "cache-control": "private, no-cache" };
  const isKnown = context.req.header("if-none-match")?.split(/,\s*/).includes(etag) ?? false;
  return isKnown ? new Response(null, { status: 304, headers }) : new Response(text, { headers });
}

/** `Server-Timing`: until the handler began, and from then to its answer, which is durable. */
function timing(askedAt: number, begunAt: number | undefined, answeredAt: number): string {
  if (begunAt === undefined) return `total;dur=${(answeredAt - askedAt).toFixed(2)}`;
  return `queue;dur=${Math.max(0, begunAt - askedAt).toFixed(2)}, handle;dur=${(answeredAt - begunAt).toFixed(2)}`;
}

function running(id: string): Response {
  const headers = { ...requestHeaders(id), location: `/v1/requests/${encodeURIComponent(id)}`, "retry-after": "1" };
  return Response.json({ id, state: "running" }, { status: 202, headers });
}

function requestHeaders(id: string): Record<string, string> {
  // Ids of clients may have characters that headers exclude.
  return { "millrace-request-id": encodeURIComponent(id) };
}

function typeOf(context: HttpContext): string {
  const type = context.req.param("type") ?? "";
  if (isMessageType(type)) return type;
  throw new Failure(
    404,
    `"${type}" is no type; types are two PascalCase names, like Shop.Order (/openapi.json lists them)`,
  );
}

export async function bodyOf(context: HttpContext): Promise<Json> {
  const contentType = context.req.header("content-type") ?? "application/json";
  if (!/^application\/(?:[a-z.+-]+\+)?json\b/.test(contentType))
    throw new Failure(415, `the body is ${contentType}; send application/json`);
  return parseJson(await readBytes(context.req.raw));
}

function dataInUrl(context: HttpContext): Json {
  return parseJson(new TextEncoder().encode(context.req.query("data") ?? ""));
}

/** `Prefer: respond-async` or `Prefer: wait=5` (RFC 7240). */
function preferenceOf(context: HttpContext): { wait: number; isAsync: boolean } {
  const preferences = (context.req.header("prefer") ?? "").split(/,\s*/);
  const wait = preferences.find((preference) => preference.startsWith("wait="));
  const waitMs =
    wait === undefined ? HTTP_WAIT_MS : Math.min(secondsIn(wait.slice("wait=".length)) * 1_000, HTTP_WAIT_MS);
  return { wait: waitMs, isAsync: preferences.includes("respond-async") && wait === undefined };
}

function secondsIn(text: string | undefined): number {
  if (text === undefined) return 0;
  const seconds = Number(text);
  if (!(seconds >= 0)) throw new Failure(400, `wait: takes a number of seconds, got "${text}"`);
  return seconds;
}
