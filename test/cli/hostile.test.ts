/** Control characters in the journal, documents and names do not reach the reader's terminal. */
import { expect, test } from "vitest";
import { COMPILE_CACHE, KernelProcess, MAIN } from "../kernel/kernel-process.ts";
import { type Ended, runProgram } from "../repo/program.ts";
import { setup } from "./cli-setup.ts";
import { HOSTILE } from "./hostile-app.ts";

const APP = `${import.meta.dirname}/hostile-app.ts`;
const DRIVES = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/;
/** A line that a text of others has made. */
const FORGED = /^9 {3}done/m;

/** A kernel that has refused messages with control characters. */
async function attackedKernel() {
  const { cwd, millrace } = setup();
  const kernel = await KernelProcess.start(cwd, APP);
  const coloured = (...args: string[]) =>
    runProgram(process.execPath, [MAIN, ...args], { cwd, env: { ...COMPILE_CACHE, FORCE_COLOR: "1" } });
  const client = await kernel.connect();
  await client.command("Text.Keep", HOSTILE);
  while ((await millrace("ls", "failures")).stdout.startsWith("no failures"));
  await client.close();
  return { kernel, millrace, coloured };
}

function isHarmless({ stdout, stderr }: Ended): void {
  for (const text of [stdout, stderr]) {
    expect(text).not.toMatch(DRIVES);
    expect(text).not.toMatch(FORGED);
  }
}

test("[K59] [K155] verbs escape text that drives a terminal or forges a line, and JSON output keeps its value", async () => {
  const { kernel, millrace, coloured } = await attackedKernel();
  const calls = [
    ["ls", "failures"],
    ["ls", "nodes"],
    ["tail", "--no-follow"],
    ["why", `node ${HOSTILE}`],
    ["show", "event", "2"],
    ["ls", "events", "--json"],
    ["graph", "--json"],
  ];
  for (const call of calls) {
    const ended = await millrace(...call);
    expect(ended, call.join(" ")).toMatchObject({ code: 0, stderr: "" });
    isHarmless(ended);
    if (call.includes("--json")) for (const line of ended.stdout.trimEnd().split("\n")) JSON.parse(line);
  }
  expect((await millrace("ls", "documents")).stdout).toMatch(
    /^cell \\u001b\[2J\\u001b\]0;title\\u0007.*\\u009b31m.*\\u202e\\u2028\\tx\\n9 {3}done\\u0085 +space/m,
  );
  const shown = await millrace("show", "document", `cell ${HOSTILE}`, "--json");
  isHarmless(shown);
  expect(JSON.parse(shown.stdout)).toMatchObject({ value: { value: HOSTILE } });

  // Of codes, on a terminal, those of the command's own styles.
  const { stdout } = await coloured("trace", "1");
  expect(stdout).toContain("\u001b[31m");
  const plain = stdout.replace(/\u001b\[(?:0|1|2|22|31|32|39)m/g, "");
  isHarmless({ code: 0, stdout: plain, stderr: "" });

  // Errors quote the message: to its sender, and in the kernel's own output.
  const refused = await millrace("send", "Text.Refuse", JSON.stringify(HOSTILE));
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("will not have \\u001b[2J") });
  isHarmless(refused);
  isHarmless(await millrace("show", "event", HOSTILE));
  expect(await kernel.stop()).toBe(0);
  expect(kernel.complaints).toContain("bad \\u001b[2J");
  isHarmless({ code: 0, stdout: kernel.output, stderr: kernel.complaints });
});
