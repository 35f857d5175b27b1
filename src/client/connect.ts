/**
 * `connect<typeof app>()`: to the kernel on a socket of this machine, or behind a URL. SPEC: A31, W62.
 */
import { systemHost } from "../host/system-host.ts";
import { Client, type ClientOptions, requestProblem } from "./client.ts";
import { connectUrl, type UrlOptions } from "./connect-url.ts";
import { AppConnection, type Connected } from "./connection.ts";
import { socketSource } from "./line-link.ts";

/**
 * Connects to the kernel of an app: `await using shop = await connect<typeof app>({ path: ".millrace/kernel.sock" })`.
 * With `url` it connects to the kernel's HTTP server, and goes on trying while that is away.
 */
export async function connect<A>(options: ClientOptions | UrlOptions): Promise<Connected<A>> {
  if (options.path === undefined) return connectUrl<A>(options);
  const source = socketSource(options.path, options.host ?? systemHost());
  const client = new Client(source, options, requestProblem);
  await client.connect();
  const connected: unknown = new AppConnection(client, source);
  return connected as Connected<A>;
}
