/** Chosen bounds of a kernel, at the edge and one past it. */
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { Client } from "../../src/client/client.ts";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { systemHost } from "../../src/host/system-host.ts";
import { Kernel } from "../../src/kernel/kernel.ts";
import type { KernelLimits } from "../../src/kernel/kernel-limits.ts";
import type { KernelOptions } from "../../src/kernel/kernel-options.ts";
import { RETENTION_INTERVAL_MS, TIMER_DELAY_MS_MAX } from "../../src/limits.ts";
import { capability } from "../../src/loop/define-capability.ts";
import type { Message } from "../../src/message/envelope.ts";
import { type ErrorData, Failure } from "../../src/message/error-data.ts";
import type { Json } from "../../src/message/json.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { scratchFolder } from "../repo/program.ts";

const host = systemHost();

async function open(limits: KernelLimits, options: Partial<KernelOptions> = {}): Promise<Kernel> {
  const socketPath = join(scratchFolder(), "kernel.sock");
  const kernel = await Kernel.open({ host, store: memoryStore({ host }), socketPath, limits, ...options });
  onTestFinished(() => kernel.close());
  return kernel;
}

/** A raw client, and the bytes that it got so far. */
function client(kernel: Kernel): { socket: Socket; heard: (count: number) => Promise<string[]> } {
  const socket = connect(kernel.socketPath as string);
  onTestFinished(() => void socket.destroy());
  let text = "";
  const waiting: (() => void)[] = [];
  socket.on("data", (chunk) => {
    text += String(chunk);
    for (const look of waiting.splice(0)) look();
  });
  const heard = async (count: number) => {
    while (text.split("\n").length <= count) await new Promise<void>((resolve) => waiting.push(resolve));
    return text.trimEnd().split("\n").map(shown);
  };
  return { socket, heard };
}

/** The code of an error, or which request was answered. */
function shown(line: string): string {
  const { kind, data, metadata }: Message = JSON.parse(line);
  return kind === "error" ? String((data as Json as ErrorData).code) : String(metadata.causation);
}

function ping(id: string, data: Json): string {
  return JSON.stringify({ kind: "query", type: "Syscall.Ping", data, metadata: { id, timestamp: 1 } });
}

