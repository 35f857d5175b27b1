/**
 * `millrace/client`: connects to a kernel over its socket. Needs Node.
 */
/// <reference lib="esnext.disposable" preserve="true" />
export {
  type AnyExchanges,
  Client,
  type ClientOptions,
  type Exchange,
  type Exchanges,
  type RequestOptions,
} from "./client.ts";
export { type Connected, connect } from "./connect.ts";
export type { GoneEvents, StreamedEvent, SubscribeOptions } from "./subscription.ts";
