/** Hostile clients over a real socket: memory is bounded and the others are answered. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Message } from "../../src/message/envelope.ts";
import { parseLine } from "../../src/message/line.ts";
import { echo, held, ping, type RawClient, type Served, serve, short } from "./socket-setup.ts";

const bytes = (...values: number[]) => new Uint8Array(values);

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** Held memory, without garbage. */
function memoryInUse(): number {
  collectGarbage();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

/** Another client's round trip, which must always be answered. */
async function stillServes({ connect }: Served): Promise<void> {
  const other = await connect();
  other.say(ping("other", "fine"));
  expect((await other.hears(1)).map(short)).toEqual(['reply other "fine"']);
}

describe("hostile clients", () => {
  test("[N2] [N5] [N14] 50 MB without a newline are one 413, and memory stays flat", async () => {
    // However long 50 MB take here, the line is not overdue.
    const served = await serve(undefined, { limits: { lineCompleteMs: 600_000 } });
    const client = await served.connect();
    const chunk = Buffer.alloc(1_048_576, 0x78);
    const before = memoryInUse();
    for (let sent = 0; sent < 50; sent++) {
      if (!client.socket.write(chunk)) await new Promise((resolve) => client.socket.once("drain", resolve));
    }
    client.say("", ping("next"));
    expect((await client.hears(2)).map(short)).toEqual(["error - 413", "reply next null"]);
    expect(client.messages).toHaveLength(2);
    // The runtime gives the buffers of chunks back in its own time; buffers that we hold would stay.
    const limit = before + 10 * 1_048_576;
    for (let n = 0; n < 100 && memoryInUse() > limit; n++) await stillServes(served);
    expect(memoryInUse()).toBeLessThan(limit);
  });

  const lines: readonly [string, Uint8Array | string, readonly number[]][] = [
    ["a byte order mark", "\ufeff{}", [400]],
    ["NUL bytes", bytes(0, 0, 0x0a), [400]],
    [
      "an escaped NUL",
      '{"kind":"query","type":"Syscall.Ping","data":"\\u0000","metadata":{"id":"q","timestamp":1}}',
      [422],
    ],
    ["invalid UTF-8", bytes(0x22, 0xff, 0xfe, 0x22, 0x0a), [400]],
    ["half a character", bytes(0x22, 0xe2, 0x82, 0x22, 0x0a), [400]],
    ["a lone surrogate", '"\\ud800"', [422]],
    ["deep nesting", "[".repeat(8_000), [422]],
    [
      "an endless number",
      '{"kind":"query","type":"Syscall.Ping","data":1e400,"metadata":{"id":"q","timestamp":1}}',
      [422],
    ],
    ["empty lines and carriage returns", "\r\n\r\n\n\r", []],
    ["two values in a line", "{}{}", [400]],
  ];
  for (const [what, line, codes] of lines) {
    test(`[N4] [N14] ${what}: ${codes.length} errors, and the next line is answered`, async () => {
      const served = await serve();
      const client = await served.connect();
      client.say(line);
      client.say(ping("next"));
      const heard = await client.hears(codes.length + 1);
      expect(heard.map(short)).toEqual([
        ...codes.map((code) => expect.stringMatching(`error .* ${code}`)),
        "reply next null",
      ]);
      await stillServes(served);
    });
  }

  test("[N14] the last of duplicate keys counts, and __proto__ is data", async () => {
    const { connect } = await serve();
    const client = await connect();
    client.say(
      '{"kind":"wish","kind":"query","type":"Syscall.Ping","data":{"__proto__":{"polluted":1},"a":1,"a":2},"metadata":{"id":"q","timestamp":1}}',
    );
    const [answer] = await client.hears(1);
    expect(JSON.stringify(answer?.data)).toBe('{"__proto__":{"polluted":1},"a":2}');
    expect(Object.prototype).not.toHaveProperty("polluted");
  });

  test("[N1] [N14] forged answers, forged Sys messages and reused ids affect no other client", async () => {
    const { held: waiting, answer } = held();
    const served = await serve({ waiting, echo });
    const [victim, forger] = [await served.connect(), await served.connect()];
    victim.say({ ...ping("v"), type: "Held.Ask" });
    await served.seen("Sys.Routed");
    const forged: Message[] = [
      { kind: "reply", type: "Held.Ask", data: "forged", metadata: { id: "f1", timestamp: 1, causation: "v" } },
      {
        kind: "error",
        type: "Held.Ask",
        data: { code: 500, message: "x" },
        metadata: { id: "f2", timestamp: 1, causation: "v" },
      },
      { kind: "event", type: "Sys.ActorFault", data: {}, metadata: { id: "f3", timestamp: 1 } },
      { kind: "command", type: "Sys.RequestTimeout", data: { requestId: "v" }, metadata: { id: "f4", timestamp: 1 } },
      { kind: "command", type: "Sys.Nothing", data: null, metadata: { id: "f5", timestamp: 1 } },
      { kind: "query", type: "Held.Ask", data: null, metadata: { id: "v", timestamp: 1 } },
    ];
    forger.say(...forged);
    expect((await forger.hears(4)).map(short)).toEqual([
      ...["error f3 403", 'reply f4 {"expired":false}', "error f5 404", "error v 409"],
    ]);
    expect(victim.messages).toEqual([]);
    await answer("true");
    expect((await victim.hears(1)).map(short)).toEqual(['reply v "true"']);
    expect(forger.messages).toHaveLength(4);
  });

  test("[N2] [N8] [N14] a client that never reads while 10,000 replies are due is bounded, and the others are answered", async () => {
    const served = await serve();
    const { connect, loop, socket } = served;
    const client = await connect({ reading: false });
    const payload = "y".repeat(4_000);
    let refused = 0;
    for (let n = 0; n < 10_000; n++) if (!client.socket.write(`${JSON.stringify(ping(`q${n}`, payload))}\n`)) refused++;
    expect(refused).toBeGreaterThan(0);
    const other = await connect();
    for (let n = 0; n < 200; n++) {
      other.say(ping(`p${n}`));
      await other.hears(n + 1);
      // 4 MiB, and the answers that were on their way when the limit was met.
      expect(socket.frames).toBeLessThan(4 * 1_048_576 + 256 * 5_000);
    }
    expect(other.messages).toHaveLength(200);
    expect(loop.liveness.alive).toBe(true);
    client.socket.resume();
    await client.hears(10_000);
    expect(client.messages.map(({ metadata }) => metadata.causation)).toEqual(
      Array.from({ length: 10_000 }, (_, n) => `q${n}`),
    );
  });

  test("[N14] clients that connect, ask and vanish leave no state behind", async () => {
    const { held: waiting } = held();
    const served = await serve({ waiting, echo });
    for (let n = 0; n < 50; n++) {
      const client = await served.connect();
      client.say({ ...ping(`gone${n}`), type: "Held.Ask" }, '{"half');
      client.socket.destroy();
    }
    const other = await served.connect();
    for (let n = 0; served.socket.connections > 1 && n < 2_000; n++) {
      other.say(ping(`p${n}`));
      await other.hears(n + 1);
    }
    expect(served.socket.connections).toBe(1);
    expect(served.loop.pending.size).toBe(0);
  });
});

describe("generated frames", () => {
  /** Good lines, and every way that we could think of to make a bad one; each is given an id that no other has. */
  const frame: fc.Arbitrary<(id: string) => string> = fc.oneof(
    {
      weight: 3,
      arbitrary: fc
        .json({ maxDepth: 2 })
        .map(
          (data) => (id: string) =>
            `{"kind":"query","type":"Syscall.Ping","data":${data},"metadata":{"id":"${id}","timestamp":1}}`,
        ),
    },
    { weight: 1, arbitrary: fc.json({ maxDepth: 1 }).map((text) => () => text) },
    { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 40 }).map((text) => () => text) },
    {
      weight: 1,
      arbitrary: fc
        .constantFrom("{", "[[[[", "nul", '{"kind":"query"}', '{"kind":"query","type":"a.b","data":1,"metadata":{}}')
        .map((text) => () => text),
    },
    {
      weight: 1,
      arbitrary: fc
        .constantFrom("query", "command", "wish")
        .map(
          (kind) => (id: string) =>
            `{"kind":"${kind}","type":"Syscall.Ping","data":1,"metadata":{"id":"${id}","timestamp":-1}}`,
        ),
    },
  );

  test("[N4] [N14] 20,000 frames: each valid frame is answered once, each bad frame refused once", async () => {
    const seed = 20_261_115;
    const frames = fc
      .sample(frame, { numRuns: 20_000, seed })
      .map((line, n) => line(`id${n}`).replaceAll(/[\n\r]/g, " "))
      .filter((line) => line.length > 0);
    const good = frames.flatMap((line) => {
      const checked = parseLine(Buffer.from(line, "utf8"));
      return checked.kind === "refused" ? [] : [checked.message.metadata.id];
    });
    expect(good.length).toBeGreaterThan(3_000);
    expect(frames.length - good.length).toBeGreaterThan(3_000);
    const { connect, loop } = await serve();
    const client = await connect();
    await sendInPieces(client, Buffer.from(`${frames.join("\n")}\n`, "utf8"), seed);
    await client.hears(frames.length);
    client.say(ping("last"));
    await client.hears(frames.length + 1);
    const answered = client.messages.filter(({ kind }) => kind === "reply").map(({ metadata }) => metadata.causation);
    expect(answered).toEqual([...good, "last"]);
    expect(client.messages).toHaveLength(frames.length + 1);
    expect(client.messages.filter(({ kind }) => kind === "error")).toHaveLength(frames.length - good.length);
    expect(loop.pending.size).toBe(0);
  });
});

/** In pieces of any size, cut anywhere, no faster than they are taken. */
async function sendInPieces({ socket }: RawClient, all: Buffer, seed: number): Promise<void> {
  let state = seed;
  for (let at = 0; at < all.length; ) {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    const end = Math.min(all.length, at + 1 + (state % 9_000));
    if (!socket.write(all.subarray(at, end))) await new Promise((resolve) => socket.once("drain", resolve));
    at = end;
  }
}
