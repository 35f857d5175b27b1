/**
 * `millrace/client`: calls a kernel in another process, over its socket or a URL. In a browser, over a URL.
 */
/// <reference lib="esnext.disposable" preserve="true" />
export { Client, type ClientOptions } from "./client.ts";
export { connect } from "./connect.ts";
export type { UrlOptions } from "./connect-url.ts";
export type { Connected } from "./connection.ts";
export {
  type AnyExchanges,
  type Exchange,
  type Exchanges,
  KernelClient,
  type RequestOptions,
  type RequestsOptions,
  type Status,
} from "./kernel-client.ts";
export type { EventSubscribeOptions, GoneEvents, StreamedEvent } from "./subscription.ts";
