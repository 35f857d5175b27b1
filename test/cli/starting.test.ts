/** A verb that is typed while the kernel of its directory starts. */
import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { dataDirectory } from "../../src/kernel/data-directory.ts";
import { InstanceLock } from "../../src/kernel/instance-lock.ts";
import { Kernel } from "../../src/kernel/kernel.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { COMPILE_CACHE, MAIN } from "../kernel/kernel-process.ts";
import { scratchFolder } from "../repo/program.ts";

test("[K130] a verb waits for a kernel that has taken the directory and has no socket yet", async () => {
  const cwd = scratchFolder();
  const directory = dataDirectory({ MILLRACE_DIR: join(cwd, ".millrace") });
  mkdirSync(directory.path, { mode: 0o700 });
  using _ = InstanceLock.take(directory);
  const verb = spawn(process.execPath, [MAIN, "query", "Kernel.Health"], {
    cwd,
    env: { ...process.env, ...COMPILE_CACHE },
  });
  const printed = text(verb.stdout);
  for await (const chunk of verb.stderr) if (String(chunk).includes("a kernel is starting here")) break;
  await using kernel = await Kernel.open({ store: memoryStore(), socketPath: directory.socketFile });
  expect(await printed).toContain("reply");
  expect(kernel.health().state).toBe("running");
});
