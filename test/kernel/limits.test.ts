/** Bounds that whoever opens a kernel has chosen, at the edge and one past it. */
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { systemHost } from "../../src/host/system-host.ts";
import { Kernel } from "../../src/kernel/kernel.ts";
import type { KernelLimits, KernelOptions } from "../../src/kernel/kernel-options.ts";
import { capability } from "../../src/loop/define-capability.ts";
import type { Message } from "../../src/message/envelope.ts";
import type { ErrorData } from "../../src/message/error-data.ts";
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

/** A raw client, and what it has been sent so far. */
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
    test(`[N5] a line of ${lineBytesMax} bytes is taken, one more is 413`, async () => {
      const { socket, heard } = client(await open({ lineBytesMax }));
      const fill = (length: number) => ping("a", "x".repeat(length - ping("a", "").length));
      socket.write(`${fill(lineBytesMax)}\n${fill(lineBytesMax + 1)}\n${ping("b", 1)}\n`);
      expect((await heard(3)).toSorted()).toEqual(["413", "a", "b"]);
    });
  }

  test("[M9] so deep and so many keys are taken, one more is 422", async () => {
    const { socket, heard } = client(await open({ depthMax: 3, keysMax: 4 }));
    const [fits, deep, wide] = [[[]], [[[]]], { a: 1, b: 1, c: 1, d: 1, e: 1 }];
    socket.write(
      `${ping("a", fits)}\n${ping("b", deep)}\n${ping("c", { a: 1, b: 1, c: 1, d: 1 })}\n${ping("d", wide)}\n`,
    );
    expect((await heard(4)).toSorted()).toEqual(["422", "422", "a", "c"]);
  });

  test("[N8] so many connections are taken, one more is told so", async () => {
    const kernel = await open({ connectionsMax: 1 });
    const first = client(kernel);
    first.socket.write(`${ping("a", 1)}\n`);
    expect(await first.heard(1)).toEqual(["a"]);
    expect(await client(kernel).heard(1)).toEqual(["503"]);
  });

  test("[L15] so many messages wait in a mailbox, one more is 503", async () => {
    const { promise, resolve } = Promise.withResolvers<null>();
    const slow = capability({ description: "slow", queries: { "Slow.Ask": { handle: () => promise } } });
    const kernel = await open({ mailboxMax: 2 }, { capabilities: { slow } });
    const asked = Array.from({ length: 3 }, () => kernel.query("Slow.Ask", null).catch(({ code }) => code));
    expect(await asked[2]).toBe(503);
    resolve(null);
    expect(await Promise.all(asked)).toEqual([null, null, 503]);
  });

  test("[N9] a line that was begun has so long", async () => {
    const { socket, heard } = client(await open({ lineCompleteMs: 1 }));
    socket.write(ping("a", 1).slice(0, 10));
    expect(await heard(1)).toEqual(["400"]);
  });

  test("[N8] with so many requests in flight a client is not read from until one is answered", async () => {
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

  test("[H1] a bound that is none is refused, and nothing is left open", async () => {
    for (const limits of [{ lineBytesMax: 0 }, { connectionsMax: -1 }, { mailboxMax: 1.5 }, { depthMax: Number.NaN }])
      await expect(open(limits)).rejects.toThrow(/must be a whole number of at least 1/);
  });
});
