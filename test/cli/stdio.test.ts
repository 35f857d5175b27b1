/** `millrace start --stdio`: a kernel as a child process that is spoken to through its pipes. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { COMPILE_CACHE, MAIN } from "../kernel/kernel-process.ts";
import { ROOT, scratchFolder } from "../repo/program.ts";

const APP = `
  import { capability } from ${JSON.stringify(join(ROOT, "src", "loop", "index.ts"))};
  console.log("the app prints");
  export default { echo: capability({ description: "echoes", commands: { "Echo.Say": { handle: (data) => data } } }) };
`;

test("[K82] start --stdio answers requests of its input on its output, and ends with 0 when the input has ended", async () => {
  const cwd = scratchFolder();
  writeFileSync(join(cwd, "app.ts"), APP);
  const env = { ...process.env, ...COMPILE_CACHE };
  const child = spawn(process.execPath, [MAIN, "start", "app.ts", "--stdio"], { cwd, env });
  let [output, complaints] = ["", ""];
  child.stdout.on("data", (chunk) => (output += chunk));
  child.stderr.on("data", (chunk) => (complaints += chunk));
  const ended = once(child, "close");
  const line = (kind: string, type: string, id: string, data: unknown) =>
    `${JSON.stringify({ kind, type, data, metadata: { id, timestamp: 1 } })}\n`;
  child.stdin.write(line("query", "Syscall.Ping", "p1", 1));
  child.stdin.write(line("command", "Echo.Say", "e1", "hello"));
  child.stdin.end("this is no message\n");
  expect(await ended).toEqual([0, null]);
  const answers = output
    .trimEnd()
    .split("\n")
    .map((text) => JSON.parse(text));
  expect(answers.map(({ kind, data, metadata }) => [kind, data.code ?? data, metadata.causation])).toEqual(
    expect.arrayContaining([
      ["reply", 1, "p1"],
      ["reply", "hello", "e1"],
      ["error", 400, undefined],
    ]),
  );
  expect(answers).toHaveLength(3);
  expect(complaints).toMatch(/the app prints\n(?:.*\n)*.*socket .*pid \d+\n(?:.*\n)*stopped\n$/);
});
