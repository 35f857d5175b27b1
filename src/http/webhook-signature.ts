/**
 * Signatures of webhooks over the bytes of the body: Standard Webhooks, GitHub and Stripe. SPEC: W28, W29.
 *
 * All are HMAC-SHA-256, checked by `crypto.subtle.verify`, whose time does not depend on the signature.
 */
import { WEBHOOK_SIGNATURES_MAX } from "../limits.ts";
import { Failure } from "../message/error-data.ts";
import { isJsonObject } from "../message/json.ts";
import { parseJson } from "./json-body.ts";

/** The parts of a webhook that a check reads. */
export interface ReceivedWebhook {
  readonly headers: Headers;
  readonly body: Uint8Array;
  readonly nowMs: number;
}

/** The id of the webhook, the same in each repetition; undefined if the signature is not valid. */
export type VerifyWebhook = (received: ReceivedWebhook) => string | undefined | Promise<string | undefined>;

export const WEBHOOK_FORMATS = ["standard", "github", "stripe"] as const;
/** A format of signatures that the kernel knows. */
export type WebhookFormat = (typeof WEBHOOK_FORMATS)[number];

/** A signature is valid for so long before and after its time. */
const TOLERANCE_MS = 5 * 60_000;
const MS = 1_000;
const encoder = new TextEncoder();

/** Checks webhooks of a format. Several secrets are valid while one replaces another. */
export function verifierOf(format: WebhookFormat, secrets: readonly string[]): VerifyWebhook {
  switch (format) {
    case "standard":
      return (received) => standard(received, secrets);
    case "github":
      return (received) => github(received, secrets);
    case "stripe":
      return (received) => stripe(received, secrets);
  }
}

async function standard({ headers, body, nowMs }: ReceivedWebhook, secrets: readonly string[]) {
  const id = headers.get("webhook-id");
  const at = headers.get("webhook-timestamp");
  const given = (headers.get("webhook-signature") ?? "").split(" ", WEBHOOK_SIGNATURES_MAX);
  if (id === null || at === null || !isRecent(at, nowMs)) return undefined;
  const signed = joined(encoder.encode(`${id}.${at}.`), body);
  for (const secret of secrets)
    for (const one of given)
      if (one.startsWith("v1,") && (await isSigned(standardKey(secret), fromBase64(one.slice(3)), signed))) return id;
  return undefined;
}

async function github({ headers, body }: ReceivedWebhook, secrets: readonly string[]) {
  const given = headers.get("x-hub-signature-256") ?? "";
  const id = headers.get("x-github-delivery");
  if (id === null || !given.startsWith("sha256=")) return undefined;
  for (const secret of secrets)
    if (await isSigned(encoder.encode(secret), fromHex(given.slice("sha256=".length)), body)) return id;
  return undefined;
}

async function stripe({ headers, body, nowMs }: ReceivedWebhook, secrets: readonly string[]) {
  const list = (headers.get("stripe-signature") ?? "").split(",", WEBHOOK_SIGNATURES_MAX);
  const parts = list.map((part) => part.trim().split("=", 2));
  const at = parts.find(([name]) => name === "t")?.[1];
  if (at === undefined || !isRecent(at, nowMs)) return undefined;
  const signed = joined(encoder.encode(`${at}.`), body);
  for (const secret of secrets)
    for (const [name, value = ""] of parts)
      if (name === "v1" && (await isSigned(encoder.encode(secret), fromHex(value), signed))) return idIn(body);
  return undefined;
}

function idIn(body: Uint8Array): string {
  const event = parseJson(body);
  const id = isJsonObject(event) ? event["id"] : undefined;
  if (typeof id !== "string") throw new Failure(422, "the event has no id");
  return id;
}

/** `v1,` and the signature of `id.timestamp.body`, by Standard Webhooks. */
export async function standardSignature(secret: string, id: string, atS: number, body: string): Promise<string> {
  const key = await keyOf(standardKey(secret), "sign");
  const signature = await crypto.subtle.sign("HMAC", key, encoder.encode(`${id}.${atS}.${body}`));
  return `v1,${btoa(String.fromCharCode(...new Uint8Array(signature)))}`;
}

/** A secret of Standard Webhooks is `whsec_` and base64. */
export function standardKey(secret: string): Uint8Array<ArrayBuffer> {
  const key = fromBase64(secret.replace(/^whsec_/, ""));
  if (key === undefined || key.length < SECRET_BYTES_MIN)
    throw new TypeError(`a webhook secret is whsec_ and base64 of at least ${SECRET_BYTES_MIN} bytes`);
  return key;
}

const SECRET_BYTES_MIN = 16;

function keyOf(key: Uint8Array<ArrayBuffer>, usage: "sign" | "verify"): Promise<CryptoKey> {
  return crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, [usage]);
}

async function isSigned(
  key: Uint8Array<ArrayBuffer> | undefined,
  signature: Uint8Array<ArrayBuffer> | undefined,
  signed: Uint8Array<ArrayBufferLike>,
): Promise<boolean> {
  if (key === undefined || signature === undefined) return false;
  return crypto.subtle.verify("HMAC", await keyOf(key, "verify"), signature, new Uint8Array(signed));
}

/** Seconds since 1970, near the present. */
function isRecent(seconds: string, nowMs: number): boolean {
  return /^\d{1,12}$/.test(seconds) && Math.abs(Number(seconds) * MS - nowMs) <= TOLERANCE_MS;
}

function joined(head: Uint8Array, body: Uint8Array): Uint8Array {
  const all = new Uint8Array(head.length + body.length);
  all.set(head);
  all.set(body, head.length);
  return all;
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return undefined;
  try {
    return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  } catch {
    // A length that base64 cannot have: the signature is not valid.
    return undefined;
  }
}

function fromHex(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!/^(?:[0-9a-f]{2})+$/i.test(text)) return undefined;
  return Uint8Array.from(text.match(/../g) as string[], (pair) => Number.parseInt(pair, 16));
}
