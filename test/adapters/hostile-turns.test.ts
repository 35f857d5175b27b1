/**
 * The work that another client waits for beside a hostile one, counted in requests that are handled and tasks of the
 * host, with and without the hostile client in the same run. No clock is involved.
 */
import { describe, expect, test } from "vitest";
import { FairShare } from "../../src/adapters/fair-share.ts";
import { type ByteStream, NdjsonConnection } from "../../src/adapters/ndjson-connection.ts";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { LINE_BYTES_MAX, LINES_A_BURST_MIN } from "../../src/limits.ts";
import { capability } from "../../src/loop/define-capability.ts";
import { EventLoop } from "../../src/loop/event-loop.ts";
import type { Json } from "../../src/message/json.ts";
import { streamJournal } from "../loop/stream-journal.ts";
import { ping } from "./socket-setup.ts";

const REQUESTS = 20;
const FLOOD = 4_000;
/** Tasks that a request may wait for beside one task alone: a burst and its answers, in any order. */
const TASKS_MORE_MAX = 10 * LINES_A_BURST_MIN;

const line = (value: Json) => `${JSON.stringify(value)}\n`;
const many = (make: (n: number) => string) => Array.from({ length: FLOOD }, (_, n) => make(n)).join("");
const command = (n: number, type: string, data: Json) => ({
  ...{ kind: "command", type, data },
  metadata: { id: `h${n}`, timestamp: 1 },
});

const HOSTILE: readonly [string, string][] = [
  ["valid requests", many((n) => line(ping(`h${n}`) as never as Json))],
  ["lines that are no JSON", many(() => "{\n")],
  ["requests that no capability handles", many((n) => line(command(n, "No.Such", null)))],
  ["requests under one id", many(() => line(ping("same") as never as Json))],
  ["lines that are too long", `${"x".repeat(LINE_BYTES_MAX + 2)}\n`.repeat(4)],
  ["event streams", many((n) => line(command(n, "Sys.Subscribe", { from: "start", topics: [`no.such.${n}`] })))],
];

class Stream implements ByteStream {
  buffered = 0;
  answers = 0;
  write(text: string): void {
    this.answers += text.split("\n").length - 1;
  }
  pause(): void {}
  resume(): void {}
  end(): void {}
  cut(): void {}
  probe(): void {}
}

/** Tasks between each request of a client and its answer. */
async function tasksOf(hostile: string | undefined): Promise<{ most: number; handled: number }> {
  const host = simulatedHost(1);
  let handled = 0;
  const count = (data: Json) => {
    handled++;
    return data;
  };
  const echo = capability({ description: "echo", queries: { "Syscall.Ping": { handle: count } } });
  const { journal, append } = streamJournal();
  append("A.Told", 2_000);
  const loop = await host.run(() => EventLoop.boot({ host, capabilities: { echo }, events: journal }));
  const share = new FairShare();
  const open = (stream: Stream) =>
    new NdjsonConnection({ ...{ host, loop, stream, share, adapter: "test" }, closed: () => undefined });
  const stream = new Stream();
  const client = open(stream);
  if (hostile !== undefined) open(new Stream()).data(new TextEncoder().encode(hostile));
  let most = 0;
  for (let n = 1; n <= REQUESTS; n++) {
    client.data(new TextEncoder().encode(line(ping(`one${n}`) as never as Json)));
    let tasks = 0;
    for (; stream.answers < n; tasks++) await host.step();
    most = Math.max(most, tasks);
  }
  return { most, handled };
}

describe("the work that a client waits for", () => {
  test.each(HOSTILE)("[N2] [N15] a request beside %s waits for a bounded number of tasks", async (_, hostile) => {
    const [alone, beside] = [await tasksOf(undefined), await tasksOf(hostile)];
    expect(beside.most).toBeLessThanOrEqual(alone.most + TASKS_MORE_MAX);
    // Of the flood only a share was handled meanwhile: it did not go first.
    expect(beside.handled - alone.handled).toBeLessThanOrEqual(REQUESTS * TASKS_MORE_MAX);
  });
});
