/** Webhooks to other services: posts, retries, and refused addresses. */
import { createServer, type IncomingHttpHeaders } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { app } from "../../src/app/app.ts";
import { type } from "../../src/app/event-definition.ts";
import { on } from "../../src/app/on.ts";
import { isPrivate, type OutgoingWebhook, outgoingWebhook } from "../../src/http/outgoing-webhook.ts";
import { verifierOf } from "../../src/http/webhook-signature.ts";
import { Machine, openOn } from "../app/app-setup.ts";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

interface Posted {
  readonly body: string;
  readonly headers: IncomingHttpHeaders;
}

/** A service that answers with these statuses, the last one for ever. */
async function service(...statuses: number[]) {
  const posted: Posted[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (text: string) => {
      body += text;
    });
    request.on("end", () => {
      posted.push({ body, headers: request.headers });
      response.writeHead(statuses.length > 1 ? (statuses.shift() as number) : (statuses[0] as number), {
        location: "http://127.0.0.1:1/elsewhere",
      });
      response.end("thanks");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return { posted, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook` };
}

const shopWith = (options: Omit<OutgoingWebhook, "secret">) =>
  app("shop", ({ event }) => {
    const placed = event("Order.Placed", type<{ price: number }>());
    return {
      commands: {
        "Shop.Order": (order: { price: number }, tx) => {
          tx.emit(placed, order);
          return null;
        },
      },
      on: { partner: on(placed, outgoingWebhook({ secret: SECRET, ...options })) },
    };
  });

async function ordered(options: Omit<OutgoingWebhook, "secret">) {
  const kernel = await openOn("memory", shopWith(options), { observe: () => undefined });
  await kernel.command("Shop.Order", { price: 30 });
  await kernel.idle();
  const [row] = (await kernel.kernel.bus.failures()).rows;
  return { kernel, error: row?.deliveries[0]?.error ?? row?.error };
}

describe("a webhook to another service", () => {
  test("[W29] an event is posted with type, time and data, under a valid signature", async () => {
    const { url, posted } = await service(204);
    const { error } = await ordered({ url, allowPrivate: true });
    expect(error).toBeUndefined();
    expect(posted).toHaveLength(1);
    const { body, headers } = posted[0] as Posted;
    expect(JSON.parse(body)).toEqual({ type: "Order.Placed", timestamp: expect.any(String), data: { price: 30 } });
    const verify = verifierOf("standard", [SECRET]);
    const received = { headers: new Headers(headers as never), body: new TextEncoder().encode(body) };
    expect(await verify({ ...received, nowMs: Date.now() })).toBe(headers["webhook-id"]);
  });

  test("[W29] a failed attempt is repeated under the same id, by the pauses of the policy", async () => {
    const { url, posted } = await service(500, 302, 200);
    const machine = new Machine();
    const kernel = await machine.start(shopWith({ url, allowPrivate: true, host: machine.world }));
    await machine.run(() => kernel.command("Shop.Order", { price: 30 }));
    // The answers of the service come in real time, the pauses in that of the machine.
    const until = async (count: number) => {
      while (posted.length < count) {
        await machine.advance(1_000);
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    await until(3);
    expect(new Set(posted.map(({ headers }) => headers["webhook-id"])).size).toBe(1);
    expect(new Set(posted.map(({ body }) => body)).size).toBe(1);
    const times = posted.map(({ headers }) => Number(headers["webhook-timestamp"]));
    expect((times[1] as number) - (times[0] as number)).toBeGreaterThanOrEqual(2);
    expect((times[2] as number) - (times[1] as number)).toBeGreaterThanOrEqual(10);
    machine.kill();
  });

  test("[W29] the answer 410 ends the attempts at once, and the event is a dead letter", async () => {
    const { url, posted } = await service(410);
    const { error } = await ordered({ url, allowPrivate: true, retry: 5 });
    expect(posted).toHaveLength(1);
    expect(error).toContain("wants no more of them (410)");
  });

  test("[W29] a redirect is not followed, and counts as a failure", async () => {
    const { url, posted } = await service(302);
    expect((await ordered({ url, allowPrivate: true, retry: 1 })).error).toContain("answered 302");
    expect(posted).toHaveLength(1);
  });

  test("[W29] the answer 101 is a failure, and the connection ends", async () => {
    const ended = Promise.withResolvers<void>();
    const server = createTcpServer((socket) => {
      socket.on("close", () => ended.resolve()).on("error", () => undefined);
      socket.once("data", () => {
        socket.write("HTTP/1.1 101 Switching Protocols\r\nupgrade: other\r\nconnection: upgrade\r\n\r\n");
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
    expect((await ordered({ url, allowPrivate: true, retry: 1 })).error).toContain("answered 101");
    await ended.promise;
  });

  test("[W91] an address of this machine is refused, by number and by name, before a byte is sent", async () => {
    const { url, posted } = await service(200);
    const { port } = new URL(url);
    for (const host of ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "localhost"]) {
      const { error } = await ordered({ url: `https://${host}:${port}/hook`, retry: 1 });
      expect(error, host).toMatch(/private address/);
    }
    expect(posted).toEqual([]);
  });

  test("[W91] private, local, mapped and group addresses are private", () => {
    for (const address of ["10.1.2.3", "172.31.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0"])
      expect(isPrivate(address), address).toBe(true);
    for (const address of ["::1", "::", "fd00::1", "fe80::1", "ff02::1", "::ffff:10.0.0.1", "64:ff9b::a00:1"])
      expect(isPrivate(address), address).toBe(true);
    // Addresses that stand for one of IPv4, and the old local ones.
    for (const address of [
      "64:ff9b:1::a00:1",
      "2002:a00:1::1",
      "::10.0.0.1",
      "::ffff:0:10.0.0.1",
      "2001::1",
      "fec0::1",
    ])
      expect(isPrivate(address), address).toBe(true);
    for (const address of ["2001:4860:4860::8888", "2003::1", "64:ff9b:2::1"])
      expect(isPrivate(address), address).toBe(false);
    for (const address of ["1.1.1.1", "172.32.0.1", "2606:4700::1111", "::ffff:1.1.1.1"])
      expect(isPrivate(address), address).toBe(false);
  });

  test("[W29] a bad URL or secret is refused when the app is defined", () => {
    for (const url of ["http://example.com/hook", "example.com", "file:///etc/passwd"])
      expect(() => outgoingWebhook({ url, secret: SECRET }), url).toThrow(/url is like/);
    expect(() => outgoingWebhook({ url: "https://example.com", secret: "short" })).toThrow(/whsec_/);
    expect(() => outgoingWebhook({ url: "https://example.com", secret: SECRET, topics: 1 } as never)).toThrow(/topics/);
  });
});
