/** The client against real kernels in processes of their own. */
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { dirname, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { Client } from "../../src/client/client.ts";
import { systemHost } from "../../src/host/system-host.ts";
import { Kernel } from "../../src/kernel/kernel.ts";
import { capability } from "../../src/loop/define-capability.ts";
import type { Message } from "../../src/message/envelope.ts";
import { Failure } from "../../src/message/error-data.ts";
import { commandMessage } from "../../src/message/lineage.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { serve } from "../adapters/socket-setup.ts";
import { KernelProcess, LEDGER_APP } from "../kernel/kernel-process.ts";
import { scratchFolder } from "../repo/program.ts";

interface Ledger {
  readonly entries: readonly (readonly [key: string, amount: number])[];
  readonly total: number;
}

/** A server in place of a kernel, for behaviour that no kernel has on request. */
async function scripted(path: string, received: (line: Message, client: Socket) => void): Promise<void> {
  mkdirSync(dirname(path), { recursive: true });
  const clients = new Set<Socket>();
  const server = createServer((client) => {
    clients.add(client);
    let rest = "";
    client.on("data", (chunk) => {
      const lines = (rest + String(chunk)).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) received(JSON.parse(line), client);
    });
    client.on("error", () => client.destroy());
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  onTestFinished(() => {
    for (const client of clients) client.destroy();
    server.close();
  });
}

function answerTo(request: Message, kind: "reply" | "error", data: unknown, more: object = {}): string {
  const metadata = { id: `answer ${request.metadata.id}`, timestamp: 1, causation: request.metadata.id, ...more };
  return `${JSON.stringify({ kind, type: request.type, data, metadata })}\n`;
}

describe("requests", () => {
  test("[M43] a failure keeps all its keys over the socket and through an actor that passes it on", async () => {
    const socketPath = join(scratchFolder(), "k.sock");
    const refuse = () => {
      const cause = new Failure(404, "no shelf", { reason: "NO_SHELF", data: [1] });
      throw new Failure(409, "sold out", { reason: "SOLD_OUT", data: { left: 0 }, retryable: true, cause });
    };
    const shop = capability({ description: "shop", queries: { "Shop.Order": { handle: refuse } } });
    const relay = capability({
      description: "relay",
      sends: { "Shop.Order": "query" },
      queries: { "Relay.Order": { handle: (_data, context) => context.query("Shop.Order", null) } },
    });
    await using kernel = await Kernel.open({ store: memoryStore(), capabilities: { shop, relay }, socketPath });
    await using client = await Client.connect({ path: socketPath });
    const told = {
      ...{ name: "Failure", code: 409, message: "sold out", reason: "SOLD_OUT", data: { left: 0 }, retryable: true },
      cause: { name: "Failure", code: 404, message: "no shelf", reason: "NO_SHELF", data: [1] },
    };
    for (const type of ["Shop.Order", "Relay.Order"]) {
      await expect(client.query(type, null)).rejects.toMatchObject(told);
      await expect(kernel.query(type, null)).rejects.toMatchObject(told);
    }
  });

  test("[K30] requests get their answers in any order, error answers as failures", async () => {
    const kernel = await KernelProcess.start(scratchFolder(), LEDGER_APP);
    await using client = await kernel.connect();
    const held = client.command("Gate.Hold", null);
    expect(await client.query("Syscall.Ping", ["ü", "\u2028", "line\nbreak"])).toEqual(["ü", "\u2028", "line\nbreak"]);
    await expect(client.query("Memory.Get", { key: "/none" })).rejects.toMatchObject({ name: "Failure", code: 404 });
    await expect(client.query("Memory.Get", { key: "none" })).rejects.toMatchObject({ name: "Failure", code: 422 });
    await kernel.said(/holding/);
    await client.command("Gate.Open", null);
    expect(await held).toEqual({ held: true });
    const many = await Promise.all(Array.from({ length: 500 }, (_, n) => client.query("Syscall.Ping", n)));
    expect(many).toEqual(Array.from({ length: 500 }, (_, n) => n));
  });

  test("[K30] requests are typed by the client's type parameter", async () => {
    const kernel = await KernelProcess.start(scratchFolder(), LEDGER_APP);
    await using client = await Client.connect<{
      "Ledger.Add": { input: { key: string; amount: number }; output: { total: number } };
    }>({ path: kernel.socketPath });
    const { total } = await client.command("Ledger.Add", { key: "a", amount: 2 });
    expect(total satisfies number).toBe(2);
    // @ts-expect-error: an amount is a number
    await client.command("Ledger.Add", { key: "a", amount: "2" }).catch(() => undefined);
  });

  test("[K27] a published event is durable when its id is returned, and published once under one request", async () => {
    const kernel = await KernelProcess.start(scratchFolder());
    await using client = await kernel.connect();
    const first = await client.emit("Some.Thing", { n: 1 });
    expect(await client.emit("Some.Thing", { n: 1 })).toBeGreaterThan(first);
    const request = commandMessage(systemHost(), "Journal.Publish", { type: "Some.Thing", data: { n: 2 } });
    const answers = [await client.request(request), await client.request(request)];
    expect(answers[1]?.data).toEqual(answers[0]?.data);
    await expect(client.emit("Sys.Routed", null)).rejects.toMatchObject({ code: 422 });
  });

  test("[K31] connecting without a kernel fails at once", async () => {
    const path = join(scratchFolder(), "kernel.sock");
    await expect(Client.connect({ path })).rejects.toMatchObject({
      code: 503,
      reason: "NOT_REACHABLE",
      message: `no kernel on ${path}; start one with: npm start, or millrace start app.ts`,
    });
    expect(existsSync(path)).toBe(false);
  });

  test("[K32] requests end by timeout or signal, and the client continues", async () => {
    const kernel = await KernelProcess.start(scratchFolder(), LEDGER_APP);
    await using client = await kernel.connect();
    await expect(client.command("Gate.Hold", null, { timeoutMs: 20 })).rejects.toMatchObject({
      code: 504,
      reason: "TIMED_OUT",
    });
    const stop = new AbortController();
    const waiting = client.query("Gate.Open", null, { signal: stop.signal }).catch((error: unknown) => error);
    const reason = new Error("no longer wanted");
    stop.abort(reason);
    expect(await waiting).toBe(reason);
    await expect(client.query("Syscall.Ping", 1, { signal: stop.signal })).rejects.toBe(reason);
    expect(await client.query("Syscall.Ping", 2)).toBe(2);
  });

  test("[K170] a request that does not fit a line is refused, and the next is answered", async () => {
    const kernel = await KernelProcess.start(scratchFolder());
    await using client = await kernel.connect();
    await expect(client.query("Syscall.Ping", "ü".repeat(600_000))).rejects.toMatchObject({
      code: 413,
      reason: "TOO_LARGE",
    });
    expect(await client.query("Syscall.Ping", "u".repeat(600_000))).toHaveLength(600_000);
  });

  test("[K34] closing fails waiting requests, once", async () => {
    const kernel = await KernelProcess.start(scratchFolder(), LEDGER_APP);
    const client = await kernel.connect();
    const waiting = client.command("Gate.Hold", null);
    const named = expect.stringMatching(/^the client was closed while Gate\.Hold waited for its answer \(id .*\); /);
    await Promise.all([
      client.close(),
      client.close(),
      expect(waiting).rejects.toMatchObject({ code: 503, reason: "CLOSED", retryable: false, message: named }),
    ]);
    await expect(client.query("Syscall.Ping", 1)).rejects.toMatchObject({
      ...{ reason: "CLOSED", message: "the client is closed; connect a new one" },
    });
  });
});

describe("a lost connection", () => {
  test("[K33] unanswered requests of a killed kernel are repeated with the same id, and take effect once", async () => {
    const folder = scratchFolder();
    const first = await KernelProcess.start(folder, LEDGER_APP);
    const states: string[] = [];
    const client = await first.connect({ onConnection: (state) => states.push(state) });
    await using _client = client;
    await client.command("Ledger.Add", { key: "a", amount: 1 });
    // The others may be answered before the signal comes; this one is not.
    const held = client.command("Gate.Hold", null);
    await first.said(/holding/);
    const requests = Array.from({ length: 20 }, (_, n) => client.command("Ledger.Add", { key: `k${n}`, amount: 1 }));
    await first.kill();
    const second = await KernelProcess.start(folder, LEDGER_APP);
    await Promise.all(requests);
    await second.said(/holding/);
    await client.command("Gate.Open", null);
    expect(await held).toEqual({ held: true });
    const { entries, total } = (await client.query("Ledger.Read", null)) as never as Ledger;
    // A process that is dying may still accept a connection, which is lost in turn.
    expect(states.length).toBeGreaterThan(0);
    expect(states).toEqual(states.map((_, at) => (at % 2 === 0 ? "lost" : "back")));
    expect(states.at(-1)).toBe("back");
    expect(total).toBe(21);
    expect(entries.map(([, amount]) => amount)).toEqual(Array(21).fill(1));
  });

  test("[K33] a request without a kernel waits for it until its timeout", async () => {
    const folder = scratchFolder();
    const first = await KernelProcess.start(folder, LEDGER_APP);
    await using client = await first.connect();
    await client.query("Syscall.Ping", 1);
    await first.kill();
    await expect(client.query("Syscall.Ping", 2, { timeoutMs: 30 })).rejects.toMatchObject({
      code: 504,
      reason: "TIMED_OUT",
    });
    const waiting = client.query("Syscall.Ping", 3);
    await KernelProcess.start(folder, LEDGER_APP);
    expect(await waiting).toBe(3);
  });

  test("[K33] a repeated request that the kernel still holds is offered again until it is accepted", async () => {
    const path = join(scratchFolder(), "kernel.sock");
    const seen: string[] = [];
    await scripted(path, (request, client) => {
      seen.push(request.metadata.id);
      // The first connection is cut; then the kernel has not noticed yet; then it has.
      if (seen.length === 1) client.destroy();
      else if (seen.length === 2)
        client.write(answerTo(request, "error", { code: 409, message: "in use" }, { refused: true }));
      else client.write(answerTo(request, "reply", "done"));
    });
    await using client = await Client.connect({ path });
    expect(await client.command("Some.Thing", null)).toBe("done");
    expect(new Set(seen).size).toBe(1);
    expect(seen).toHaveLength(3);
    rmSync(path, { force: true });
  });

  test("[K33] a request is repeated after each lost connection, with the same id", async () => {
    const path = join(scratchFolder(), "kernel.sock");
    const LOST = 4;
    const seen: string[] = [];
    await scripted(path, (request, client) => {
      seen.push(request.metadata.id);
      if (seen.length <= LOST) client.destroy();
      else client.write(answerTo(request, "reply", "done"));
    });
    await using client = await Client.connect({ path });
    expect(await client.command("Some.Thing", null)).toBe("done");
    expect(seen).toHaveLength(LOST + 1);
    expect(new Set(seen).size).toBe(1);
    rmSync(path, { force: true });
  });

  test("[K33] the answer of a handler to a repeated request is final, with any code", async () => {
    const path = join(scratchFolder(), "kernel.sock");
    let asked = 0;
    await scripted(path, (request, client) => {
      asked++;
      if (asked === 1) client.destroy();
      else client.write(answerTo(request, "error", { code: 409, message: "sold out" }));
    });
    await using client = await Client.connect({ path });
    await expect(client.command("Some.Thing", null)).rejects.toThrow("sold out");
    expect(asked).toBe(2);
    rmSync(path, { force: true });
  });

  test("[K30] an id in use on the first attempt is an ordinary error", async () => {
    const kernel = await KernelProcess.start(scratchFolder(), LEDGER_APP);
    await using client = await kernel.connect();
    await using other = await kernel.connect();
    const request = commandMessage(systemHost(), "Gate.Hold", null);
    const held = client.request(request);
    await kernel.said(/holding/);
    expect(await other.request(request)).toMatchObject({ kind: "error", data: { code: 409 } });
    await client.command("Gate.Open", null);
    expect(await held).toMatchObject({ kind: "reply" });
  });
});

describe("subscribing", () => {
  test("[K35] a subscription gets each event once and in order, across a kill", async () => {
    const folder = scratchFolder();
    const first = await KernelProcess.start(folder);
    await using client = await first.connect();
    for (const n of [1, 2]) await client.emit("Some.Thing", { n });
    await client.emit("Other.Thing", null);
    const events = client.subscribe({ types: ["Some.Thing"], from: "start" });
    const take = async () => (await events.next()).value?.message.data;
    expect([await take(), await take()]).toEqual([{ n: 1 }, { n: 2 }]);
    const third = events.next();
    await first.kill();
    const second = await KernelProcess.start(folder);
    for (const n of [3, 4]) await client.emit("Some.Thing", { n });
    expect((await third).value).toMatchObject({ message: { data: { n: 3 } } });
    expect(await take()).toEqual({ n: 4 });
    const none = events.next();
    await client.close();
    expect(await none).toEqual({ done: true, value: undefined });
    expect(await second.stop()).toBe(0);
  });

  test("[K35] a subscription ends with its signal, with its loop, and with an error if it is invalid", async () => {
    const kernel = await KernelProcess.start(scratchFolder());
    await using client = await kernel.connect();
    const id = await client.emit("Some.Thing", { n: 1 });
    let cursor = "";
    for await (const event of client.subscribe({ from: "start" })) {
      expect(event.id).toBe(id);
      cursor = event.cursor;
      break;
    }
    const stop = new AbortController();
    const silent = client.subscribe({ from: cursor, signal: stop.signal }).next();
    stop.abort();
    expect(await silent).toMatchObject({ done: true });
    await expect(client.subscribe({ types: ["nonsense"] }).next()).rejects.toMatchObject({ code: 422 });
  });

  test("[K172] a subscription reports events removed from the journal, and continues without them on request", async () => {
    const path = join(scratchFolder(), "kernel.sock");
    const store = memoryStore();
    const cursorAt = (id: number) => `${store.connection.history}.0-${id}`;
    await using kernel = await Kernel.open({
      ...{ store, socketPath: path, capabilities: {} },
      retention: { maxSettled: 2 },
    });
    for (let n = 1; n <= 10; n++) await kernel.publish("Some.Thing", n);
    await kernel.bus.idle();
    await kernel.bus.sweep();
    await using client = await Client.connect({ path });
    await expect(client.subscribe({ from: cursorAt(3) }).next()).rejects.toMatchObject({
      ...{ name: "Failure", code: 410 },
      message: `events after ${cursorAt(3)} are not in the journal any more; go on from ${cursorAt(8)}, without them`,
    });
    const told: unknown[] = [];
    for await (const { id } of client.subscribe({ from: cursorAt(3), onGone: (gone) => void told.push(gone) })) {
      told.push(id);
      if (id === 10) break;
    }
    expect(told).toEqual([{ cursor: cursorAt(8) }, 9, 10]);
  });

  test("[K172] [N12] a subscription fails without a journal, instead of retrying", async () => {
    const { path } = await serve();
    await using client = await Client.connect({ path });
    await expect(client.subscribe().next()).rejects.toMatchObject({
      ...{ name: "Failure", code: 404 },
      message: "this kernel keeps no journal that could be followed",
    });
  });

  test("[K35] a slow reader gets every event", async () => {
    const kernel = await KernelProcess.start(scratchFolder());
    await using client = await kernel.connect();
    const events = client.subscribe({ from: "start" });
    const wide = "x".repeat(8_000);
    const published = Array.from({ length: 2_000 }, (_, n) => client.emit("Wide.Thing", { n, wide }));
    expect((await events.next()).value?.message.data).toMatchObject({ n: 0 });
    await Promise.all(published);
    for (let n = 1; n < 2_000; n++) expect((await events.next()).value?.message.data).toMatchObject({ n });
  });
});
