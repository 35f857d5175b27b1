/** Many clients at once: a drain with a thousand streams, and clients that never finish their headers. */
import { get, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { serve } from "./http-setup.ts";

const STREAMS = 1_000;
const SLOW_CLIENTS = 100;

/** Opens one event stream; its text is complete when it has ended. */
async function stream(url: string, authorization: string): Promise<{ readonly ended: Promise<string> }> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get(`${url}/v1/events`, { agent: false, headers: { authorization } }, resolve).on("error", reject);
  });
  expect(response.statusCode).toBe(200);
  let text = "";
  response.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  return { ended: new Promise((resolve) => response.once("close", () => resolve(text))) };
}

test("[W24] a server with 1,000 event streams ends each with bye, and closes long before its grace is over", async () => {
  const { server, token, ask, post } = await serve();
  const authorization = `Bearer ${await token("reader", ["read"])}`;
  const streams: { readonly ended: Promise<string> }[] = [];
  while (streams.length < STREAMS)
    streams.push(...(await Promise.all(Array.from({ length: 50 }, () => stream(server.url, authorization)))));
  expect((await ask("/v1/queries/Shop.Sum")).status).toBe(200);
  expect((await post("/v1/commands/Shop.Order", { price: 3 })).status).toBe(200);
  await server.close({ graceMs: 3_600_000 });
  for (const { ended } of streams) expect(await ended).toMatch(/event: bye\ndata: null\n\n$/);
});

test("[W23] clients that never finish their headers are answered with 408 and cut, and others are answered meanwhile", async () => {
  const { server, ask } = await serve();
  const { port } = new URL(server.url);
  const slow = Array.from({ length: SLOW_CLIENTS }, () => {
    const socket = connect(Number(port), "127.0.0.1").setEncoding("utf8");
    onTestFinished(() => void socket.destroy());
    socket.on("error", () => undefined).write("GET /v1/queries/Shop.Sum HTTP/1.1\r\nhost: localhost\r\nx-slow: ");
    let heard = "";
    socket.on("data", (text) => {
      heard += text;
    });
    return new Promise<string>((resolve) => socket.once("close", () => resolve(heard)));
  });
  expect((await ask("/v1/queries/Shop.Sum")).status).toBe(200);
  for (const heard of await Promise.all(slow)) expect(heard).toMatch(/^HTTP\/1\.1 408 /);
  expect((await ask("/v1/queries/Shop.Sum")).status).toBe(200);
});
