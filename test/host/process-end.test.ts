/** Behaviour that only a whole process shows: its end, and the way of an uncaught error. */

import { spawn } from "node:child_process";
import { describe, expect, test } from "vitest";

const HOST = new URL("../../src/host/system-host.ts", import.meta.url).href;

function runProcess(body: string): Promise<{ code: number | null; output: string }> {
  const script = `import { systemHost } from ${JSON.stringify(HOST)}; const host = systemHost(); ${body}`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", script]);
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => {
    output += chunk.toString();
  });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, output }));
  });
}

describe("a process with a system host", () => {
  test("[H31] an idle process ends by itself, with background timers and cancelled ones of any length", async () => {
    const { code, output } = await runProcess(`
      host.timer(3_000_000_000, () => console.log("fired"), { keepAlive: false });
      host.timer(600_000, () => console.log("fired")).cancel();
      await host.yield();
      host.task(() => console.log("task"));
    `);
    expect({ code, output }).toEqual({ code: 0, output: "task\n" });
  });

  test("[H31] a process stays alive for a timer, and lets earlier background timers fire", async () => {
    const { code, output } = await runProcess(`
      host.timer(1, () => console.log("background"), { keepAlive: false });
      host.timer(20, () => console.log("kept"));
    `);
    expect({ code, output }).toEqual({ code: 0, output: "background\nkept\n" });
  });

  test("[H11] an error of a timer, task or microtask is the runtime's uncaught error, and other callbacks still run", async () => {
    const { code, output } = await runProcess(`
      const lines = [];
      process.on("uncaughtException", (error) => lines.push(error.message));
      process.on("exit", () => console.log(lines.sort().join()));
      const fail = (word) => () => { throw new Error(word); };
      host.timer(1, fail("timer"));
      host.timer(1, () => lines.push("next timer"));
      host.task(fail("task"));
      host.task(() => lines.push("next task"));
      host.microtask(fail("microtask"));
    `);
    expect({ code, output }).toEqual({ code: 0, output: "microtask,next task,next timer,task,timer\n" });
  });
});
