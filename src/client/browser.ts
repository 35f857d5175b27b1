/**
 * `millrace/client` in a page: a kernel behind a URL. The socket of a machine is for Node.
 */
import { Failure } from "../message/error-data.ts";
import { connectUrl, type UrlOptions } from "./connect-url.ts";
import type { Connected } from "./connection.ts";

/** `const shop = await connect<typeof app>({ url: "https://shop.example", token })`. */
export async function connect<A>(options: UrlOptions = {}): Promise<Connected<A>> {
  if (options.path !== undefined)
    throw new Failure(
      422,
      "connect: a page has no sockets of the machine; give url, the address of the kernel's server",
    );
  return connectUrl<A>(options);
}
