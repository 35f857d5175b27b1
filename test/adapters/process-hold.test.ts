/** A bare loop and the life of its process. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect, test } from "vitest";
import { COMPILE_CACHE } from "../kernel/kernel-process.ts";
import { ROOT, runProgram } from "../repo/program.ts";

const LOOP = JSON.stringify(join(ROOT, "src", "loop", "index.ts"));
const BOOT = `
  import { capability, EventLoop } from ${LOOP};
  const echo = capability({ description: "echoes", queries: { "Echo.Ask": { handle: (data) => data } } });
  const loop = await EventLoop.boot({ capabilities: { echo } });
`;
const run = (code: string) => ["--input-type=module", "--eval", BOOT + code];

test("[L95] a process whose loop has an open adapter runs until the adapter is closed", async () => {
  const code = `
    const detach = loop.attach({ frames: 0 });
    process.once("SIGTERM", () => { detach(); console.log("closed"); });
    console.log("ready");
  `;
  const child = spawn(process.execPath, run(code), { env: { ...process.env, ...COMPILE_CACHE } });
  let output = "";
  const ended = once(child, "close");
  for await (const chunk of child.stdout) {
    output += chunk;
    if (output === "ready\n") child.kill("SIGTERM");
  }
  expect([output, await ended]).toEqual(["ready\nclosed\n", [0, null]]);
});

test("[L95] a process whose loop has a pending request runs until it is answered", async () => {
  const code = `
    let answer;
    const slow = capability({ description: "slow", queries: { "Slow.Ask": { handle: () => new Promise((resolve) => { answer = resolve; }) } } });
    const other = await EventLoop.boot({ capabilities: { slow } });
    const asked = other.query("Slow.Ask", null);
    process.once("SIGTERM", () => answer("answered"));
    setImmediate(() => console.log("ready"));
    console.log(await asked);
  `;
  const child = spawn(process.execPath, run(code), { env: { ...process.env, ...COMPILE_CACHE } });
  let output = "";
  const ended = once(child, "close");
  for await (const chunk of child.stdout) {
    output += chunk;
    if (output === "ready\n") child.kill("SIGTERM");
  }
  expect([output, await ended]).toEqual(["ready\nanswered\n", [0, null]]);
});

test("[L95] a process whose loop is not alive ends by itself", async () => {
  const code = 'console.log(await loop.query("Echo.Ask", 7));';
  const ended = await runProgram(process.execPath, run(code), { env: COMPILE_CACHE });
  expect(ended).toEqual({ code: 0, stdout: "7\n", stderr: "" });
});
