/**
 * Webhooks to other services: the `run` of a subscription, which posts each event with a signature of Standard
 * Webhooks. Deliveries, retries and dead letters are those of the bus. SPEC: W29.
 *
 * Addresses of this machine and of private networks are refused for each connection, after the name is resolved.
 */
import { lookup as resolveName } from "node:dns";
import { request as plainRequest } from "node:http";
import { request as secureRequest } from "node:https";
import { BlockList, isIP, type LookupFunction } from "node:net";
import type { Host } from "../host/host.ts";
import { systemHost } from "../host/system-host.ts";
import { WEBHOOK_ATTEMPTS, WEBHOOK_BACKOFF_MAX_MS, WEBHOOK_BACKOFF_START_MS, WEBHOOK_MS } from "../limits.ts";
import { Failure } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import { unknownOption } from "../message/near-word.ts";
import { show } from "../message/problem.ts";
import { standardKey, standardSignature } from "./webhook-signature.ts";

/** Where events are posted to. */
export interface OutgoingWebhook {
  /** `https:`; `http:` only with `allowPrivate`. */
  readonly url: string;
  /** `whsec_` and base64. */
  readonly secret: string;
  /** Allows addresses of this machine and of private networks, and plain HTTP. */
  readonly allowPrivate?: boolean;
  /** How often an event is tried in all, with pauses from 5 s to a day. Default 10: about three days. */
  readonly retry?: number;
  readonly host?: Host;
}

/** The facts of one call, as `on` gives them. */
export interface WebhookCall {
  readonly idempotencyKey: string;
  readonly signal: AbortSignal;
  /** The type of the event. */
  readonly type: string;
  /** When the event was published. */
  readonly publishedAtMs: number;
}

/** The steps of a subscription that posts its events: `on(placed, outgoingWebhook({ url, secret }))`. */
export interface WebhookSteps {
  readonly run: (data: unknown, call: WebhookCall) => Promise<void>;
  readonly retry: {
    readonly attempts: number;
    readonly backoff: { readonly startMs: number; readonly factor: number; readonly maxMs: number };
    readonly when: (thrown: unknown) => boolean;
  };
  readonly timeout: number;
}

const KNOWN: Readonly<Record<keyof OutgoingWebhook, true>> = {
  ...{ url: true, secret: true, allowPrivate: true, retry: true, host: true },
};
const BACKOFF_FACTOR = 4;
const GONE = 410;

/** Posts the events of a subscription: `on(placed, outgoingWebhook({ url, secret }))`. */
export function outgoingWebhook(options: OutgoingWebhook): WebhookSteps {
  const { url: text, secret, allowPrivate = false, retry = WEBHOOK_ATTEMPTS, host = systemHost() } = options;
  const problem = unknownOption(options, KNOWN);
  if (problem !== undefined) throw new TypeError(`outgoingWebhook: ${problem}`);
  const url = URL.parse(text);
  if (url === null || (url.protocol !== "https:" && !(allowPrivate && url.protocol === "http:")))
    throw new TypeError(`outgoingWebhook: url is like https://example.com/hook, got ${show(text)}`);
  if (typeof secret !== "string") throw new TypeError("outgoingWebhook: secret is whsec_ and base64");
  standardKey(secret);
  return {
    run: async (data, { idempotencyKey: id, signal, type, publishedAtMs }) => {
      const timestamp = new Date(publishedAtMs).toISOString();
      const body = JSON.stringify({ type, timestamp, data: data as Json });
      const atS = Math.floor(host.now() / 1_000);
      const signature = await standardSignature(secret, id, atS, body);
      const status = await post({ url, body, signal, allowPrivate }, { id, at: String(atS), signature });
      if (status >= 200 && status < 300) return;
      if (status === GONE) throw new Failure(GONE, `${url.host} wants no more of them (410)`);
      throw new Failure(502, `${url.host} answered ${status}`);
    },
    retry: {
      attempts: retry,
      backoff: { startMs: WEBHOOK_BACKOFF_START_MS, factor: BACKOFF_FACTOR, maxMs: WEBHOOK_BACKOFF_MAX_MS },
      when: (thrown) => !(thrown instanceof Failure && thrown.code === GONE),
    },
    timeout: WEBHOOK_MS,
  };
}