describe("limits of a kernel", () => {
  for (const lineBytesMax of [200, 40_000]) {
    test(`[N5] a line of ${lineBytesMax} bytes is accepted, one more is 413`, async () => {
      const { socket, heard } = client(await open({ lineBytesMax }));
      const fill = (length: number) => ping("a", "x".repeat(length - ping("a", "").length));
      socket.write(`${fill(lineBytesMax)}\n${fill(lineBytesMax + 1)}\n${ping("b", 1)}\n`);
      expect((await heard(3)).toSorted()).toEqual(["413", "a", "b"]);
    });
  }

  test("[K170] a client learns which of its requests is too long, and the others are answered", async () => {
    const { socketPath: path = "" } = await open({ lineBytesMax: 40_000 });
    await using client = await Client.connect({ path });
    const asked = [1, 50_000, 30_000, 60_000, 2].map((length) =>
      client.query("Syscall.Ping", "x".repeat(length)).then((text) => String(text).length, String),
    );
    expect(await Promise.all(asked)).toEqual([
      1,
      expect.stringMatching(
        /^Failure: Syscall\.Ping takes a line of 50\d\d\d bytes: line too long: the limit is 40000 /,
      ),
      30_000,
      expect.stringMatching(/^Failure: Syscall\.Ping takes a line of 60\d\d\d bytes: line too long: /),
      2,
    ]);
    await using careful = await Client.connect({ path, lineBytesMax: 1_000 });
    await expect(careful.query("Syscall.Ping", "x".repeat(1_000))).rejects.toMatchObject({
      code: 413,
      reason: "TOO_LARGE",
      message: expect.stringContaining("the limit is 1000 bytes; send it in parts"),
    });
  });

  test("[K32] a handler's answer with the code of too long lines is an ordinary answer", async () => {
    const refuse = () => {
      throw new Failure(413, "the picture is too large");
    };
    const pictures = capability({ description: "pictures", queries: { "Picture.Check": { handle: refuse } } });
    const { socketPath: path = "" } = await open({}, { capabilities: { pictures } });
    await using client = await Client.connect({ path });
    const failure = { name: "Failure", code: 413, message: "the picture is too large" };
    await expect(client.query("Picture.Check", null)).rejects.toMatchObject(failure);
  });

  test("[K170] the refusal of an abandoned request is not assigned to another", async () => {
    const { socketPath: path = "" } = await open({ lineBytesMax: 40_000 });
    await using client = await Client.connect({ path });
    const reason = new Error("enough");
    const signals = AbortSignal.abort(reason);
    const stop = new AbortController();
    const given = client.query("Syscall.Ping", "x".repeat(50_000), { signal: stop.signal }).catch((error) => error);
    stop.abort(reason);
    expect(await given).toBe(reason);
    await expect(client.query("Syscall.Ping", 1, { signal: signals })).rejects.toBe(reason);
    const fitting = "x".repeat(30_000);
    expect(await client.query("Syscall.Ping", fitting)).toBe(fitting);
  });

  test("[K32] a line refused for its depth is answered if it is the only one", async () => {
    const { socketPath: path = "" } = await open({ depthMax: 3 });
    await using client = await Client.connect({ path });
    await expect(client.query("Syscall.Ping", [[[[]]]])).rejects.toMatchObject({ code: 422 });
  });

  test("[M9] depth and keys at the limit are accepted, one more is 422", async () => {
    const { socket, heard } = client(await open({ depthMax: 3, keysMax: 4 }));
    const [fits, deep, wide] = [[[]], [[[]]], { a: 1, b: 1, c: 1, d: 1, e: 1 }];
    socket.write(
      `${ping("a", fits)}\n${ping("b", deep)}\n${ping("c", { a: 1, b: 1, c: 1, d: 1 })}\n${ping("d", wide)}\n`,
    );
    expect((await heard(4)).toSorted()).toEqual(["422", "422", "a", "c"]);
  });

  test("[N8] connections up to the limit are accepted, one more gets an error", async () => {
    const kernel = await open({ connectionsMax: 1 });
    const first = client(kernel);
    first.socket.write(`${ping("a", 1)}\n`);
    expect(await first.heard(1)).toEqual(["a"]);
    expect(await client(kernel).heard(1)).toEqual(["503"]);
  });

  test("[L15] messages up to the limit wait in a mailbox, one more is 503", async () => {
    const { promise, resolve } = Promise.withResolvers<null>();
    const slow = capability({ description: "slow", queries: { "Slow.Ask": { handle: () => promise } } });
    const kernel = await open({ mailboxMax: 2 }, { capabilities: { slow } });
    const asked = Array.from({ length: 3 }, () => kernel.query("Slow.Ask", null).catch(({ code }) => code));
    expect(await asked[2]).toBe(503);
    resolve(null);
    expect(await Promise.all(asked)).toEqual([null, null, 503]);
  });

  test("[L6] messages up to the limit wait to be routed, one more is 503", async () => {
    const kernel = await open({ laneMax: 2 });
    const asked = Array.from({ length: 3 }, (_, n) => kernel.query("Syscall.Ping", n).catch(({ code }) => code));
    expect(await Promise.all(asked)).toEqual([0, 1, 503]);
  });

  test("[L4] microtasks up to the limit run in a turn, and the rest is reported and run in the next", async () => {
    const faults: string[] = [];
    const kernel = await open({ microtasksMax: 2 }, { observe: ({ type }) => void faults.push(type) });
    const ran: number[] = [];
    for (const n of [1, 2, 3]) kernel.loop.microtask(() => void ran.push(n));
    await kernel.idle();
    expect(ran).toEqual([1, 2, 3]);
    expect(faults).toContain("Sys.MicrotaskOverflow");
  });

  test("[T3] a timer at the longest delay is accepted, one millisecond more is 422", async () => {
    const kernel = await open({ timerDelayMsMax: 60_000 });
    const message = { kind: "event", type: "Some.Thing", data: null };
    const set = (delayMs: number) => kernel.command("Timer.Set", { delayMs, message }).catch(({ code }) => code);
    expect(await set(60_000)).toMatchObject({ timerId: expect.any(String) });
    expect(await set(60_001)).toBe(422);
  });

  test("[N9] a started line must end within its time limit", async () => {
    const { socket, heard } = client(await open({ lineCompleteMs: 1 }));
    socket.write(ping("a", 1).slice(0, 10));
    expect(await heard(1)).toEqual(["400"]);
  });

  test("[N9] [K56] an invalid time is refused at boot, not with the first line or event", async () => {
    const ms = TIMER_DELAY_MS_MAX + 1;
    for (const limits of [{ lineCompleteMs: ms }, { handlerTimeoutMs: ms }])
      await expect(Kernel.open({ host, store: memoryStore({ host }), limits })).rejects.toThrow(/100 years/);
  });

  test("[N8] a connection limit above the default, also above 32 bits, accepts that many clients at once", async () => {
    const kernel = await open({ connectionsMax: 2 ** 32 });
    const clients = Array.from({ length: 20 }, () => client(kernel));
    for (const { socket } of clients) socket.write(`${ping("a", 1)}\n`);
    for (const { heard } of clients) expect(await heard(1)).toEqual(["a"]);
  });

  test("[N8] a client at its limit of requests in flight is paused until one is answered", async () => {
    const answers: (() => void)[] = [];
    const slow = capability({
      description: "slow",
      queries: { "Slow.Ask": { handle: () => ({ asked: answers.length }) } },
      commands: { "Slow.Hold": { handle: () => new Promise<null>((resolve) => answers.push(() => resolve(null))) } },
    });
    const kernel = await open({ requestsInFlightMax: 1 }, { capabilities: { slow } });
    const { socket, heard } = client(kernel);
    const hold = { kind: "command", type: "Slow.Hold", data: null, metadata: { id: "h", timestamp: 1 } };
    socket.write(`${JSON.stringify(hold)}\n${ping("a", 1)}\n`);
    while (answers.length === 0) await new Promise((resolve) => setImmediate(resolve));
    expect(await kernel.query("Syscall.Ping", 2)).toBe(2);
    answers[0]?.();
    // The ping was behind it, and could have been answered at once.
    expect(await heard(2)).toEqual(["h", "a"]);
  });

  test("[K56] event handlers up to the concurrency limit run at once, and no more", async () => {
    const kernel = await open({ concurrency: 2 });
    const { promise, resolve } = Promise.withResolvers<void>();
    let [running, most] = [0, 0];
    const handle = async () => {
      most = Math.max(most, ++running);
      if (running === 2) resolve();
      await promise;
      running--;
    };
    kernel.subscribe("tick", handle, { subscriberId: "clock" });
    for (let n = 0; n < 5; n++) await kernel.publish("tick", n);
    await kernel.idle();
    expect(most).toBe(2);
  });

  test("[K56] an event handler over its time limit fails, unless its subscription has another limit", async () => {
    const simulated = simulatedHost(1);
    const store = memoryStore({ host: simulated });
    const options = { host: simulated, store, limits: { handlerTimeoutMs: 1_000 }, observe: () => undefined };
    const kernel = await simulated.run(() => Kernel.open(options));
    const takes = (ms: number) => () => new Promise<void>((resolve) => simulated.timer(ms, resolve));
    kernel.subscribe("tick", takes(1_001), { subscriberId: "late" });
    kernel.subscribe("tick", takes(1_001), { subscriberId: "patient", timeoutMs: 2_000 });
    kernel.subscribe("tock", takes(999), { subscriberId: "quick" });
    for (const topic of ["tick", "tock"]) await simulated.run(() => kernel.publish(topic, 1));
    await simulated.advance(10_000);
    const rows = await simulated.run(() => store.query({ order: "ascending", limit: 9 }));
    expect(rows.map(({ topic, status }) => [topic, status])).toEqual([
      ["tick", "failed"],
      ["tock", "done"],
    ]);
    expect(rows[0]?.deliveries.map(({ subscriber, status }) => [subscriber, status])).toEqual([
      ["late", "failed"],
      ["patient", "done"],
    ]);
    await simulated.run(() => kernel.close());
  });

  test("[K56] documents of the kernel's space up to the limit stay in memory", async () => {
    const kernel = await open({ residentDocumentsMax: 500 });
    const replica = kernel.space.replica(kernel.space.name);
    for (let n = 0; n < 2_000; n++) {
      replica.peek({ scope: "space", id: `document ${n}` });
      await replica.loadsSettled();
    }
    expect(replica.residentDocuments).toBeLessThanOrEqual(500);
  });

  test("[K56] [J74] settled events are removed by the kernel's retention", async () => {
    const simulated = simulatedHost(1);
    const store = memoryStore({ host: simulated });
    const options = { host: simulated, store, retention: { maxSettled: 2 } };
    const kernel = await simulated.run(() => Kernel.open(options));
    for (let n = 0; n < 5; n++) await simulated.run(() => kernel.publish("tick", n));
    await simulated.advance(2 * RETENTION_INTERVAL_MS);
    expect((await simulated.run(() => store.count())).done).toBe(2);
    await simulated.run(() => kernel.close());
  });

  test("[H1] an invalid limit is refused, and no part stays open", async () => {
    for (const limits of [
      { lineBytesMax: 0 },
      { connectionsMax: -1 },
      { mailboxMax: 1.5 },
      { concurrency: 0 },
      { depthMax: Number.NaN },
    ])
      await expect(open(limits)).rejects.toThrow(/must be a whole number of at least 1/);
  });
});
