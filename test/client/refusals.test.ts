/** Requests that a client does not send, and callbacks that cannot break it. */
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { Client } from "../../src/client/client.ts";
import { systemHost } from "../../src/host/system-host.ts";
import type { Message } from "../../src/message/envelope.ts";
import { eventMessage, queryMessage } from "../../src/message/lineage.ts";
import { scratchFolder } from "../repo/program.ts";

/** A server that answers on demand, and keeps its requests. */
async function server(): Promise<{ path: string; lines: Message[]; sockets: Socket[]; answer(line: Message): void }> {
  const path = join(scratchFolder(), "kernel.sock");
  const lines: Message[] = [];
  const sockets: Socket[] = [];
  const listening = createServer((socket) => {
    sockets.push(socket);
    let rest = "";
    socket.on("data", (chunk) => {
      const parts = (rest + String(chunk)).split("\n");
      rest = parts.pop() ?? "";
      for (const part of parts) lines.push(JSON.parse(part));
    });
    socket.on("error", () => socket.destroy());
  });
  await new Promise<void>((resolve) => listening.listen(path, resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    listening.close();
  });
  const answer = ({ type, data, metadata: { id } }: Message) => {
    const metadata = { id: `answer ${id}`, timestamp: 1, causation: id };
    sockets.at(-1)?.write(`${JSON.stringify({ kind: "reply", type, data, metadata })}\n`);
  };
  return { path, lines, sockets, answer };
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve));
}

const host = systemHost();

describe("requests that are not sent", () => {
  test("[K169] [M6] a value that is not JSON is refused instead of being changed", async () => {
    const { path, lines } = await server();
    await using client = await Client.connect({ path });
    const cycle: { self?: unknown } = {};
    cycle.self = cycle;
    for (const data of [Number.NaN, -0, 1n, { at: new Date(0) }, { a: undefined }, undefined, "\ud800", cycle]) {
      await expect(client.query("Some.Thing", data as never)).rejects.toMatchObject({ name: "Failure", code: 422 });
    }
    await expect(client.request(eventMessage(host, "Some.Thing", 1))).rejects.toMatchObject({ code: 422 });
    expect(lines).toEqual([]);
  });

  test("[K169] a second request with a waiting id is 409, and the first request gets its answer", async () => {
    const { path, lines, answer } = await server();
    await using client = await Client.connect({ path });
    const request = queryMessage(host, "Some.Thing", "first");
    const first = client.request(request);
    const second = await client.request({ ...request, data: "second" });
    expect(second).toMatchObject({ kind: "error", data: { code: 409 }, metadata: { causation: request.metadata.id } });
    await until(() => lines.length === 1);
    answer(lines[0] as Message);
    expect(await first).toMatchObject({ kind: "reply", data: "first" });
    const again = client.request(request);
    await until(() => lines.length === 2);
    answer(lines[1] as Message);
    expect(await again).toMatchObject({ kind: "reply", data: "first" });
  });
});

describe("a lost connection", () => {
  test("[H32] [K33] a lost connection is restored even if its listener throws", async () => {
    const { path, lines, sockets, answer } = await server();
    const told: string[] = [];
    const host = systemHost();
    const reported: unknown[] = [];
    host.report = (error) => void reported.push(error);
    const onConnection = (state: string) => {
      told.push(state);
      throw new Error(state);
    };
    await using client = await Client.connect({ path, onConnection, host });
    const asked = client.query("Some.Thing", 1);
    await until(() => lines.length === 1);
    sockets[0]?.destroy();
    await until(() => lines.length === 2);
    answer(lines[1] as Message);
    expect(await asked).toBe(1);
    expect(told).toEqual(["lost", "back"]);
    expect(reported).toEqual([new Error("lost"), new Error("back")]);
  });
});

describe("a refusal without an id", () => {
  test("[K30] fails the only request that waits, and none if several do", async () => {
    const { path, lines, sockets, answer } = await server();
    await using client = await Client.connect({ path });
    const refuse = (id: string) => {
      const data = { code: 400, message: "no line of JSON" };
      const line = { kind: "error", type: "Sys.Error", data, metadata: { id, timestamp: 1, causation: null } };
      sockets.at(-1)?.write(`${JSON.stringify(line)}\n`);
    };
    const ends: string[] = [];
    const ask = (data: string) =>
      client.query("Some.Thing", data).then(
        (reply) => void ends.push(`reply ${reply}`),
        (error: Error) => void ends.push(`${data} failed: ${error.message}`),
      );
    const asked = [ask("first"), ask("second")];
    await until(() => lines.length === 2);
    refuse("refusal of one of two");
    answer(lines[0] as Message);
    await until(() => ends.length > 0);
    expect(ends).toEqual(["reply first"]);
    refuse("refusal of the last");
    await Promise.all(asked);
    expect(ends).toEqual(["reply first", "second failed: no line of JSON"]);
  });
});
