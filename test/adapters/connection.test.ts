/**
 * One connection in simulated time, over a stream that the test controls: backpressure and the time a line may take.
 */
import { describe, expect, test } from "vitest";
import { FairShare } from "../../src/adapters/fair-share.ts";
import { type ByteStream, NdjsonConnection } from "../../src/adapters/ndjson-connection.ts";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import {
  BURSTS_SHARED_AFTER,
  LINE_BYTES_MAX,
  LINE_COMPLETE_MS,
  LINES_A_BURST_ALONE,
  LINES_A_BURST_MIN,
  LINES_A_BURST_SHARED,
  REQUESTS_IN_FLIGHT_MAX,
  UNREAD_OUTPUT_BYTES_MAX,
} from "../../src/limits.ts";
import { capability } from "../../src/loop/define-capability.ts";
import { EventLoop } from "../../src/loop/event-loop.ts";
import type { Message } from "../../src/message/envelope.ts";
import type { Json } from "../../src/message/json.ts";
import { BareActor, bare } from "../loop/loop-setup.ts";
import { ping } from "./socket-setup.ts";

class Stream implements ByteStream {
  written = "";
  buffered = 0;
  paused = false;
  ended = false;
  isCut = false;
  probed = 0;
  /** Whether the other side reads. */
  reading = true;

  write(text: string): void {
    this.written += text;
    if (!this.reading) this.buffered += text.length;
  }

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
  }

  end(): void {
    this.ended = true;
  }

  cut(): void {
    this.isCut = true;
  }

  probe(): void {
    this.probed++;
  }

  get lines(): { kind: string; data: { code?: number } }[] {
    return this.written
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line));
  }
}

async function connection() {
  const host = simulatedHost(1);
  const actor = new BareActor();
  const capability = bare(() => actor, { takes: [["query", "Syscall.Ping"]] });
  const loop = await host.run(() => EventLoop.boot({ host, capabilities: { a: capability } }));
  const stream = new Stream();
  let closed = 0;
  const client = new NdjsonConnection({ host, loop, stream, adapter: "test", closed: () => void closed++ });
  const bytes = (text: string) => client.data(new TextEncoder().encode(text));
  const answerAll = async (data = "") => {
    for (const given of actor.posted.splice(0)) actor.reply(given, data);
    await host.advance(0);
  };
  return { host, loop, actor, stream, client, bytes, answerAll, closed: () => closed };
}

const pings = (count: number, from = 0) =>
  Array.from({ length: count }, (_, n) => `${JSON.stringify(ping(`q${from + n}`))}\n`).join("");

describe("one request", () => {
  const handlers = {
    "a handler that returns": (data: Json) => data,
    "an async one that waits for nothing": async (data: Json) => data,
  };
  test.each(Object.entries(handlers))(
    "[L5] a request is routed, handled by %s, and answered in the task that brought it",
    async (_, handle) => {
      const host = simulatedHost(1);
      const echo = capability({ description: "echo", queries: { "Syscall.Ping": { handle } } });
      const loop = await host.run(() => EventLoop.boot({ host, capabilities: { echo } }));
      const stream = new Stream();
      const client = new NdjsonConnection({ host, loop, stream, adapter: "test", closed: () => undefined });
      for (let n = 1; n <= 3; n++) {
        host.task(() => client.data(new TextEncoder().encode(pings(1, n))));
        await host.step();
        expect(stream.lines).toHaveLength(n);
      }
    },
  );
});

