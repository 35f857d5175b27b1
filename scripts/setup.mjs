// Installs the dependencies if they are missing or not those of the lock file, and reports it. `setup.mjs start` installs only what
// `npm start` needs. Plain JavaScript for Node 18 and later: it runs before the repository's own Node is there.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { pinnedNode, selection, suffices, whyInstall } from "./installed.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const purpose = process.argv[2];
const reason = whyInstall(root, purpose, process.versions);
if (reason) process.exitCode = install(reason);

/** Returns the exit code. */
function install(because) {
  console.log(`setup: installing dependencies (${because}); this takes about half a minute`);
  const started = Date.now();
  // Not `npm ci`: it refuses a lock file made where the registry has no binaries for some other platform. This takes what the
  // lock file says as well, and leaves the lock file as it is.
  const chosen = selection(purpose, process.versions);
  const args = ["install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error", ...chosen];
  const npm = spawnSync("npm", args, { cwd: root, stdio: "inherit", shell: process.platform === "win32" });
  if (npm.status !== 0) {
    console.error(`setup: "npm ${args.join(" ")}" failed; check the network and try again`);
    return npm.status ?? 1;
  }
  const needsNode = purpose !== "start" || !suffices(process.versions);
  if (needsNode && !existsSync(pinnedNode(root))) {
    console.error('setup: the npm package "node" left no Node binary; allow its install script and try again');
    return 1;
  }
  console.log(`setup: done in ${Math.round((Date.now() - started) / 1000)} s`);
  return 0;
}
