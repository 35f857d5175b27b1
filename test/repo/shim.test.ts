/** `bin/millrace.mjs` on Nodes that are new enough, too old, and too old with a newer one beside it. */
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { ROOT, runProgram, scratchFolder } from "./program.ts";

/** Makes this Node pass for an old one, in one process but not in those that it starts. */
const PRETEND = (versions: object) =>
  `--import=data:text/javascript,${encodeURIComponent(
    `Object.defineProperty(process, "versions", { value: { ...process.versions, ...${JSON.stringify(versions)} } })`,
  )}`;
const OLD = PRETEND({ node: "20.11.0", sqlite: "0" });
const needed = (version: string) =>
  `millrace: needs Node 24 or later, with SQLite 3.51.3 or later in it; this is Node ${version}. To have one beside this package: npm install --save-dev node@24\n`;

/** A copy of the package with a command that reports its call and ends with 7. */
function setup(pinned: "pinned in the clone" | "pinned beside the package" | "no pinned Node" = "no pinned Node") {
  const project = scratchFolder();
  const root = join(project, "node_modules", "millrace");
  const shim = join(root, "bin", "millrace.mjs");
  mkdirSync(join(root, "bin"), { recursive: true });
  mkdirSync(join(root, "dist", "cli"), { recursive: true });
  writeFileSync(join(root, "package.json"), '{ "type": "module" }');
  copyFileSync(join(ROOT, "bin", "millrace.mjs"), shim);
  const told = "process.versions.node, ...process.argv.slice(2)";
  writeFileSync(join(root, "dist", "cli", "main.js"), `console.log(${told}); process.exitCode = 7;`);
  const folder = { "pinned in the clone": root, "pinned beside the package": project, "no pinned Node": undefined };
  const home = folder[pinned];
  if (home) {
    const node = join(home, "node_modules", "node", "bin", "node");
    mkdirSync(dirname(node), { recursive: true });
    symlinkSync(process.execPath, node);
  }
  return shim;
}

/** A Node of this machine that is too old, if there is one. */
function findOldNode(): string | undefined {
  return (process.env["PATH"] ?? "")
    .split(delimiter)
    .map((folder) => join(folder, "node"))
    .find((node) => {
      try {
        return Number(execFileSync(node, ["-p", "process.versions.node"], { encoding: "utf8" }).split(".")[0]) < 22;
      } catch {
        return false; // There is no Node in that folder.
      }
    });
}

describe("the millrace shim", () => {
  test("[K16] on a new Node it runs the command in the same process", async () => {
    const ended = await runProgram(process.execPath, [setup(), "send", "two words"]);
    expect(ended).toEqual({ code: 7, stdout: `${process.versions.node} send two words\n`, stderr: "" });
  });

  for (const place of ["pinned in the clone", "pinned beside the package"] as const) {
    test(`[K16] on an old Node it runs itself with the one ${place}`, async () => {
      const ended = await runProgram(process.execPath, [OLD, setup(place), "send", "two words"]);
      expect(ended).toEqual({ code: 7, stdout: `${process.versions.node} send two words\n`, stderr: "" });
    });
  }

  test("[K16] on an old Node without a pinned one, one line names the required version", async () => {
    const ended = await runProgram(process.execPath, [OLD, setup(), "start"]);
    expect(ended).toEqual({ code: 1, stdout: "", stderr: needed("20.11.0") });
  });

  test("[K16] a Node with a SQLite that can lose data is too old", async () => {
    const ended = await runProgram(process.execPath, [PRETEND({ sqlite: "3.51.2" }), setup(), "start"]);
    expect(ended).toEqual({ code: 1, stdout: "", stderr: needed(process.versions.node) });
  });

  test("[K16] a pinned Node that is too old itself does not start itself for ever", async () => {
    const env = { NODE_OPTIONS: OLD };
    const ended = await runProgram(process.execPath, [setup("pinned in the clone"), "start"], { env });
    expect(ended).toEqual({ code: 1, stdout: "", stderr: needed("20.11.0") });
  });

  const oldNode = findOldNode();
  test.skipIf(!oldNode)(
    `[K16] a real old Node gets the same line${oldNode ? "" : " (there is none in the path)"}`,
    async () => {
      const handed = await runProgram(oldNode!, [setup("pinned in the clone"), "send"]);
      expect(handed).toEqual({ code: 7, stdout: `${process.versions.node} send\n`, stderr: "" });
      const alone = await runProgram(oldNode!, [setup(), "send"]);
      expect(alone).toMatchObject({ code: 1, stdout: "" });
      expect(alone.stderr).toMatch(/^millrace: needs Node 24.*this is Node \d+\.\d+\.\d+\. To have one.*\n$/);
    },
  );

  test("[K16] a clone without a build names the remedy", async () => {
    const shim = join(scratchFolder(), "bin", "millrace.mjs");
    mkdirSync(dirname(shim));
    copyFileSync(join(ROOT, "bin", "millrace.mjs"), shim);
    const ended = await runProgram(process.execPath, [shim, "start"]);
    expect(ended).toMatchObject({ code: 1, stdout: "" });
    expect(ended.stderr).toBe('millrace: this clone is not built yet; run "npm start" once, or "npm run build"\n');
  });
});
