/** The bound on the data of a message, at every way in and out. */
import { connect } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { Client } from "../../src/client/client.ts";
import { systemHost } from "../../src/host/system-host.ts";
import { Kernel } from "../../src/kernel/kernel.ts";
import { PAYLOAD_BYTES_MAX } from "../../src/limits.ts";
import { capability } from "../../src/loop/define-capability.ts";
import { transactional } from "../../src/loop/transactional.ts";
import type { Json } from "../../src/message/json.ts";
import { cloneData } from "../../src/message/json-copy.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { scratchFolder } from "../repo/program.ts";

const text = (bytes: number) => "x".repeat(bytes - 2);

async function open(): Promise<Kernel> {
  const host = systemHost();
  const kernel = await Kernel.open({
    ...{ host, store: memoryStore({ host }), socketPath: join(scratchFolder(), "kernel.sock") },
    observe: () => undefined,
    capabilities: ({ space }) => ({
      sizes: capability({
        description: "answers of a given size",
        queries: { "Size.Answer": { handle: (bytes: number) => text(bytes) } },
        commands: {
          "Size.Emit": {
            handle: (bytes: number, { emit }) => {
              emit("Size.Told", text(bytes));
              return null;
            },
          },
        },
        emits: { "Size.Told": true },
      }),
      counter: transactional({
        ...{ space, description: "counts, and answers with a given size" },
        commands: {
          "Counter.Add": {
            handle: (bytes: number, tx) => {
              const count = space.cell<number>("count");
              tx.set(count, (tx.get(count) ?? 0) + 1);
              return text(bytes);
            },
          },
        },
      }),
    }),
  });
  onTestFinished(() => kernel.close());
  return kernel;
}

const code = (thrown: unknown) => (thrown as { code?: number | string }).code;

describe("the data of a message", () => {
  test("[M36] a mail of 20,000 characters is sent, answered and published", async () => {
    const kernel = await open();
    await using client = await Client.connect({ path: kernel.socketPath as string });
    const mail = { body: "é".repeat(20_000) };
    expect(await client.query("Syscall.Ping", mail)).toEqual(mail);
    expect(await client.emit("Mail.Received", mail)).toBeGreaterThan(0);
    await client.command("Memory.Set", { key: "/mail", value: mail });
    expect(await client.query("Memory.Get", { key: "/mail" })).toEqual({ value: mail });
  });

  test("[M36] a reply at the limit is delivered and one byte more is a 500, in process and over the socket", async () => {
    const kernel = await open();
    await using client = await Client.connect({ path: kernel.socketPath as string });
    for (const asker of [kernel, client]) {
      const fits = (await asker.query("Size.Answer", PAYLOAD_BYTES_MAX)) as string;
      expect(fits.length).toBe(PAYLOAD_BYTES_MAX - 2);
      const failure = await asker.query("Size.Answer", PAYLOAD_BYTES_MAX + 1).catch((thrown: unknown) => thrown);
      expect([code(failure), String(failure)]).toEqual([
        500,
        expect.stringContaining(`${PAYLOAD_BYTES_MAX + 1} bytes`),
      ]);
    }
  });

  test("[M36] a request at the limit is handled in process, one byte more is a 413", async () => {
    const kernel = await open();
    expect(await kernel.query("Syscall.Ping", text(PAYLOAD_BYTES_MAX))).toHaveLength(PAYLOAD_BYTES_MAX - 2);
    const failure = await kernel.query("Syscall.Ping", text(PAYLOAD_BYTES_MAX + 1)).catch((thrown: unknown) => thrown);
    expect([code(failure), String(failure)]).toEqual([413, expect.stringContaining("send it in parts")]);
  });

  test("[M36] an event at the limit is emitted, one byte more throws in its handler", async () => {
    const kernel = await open();
    expect(await kernel.command("Size.Emit", PAYLOAD_BYTES_MAX)).toBe(null);
    const failure = await kernel.command("Size.Emit", PAYLOAD_BYTES_MAX + 1).catch((thrown: unknown) => thrown);
    expect([code(failure), String(failure)]).toEqual([500, expect.stringContaining(`${PAYLOAD_BYTES_MAX + 1} bytes`)]);
  });

  test("[M36] a transactional handler with an answer that is too large has no effect", async () => {
    const kernel = await open();
    await kernel.command("Counter.Add", 100);
    const failure = await kernel.command("Counter.Add", PAYLOAD_BYTES_MAX + 1).catch((thrown: unknown) => thrown);
    expect([code(failure), String(failure)]).toEqual([500, expect.stringContaining("invalid answer")]);
    expect(await kernel.space.cell<number>("count").pull()).toBe(1);
  });

  const sizes: readonly (readonly [string, Json])[] = [
    ["ASCII", text(PAYLOAD_BYTES_MAX)],
    ["two bytes a character", "é".repeat(PAYLOAD_BYTES_MAX / 2 - 1)],
    ["escapes", "\n".repeat(PAYLOAD_BYTES_MAX / 2 - 1)],
    ["numbers", Array.from({ length: (PAYLOAD_BYTES_MAX - 2) / 2 }, () => 1).concat(1)],
  ];
  for (const [name, fits] of sizes) {
    test(`[M36] the bytes of the JSON text count, not characters: ${name}`, () => {
      const bytes = new TextEncoder().encode(JSON.stringify(fits)).length;
      expect(bytes).toBeLessThanOrEqual(PAYLOAD_BYTES_MAX + 1);
      expect(cloneData(fits).kind).toBe(bytes <= PAYLOAD_BYTES_MAX ? "clone" : "impure");
      expect(cloneData([fits, 1]).kind).toBe("impure");
    });
  }

  test("[N8] large requests and events in flight pause a connection until they are done", async () => {
    const kernel = await open();
    const socket = connect(kernel.socketPath as string);
    onTestFinished(() => void socket.destroy());
    const line = (kind: string, type: string, id: string) =>
      `${JSON.stringify({ kind, type, data: text(400_000), metadata: { id, timestamp: 1 } })}\n`;
    for (let n = 0; n < 8; n++) {
      socket.write(line("event", "Mail.Received", `e${n}`));
      socket.write(line("query", "Syscall.Ping", `q${n}`));
    }
    let heard = "";
    for await (const chunk of socket) {
      heard += String(chunk);
      if (heard.split("\n").length > 8) break;
    }
    const ids = heard
      .trimEnd()
      .split("\n")
      .map((answer) => JSON.parse(answer).metadata.causation as string);
    expect(ids.toSorted()).toEqual(Array.from({ length: 8 }, (_, n) => `q${n}`));
    await kernel.idle();
    const { done } = await kernel.bus
      .query({ topic: "Mail.Received", limit: 100 })
      .then((rows) => ({ done: rows.length }));
    expect(done).toBe(8);
  });
});
