/** Connects over a URL: in browsers, and wherever a global `WebSocket` is. SPEC: W62. */
import { isMessageType, type Message } from "../message/envelope.ts";
import { findImpurity, VALUE_LIMITS } from "../message/json.ts";
import { problemText, show, within } from "../message/problem.ts";
import { AppConnection, type Connected } from "./connection.ts";
import { KernelClient, type RequestsOptions } from "./kernel-client.ts";
import { type ClientHost, pageHost } from "./page-host.ts";
import { type WebOptions, webSource } from "./web-link.ts";

/** The address of a kernel's server, the token, and the limits of requests. */
export interface UrlOptions extends RequestsOptions, WebOptions {
  readonly host?: ClientHost;
  readonly path?: undefined;
}

/** Does not wait for the kernel: requests wait until it is reached, and `status` tells the state of the connection. */
export function connectUrl<A>(options: UrlOptions = {}): Connected<A> {
  const source = webSource(options, options.host ?? pageHost());
  const client = new KernelClient(source, options, requestProblem);
  client.begin();
  const connected: unknown = new AppConnection(client, source);
  return connected as Connected<A>;
}

/** The kernel checks the rest of the message; this part would be lost in its text. */
function requestProblem({ type, data }: Message): string | undefined {
  if (!isMessageType(type)) return `${show(type)} is not a message type, like Shop.Order`;
  const problem = findImpurity(data, VALUE_LIMITS);
  return problem && problemText(within("data", problem));
}