interface Post {
  readonly url: URL;
  readonly body: string;
  readonly signal: AbortSignal;
  readonly allowPrivate: boolean;
}

/** Resolves with the status. Redirects are not followed. */
function post(
  { url, body, signal, allowPrivate }: Post,
  { id, at, signature }: { readonly id: string; readonly at: string; readonly signature: string },
): Promise<number> {
  const bare = url.hostname.replace(/^\[|\]$/g, "");
  if (!allowPrivate && isIP(bare) !== 0 && isPrivate(bare)) return Promise.reject(failed(url, privateAddress(bare)));
  return new Promise((resolve, reject) => {
    const send = url.protocol === "https:" ? secureRequest : plainRequest;
    const request = send(
      url,
      {
        ...{ method: "POST", signal, agent: false },
        ...(allowPrivate ? {} : { lookup: publicLookup }),
        headers: {
          ...{ "content-type": "application/json", "content-length": Buffer.byteLength(body) },
          ...{ "webhook-id": id, "webhook-timestamp": at, "webhook-signature": signature },
        },
      },
      (response) => {
        // The status says all: the rest is not read.
        response.destroy();
        resolve(response.statusCode ?? 0);
      },
    );
    // A receiver that changes the protocol has not taken the event; nothing else would end the connection.
    request.on("upgrade", (response, socket) => {
      socket.destroy();
      resolve(response.statusCode ?? 0);
    });
    request.on("error", (cause) => reject(failed(url, cause)));
    request.end(body);
  });
}

function failed(url: URL, cause: Error): Failure {
  return new Failure(502, `${url.host} was not reached: ${cause.message}`, { cause });
}

function privateAddress(address: string): Error {
  return new Error(`${address} is a private address; allow it with allowPrivate`);
}

/** Resolves a name, and fails if it has a private address. */
const publicLookup: LookupFunction = (name, options, callback) => {
  resolveName(name, { ...options, all: true }, (error, found) => {
    if (error) return callback(error, "", 0);
    const refused = found.find(({ address }) => isPrivate(address));
    if (refused !== undefined) return callback(privateAddress(refused.address), "", 0);
    const [first] = found;
    if (options.all === true || first === undefined) callback(null, found);
    else callback(null, first.address, first.family);
  });
};

const PRIVATE = new BlockList();
for (const [net, bits] of [
  ...([
    ["0.0.0.0", 8],
    ["10.0.0.0", 8],
    ["100.64.0.0", 10],
    ["127.0.0.0", 8],
    ["169.254.0.0", 16],
  ] as const),
  ...([
    ["172.16.0.0", 12],
    ["192.0.0.0", 24],
    ["192.168.0.0", 16],
    ["198.18.0.0", 15],
  ] as const),
  ...([
    ["224.0.0.0", 4],
    ["240.0.0.0", 4],
  ] as const),
])
  PRIVATE.addSubnet(net, bits, "ipv4");
for (const [net, bits] of [
  ...([
    ["::", 96],
    ["::ffff:0:0:0", 96],
    ["64:ff9b::", 96],
    ["64:ff9b:1::", 48],
    ["2001::", 32],
    ["2002::", 16],
  ] as const),
  ...([
    ["fc00::", 7],
    ["fe80::", 10],
    ["fec0::", 10],
    ["ff00::", 8],
  ] as const),
])
  PRIVATE.addSubnet(net, bits, "ipv6");

/** Whether an address is of this machine, of a private network or of no single machine. */
export function isPrivate(address: string): boolean {
  return PRIVATE.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");
}
