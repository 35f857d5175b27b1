/** A program with a kernel in it, in one file that a bundler has made, where no package is beside it. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "rolldown";
import { describe, expect, test } from "vitest";
import { ROOT, runProgram, scratchFolder } from "./program.ts";

const PROGRAM = `
import { Kernel, readSettings } from "${join(ROOT, "src", "kernel", "index.ts")}";
import { memoryStore } from "${join(ROOT, "src", "store", "memory", "memory-store.ts")}";

const settings = await readSettings({ environment: {}, folder: "." }).catch((error) => error.problems);
const kernel = await Kernel.open({ store: memoryStore(), extensions: "extensions", log: () => undefined });
const [{ state, reason }] = kernel.health().extensions;
console.log(JSON.stringify({ settings, state, reason, pong: await kernel.query("Syscall.Ping", 1) }));
await kernel.close();
`;

describe("a bundle", () => {
  test("[K58] a bundle runs a kernel; code that needs yaml reports its absence in one line", async () => {
    const folder = scratchFolder();
    writeFileSync(join(folder, "program.ts"), PROGRAM);
    const input = join(folder, "program.ts");
    await build({ input, platform: "node", logLevel: "silent", output: { file: join(folder, "out", "bundle.mjs") } });
    const cwd = join(folder, "out");
    mkdirSync(join(cwd, "extensions", "one"), { recursive: true });
    writeFileSync(join(cwd, "extensions", "one", "manifest.yaml"), "id: one\nentrypoint: main.js\n");
    writeFileSync(join(cwd, "millrace.config.json"), "{}");
    const { code, stdout, stderr } = await runProgram(process.execPath, ["bundle.mjs"], { cwd });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const advice =
      "the package yaml cannot be loaded; where this program was bundled, install yaml beside the bundle (npm install yaml): Cannot find module 'yaml'";
    expect(JSON.parse(stdout)).toEqual({
      ...{ pong: 1, state: "ERROR", reason: advice },
      settings: [`millrace.config.json: cannot be read: ${advice}`],
    });
  });
});
