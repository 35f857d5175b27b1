/** Hostile and careless clients over HTTP: their memory is bounded, and other clients are answered. */
import { request } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { WebSocket } from "ws";
import { app } from "../../src/app/app.ts";
import { serveHttp } from "../../src/http/serve-http.ts";
import { HTTP_REQUESTS_MAX } from "../../src/limits.ts";
import { openOn } from "../app/app-setup.ts";
import { shop } from "../app/shop-app.ts";
import { scratchFolder } from "../repo/program.ts";
import { addToken, eventsOf, serve } from "./http-setup.ts";

/** The status of a request with any headers. */
function statusOf(url: string, headers: Record<string, string>, method = "GET"): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(`${url}/v1/queries/Shop.Sum`, { method, headers }, (response) => {
      response.resume();
      resolve(response.statusCode as number);
    });
    sent.on("error", reject).end();
  });
}

/** Sends bytes as they are; the first line of the answer. */
function rawAnswer(url: string, text: string): Promise<string> {
  const { port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), "127.0.0.1", () => socket.write(text));
    socket.setEncoding("utf8");
    socket.once("data", (chunk) => {
      resolve(String(chunk).split("\r\n")[0] as string);
      socket.destroy();
    });
    socket.once("error", reject);
    socket.once("close", () => resolve(""));
  });
}

const APP = "https://app.example.com";

describe("a table of hosts and origins", () => {
  const own = "127.0.0.1:PORT";
  const evil = "https://evil.example";
  const cases: readonly [Record<string, string>, number][] = [
    [{ host: own }, 200],
    [{ host: "127.0.0.1" }, 200],
    [{ host: "localhost:PORT" }, 200],
    [{ host: "localhost" }, 200],
    [{ host: "LocalHost:PORT" }, 200],
    [{ host: "localhost:1" }, 200],
    [{ host: "[::1]:PORT" }, 200],
    [{ host: "[::1]" }, 200],
    [{ host: "evil.example" }, 421],
    [{ host: "evil.example:PORT" }, 421],
    [{ host: "localhost.evil.example" }, 421],
    [{ host: "127.0.0.1.evil.example" }, 421],
    // No URL has this host.
    [{ host: "evil.example#localhost" }, 400],
    [{ host: "localhost.:PORT" }, 421],
    [{ host: "127.0.0.2:PORT" }, 421],
    [{ host: "0.0.0.0:PORT" }, 421],
    [{ host: "localhost:PORT:PORT" }, 400],
    [{ host: own, origin: "http://127.0.0.1:PORT" }, 200],
    [{ host: own, origin: "https://127.0.0.1:PORT" }, 200],
    [{ host: "localhost:PORT", origin: "http://localhost:PORT" }, 200],
    [{ host: own, origin: "http://localhost:PORT" }, 403],
    [{ host: own, origin: "http://127.0.0.1:1" }, 403],
    [{ host: own, origin: "http://127.0.0.1" }, 403],
    [{ host: own, origin: evil }, 403],
    [{ host: own, origin: "null" }, 403],
    [{ host: own, origin: "" }, 403],
    [{ host: own, origin: "file://" }, 403],
    [{ host: own, origin: "ws://127.0.0.1:PORT" }, 403],
    [{ host: own, origin: "http://127.0.0.1:PORT.evil.example" }, 403],
    [{ host: own, origin: APP }, 200],
    [{ host: own, origin: `${APP}:444` }, 403],
    [{ host: own, origin: `${APP}/` }, 403],
    [{ host: own, origin: "http://app.example.com" }, 403],
    [{ host: "evil.example", origin: evil }, 421],
    [{ host: "evil.example", origin: APP }, 421],
    [{ host: own, "sec-fetch-site": "same-origin" }, 200],
    [{ host: own, "sec-fetch-site": "none" }, 200],
    [{ host: own, "sec-fetch-site": "cross-site" }, 403],
    [{ host: own, "sec-fetch-site": "cross-site", origin: APP }, 200],
    [{ host: own, "sec-fetch-site": "cross-site", origin: evil }, 403],
    [{ host: own, "sec-fetch-site": "same-origin", origin: evil }, 403],
  ];

  test(`[W26] ${cases.length} combinations of Host, Origin and Sec-Fetch-Site pass or are refused`, async () => {
    const { server, token } = await serve({ cors: [APP] });
    const authorization = `Bearer ${await token("reader", ["read"])}`;
    const { port } = new URL(server.url);
    for (const [headers, status] of cases) {
      const sent = Object.entries(headers).map(([name, value]) => [name, value.replaceAll("PORT", port)]);
      const got = await statusOf(server.url, { authorization, ...Object.fromEntries(sent) });
      expect({ ...headers, status: got }).toEqual({ ...headers, status });
    }
  });
});

