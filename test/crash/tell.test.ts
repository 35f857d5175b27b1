import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test } from "vitest";

/** Ten megabytes: more than any pipe or socket pair holds. */
const LINES = 10_000;

test("[K114] a program with a full pipe waits for its reader and loses no line", async () => {
  const program = join(import.meta.dirname, "telling-program.ts");
  const child = spawn(process.execPath, [program, String(LINES)], { stdio: ["ignore", "pipe", "pipe"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const closed = once(child, "close");
  let complaints = "";
  // Its output is not read before it has found its pipe full, or has died of that.
  await new Promise<void>((resolve) => {
    child.stderr.on("data", (chunk: Buffer) => {
      complaints += chunk;
      if (complaints.includes("\n")) resolve();
    });
    child.stderr.on("end", resolve);
  });
  let told = 0;
  for await (const line of createInterface({ input: child.stdout })) if (line.startsWith(`${told + 1} `)) told++;
  expect({ complaints, told }).toEqual({ complaints: "full\n", told: LINES });
  expect(await closed).toEqual([0, null]);
});
