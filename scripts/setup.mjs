// Installs the dependencies when they are missing or no longer those of the lock file, and says what it is doing.
// Plain JavaScript for Node 18 and later: it runs before the repository's own Node is there.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const stamp = join(root, "node_modules", ".millrace-setup");
const lock = readFileSync(join(root, "package-lock.json"));
const wanted = createHash("sha256").update(lock).digest("hex");

const reason = whyInstall();
if (reason) install(reason);

function whyInstall() {
  if (!existsSync(join(root, "node_modules"))) return "node_modules is missing";
  if (!existsSync(stamp)) return "node_modules was not installed by this script";
  if (readFileSync(stamp, "utf8") !== wanted) return "package-lock.json has changed";
  if (!existsSync(pinnedNode())) return "the repository's own Node is missing";
  return undefined;
}

function install(because) {
  console.log(`setup: installing dependencies (${because}), about half a minute`);
  const started = Date.now();
  const args = ["ci", "--no-audit", "--no-fund", "--loglevel=error"];
  const npm = spawnSync("npm", args, { cwd: root, stdio: "inherit", shell: process.platform === "win32" });
  if (npm.status !== 0) {
    console.error(`setup: "npm ${args.join(" ")}" failed; check the network and try again`);
    process.exit(npm.status ?? 1);
  }
  if (!existsSync(pinnedNode())) {
    console.error(
      'setup: the npm package "node" left no Node binary; allow its install script ("allowScripts") and retry',
    );
    process.exit(1);
  }
  writeFileSync(stamp, wanted);
  console.log(`setup: done in ${Math.round((Date.now() - started) / 1000)} s`);
}

function pinnedNode() {
  const binary = process.platform === "win32" ? "node.exe" : "node";
  return join(root, "node_modules", "node", "bin", binary);
}
