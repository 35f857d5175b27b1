/** NDJSON over standard input and output. */
import { PassThrough, Writable } from "node:stream";
import { describe, expect, test } from "vitest";
import { Stdio } from "../../src/adapters/stdio.ts";
import { systemHost } from "../../src/host/system-host.ts";
import { EventLoop } from "../../src/loop/event-loop.ts";
import type { Message } from "../../src/message/envelope.ts";
import { echo, held, ping, short } from "./socket-setup.ts";

async function batch(capabilities = { echo }, input = new PassThrough()) {
  const host = systemHost();
  const loop = await EventLoop.boot({ host, capabilities });
  const output = new PassThrough();
  const stdio = new Stdio({ host, loop, input, output });
  const heard = () =>
    String(output.read() ?? "")
      .split("\n")
      .slice(0, -1)
      .map((line) => short(JSON.parse(line) as Message));
  return { loop, input, output, stdio, heard };
}

describe("standard input and output", () => {
  test("[N13] every line is answered, and stdio ends when the input has ended and the answers are out", async () => {
    const { loop, input, stdio, heard } = await batch();
    expect(loop.liveness.alive).toBe(true);
    input.end(`${JSON.stringify(ping("q1", 1))}\nnope\n${JSON.stringify(ping("q2", 2))}`);
    await stdio.ended;
    expect(heard().sort()).toEqual(["error - 400", "reply q1 1", "reply q2 2"]);
    expect(loop.liveness.alive).toBe(false);
    await loop.stop();
  });

  test("[N13] a slow answer is awaited after the input has ended", async () => {
    const { held: waiting, answer } = held();
    const { loop, input, stdio, heard } = await batch({ echo: waiting });
    input.end(`${JSON.stringify({ ...ping("q"), type: "Held.Ask" })}\n`);
    await answer("late");
    await stdio.ended;
    expect(heard()).toEqual(['reply q "late"']);
    await loop.stop();
  });

  test("[N13] stdio ends when its reader is gone", async () => {
    const { held: waiting } = held();
    const { loop, input, output, stdio } = await batch({ echo: waiting });
    input.write(`${JSON.stringify({ ...ping("q"), type: "Held.Ask" })}\n`);
    output.destroy(new Error("EPIPE"));
    await stdio.ended;
    expect(loop.pending.size).toBe(0);
    await loop.stop();
  });

  test("[N13] stdio ends when its reader is gone without an error", async () => {
    const { held: waiting } = held();
    const { loop, input, output, stdio } = await batch({ echo: waiting });
    input.write(`${JSON.stringify({ ...ping("q"), type: "Held.Ask" })}\n`);
    output.destroy();
    await stdio.ended;
    expect(loop.pending.size).toBe(0);
    await loop.stop();
  });

  test("[N13] a destroyed input has ended, before the start or later", async () => {
    const before = new PassThrough().destroy();
    await new Promise((resolve) => before.once("close", resolve));
    for (const { loop, input, stdio } of [await batch(), await batch({ echo }, before)]) {
      input.destroy();
      await stdio.ended;
      expect(loop.liveness.alive).toBe(false);
      await loop.stop();
    }
  });

  test("[N11] [N13] a reader that does not read is abandoned after the grace of a close", async () => {
    const host = systemHost();
    const loop = await EventLoop.boot({ host, capabilities: { echo } });
    const input = new PassThrough();
    const written = Promise.withResolvers<void>();
    // Takes its input without an answer.
    const output = new Writable({ write: () => written.resolve() });
    const stdio = new Stdio({ host, loop, input, output });
    input.write(`${JSON.stringify(ping("q"))}\n`);
    await written.promise;
    await stdio.close(0);
    await stdio.ended;
    expect([stdio.frames, loop.liveness.alive]).toEqual([0, false]);
    await loop.stop();
  });

  test("[N11] [N13] closing answers open requests with 503", async () => {
    const { held: waiting, answer } = held();
    const { loop, input, stdio, heard } = await batch({ echo: waiting });
    input.write(
      `${JSON.stringify({ ...ping("q1"), type: "Held.Ask" })}\n${JSON.stringify({ ...ping("q2"), type: "Held.Ask" })}\n`,
    );
    await answer(1);
    await answer(2);
    await loop.drained();
    input.write(`${JSON.stringify({ ...ping("q3"), type: "Held.Ask" })}\n`);
    await new Promise<void>((resolve) => {
      const removed = loop.observations.add(() => {
        removed();
        resolve();
      });
    });
    await stdio.close();
    expect(heard()).toEqual(["reply q1 1", "reply q2 2", "error q3 503"]);
    await loop.stop();
  });
});
