/** NDJSON over a real Unix socket: framing, errors, answers, ends. */
import { describe, expect, test } from "vitest";
import { LineFramer } from "../../src/adapters/line-framer.ts";
import { LINE_BYTES_MAX } from "../../src/limits.ts";
import { capability } from "../../src/loop/define-capability.ts";
import type { Message } from "../../src/message/envelope.ts";
import type { Json } from "../../src/message/json.ts";
import { echo, held, ping, serve, short } from "./socket-setup.ts";

describe("lines", () => {
  const { kind, type, data, metadata } = ping("q");
  const refused: readonly [string, unknown][] = [
    ["an unknown kind", { kind: "wish", type, data, metadata }],
    ...["memory.get", "Memory.get", "MemoryGet", "A.B.C", "Echo", "Mem_ory.Get"].map(
      (name) => [`type ${name}`, { kind, type: name, data, metadata }] as [string, unknown],
    ),
    ["no metadata", { kind, type, data }],
    ["no id", { kind, type, data, metadata: { timestamp: 1 } }],
    ["no timestamp", { kind, type, data, metadata: { id: "q" } }],
    ...[-1, 1.5, "5"].map(
      (timestamp) =>
        [`timestamp ${timestamp}`, { kind, type, data, metadata: { id: "q", timestamp } }] as [string, unknown],
    ),
    ["an empty correlation", { kind, type, data, metadata: { ...metadata, correlation: "" } }],
    ["a reply without causation", { kind: "reply", type, data, metadata }],
    ["an error without causation", { kind: "error", type, data: { code: 500, message: "x" }, metadata }],
    ["a number", 42],
    ["a list", []],
    ["null", null],
    ["a text", "x"],
  ];
  for (const [what, line] of refused) {
    test(`[N4] ${what} is one 422, and the next line is answered`, async () => {
      const { connect, observed } = await serve();
      const client = await connect();
      client.say(JSON.stringify(line), ping("next"));
      const [refusal, answer] = await client.hears(2);
      expect(refusal).toMatchObject({ kind: "error", data: { code: 422 } });
      expect(short(answer as Message)).toBe("reply next null");
      expect(observed.map(({ type: seen }) => seen)).toEqual(["Sys.Routed"]);
    });
  }

  test("[N4] malformed JSON is one 400 without causation; the readable fields of a bad message are named", async () => {
    const { connect } = await serve();
    const client = await connect();
    client.say("{nope", JSON.stringify({ ...ping("q7", 1, { correlation: "k" }), kind: "wish" }), ping("q8"));
    const [first, second, third] = await client.hears(3);
    expect(first).toMatchObject({ kind: "error", type: "Validation.Failed", data: { code: 400 } });
    expect(first?.metadata).not.toHaveProperty("causation");
    expect(second).toMatchObject({ type: "Syscall.Ping", metadata: { causation: "q7", correlation: "k" } });
    expect(short(third as Message)).toBe("reply q8 null");
  });

  test("[N4] a null causation counts as absent", async () => {
    const { connect } = await serve();
    const client = await connect();
    client.say(ping("q", 1, { causation: null }));
    expect((await client.hears(1)).map(short)).toEqual(["reply q 1"]);
  });

  test("[N5] a line of 1 MiB is accepted, one byte more is 413 once, and the next line works", async () => {
    const { connect } = await serve();
    const client = await connect();
    const fitting = (id: string, bytes: number) => {
      const empty = JSON.stringify(ping(id, ""));
      return JSON.stringify(ping(id, "x".repeat(bytes - empty.length)));
    };
    const lines = [fitting("q1", LINE_BYTES_MAX), fitting("q2", LINE_BYTES_MAX + 1)];
    client.say(...lines, `${fitting("q3", LINE_BYTES_MAX)}\r`, ping("q4"));
    const answers = (await client.hears(4)).map((answer) => short(answer).slice(0, 12));
    expect(answers.sort()).toEqual(["error - 413", 'reply q1 "xx', 'reply q3 "xx', "reply q4 nul"]);
  });

  test("[N3] many lines in a chunk, a line in many chunks, and split characters give the same messages", () => {
    const text = '{"a":"ä€𝄞"}\n\n{"b":1}\r\nlast';
    const bytes = new TextEncoder().encode(text);
    const framed = (sizes: (at: number) => number) => {
      const lines: string[] = [];
      const framer = new LineFramer({
        line: (held, start, end, text) => {
          const line = new TextDecoder("utf-8", { fatal: true }).decode(held.subarray(start, end));
          lines.push(text ?? line);
          expect(text ?? line).toBe(line);
        },
        overlong: () => void lines.push("overlong"),
        wantsMore: true,
      });
      for (let at = 0; at < bytes.length; at += sizes(at)) framer.push(bytes.subarray(at, at + sizes(at)));
      framer.finish();
      return lines;
    };
    const expected = ['{"a":"ä€𝄞"}', '{"b":1}', "last"];
    for (const size of [1, 2, 3, 5, 7, 1_000]) expect(framed(() => size)).toEqual(expected);
    expect(framed((at) => 1 + (at % 4))).toEqual(expected);
  });

  test("[N3] a framer stops when its sink wants no more, and continues from there", () => {
    const lines: string[] = [];
    let wanted = 2;
    const framer = new LineFramer({
      line: (bytes, start, end) => {
        lines.push(new TextDecoder().decode(bytes.subarray(start, end)));
        wanted--;
      },
      overlong: () => undefined,
      get wantsMore() {
        return wanted > 0;
      },
    });
    const chunk = new TextEncoder().encode("a\nb\nc\nd");
    const taken = framer.push(chunk);
    expect([taken, lines]).toEqual([4, ["a", "b"]]);
    wanted = 9;
    expect(framer.push(chunk.subarray(taken))).toBe(3);
    framer.finish();
    expect(lines).toEqual(["a", "b", "c", "d"]);
  });

  const payloads: readonly Json[] = [
    "",
    0,
    -123.456,
    false,
    null,
    {},
    [],
    "ünïcödé 𝄞",
    "\n\t\r\n",
    '{"kind":"x"}',
    "y".repeat(10_240),
  ];
  test("[L7] [N4] every payload is returned unchanged, with causation and correlation", async () => {
    const { connect } = await serve();
    const client = await connect();
    client.say(...payloads.map((payload, n) => ping(`q${n}`, payload, { correlation: `k${n}` })));
    const answers = await client.hears(payloads.length);
    expect(answers.map((answer) => answer.data)).toEqual(payloads);
    expect(answers.map(({ metadata: { causation, correlation } }) => `${causation} ${correlation}`)).toEqual(
      payloads.map((_, n) => `q${n} k${n}`),
    );
  });
});

