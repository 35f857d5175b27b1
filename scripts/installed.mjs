// Whether the packages that are installed in a clone are those of its lock file. Plain JavaScript for Node 18 and later, like `setup.mjs`.
//
// `npm start` needs the packages of the root, and those of `tools/node` if the Node of the machine does not suffice. All other commands need
// every package. SPEC: K3, K140, K141.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** SQLite in Node: older versions can lose data, and the store refuses them. */
export const SQLITE_VERSION_MIN = "3.51.3";
const NODE_MAJOR_MIN = 24;

/** Whether a Node can run the repository, by `process.versions`. */
export function suffices({ node, sqlite = "0" }) {
  return Number.parseInt(node, 10) >= NODE_MAJOR_MIN && isAtLeast(sqlite, SQLITE_VERSION_MIN);
}

function isAtLeast(version, min) {
  const parts = version.split(".").map(Number);
  for (const [index, wanted] of min.split(".").map(Number).entries()) {
    const part = parts[index] ?? 0;
    if (part !== wanted) return part > wanted;
  }
  return true;
}

/** The npm arguments that choose the packages for a purpose: `start`, or everything. */
export function selection(purpose, versions) {
  if (purpose !== "start") return [];
  return suffices(versions) ? ["--workspaces=false"] : ["--workspace=tools/node", "--include-workspace-root"];
}

/** Why the dependencies in `root` must be installed, in a few words; undefined if they are those of the lock file. */
export function whyInstall(root, purpose, versions) {
  if (!existsSync(join(root, "node_modules"))) return "node_modules is missing";
  // npm writes this file last, so an installation that was interrupted has none.
  const installed = packagesOf(join(root, "node_modules", ".package-lock.json"));
  if (!installed) return "the last installation did not finish";
  const lock = packagesOf(join(root, "package-lock.json")) ?? {};
  for (const path of neededPaths(lock, purpose, versions)) {
    const { version, optional, link } = lock[path];
    if (link || !path.startsWith("node_modules/")) continue;
    const found = installed[path]?.version;
    // Optional packages are those of other platforms: they may be absent.
    if (found === version || (optional && found === undefined)) continue;
    const name = path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
    return `${name} is ${found ?? "missing"}, the lock file says ${version}`;
  }
  const needsNode = purpose !== "start" || !suffices(versions);
  return needsNode && !existsSync(pinnedNode(root)) ? "the repository's own Node is missing" : undefined;
}

/** Paths of the lock file that a purpose needs. */
export function neededPaths(lock, purpose, versions) {
  if (purpose !== "start") return Object.keys(lock);
  const needed = new Set();
  const waiting = suffices(versions) ? [""] : ["", "tools/node"];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (needed.has(path) || lock[path] === undefined) continue;
    needed.add(path);
    const { dependencies, devDependencies, optionalDependencies } = lock[path];
    // Only the projects of this repository have their devDependencies installed.
    const own = path.startsWith("node_modules/") ? {} : devDependencies;
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies, ...own }))
      waiting.push(resolved(lock, path, name));
  }
  return needed;
}

/** The path that a name leads to from a package: its own folder first, then those above. */
function resolved(lock, from, name) {
  for (let folder = from; ; ) {
    const path = folder === "" ? `node_modules/${name}` : `${folder}/node_modules/${name}`;
    if (lock[path] !== undefined || folder === "") return path;
    const above = folder.lastIndexOf("/node_modules/");
    folder = above < 0 ? "" : folder.slice(0, above);
  }
}

/** The Node that the npm package `node` brings. */
export function pinnedNode(root) {
  const binary = process.platform === "win32" ? "node.exe" : "node";
  return join(root, "node_modules", "node", "bin", binary);
}

function packagesOf(lockFile) {
  return existsSync(lockFile) ? JSON.parse(readFileSync(lockFile, "utf8")).packages : undefined;
}