describe("hostile clients over HTTP", () => {
  test("[W23] requests with two lengths, and headers over the limit, are refused by the parser", async () => {
    const { server, ask } = await serve();
    const head = "POST /v1/commands/Shop.Order HTTP/1.1\r\nHost: localhost\r\ncontent-type: application/json\r\n";
    for (const [rest, status] of [
      ["content-length: 2\r\ncontent-length: 9\r\n\r\n{}", 400],
      ["content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", 400],
      ["transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n", 400],
      ["content-length: -1\r\n\r\n", 400],
      [`x: ${"y".repeat(20_000)}\r\n\r\n`, 431],
    ] as const)
      expect(await rawAnswer(server.url, head + rest)).toContain(`HTTP/1.1 ${status}`);
    expect((await ask("/v1/queries/Shop.Sum")).status).toBe(200);
  });

  test("[W23] a body over the limit is 413 without a length too, and the server goes on", async () => {
    const { ask } = await serve();
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        for (let n = 0; n < 3; n++) controller.enqueue(new Uint8Array(500_000).fill(0x20));
        controller.close();
      },
    });
    const init = { method: "POST", body, duplex: "half", headers: { "content-type": "application/json" } };
    expect((await ask("/v1/commands/Shop.Order", init as RequestInit)).status).toBe(413);
    expect((await ask("/v1/queries/Shop.Sum")).status).toBe(200);
  });

  test("[W60] each of 20,000 frames of garbage is refused once, and another client is answered", async () => {
    const { server, token, ask } = await serve();
    const headers = { authorization: `Bearer ${await token("ws", ["read"])}` };
    const socket = new WebSocket(`${server.url.replace("http", "ws")}/v1/ws`, "millrace.v1", { headers });
    await new Promise((resolve) => socket.once("open", resolve));
    const frames = ["{", "[[[[", "nul", "{}", '{"kind":"wish"}', "\u0000", '"\\ud800"', "a\nb"];
    let errors = 0;
    const all = new Promise<void>((resolve) => {
      socket.on("message", (data) => {
        expect(JSON.parse(String(data))).toMatchObject({ kind: "error" });
        if (++errors === 20_000) resolve();
      });
    });
    for (let n = 0; n < 20_000; n++) socket.send(frames[n % frames.length] as string);
    expect((await ask("/v1/queries/Shop.Sum")).status).toBe(200);
    await all;
    socket.close();
  });

  test("[W27] a token cannot lend itself a scope through a message that is sent later", async () => {
    const { post, token } = await serve();
    const sender = { authorization: `Bearer ${await token("sender", ["send"])}` };
    const later = (message: object) => ({ delayMs: 60_000, message: { data: null, ...message } });
    for (const [type, data] of [
      ["Journal.Send", { type: "Syscall.Shutdown", data: null }],
      ["Journal.Publish", { type: "Mail.Received", data: null }],
      ["Timer.Set", later({ kind: "command", type: "Syscall.Shutdown" })],
      ["Timer.Set", later({ kind: "event", type: "Mail.Received" })],
      ["Timer.Set", later({ kind: "command", type: "Journal.Send", data: { type: "Kernel.AddToken", data: null } })],
      ["Timer.Set", later({ kind: "command", type: "Shop.Order", metadata: { principal: "test" } })],
      ["Timer.Every", { everyMs: 60_000, message: { kind: "command", type: "Syscall.Shutdown", data: null } }],
    ] as const)
      expect([type, (await post(`/v1/commands/${type}`, data, sender)).status]).toEqual([type, 403]);
    const allowed = later({ kind: "command", type: "Shop.Order", data: { price: 1 } });
    expect((await post("/v1/commands/Timer.Set", allowed, sender)).status).toBe(200);
  });
});