describe("ends", () => {
  test("[N6] a client that has ended its side gets its three answers, and then the end", async () => {
    const { held: waiting, answer } = held();
    const { connect } = await serve({ waiting });
    const client = await connect();
    client.say(...["q1", "q2", "q3"].map((id) => ({ ...ping(id), type: "Held.Ask" })));
    client.socket.end();
    for (const data of [1, 2, 3]) {
      await answer(data);
      await client.hears(data);
    }
    await client.end();
    expect(client.messages.map(short)).toEqual(["reply q1 1", "reply q2 2", "reply q3 3"]);
    expect(client.ended).toBe(true);
  });

  test("[N6] the last line needs no newline", async () => {
    const { connect } = await serve();
    const client = await connect();
    client.socket.end(JSON.stringify(ping("q", 1)));
    await client.end();
    expect(client.messages.map(short)).toEqual(["reply q 1"]);
  });

  test("[N6] [L21] the outcomes of a client that is gone are orphans", async () => {
    const { held: waiting, answer } = held();
    const { connect, loop, seen } = await serve({ waiting, echo });
    const client = await connect();
    client.say(...["q1", "q2", "q3"].map((id) => ({ ...ping(id), type: "Held.Ask" })));
    await seen("Sys.Routed", 3);
    client.socket.destroy();
    const other = await connect();
    // Each round trip of another client gives the server time to see the end.
    for (let n = 0; loop.pending.size > 0 && n < 1_000; n++) {
      other.say(ping(`p${n}`));
      await other.hears(n + 1);
    }
    expect(loop.pending.size).toBe(0);
    await answer();
    await seen("Sys.OrphanOutcome", 1);
    await answer();
    await seen("Sys.OrphanOutcome", 2);
    await answer();
    await seen("Sys.OrphanOutcome", 3);
  });

  test("[N11] a graceful end answers earlier requests, the rest with 503, and then closes the connection", async () => {
    const { held: waiting } = held();
    const { connect, socket, seen } = await serve({ waiting, echo });
    const client = await connect();
    client.say(ping("q1", 1), { ...ping("q2"), type: "Held.Ask" });
    await seen("Sys.Routed", 2);
    await client.hears(1);
    await socket.close(60_000);
    await client.end();
    expect(client.messages.map(short)).toEqual(["reply q1 1", "error q2 503"]);
    expect(socket.connections).toBe(0);
  });

  test("[N11] a quiet socket accepts no more requests and still answers earlier ones", async () => {
    const { held: waiting, answer } = held();
    const { connect, socket, seen, loop } = await serve({ waiting, echo });
    const client = await connect();
    client.say({ ...ping("q1"), type: "Held.Ask" });
    await seen("Sys.Routed");
    socket.quiet();
    client.say(ping("q2"));
    await answer("still");
    await client.hears(1);
    await loop.drained();
    await socket.close();
    expect(client.messages.map(short)).toEqual(['reply q1 "still"']);
  });
});

describe("egress", () => {
  test("[N7] events of clients and actors are not written to unsubscribed clients", async () => {
    const telling = capability({
      description: "tells",
      emits: { "A.Told": true },
      queries: {
        "Tell.Ask": {
          handle: (_data: Json, context) => {
            context.emit("A.Told", 1);
            return 2;
          },
        },
      },
    });
    const { connect } = await serve({ telling, echo });
    const [one, two] = [await connect(), await connect()];
    one.say({ ...ping("e"), kind: "event", type: "A.Told" }, { ...ping("q"), type: "Tell.Ask" }, ping("p"));
    two.say(ping("p2"));
    expect((await one.hears(2)).map(short).sort()).toEqual(["reply p null", "reply q 2"]);
    expect((await two.hears(1)).map(short)).toEqual(["reply p2 null"]);
    expect(one.messages).toHaveLength(2);
  });
});
