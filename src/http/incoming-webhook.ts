/**
 * Webhooks of other services: `POST /hooks/{name}` checks the signature over the bytes of the body, and publishes one
 * event. The answer is 202 once the event is durable. SPEC: W28.
 */
import type { Hono } from "hono";
import { contentId } from "../message/content-id.ts";
import { isMessageType } from "../message/envelope.ts";
import { type ErrorData, Failure } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import { kernelEventProblem } from "../message/kernel-event.ts";
import { unknownOption } from "../message/near-word.ts";
import { show } from "../message/problem.ts";
import { HttpExchange } from "./exchange.ts";
import type { HttpContext, HttpEnv, HttpParts } from "./http-context.ts";
import { parseJson, readBytes } from "./json-body.ts";
import { problemResponse } from "./problem.ts";
import {
  standardKey,
  type VerifyWebhook,
  verifierOf,
  WEBHOOK_FORMATS,
  type WebhookFormat,
} from "./webhook-signature.ts";

/** A webhook of another service. Its event has the JSON of the body as data. */
export interface IncomingWebhook {
  /** The last part of its path, like `payments` of `/hooks/payments`. */
  readonly name: string;
  /** The type of the event, like `Payment.Received`. */
  readonly event: string;
  /** The format of the signature, or a function that checks it and gives the id of the webhook. */
  readonly verify: WebhookFormat | VerifyWebhook;
  /** Several while one replaces another. Not for a function. */
  readonly secret?: string | readonly string[];
}

const KNOWN: Readonly<Record<keyof IncomingWebhook, true>> = { name: true, event: true, verify: true, secret: true };
const NAME = /^[a-z0-9][a-z0-9-]{0,63}$/;
const WEBHOOK_ID_LENGTH_MAX = 256;

export function addWebhookRoutes(app: Hono<HttpEnv>, parts: HttpParts, hooks: readonly IncomingWebhook[]): void {
  const all = new Map<string, { readonly hook: IncomingWebhook; readonly verify: VerifyWebhook }>();
  for (const hook of hooks) {
    const verify = verifierFor(hook);
    if (all.has(hook.name)) throw new TypeError(`webhooks: two are called "${hook.name}"`);
    all.set(hook.name, { hook, verify });
  }
  app.post("/hooks/:name", async (context) => {
    const name = context.req.param("name");
    const found = all.get(name);
    if (found === undefined) throw new Failure(404, `there is no webhook "${name}"`);
    return receive(parts, context, found.hook, found.verify);
  });
}

function verifierFor(hook: IncomingWebhook): VerifyWebhook {
  const { name, event, verify, secret } = hook;
  const problem = unknownOption(hook, KNOWN);
  if (problem !== undefined) throw new TypeError(`webhooks: ${problem}`);
  if (typeof name !== "string" || !NAME.test(name))
    throw new TypeError(`webhooks: name is small letters, digits and dashes, got ${show(name)}`);
  const eventProblem = typeof event === "string" && isMessageType(event) ? kernelEventProblem(event) : "like Mail.Sent";
  if (eventProblem !== undefined) throw new TypeError(`webhook "${name}": event is a type of events, ${eventProblem}`);
  if (typeof verify === "function") return verify;
  if (!WEBHOOK_FORMATS.includes(verify))
    throw new TypeError(
      `webhook "${name}": verify is ${WEBHOOK_FORMATS.join(", ")} or a function, got ${show(verify)}`,
    );
  const secrets = typeof secret === "string" ? [secret] : (secret ?? []);
  if (secrets.length === 0 || secrets.some((one) => typeof one !== "string" || one === ""))
    throw new TypeError(`webhook "${name}": secret is the text that the service signs with; is it in the environment?`);
  if (verify === "standard") for (const one of secrets) standardKey(one);
  return verifierOf(verify, secrets);
}

async function receive(
  { host, kernel, isDraining }: HttpParts,
  context: HttpContext,
  { name, event }: IncomingWebhook,
  verify: VerifyWebhook,
): Promise<Response> {
  if (isDraining) throw new Failure(503, "the kernel is shutting down", { reason: "DRAINING" });
  const body = await readBytes(context.req.raw);
  const id = await verify({ headers: context.req.raw.headers, body, nowMs: host.now() });
  if (id === undefined) throw new Failure(401, "the signature is not valid, or too old", { reason: "UNAUTHENTICATED" });
  if (id === "" || id.length > WEBHOOK_ID_LENGTH_MAX)
    throw new Failure(422, `the id of a webhook has 1 to ${WEBHOOK_ID_LENGTH_MAX} characters`);
  const principal = `hook:${name}`;
  const exchange = new HttpExchange(host.id(), { name: principal, scopes: [] });
  const data: Json = { type: event, data: parseJson(body) };
  // A repeated webhook has the same id, so that its event exists once.
  const metadata = { id: contentId(["hook", name, id]), timestamp: host.now(), principal };
  kernel.loop.receive({ kind: "command", type: "Journal.Publish", data, metadata }, exchange);
  const answer = await exchange.answer;
  if (answer.kind !== "error") return Response.json(answer.data, { status: 202 });
  const { reason, data: first } = answer.data as ErrorData;
  // Services repeat a webhook with another body, too: the event of the first is there.
  if (reason === "ID_REUSED" && first !== undefined) return Response.json(first, { status: 202 });
  return problemResponse(answer.data as ErrorData);
}
