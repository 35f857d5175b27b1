/** Senders of requests: hosts, origins, tokens and scopes. */
import { request } from "node:http";
import { describe, expect, test } from "vitest";
import { serveHttp } from "../../src/http/serve-http.ts";
import { openOn } from "../app/app-setup.ts";
import { shop } from "../app/shop-app.ts";
import { serve } from "./http-setup.ts";

/** A request with any `Host`. */
function raw(url: string, path: string, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(url + path, { headers }, (response) => {
      response.resume();
      resolve(response.statusCode as number);
    });
    sent.on("error", reject).end();
  });
}

describe("the gate", () => {
  test("[W26] requests with a foreign Host are refused before the token is looked at", async () => {
    const { server } = await serve();
    const { port } = new URL(server.url);
    for (const [host, status] of [
      [`127.0.0.1:${port}`, 401],
      [`localhost:${port}`, 401],
      [`LOCALHOST:${port}`, 401],
      ["evil.example", 421],
      [`evil.example:${port}`, 421],
      ["127.0.0.1.evil.example", 421],
    ] as const)
      expect([host, await raw(server.url, "/v1/queries/Shop.Sum", { host })]).toEqual([host, status]);
  });

  test("[W26] pages of other origins are refused, unless they are allowed", async () => {
    const { server, ask } = await serve({ cors: ["https://app.example.com"] });
    const status = async (headers: Record<string, string>) => (await ask("/v1/queries/Shop.Sum", { headers })).status;
    expect(await status({ origin: server.url })).toBe(200);
    expect(await status({ origin: "https://app.example.com" })).toBe(200);
    expect(await status({ origin: "https://evil.example" })).toBe(403);
    expect(await status({ origin: "null" })).toBe(403);
    expect(await status({ "sec-fetch-site": "same-origin" })).toBe(200);
    const { host } = new URL(server.url);
    expect(await raw(server.url, "/v1/queries/Shop.Sum", { host, "sec-fetch-site": "cross-site" })).toBe(403);
  });

  test("[W26] an allowed origin gets CORS headers and its preflight, another gets none", async () => {
    const { server } = await serve({ cors: ["https://app.example.com"] });
    const preflight = (origin: string) =>
      fetch(`${server.url}/v1/commands/Shop.Order`, { method: "OPTIONS", headers: { origin } });
    const allowed = await preflight("https://app.example.com");
    expect(allowed.status).toBe(204);
    expect(allowed.headers.get("access-control-allow-origin")).toBe("https://app.example.com");
    const refused = await preflight("https://evil.example");
    expect([refused.status, refused.headers.get("access-control-allow-origin")]).toEqual([403, null]);
  });

  test("[W25] a request without a valid token is refused, and health is open", async () => {
    const { server } = await serve();
    const status = async (path: string, headers = {}) => (await fetch(server.url + path, { headers })).status;
    expect(await status("/v1/queries/Shop.Sum")).toBe(401);
    expect(await status("/v1/queries/Shop.Sum", { authorization: "Bearer nonsense" })).toBe(401);
    expect(await status("/livez")).toBe(200);
    expect(await status("/readyz")).toBe(200);
  });

  test("[W27] an address with many bad tokens is refused for the rest of the minute", async () => {
    const { server } = await serve();
    const statuses: number[] = [];
    for (let count = 0; count < 12; count++)
      statuses.push((await fetch(`${server.url}/openapi.json`, { headers: { authorization: "Bearer wrong" } })).status);
    expect(statuses.filter((status) => status === 401).length).toBeLessThanOrEqual(20);
    expect(new Set(statuses)).toEqual(new Set([401, 429]));
  });

  test("[W27] a token permits the requests of its scopes alone", async () => {
    const { server, token } = await serve();
    const orders = await token("orders", ["send:Shop.*"]);
    const reader = await token("reader", ["read"]);
    const ask = async (method: string, path: string, holder: string) =>
      (
        await fetch(server.url + path, {
          ...(method === "POST" ? { method, body: '{"price":1}' } : { method }),
          headers: { authorization: `Bearer ${holder}`, "content-type": "application/json" },
        })
      ).status;
    expect(await ask("POST", "/v1/commands/Shop.Order", orders)).toBe(200);
    expect(await ask("POST", "/v1/commands/Memory.Set", orders)).toBe(403);
    expect(await ask("GET", "/v1/queries/Shop.Sum", orders)).toBe(403);
    expect(await ask("GET", "/v1/queries/Shop.Sum", reader)).toBe(200);
    expect(await ask("POST", "/v1/commands/Shop.Order", reader)).toBe(403);
    expect(await ask("POST", "/v1/commands/Syscall.Shutdown", orders)).toBe(403);
    expect(await ask("POST", "/v1/events/Mail.Received", orders)).toBe(403);
  });

  test("[W27] a revoked token, and one that has expired, is refused", async () => {
    const { server, token, kernel } = await serve();
    const reader = await token("reader", ["read"]);
    const status = async () =>
      (await fetch(`${server.url}/v1/queries/Shop.Sum`, { headers: { authorization: `Bearer ${reader}` } })).status;
    expect(await status()).toBe(200);
    await kernel.kernel.command("Kernel.RevokeToken", { name: "reader" });
    expect(await status()).toBe(401);
  });

  test("[W25] without tokens a server listens on loopback alone", async () => {
    const kernel = await openOn("memory", shop);
    await expect(serveHttp(kernel, { port: 0, address: "0.0.0.0", authenticate: "none" })).rejects.toMatchObject({
      code: "HTTP_UNSAFE",
    });
    const server = await serveHttp(kernel, { port: 0, authenticate: "none" });
    expect((await fetch(`${server.url}/v1/queries/Shop.Sum`)).status).toBe(200);
    await server.close();
  });
});
