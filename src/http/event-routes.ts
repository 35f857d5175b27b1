/**
 * Events in and out, and live queries. SPEC: W20.
 *
 *     POST /v1/events/{Type}        body: its data; 201 once it is durable
 *     POST /v1/events               CloudEvents 1.0: one, a batch, or in the binary mode
 *     GET  /v1/events?types=&topics=&from=     server-sent events, or lines of JSON by `Accept: application/x-ndjson`
 *     GET  /v1/live/{Type}?data=    the answer of a query, and again whenever it differs
 */
import type { Hono } from "hono";
import { CLOUD_EVENT_BATCH_MAX, HTTP_STREAMS_MAX } from "../limits.ts";
import { fromCloudEvent } from "../message/cloud-events.ts";
import { isMessageType, type Message } from "../message/envelope.ts";
import { type ErrorData, Failure } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import {
  type EventSource,
  type ServerEvent,
  EventSource as Source,
  type StreamFormat,
  serverSent,
} from "./event-source.ts";
import { HttpExchange } from "./exchange.ts";
import type { HttpContext, HttpEnv, HttpParts } from "./http-context.ts";
import { idOfKey } from "./idempotency.ts";
import { parseJson, readBytes } from "./json-body.ts";
import { requireScope } from "./principal.ts";
import { problemResponse } from "./problem.ts";
import { bodyOf } from "./request-routes.ts";

const NDJSON = "application/x-ndjson";
/** A stream that resumes waits so long for the reason why it cannot, so that the reason is its status. */
const RESUME_WAIT_MS = 100;

export function addEventRoutes(app: Hono<HttpEnv>, parts: HttpParts): void {
  app.post("/v1/events/:type", async (context) => publishOne(parts, context, await bodyOf(context)));
  app.post("/v1/events", (context) => publishCloudEvents(parts, context));
  app.get("/v1/events", (context) => follow(parts, context));
  app.get("/v1/live/:type", (context) => live(parts, context));
}

// In
// -------------------------------------------------------------------------------------------------------------------

async function publishOne(parts: HttpParts, context: HttpContext, data: Json): Promise<Response> {
  const type = context.req.param("type") ?? "";
  const key = context.req.header("idempotency-key");
  const id = key === undefined ? parts.host.id() : idOfKey(context.get("principal"), key);
  const answer = await publish(parts, context, { type, data, id });
  if (answer.kind === "error") return problemResponse(answer.data as ErrorData, { requestId: id });
  const { id: journalId } = answer.data as { readonly id: number };
  return Response.json(answer.data, { status: 201, headers: { "millrace-journal-id": String(journalId) } });
}

function publish(
  { host, kernel }: HttpParts,
  context: HttpContext,
  { type, data, id }: { type: string; data: Json; id: string },
): Promise<Message> {
  const principal = context.get("principal");
  if (!isMessageType(type)) throw new Failure(404, `"${type}" is no type of events, like Order.Placed`);
  requireScope(principal, "publish", type);
  const exchange = new HttpExchange(host.id(), principal);
  const metadata = { id, timestamp: host.now(), principal: principal.name };
  kernel.loop.receive({ kind: "command", type: "Journal.Publish", data: { type, data }, metadata }, exchange);
  return exchange.answer;
}

/** All events of a batch are checked before the first is published. */
async function publishCloudEvents(parts: HttpParts, context: HttpContext): Promise<Response> {
  const events = await cloudEventsIn(context);
  if (events.length > CLOUD_EVENT_BATCH_MAX)
    throw new Failure(413, `a batch has at most ${CLOUD_EVENT_BATCH_MAX} events; send more batches`);
  const messages = events.map((event, index) => {
    const read = fromCloudEvent(event, parts.host.now());
    if (read.kind === "refused") throw new Failure(read.code, `event ${index + 1}: ${read.message}`);
    if (read.message.kind !== "event") throw new Failure(422, `event ${index + 1}: is a ${read.message.kind}`);
    requireScope(context.get("principal"), "publish", read.message.type);
    return read.message;
  });
  const ids: Json[] = [];
  for (const { type, data, metadata } of messages) {
    const answer = await publish(parts, context, { type, data, id: idOfKey(context.get("principal"), metadata.id) });
    if (answer.kind === "error") return problemResponse(answer.data as ErrorData);
    ids.push(answer.data);
  }
  return Response.json({ events: ids }, { status: 201 });
}

