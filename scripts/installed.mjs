// Whether what is installed in a clone is what its lock file says. Plain JavaScript for Node 18 and later, like `setup.mjs`.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Why the dependencies in `root` must be installed, in a few words; undefined when they are what the lock file says. */
export function whyInstall(root) {
  if (!existsSync(join(root, "node_modules"))) return "node_modules is missing";
  // npm writes this file last, so an installation that was interrupted has none.
  const installed = packagesOf(join(root, "node_modules", ".package-lock.json"));
  if (!installed) return "the last installation did not finish";
  const wanted = packagesOf(join(root, "package-lock.json")) ?? {};
  for (const [path, { version, optional }] of Object.entries(wanted)) {
    if (path === "") continue;
    const found = installed[path]?.version;
    // Optional packages are those of other platforms: absent here, and that is fine.
    if (found === version || (optional && found === undefined)) continue;
    const name = path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
    return `${name} is ${found ?? "missing"}, the lock file says ${version}`;
  }
  return existsSync(pinnedNode(root)) ? undefined : "the repository's own Node is missing";
}

/** The Node that the npm package `node` brings. */
export function pinnedNode(root) {
  const binary = process.platform === "win32" ? "node.exe" : "node";
  return join(root, "node_modules", "node", "bin", binary);
}

function packagesOf(lockFile) {
  return existsSync(lockFile) ? JSON.parse(readFileSync(lockFile, "utf8")).packages : undefined;
}
