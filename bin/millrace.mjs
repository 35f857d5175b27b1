#!/usr/bin/env node
// The millrace command. Plain JavaScript that any Node from 16 on can read: on a Node that is too old it runs itself again
// with the Node pinned beside this package, and where there is none it says in one line which Node is needed.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const NEEDED = [22, 18];
const root = dirname(dirname(fileURLToPath(import.meta.url)));
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);

if (major > NEEDED[0] || (major === NEEDED[0] && minor >= NEEDED[1])) {
  const entry = join(root, "dist", "cli", "main.js");
  if (existsSync(entry)) {
    await import(new URL("../dist/cli/main.js", import.meta.url).href);
  } else {
    console.error('millrace: this clone is not built yet; run "npm start" or "npm run build" first');
    process.exitCode = 1;
  }
} else {
  const binary = process.platform === "win32" ? "node.exe" : "node";
  const pinned = join(root, "node_modules", "node", "bin", binary);
  if (existsSync(pinned)) {
    const child = spawn(pinned, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], { stdio: "inherit" });
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
    child.on("exit", (code, signal) => {
      process.exitCode = code ?? (signal ? 1 : 0);
    });
  } else {
    console.error(`millrace: Node ${NEEDED.join(".")} or later is needed, this is ${process.versions.node}`);
    process.exitCode = 1;
  }
}