async function cloudEventsIn(context: HttpContext): Promise<readonly Json[]> {
  const contentType = context.req.header("content-type") ?? "";
  const bytes = await readBytes(context.req.raw);
  if (contentType.startsWith("application/cloudevents-batch+json")) {
    const batch = parseJson(bytes);
    if (!Array.isArray(batch)) throw new Failure(422, "a batch of CloudEvents is an array");
    return batch;
  }
  if (contentType.startsWith("application/cloudevents+json")) return [parseJson(bytes)];
  if (context.req.header("ce-specversion") === undefined)
    throw new Failure(415, "send application/cloudevents+json, -batch+json, or the headers of the binary mode (ce-*)");
  const event: Record<string, Json> = {};
  for (const [name, value] of context.req.raw.headers)
    if (name.startsWith("ce-")) event[name.slice("ce-".length)] = decoded(name, value);
  if (contentType !== "") event["datacontenttype"] = contentType;
  const isJson = contentType === "" || /^application\/(?:[a-z.+-]+\+)?json\b/.test(contentType);
  if (bytes.length > 0 && isJson) event["data"] = parseJson(bytes);
  else if (bytes.length > 0) event["data_base64"] = base64(bytes);
  return [event];
}

function decoded(name: string, value: string): string {
  try {
    return decodeURIComponent(value);
  } catch (cause) {
    throw new Failure(400, `${name}: is no percent-encoded text`, { cause });
  }
}

function base64(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

// Out
// ------------------------------------------------------------------------------------------------------------------

async function follow(parts: HttpParts, context: HttpContext): Promise<Response> {
  requireScope(context.get("principal"), "read");
  const from = context.req.header("last-event-id") ?? context.req.query("from");
  const asked = {
    types: namesIn(context.req.query("types")),
    topics: namesIn(context.req.query("topics")),
    ...(from === undefined ? {} : { from }),
  };
  const source = sourceFor(parts, context, journalEvent);
  const answer = await source.open("Sys.Subscribe", asked);
  return opened(parts, source, answer, from !== undefined);
}

/** `Last-Event-ID` is the version that the client has; a client that has the newest one is told so. */
async function live(parts: HttpParts, context: HttpContext): Promise<Response> {
  const type = context.req.param("type") ?? "";
  requireScope(context.get("principal"), "read", type);
  const data = parseJson(new TextEncoder().encode(context.req.query("data") ?? ""));
  const version = context.req.header("last-event-id") ?? context.req.query("version");
  const source = sourceFor(parts, context, liveEvent);
  const asked = { type, data, ...(version === undefined ? {} : { version }) };
  return opened(parts, source, await source.open("Sys.Watch", asked), false);
}

function liveEvent({ kind, data }: Message): ServerEvent {
  if (kind === "error") return { event: "failed", data };
  const { answer = null, version, same } = data as { answer?: Json; version: string; same?: true };
  return same === true ? { event: "same", data: null, id: version } : { event: "value", data: answer, id: version };
}

function journalEvent(message: Message): ServerEvent {
  const { cursor } = message.metadata;
  return { ...(typeof cursor === "string" ? { id: cursor } : {}), event: message.type, data: message };
}

function sourceFor(parts: HttpParts, context: HttpContext, eventOf: (message: Message) => ServerEvent): EventSource {
  const { host, kernel, streams } = parts;
  if (parts.isDraining) throw new Failure(503, "the kernel is shutting down", { reason: "DRAINING" });
  // Hono answers HEAD without the body, which then has no end.
  if (context.req.raw.method !== "GET") throw new Failure(405, "a stream is asked for with GET");
  if (streams.size >= HTTP_STREAMS_MAX)
    throw new Failure(503, `this server has ${HTTP_STREAMS_MAX} streams, its limit; come back later`);
  const isLines = (context.req.header("accept") ?? "").startsWith(NDJSON);
  const format = isLines ? lines(eventOf) : serverSentEvents(eventOf);
  const principal = context.get("principal");
  const source = new Source({
    ...{ host, loop: kernel.loop, principal, format },
    closed: (gone) => streams.delete(gone),
  });
  streams.add(source);
  return source;
}

async function opened(parts: HttpParts, source: EventSource, answer: Message, resumes: boolean): Promise<Response> {
  if (answer.kind === "error") {
    source.drop("refused");
    return problemResponse(answer.data as ErrorData);
  }
  const failure = resumes ? await source.failedWithin(RESUME_WAIT_MS, parts.host) : undefined;
  if (failure !== undefined) return problemResponse(failure);
  return source.response();
}

function serverSentEvents(eventOf: (message: Message) => ServerEvent): StreamFormat {
  return {
    contentType: "text/event-stream",
    begin: "retry: 1000\n\n",
    heartbeat: ":\n\n",
    bye: "event: bye\ndata: null\n\n",
    message: (message) => serverSent(eventOf(message)),
    failure: (error) => serverSent({ event: error.code === 410 ? "gone" : "error", data: error }),
  };
}

/** The data of each event, a line each. */
function lines(eventOf: (message: Message) => ServerEvent): StreamFormat {
  return {
    ...{ contentType: NDJSON, begin: "", heartbeat: "\n", bye: "" },
    message: (message) => {
      const { event, data } = eventOf(message);
      return `${JSON.stringify(event === "failed" ? { error: data } : data)}\n`;
    },
    failure: (error) => `${JSON.stringify({ error })}\n`,
  };
}

function namesIn(text: string | undefined): string[] {
  return text === undefined || text === "" ? [] : text.split(",");
}