describe("backpressure", () => {
  test("[N2] [N8] exactly 256 requests are in flight for a chunk of any size, and all are answered in the end", async () => {
    const { host, loop, actor, stream, bytes, answerAll } = await connection();
    bytes(pings(1_000));
    await host.advance(0);
    expect(stream.paused).toBe(true);
    expect(actor.posted).toHaveLength(REQUESTS_IN_FLIGHT_MAX);
    while (actor.posted.length > 0) {
      expect(loop.pending.size).toBeLessThanOrEqual(REQUESTS_IN_FLIGHT_MAX);
      await answerAll();
    }
    expect(stream.paused).toBe(false);
    expect(stream.lines).toHaveLength(1_000);
  });

  test("[N2] [N8] a client that never reads is paused once 4 MiB wait for it, bad lines included", async () => {
    const { host, stream, client, bytes } = await connection();
    stream.reading = false;
    bytes("x\n".repeat(50_000));
    await host.advance(0);
    expect(stream.paused).toBe(true);
    expect(stream.written.length).toBeLessThan(UNREAD_OUTPUT_BYTES_MAX + 65_536);
    expect(client.isIdle).toBe(false);
    expect(client.frames).toBeGreaterThanOrEqual(UNREAD_OUTPUT_BYTES_MAX);
    stream.reading = true;
    for (let n = 0; stream.buffered > 0 && n < 1_000; n++) {
      stream.buffered = 0;
      client.drained();
      await host.advance(0);
    }
    expect(stream.paused).toBe(false);
    expect(stream.lines).toHaveLength(50_000);
  });

  test("[N4] [N8] bad lines that had to wait for an answer are refused after it, in order", async () => {
    const { host, actor, stream, bytes } = await connection();
    bytes(`${pings(REQUESTS_IN_FLIGHT_MAX)}no JSON\nnor this\n`);
    await host.advance(0);
    expect(stream.lines).toHaveLength(0);
    for (const given of actor.posted.splice(0, 1)) actor.reply(given, "");
    await host.advance(0);
    expect(stream.lines.map(({ kind }) => kind)).toEqual(["reply", "error", "error"]);
  });

  test("[N8] chunks that arrive after a pause are processed after the buffered ones", async () => {
    const { host, actor, bytes, answerAll } = await connection();
    bytes(pings(300));
    bytes(pings(300, 300));
    await host.advance(0);
    const order: string[] = [];
    while (actor.posted.length > 0) {
      order.push(...actor.posted.map(({ metadata }) => metadata.id));
      await answerAll();
    }
    expect(order).toEqual(Array.from({ length: 600 }, (_, n) => `q${n}`));
  });
});

