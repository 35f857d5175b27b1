/** WebSocket clients. */
import { describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import type { Message } from "../../src/message/envelope.ts";
import { serve } from "./http-setup.ts";

interface Inbox {
  readonly messages: Message[];
  wake: () => void;
}

const inboxes = new WeakMap<WebSocket, Inbox>();

function opened(url: string, headers: Record<string, string>): Promise<WebSocket> {
  const socket = new WebSocket(`${url.replace("http", "ws")}/v1/ws`, "millrace.v1", { headers });
  const inbox: Inbox = { messages: [], wake: () => undefined };
  inboxes.set(socket, inbox);
  // From the start: two frames of one chunk come in one task.
  socket.on("message", (data) => {
    inbox.messages.push(JSON.parse(String(data)) as Message);
    inbox.wake();
  });
  return new Promise((resolve, reject) => {
    socket.once("open", () => resolve(socket));
    socket.once("error", reject);
  });
}

function next(socket: WebSocket): Promise<Message> {
  const inbox = inboxes.get(socket) as Inbox;
  return new Promise((resolve, reject) => {
    const left = (code: number, reason: Buffer) => reject(new Error(`closed: ${code} ${reason}`));
    const take = () => {
      const message = inbox.messages.shift();
      if (message === undefined) return;
      inbox.wake = () => undefined;
      socket.off("close", left);
      resolve(message);
    };
    inbox.wake = take;
    socket.once("close", left);
    take();
  });
}

function closed(socket: WebSocket): Promise<number> {
  return new Promise((resolve) => socket.once("close", resolve));
}

const command = (id: string, type: string, data: unknown) =>
  JSON.stringify({ kind: "command", type, data, metadata: { id, timestamp: 1 } });

describe("web sockets", () => {
  test("[W20] one frame is one message, both ways, and live queries come on it", async () => {
    const { server, token } = await serve();
    const socket = await opened(server.url, { authorization: `Bearer ${await token("ws", ["read", "send"])}` });
    expect(socket.protocol).toBe("millrace.v1");
    socket.send(command("m1", "Shop.Order", { price: 3 }));
    expect(await next(socket)).toMatchObject({ kind: "reply", data: { orders: 1 }, metadata: { causation: "m1" } });
    socket.send(command("m2", "Sys.Watch", { type: "Shop.Sum" }));
    expect(await next(socket)).toMatchObject({ kind: "reply", metadata: { causation: "m2" } });
    expect(await next(socket)).toMatchObject({ kind: "event", type: "Sys.Answer", data: { answer: 3 } });
    socket.close();
  });

  test("[W27] each message of a client needs a scope of its token", async () => {
    const { server, token } = await serve();
    const socket = await opened(server.url, { authorization: `Bearer ${await token("ws", ["send:Shop.*"])}` });
    socket.send(command("m1", "Memory.Set", { key: "/a", value: 1 }));
    expect(await next(socket)).toMatchObject({ kind: "error", data: { code: 403 }, metadata: { causation: "m1" } });
    socket.send(command("m2", "Sys.Watch", { type: "Shop.Sum" }));
    expect(await next(socket)).toMatchObject({ kind: "error", data: { code: 403 }, metadata: { causation: "m2" } });
    socket.close();
    const reader = await opened(server.url, { authorization: `Bearer ${await token("r", ["read:Shop.S*"])}` });
    reader.send(command("m1", "Sys.Watch", { type: "Shop.Sum" }));
    expect(await next(reader)).toMatchObject({ kind: "reply", metadata: { causation: "m1" } });
    expect(await next(reader)).toMatchObject({ kind: "event", type: "Sys.Answer", data: { answer: 0 } });
    reader.send(command("m2", "Sys.Watch", { type: "Shop.Paid" }));
    expect(await next(reader)).toMatchObject({ kind: "error", data: { code: 403 }, metadata: { causation: "m2" } });
    reader.close();
  });

  test("[W26] a page of another origin opens no socket, and neither does a client with a bad token", async () => {
    const { server, token } = await serve();
    const good = { authorization: `Bearer ${await token("ws", ["read"])}` };
    await expect(opened(server.url, { ...good, origin: "https://evil.example" })).rejects.toThrow("403");
    await expect(opened(server.url, { authorization: "Bearer wrong" })).rejects.toThrow("401");
  });

  test("[W25] a browser sends its token in the first frame", async () => {
    const { server, token } = await serve();
    const socket = await opened(server.url, {});
    socket.send(command("m0", "Sys.Authenticate", { token: await token("ws", ["send"]) }));
    expect(await next(socket)).toMatchObject({
      kind: "reply",
      data: { principal: "ws" },
      metadata: { causation: "m0" },
    });
    socket.send(command("m1", "Shop.Order", { price: 3 }));
    expect(await next(socket)).toMatchObject({ kind: "reply", data: { orders: 1 } });
    socket.close();
    const wrong = await opened(server.url, {});
    wrong.send(command("m0", "Sys.Authenticate", { token: "wrong" }));
    expect(await closed(wrong)).toBe(1008);
    const other = await opened(server.url, {});
    other.send(command("m0", "Shop.Order", { price: 3 }));
    expect(await closed(other)).toBe(1008);
  });

  test("[W20] a binary frame closes the socket with 1003, and a frame that is too long with 1009", async () => {
    const { server, token } = await serve();
    const good = { authorization: `Bearer ${await token("ws", ["read"])}` };
    const binary = await opened(server.url, good);
    binary.send(new Uint8Array([1, 2]));
    expect(await closed(binary)).toBe(1003);
    const long = await opened(server.url, good);
    long.send("x".repeat(1_100_000));
    expect(await closed(long)).toBe(1009);
  });

  test("[W24] a socket is closed with 1001 when the kernel closes", async () => {
    const { server, token, kernel } = await serve();
    const socket = await opened(server.url, { authorization: `Bearer ${await token("ws", ["read"])}` });
    const code = closed(socket);
    await kernel.close();
    expect(await code).toBe(1001);
  });
});
