/**
 * `millrace/http`: a kernel over HTTP and WebSocket. Needs `hono`; `serveHttp` needs Node, `@hono/node-server` and
 * `ws`.
 */
/// <reference lib="esnext.disposable" preserve="true" />
export { type Authenticate, type HttpAppOptions, httpApp, type Served } from "./http-app.ts";
export type { HttpKernel } from "./http-context.ts";
export type { IncomingWebhook } from "./incoming-webhook.ts";
export { type OutgoingWebhook, outgoingWebhook, type WebhookCall, type WebhookSteps } from "./outgoing-webhook.ts";
export type { Principal } from "./principal.ts";
export { HttpError, type HttpServer, type ServeHttpOptions, serveHttp } from "./serve-http.ts";
export type { ReceivedWebhook, VerifyWebhook, WebhookFormat } from "./webhook-signature.ts";