describe("careless clients over HTTP", () => {
  const gate = Promise.withResolvers<void>();
  const slow = app("slow", () => ({
    commands: {
      "Slow.Wait": async () => {
        await gate.promise;
        return { waited: true };
      },
    },
  }));

  test("[W23] [W56] requests under way are limited, clients that leave are not counted, and a slow command has an address", async () => {
    const kernel = await openOn("memory", slow);
    const server = await serveHttp(kernel, { port: 0, authenticate: "none" });
    onTestFinished(() => server.close({ graceMs: 0 }));
    const wait = (init: RequestInit = {}) => fetch(`${server.url}/v1/commands/Slow.Wait`, { method: "POST", ...init });
    const status = async () => (await fetch(`${server.url}/v1/requests/unknown`)).status;
    const left = new AbortController();
    const asked = Array.from({ length: HTTP_REQUESTS_MAX }, () => wait({ signal: left.signal }).catch(() => undefined));
    while ((await status()) !== 429);
    left.abort();
    await Promise.all(asked);
    while ((await status()) !== 404);
    const later = await wait({ headers: { prefer: "wait=0.1" } });
    const address = server.url + (later.headers.get("location") as string);
    expect([later.status, (await fetch(address)).status]).toEqual([202, 202]);
    gate.resolve();
    const done = await fetch(`${address}?wait=30`);
    expect([done.status, await done.json()]).toEqual([200, { waited: true }]);
  });

  test("[W20] a stream is asked for with GET: HEAD opens none", async () => {
    const { ask } = await serve();
    for (const path of ["/v1/events", "/v1/live/Shop.Sum"])
      expect((await ask(path, { method: "HEAD" })).status).toBe(405);
  });

  test("[W24] a server with open streams, sockets and idle connections closes long before its grace is over", async () => {
    const { ask, server, token } = await serve();
    const values = eventsOf(await ask("/v1/live/Shop.Sum"));
    await values.next();
    const lines = new TransformStream<Uint8Array, Uint8Array>();
    const writer = lines.writable.getWriter();
    const sending = { method: "POST", body: lines.readable, duplex: "half" };
    const answers = ask("/v1/messages", sending as RequestInit).catch(() => undefined);
    const line = { kind: "query", type: "Shop.Sum", data: null, metadata: { id: "m1", timestamp: 1 } };
    await writer.write(new TextEncoder().encode(`${JSON.stringify(line)}\n`));
    const socket = new WebSocket(`${server.url.replace("http", "ws")}/v1/ws`, {
      headers: { authorization: `Bearer ${await token("ws", ["read"])}` },
    });
    await new Promise((resolve) => socket.once("open", resolve));
    expect((await (await answers)?.body?.getReader().read())?.done).toBe(false);
    await server.close({ graceMs: 3_600_000 });
    await writer.abort().catch(() => undefined);
  });

  test("[W20] a server leaves the globals of the program as they are", async () => {
    const before = [globalThis.Request, globalThis.Response];
    await serve();
    expect([globalThis.Request, globalThis.Response]).toEqual(before);
  });
});

describe("tokens and answers that outlive a kernel", () => {
  test("[W57] [W27] after a restart a request has its answer and a token its scopes, and an expired one is refused", async () => {
    const file = join(scratchFolder(), "shop.db");
    const first = await openOn("memory", shop, { file });
    const token = await addToken(first, "web", ["send", "read"]);
    const old = "an-old-token";
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(old)));
    const expired = { name: "old", scopes: ["read"], digest: Buffer.from(digest).toString("hex"), expiresAtMs: 1 };
    await first.kernel.command("Kernel.AddToken", expired);
    const served = await serveHttp(first, { port: 0 });
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const body = JSON.stringify({ price: 3 });
    const sent = { method: "POST", body, headers: { ...headers, prefer: "respond-async" } };
    const accepted = await fetch(`${served.url}/v1/commands/Shop.Order`, sent);
    const address = accepted.headers.get("location") as string;
    expect((await fetch(`${served.url}${address}?wait=30`, { headers })).status).toBe(200);
    await first.close();
    const server = await serveHttp(await openOn("memory", shop, { file }), { port: 0 });
    onTestFinished(() => server.close({ graceMs: 0 }));
    const again = await fetch(server.url + address, { headers });
    expect([again.status, await again.json()]).toEqual([200, { orders: 1 }]);
    const refused = await fetch(server.url + address, { headers: { authorization: `Bearer ${old}` } });
    expect(refused.status).toBe(401);
  });
});