describe("many clients", () => {
  test("[N2] [N15] between two requests of a sequential client, a flooding one gets only a few in", async () => {
    const host = simulatedHost(1);
    const actor = new BareActor();
    const handled: string[] = [];
    actor.postMessage = (given) => {
      handled.push(given.metadata.id);
      host.microtask(() => actor.reply(given));
    };
    const capability = bare(() => actor, { takes: [["query", "Syscall.Ping"]] });
    const loop = await host.run(() => EventLoop.boot({ host, capabilities: { a: capability } }));
    const share = new FairShare();
    const open = (stream: Stream) =>
      new NdjsonConnection({ ...{ host, loop, stream, share, adapter: "test" }, closed: () => undefined });
    const flooding = open(new Stream());
    const stream = new Stream();
    const asking = open(stream);
    const ask = (n: number) => asking.data(new TextEncoder().encode(`${JSON.stringify(ping(`one${n}`))}\n`));
    let asked = 0;
    stream.write = () => {
      if (asked < 20) host.task(() => ask(++asked));
    };
    flooding.data(new TextEncoder().encode(pings(5_000)));
    ask(++asked);
    await host.advance(0);
    const at = handled.flatMap((id, index) => (id.startsWith("one") ? [index] : []));
    expect(at).toHaveLength(20);
    const gaps = at.map((index, n) => index - (at[n - 1] ?? 0));
    // Ten bursts, because the simulation runs tasks in any order; a client that is alone takes more in one.
    expect(Math.max(...gaps.slice(1))).toBeLessThanOrEqual(10 * LINES_A_BURST_MIN);
    expect(handled).toHaveLength(5_020);
  });

  test("[N15] small chunks in a row are one burst; further lines wait until it was routed", async () => {
    const { host, loop, actor, bytes, stream } = await connection();
    const chunksOfBurst = LINES_A_BURST_SHARED / 2;
    for (let n = 0; n <= chunksOfBurst; n++) bytes(pings(2, 2 * n));
    // Between two bursts one chunk may come: to stop reading for every one would cost more.
    expect(stream.paused).toBe(false);
    for (let n = chunksOfBurst + 1; n < 50; n++) bytes(pings(2, 2 * n));
    expect(stream.paused).toBe(true);
    expect(loop.liveness.userLane).toBe(LINES_A_BURST_SHARED);
    await host.advance(0);
    expect(actor.posted).toHaveLength(100);
    expect(stream.paused).toBe(false);
  });

  test("[N4] [N15] a line that turns out too long after the burst does not delay later lines", async () => {
    const { host, actor, stream, bytes, answerAll } = await connection();
    bytes(`${pings(LINES_A_BURST_SHARED)}${"x".repeat(LINE_BYTES_MAX + 2)}`);
    bytes(`x\n${pings(1, LINES_A_BURST_SHARED)}`);
    await host.advance(0);
    expect([actor.posted.length, stream.paused]).toEqual([LINES_A_BURST_SHARED + 1, false]);
    await answerAll();
    expect(stream.lines.map(({ kind }) => kind).toSorted()).toEqual([
      "error",
      ...Array.from({ length: LINES_A_BURST_SHARED + 1 }, () => "reply"),
    ]);
  });

  test("[N15] a single client soon gets its maximum burst", () => {
    const share = new FairShare();
    const [one, other] = [{}, {}];
    const asks = (who: object) => share.burstFor(who, LINES_A_BURST_SHARED, LINES_A_BURST_SHARED, false);
    const bursts = Array.from({ length: BURSTS_SHARED_AFTER + 1 }, () => asks(one));
    expect(bursts.at(-2)).toBe(LINES_A_BURST_SHARED);
    expect(bursts.at(-1)).toBe(LINES_A_BURST_ALONE);
    expect(asks(other)).toBe(LINES_A_BURST_SHARED);
    expect(asks(one)).toBe(LINES_A_BURST_SHARED);
  });

  test("[N15] after a wait a single client gets a small burst first, then larger ones", () => {
    const share = new FairShare();
    const one = {};
    const asks = (waited: boolean) => share.burstFor(one, LINES_A_BURST_ALONE, LINES_A_BURST_ALONE, waited);
    while (asks(false) < LINES_A_BURST_ALONE);
    const bursts = [true, false, false, false, false].map(asks);
    expect(bursts[0]).toBe(LINES_A_BURST_MIN);
    expect(bursts[1]).toBeGreaterThan(LINES_A_BURST_MIN);
    expect(bursts.at(-1)).toBe(LINES_A_BURST_ALONE);
    expect(bursts).toEqual(bursts.toSorted((a, b) => a - b));
  });

  const quick = (actor: BareActor) => (given: Message) => {
    actor.posted.push(given);
    actor.reply(given);
  };
  test.each([
    { when: "after a wait", waitMs: 1, answers: "at once", taken: LINES_A_BURST_MIN },
    { when: "in a row", waitMs: 0, answers: "at once", taken: LINES_A_BURST_ALONE },
    { when: "after a wait", waitMs: 1, answers: "later", taken: LINES_A_BURST_ALONE },
  ])("[N15] of many lines that come $when and are answered $answers, $taken are taken first", async (example) => {
    const { host, loop, actor, stream, bytes, answerAll } = await connection();
    if (example.answers === "at once") actor.postMessage = quick(actor);
    for (let n = 0; n <= BURSTS_SHARED_AFTER; n++) {
      bytes(pings(1, n));
      await host.advance(0);
      if (example.answers === "later") await answerAll();
    }
    expect(stream.lines).toHaveLength(BURSTS_SHARED_AFTER + 1);
    await host.advance(example.waitMs);
    bytes(pings(REQUESTS_IN_FLIGHT_MAX, 1_000));
    expect(loop.liveness.userLane).toBe(example.taken);
  });

  test("[N15] the first answers leave before more lines are taken", async () => {
    const { host, actor, stream, bytes } = await connection();
    actor.postMessage = quick(actor);
    const handled: number[] = [];
    stream.write = () => void handled.push(actor.posted.length);
    bytes(pings(REQUESTS_IN_FLIGHT_MAX));
    await host.advance(0);
    const all = REQUESTS_IN_FLIGHT_MAX / LINES_A_BURST_SHARED;
    expect(handled).toEqual(Array.from({ length: all }, (_, n) => (n + 1) * LINES_A_BURST_SHARED));
  });

  test("[N15] beside a client with smaller bursts a client gets no more at once, and at least a few lines", () => {
    const share = new FairShare();
    const [modest, flooding] = [{}, {}];
    let allowed = LINES_A_BURST_SHARED;
    const floods = () => (allowed = share.burstFor(flooding, allowed, allowed, false));
    const asks = (lines: number) => share.burstFor(modest, lines, LINES_A_BURST_SHARED, false);
    expect(asks(9)).toBe(LINES_A_BURST_SHARED);
    expect(floods()).toBe(9);
    expect(asks(1)).toBe(LINES_A_BURST_SHARED);
    expect(floods()).toBe(LINES_A_BURST_MIN);
    // A client that takes all of a small share is not the modest one.
    expect(floods()).toBe(LINES_A_BURST_MIN);
    expect(asks(12)).toBe(LINES_A_BURST_SHARED);
    expect(floods()).toBe(12);
    asks(LINES_A_BURST_SHARED);
    expect(floods()).toBe(LINES_A_BURST_SHARED);
  });

  test("[N15] a silent client with small bursts is no longer considered", () => {
    const share = new FairShare();
    const [modest, ...flooding] = [{}, {}, {}];
    share.burstFor(modest!, 1, LINES_A_BURST_SHARED, false);
    const both = () => flooding.map((one) => share.burstFor(one, LINES_A_BURST_MIN, LINES_A_BURST_MIN, false));
    expect(both()).toEqual([LINES_A_BURST_MIN, LINES_A_BURST_MIN]);
    for (let n = 2; n < BURSTS_SHARED_AFTER; n += 2) both();
    expect(both()).toEqual([LINES_A_BURST_SHARED, LINES_A_BURST_SHARED]);
  });
});

