/**
 * Commands that were under way when their process was killed: they are done by the next, or have failed as interrupted.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { systemHost } from "../../src/host/system-host.ts";
import type { Json } from "../../src/message/json.ts";
import { runProgram, scratchFolder } from "../repo/program.ts";
import { COMPILE_CACHE, KernelProcess, MAIN } from "./kernel-process.ts";
import { until } from "./ledger.ts";

const APP = join(import.meta.dirname, "kept-app.ts");
const SENT = ["Plain.Hold", "Idempotent.Hold", "Counter.Add"];

/** Whether so many commands are in the journal, and all of them are over. */
const areOver = (count: number) => (journal: Json) =>
  Array.isArray(journal) && journal.length === count && journal.every((row) => /^\S+ (done|failed)/.test(String(row)));

test("[L39] after a kill a command without a requester is repeated if allowed, and fails as interrupted if not", async () => {
  const folder = scratchFolder();
  const first = await KernelProcess.start(folder, APP);
  await using client = await first.connect();
  await client.command("Boss.Send", SENT);
  for (const type of SENT) await first.said(new RegExp(`began ${type}`));
  await first.kill();
  writeFileSync(join(folder, "open"), "");
  const second = await KernelProcess.start(folder, APP);
  await until(client, "Boss.Journal", null, areOver(SENT.length));
  const journal = (await client.query("Boss.Journal", null)) as string[];
  expect(journal.slice(1)).toEqual(["Idempotent.Hold done", "Counter.Add done"]);
  expect(journal[0]).toMatch(/^Plain\.Hold failed plain: interrupted: the process died while it was under way/);
  expect(await client.query("Counter.Read", null)).toBe(1);
  expect(second.output).not.toContain("began Plain.Hold");
  while (!second.complaints.includes("interrupted")) await systemHost().yield();
});

test("[L84] why explains an unrepeatable command after kernel and command line were both killed", async () => {
  const folder = scratchFolder();
  const first = await KernelProcess.start(folder, APP);
  const client = spawn(process.execPath, [MAIN, "send", "Plain.Hold", "null"], { cwd: folder, stdio: "ignore" });
  const ended = once(client, "close");
  await first.said(/began Plain.Hold/);
  client.kill("SIGKILL");
  await Promise.all([first.kill(), ended]);
  const second = await KernelProcess.start(folder, APP);
  await using later = await second.connect();
  await until(later, "Boss.Journal", null, areOver(1));
  const millrace = (...args: string[]) =>
    runProgram(process.execPath, [MAIN, ...args], { cwd: folder, env: COMPILE_CACHE });
  const failures = (await millrace("ls", "failures", "--json")).stdout;
  const { id } = JSON.parse(failures) as { readonly id: number };
  expect((await millrace("why", String(id))).stdout).toMatch(
    /^request \d+ Plain\.Hold {3}failed after 2 attempts: plain: interrupted: the process died while it was under way/,
  );
  expect(second.output).not.toContain("began Plain.Hold");
});

test('[L39] what is durable "before" is done after a kill, and whoever asks again is answered', async () => {
  const folder = scratchFolder();
  const first = await KernelProcess.start(folder, APP);
  await using client = await first.connect();
  const asked = client.command("Before.Hold", null);
  await first.said(/began Before.Hold/);
  await first.kill();
  writeFileSync(join(folder, "open"), "");
  await KernelProcess.start(folder, APP);
  // The client repeats unanswered requests, under their ids.
  expect(await asked).toEqual({ held: "Before.Hold" });
  await until(client, "Boss.Journal", null, areOver(1));
  expect(await client.query("Boss.Journal", null)).toEqual(["Before.Hold done"]);
});

test("[L41] [T6] the command of a timer is done once, even if the kernel is killed as it fires", async () => {
  const folder = scratchFolder();
  const first = await KernelProcess.start(folder, APP);
  const before = await first.connect();
  await before.command("Timer.Set", { delayMs: 0, message: { kind: "command", type: "Counter.Add", data: null } });
  await first.kill();
  await before.close();
  writeFileSync(join(folder, "open"), "");
  const second = await KernelProcess.start(folder, APP);
  await using client = await second.connect();
  await until(client, "Boss.Journal", null, areOver(1));
  expect(await client.query("Counter.Read", null)).toBe(1);
});
