#!/usr/bin/env node
// The millrace command. Plain JavaScript that any Node from 16 on can read: on a Node that is too old it runs itself
// again with the Node of the npm package `node`. Without one it prints in one line which Node is needed.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import module from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const NODE_NEEDED = "24";
// Older releases can lose committed data (a race at WAL reset); src/limits.ts has the same bound for the store.
const SQLITE_NEEDED = "3.51.3";
const root = dirname(dirname(fileURLToPath(import.meta.url)));

if (atLeast(process.versions.node, NODE_NEEDED) && atLeast(process.versions.sqlite ?? "0", SQLITE_NEEDED)) {
  await runHere();
} else {
  const pinned = pinnedNode();
  // A pinned Node that is too old as well must not start itself for ever.
  if (pinned && !process.env.MILLRACE_PINNED_NODE) runWith(pinned);
  else {
    // npm 12 runs the install script of `node`, which fetches the binary, only if `allowScripts` lists it.
    console.error(
      `millrace: needs Node ${NODE_NEEDED} or later, with SQLite ${SQLITE_NEEDED} or later in it; this is Node ${process.versions.node}. To have one beside this package: npm pkg set --json allowScripts.node=true && npm install --save-dev node@24`,
    );
    process.exitCode = 1;
  }
}

async function runHere() {
  // The next start reuses the compiled code. In a folder that is not writable it compiles again.
  module.enableCompileCache?.();
  if (existsSync(join(root, "dist", "cli", "main.js"))) {
    await import(new URL("../dist/cli/main.js", import.meta.url).href);
  } else {
    console.error('millrace: this clone is not built yet; run "npm start" once, or "npm run build"');
    process.exitCode = 1;
  }
}

function runWith(node) {
  const env = { ...process.env, MILLRACE_PINNED_NODE: "1" };
  const child = spawn(node, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], { stdio: "inherit", env });
  // A terminal sends its signals to the child as well; passed on, they would count twice and cut a graceful stop short.
  const terminal = process.stdin.isTTY === true;
  for (const signal of ["SIGINT", "SIGHUP", "SIGTERM"]) {
    process.on(signal, () => {
      if (!terminal || signal === "SIGTERM") child.kill(signal);
    });
  }
  child.on("exit", (code) => {
    process.exitCode = code ?? 1;
  });
}

/** In this package's own folder (a clone), or beside it (a project that depends on both). */
function pinnedNode() {
  const binary = join("node", "bin", process.platform === "win32" ? "node.exe" : "node");
  return [join(root, "node_modules", binary), join(dirname(root), binary)].find((path) => existsSync(path));
}

function atLeast(version, needed) {
  const have = version.split(".").map(Number);
  const want = needed.split(".").map(Number);
  for (const [i, part] of want.entries()) {
    if ((have[i] ?? 0) !== part) return (have[i] ?? 0) > part;
  }
  return true;
}
