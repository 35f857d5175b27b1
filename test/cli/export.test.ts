/** `millrace export` and `millrace import`: a kernel goes on from its lines in another directory. */
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Message } from "../../src/message/envelope.ts";
import type { Json } from "../../src/message/json.ts";
import { setup } from "./cli-setup.ts";

/** Two of one id are the same request, or a conflict. */
function order(price: number): Message {
  return { kind: "command", type: "Shop.Order", data: { price }, metadata: { id: "order-1", timestamp: 1 } };
}

async function exported() {
  const parts = setup();
  const kernel = await parts.start();
  const client = await kernel.connect();
  const answer = await client.request(order(7));
  await client.command("Memory.Set", { key: "/a", value: { text: "\u202e" } });
  await client.command("Timer.Set", {
    delayMs: 100_000_000,
    message: { kind: "command", type: "Syscall.Ping", data: null },
  });
  await client.emit("Order.Refused", { price: 8 });
  await parts.untilStatus("Order.Refused", "failed");
  expect(await parts.millrace("export", "--jsonl", "running.jsonl")).toMatchObject({ code: 0, stderr: "" });
  await client.close();
  await kernel.stop();
  expect(await parts.millrace("export", "--jsonl", "kernel.jsonl")).toMatchObject({ code: 0, stderr: "" });
  const text = readFileSync(join(parts.cwd, "kernel.jsonl"), "utf8");
  return { ...parts, answer, text };
}

describe("export and import", () => {
  test("[K120] export writes the lines of a kernel that runs or is stopped, to a new file or to stdout", async () => {
    const { cwd, millrace, text } = await exported();
    const { stdout, stderr, code } = await millrace("export", "--jsonl");
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout.split("\n").map((line) => line && JSON.parse(line))).toEqual(
      text.split("\n").map((line) => line && JSON.parse(line)),
    );
    expect(await millrace("export", "kernel.jsonl")).toMatchObject({
      ...{ code: 1, stderr: expect.stringContaining("is there already") },
    });
    expect(statSync(join(cwd, "running.jsonl")).mode & 0o777).toBe(0o600);
    expect(readdirSync(cwd).filter((name) => name.includes(".part"))).toEqual([]);
    expect(await millrace("export", "--help")).toMatchObject({ code: 0, stdout: expect.stringContaining("--jsonl") });
  });

  test("[K121] an import gives a kernel that answers repeats from receipts, and the same lines again", async () => {
    const { text, answer } = await exported();
    const other = setup();
    writeFileSync(join(other.cwd, "kernel.jsonl"), text);
    expect(await other.millrace("import", "kernel.jsonl")).toMatchObject({
      ...{
        code: 0,
        stderr: "",
        stdout: expect.stringMatching(/journal rows, \d+ documents, \d+ consumers and 1 timers/),
      },
    });
    await other.millrace("export", "--jsonl", "again.jsonl");
    expect(readFileSync(join(other.cwd, "again.jsonl"), "utf8")).toBe(text);
    const kernel = await other.start();
    const client = await kernel.connect();
    expect(await client.request(order(7))).toMatchObject({ data: (answer as { data: Json }).data });
    expect(await client.request(order(9))).toMatchObject({ kind: "error", data: { code: 409 } });
    expect(await other.json("show", "orders")).toMatchObject([{ value: { value: [7] } }]);
    expect(await other.json("ls", "events", "--status", "failed")).toHaveLength(1);
    expect(await other.json("ls", "timers")).toHaveLength(1);
    expect(await other.millrace("import", "kernel.jsonl")).toMatchObject({
      ...{ code: 1, stderr: expect.stringContaining("a kernel is running") },
    });
    await client.close();
    await kernel.stop();
    expect(await other.millrace("verify")).toMatchObject({ code: 0 });
    expect(await other.millrace("import", "kernel.jsonl")).toMatchObject({
      ...{ code: 1, stderr: expect.stringContaining("is not empty") },
    });
  });

  test("[K122] a bad line is named by its number, and no store is left", async () => {
    const { text } = await exported();
    const { cwd, millrace } = setup();
    const lines = text.split("\n");
    const bad: [string | Buffer, RegExp][] = [
      [lines.with(4, "{").join("\n"), /^millrace: line 5: it is not JSON.*export the store again\n$/],
      [
        Buffer.concat([Buffer.from(`${lines[0]}\n`), Buffer.from([0xff, 0x0a])]),
        /line 1 or one soon after it is not UTF-8/,
      ],
      ["", /ends before its last line/],
    ];
    for (const [content, error] of bad) {
      writeFileSync(join(cwd, "bad.jsonl"), content);
      expect(await millrace("import", "bad.jsonl")).toMatchObject({ code: 1, stderr: expect.stringMatching(error) });
      expect(existsSync(join(cwd, ".millrace", "kernel.db"))).toBe(false);
    }
    expect(await millrace("import", "none.jsonl")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("there is no"),
    });
    expect(await millrace("import")).toMatchObject({ code: 2 });
  });
});
