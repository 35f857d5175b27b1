/** A kernel of the shop behind a real HTTP server on loopback. */
import { createHash, randomBytes } from "node:crypto";
import { onTestFinished } from "vitest";
import type { AnyApp } from "../../src/app/caller.ts";
import { type HttpServer, type ServeHttpOptions, serveHttp } from "../../src/http/serve-http.ts";
import type { AppKernel } from "../../src/kernel/app-kernel.ts";
import { openOn, type StoreName } from "../app/app-setup.ts";
import { shop } from "../app/shop-app.ts";

export const ALL_SCOPES: readonly string[] = ["read", "send", "publish", "operate"];

export interface World {
  readonly kernel: AppKernel<typeof shop>;
  readonly server: HttpServer;
  /** A request with a token of all scopes, unless the headers say otherwise. */
  ask(path: string, init?: RequestInit): Promise<Response>;
  post(path: string, data: unknown, headers?: Record<string, string>): Promise<Response>;
  token(name: string, scopes: readonly string[]): Promise<string>;
}

export async function serve(options: ServeHttpOptions = {}, store: StoreName = "memory"): Promise<World> {
  const kernel = await openOn(store, shop, { trace: true });
  const server = await serveHttp(kernel, { port: 0, ...options });
  onTestFinished(() => server.close({ graceMs: 0 }));
  const all = await addToken(kernel, "test", ALL_SCOPES);
  const ask = (path: string, { headers, ...init }: RequestInit = {}) =>
    fetch(server.url + path, { ...init, headers: { authorization: `Bearer ${all}`, ...headers } });
  return {
    ...{ kernel, server, ask },
    post: (path, data, headers = {}) =>
      ask(path, {
        method: "POST",
        body: JSON.stringify(data),
        headers: { "content-type": "application/json", ...headers },
      }),
    token: (name, scopes) => addToken(kernel, name, scopes),
  };
}

export async function addToken(
  kernel: Pick<AppKernel<AnyApp>, "kernel">,
  name: string,
  scopes: readonly string[],
  clearance?: readonly string[],
): Promise<string> {
  const token = randomBytes(32).toString("base64url");
  const digest = createHash("sha256").update(token).digest("hex");
  await kernel.kernel.command("Kernel.AddToken", { name, scopes, digest, ...(clearance && { clearance }) });
  return token;
}

/** Reads server-sent events until the response ends. */
export async function* eventsOf(response: Response): AsyncGenerator<Readonly<Record<string, string>>> {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const bytes of response.body as ReadableStream<Uint8Array>) {
    rest += decoder.decode(bytes, { stream: true });
    const blocks = rest.split("\n\n");
    rest = blocks.pop() as string;
    for (const block of blocks) {
      const fields = block.split("\n").map((line) => line.split(/: ?(.*)/s, 2) as [string, string]);
      if (fields.some(([name]) => name === "data")) yield Object.fromEntries(fields);
    }
  }
}