describe("time", () => {
  test("[N9] a line that does not end in time ends the connection, with one error", async () => {
    const { host, stream, client, bytes, closed } = await connection();
    bytes('{"kind":');
    await host.advance(LINE_COMPLETE_MS - 1);
    expect(stream.isCut).toBe(false);
    await host.advance(1);
    expect(stream.isCut).toBe(true);
    expect(stream.lines.map(({ data }) => data.code)).toEqual([400]);
    expect([client.state, closed()]).toEqual(["closed", 1]);
  });

  test("[N9] one byte every second does not extend the time of a line; an idle client has no time limit", async () => {
    const { host, stream, bytes } = await connection();
    await host.advance(10 * LINE_COMPLETE_MS);
    expect(stream.isCut).toBe(false);
    for (let n = 0; n < 11; n++) {
      bytes("x");
      await host.advance(1_000);
    }
    expect(stream.isCut).toBe(true);
  });

  test("[N9] every line has its own time: a busy client whose chunks end inside lines is not cut off", async () => {
    const { host, stream, bytes, answerAll } = await connection();
    bytes('{"begun":');
    for (let n = 0; n < 5; n++) {
      await host.advance(LINE_COMPLETE_MS - 1_000);
      bytes('1}\n{"begun":');
      await answerAll();
    }
    expect(stream.isCut).toBe(false);
    expect(stream.lines.map(({ data }) => data.code)).toEqual([422, 422, 422, 422, 422]);
  });

  test("[N9] a line that was begun before reading was paused waits with it", async () => {
    const { host, stream, client, bytes, answerAll } = await connection();
    stream.reading = false;
    bytes(`${pings(5)}{"begun":`);
    await host.advance(0);
    await answerAll("y".repeat(UNREAD_OUTPUT_BYTES_MAX / 5));
    expect(stream.paused).toBe(true);
    await host.advance(10 * LINE_COMPLETE_MS);
    expect(stream.isCut).toBe(false);
    stream.buffered = 0;
    client.drained();
    expect(stream.paused).toBe(false);
    await host.advance(LINE_COMPLETE_MS);
    expect(stream.isCut).toBe(true);
  });

  test("[N9] time during which reading is paused does not count", async () => {
    const { host, stream, bytes, answerAll, actor } = await connection();
    bytes(pings(REQUESTS_IN_FLIGHT_MAX));
    bytes(pings(REQUESTS_IN_FLIGHT_MAX + 1, 1_000).slice(0, -5));
    await host.advance(10 * LINE_COMPLETE_MS);
    expect(stream.isCut).toBe(false);
    while (actor.posted.length > 0) await answerAll();
    await host.advance(LINE_COMPLETE_MS);
    expect(stream.isCut).toBe(true);
  });
});

describe("ends", () => {
  test("[N6] a client that ends its side with open requests is probed, and gets its answers, then the end", async () => {
    const { host, stream, client, bytes, answerAll } = await connection();
    bytes(pings(2));
    await host.advance(0);
    client.ended();
    expect([stream.probed, stream.ended]).toEqual([1, false]);
    await answerAll();
    expect([stream.lines.length, stream.ended]).toEqual([2, true]);
  });

  test("[N6] a client that ends its side while it is paused gets an answer to every request", async () => {
    const { host, stream, client, bytes, answerAll } = await connection();
    const count = 3 * REQUESTS_IN_FLIGHT_MAX;
    bytes(pings(count));
    await host.advance(0);
    client.ended();
    expect([stream.probed, stream.ended]).toEqual([1, false]);
    for (let rounds = 0; rounds < 4; rounds++) await answerAll();
    expect([stream.lines.length, stream.ended]).toEqual([count, true]);
  });

  test("[N6] a client that ends its side without open requests gets the end at once", async () => {
    const { stream, client } = await connection();
    client.ended();
    expect([stream.probed, stream.ended]).toEqual([0, true]);
  });

  test("[N6] [L21] a connection that is lost while it drains is removed", async () => {
    const { host, loop, stream, client, bytes, answerAll } = await connection();
    bytes(pings(2));
    await host.advance(0);
    client.ended();
    client.lost();
    expect(loop.pending.size).toBe(0);
    await answerAll();
    expect(stream.written).toBe("");
  });
});
