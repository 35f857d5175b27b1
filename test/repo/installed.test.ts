/** The set-up script installs only if the installed packages differ from the lock file. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { describe, expect, test } from "vitest";
import {
  neededPaths,
  pinnedNode,
  SQLITE_VERSION_MIN,
  selection,
  suffices,
  whyInstall,
} from "../../scripts/installed.mjs";
import * as limits from "../../src/limits.ts";
import { ROOT, scratchFolder } from "./program.ts";

const LOCK = {
  "": { name: "clone", dependencies: { a: "1" }, workspaces: ["tools/check", "tools/node"] },
  "node_modules/node": { version: "24.1.0" },
  "node_modules/a": { version: "1.0.0", dependencies: { "@scope/b": "2" } },
  "node_modules/a/node_modules/@scope/b": { version: "2.0.0" },
  "node_modules/linter": { version: "3.0.0" },
  "node_modules/tools-check": { resolved: "tools/check", link: true },
  "tools/check": { name: "tools-check", devDependencies: { linter: "3" } },
  "tools/node": { name: "tools-node", devDependencies: { node: "24" } },
  "node_modules/for-another-platform": { version: "1.0.0", optional: true },
};

/** The bytes of a package without those nested in it; undefined if it is not installed. */
function bytesIn(folder: string): number | undefined {
  if (!existsSync(folder)) return undefined;
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter((file) => !relative(folder, file).split(sep).includes("node_modules"))
    .reduce((sum, file) => sum + statSync(file).size, 0);
}

/** A clone with a complete installation. */
function setup() {
  const root = scratchFolder();
  const write = (path: string, content: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  };
  const { "": _, "node_modules/for-another-platform": __, ...installed } = LOCK;
  const record = (packages: object) => write("node_modules/.package-lock.json", JSON.stringify({ packages }));
  write("package-lock.json", JSON.stringify({ packages: LOCK }));
  record(installed);
  mkdirSync(dirname(pinnedNode(root)), { recursive: true });
  writeFileSync(pinnedNode(root), "");
  return { root, installed, record, remove: (path: string) => rmSync(join(root, path), { recursive: true }) };
}

describe("the set-up script", () => {
  test("[K3] a complete installation is left alone", () => {
    const { root, installed, record } = setup();
    expect(whyInstall(root)).toBeUndefined();
    record({ ...installed, "node_modules/left-over": { version: "1.0.0" } });
    expect(whyInstall(root)).toBeUndefined();
  });

  test("[K3] a fresh clone is installed", () => {
    const { root, remove } = setup();
    remove("node_modules");
    expect(whyInstall(root)).toBe("node_modules is missing");
  });

  test("[K3] an interrupted installation is done again", () => {
    const { root, remove } = setup();
    remove("node_modules/.package-lock.json");
    expect(whyInstall(root)).toBe("the last installation did not finish");
  });

  test("[K3] another version than the lock file's is replaced", () => {
    const { root, installed, record } = setup();
    record({ ...installed, "node_modules/a/node_modules/@scope/b": { version: "1.9.0" } });
    expect(whyInstall(root)).toBe("@scope/b is 1.9.0, the lock file says 2.0.0");
    const { "node_modules/a": _, ...without } = installed;
    record(without);
    expect(whyInstall(root)).toBe("a is missing, the lock file says 1.0.0");
  });

  test("[K3] a Node that its install script did not leave is fetched again", () => {
    const { root } = setup();
    rmSync(pinnedNode(root));
    expect(whyInstall(root)).toBe("the repository's own Node is missing");
  });
});

const NEW = { node: "24.21.0", sqlite: "3.53.4" };
const OLD = { node: "20.20.2" };

describe("packages that npm start installs", () => {
  test("[K140] a Node of version 24 or later with a recent SQLite suffices", () => {
    expect(suffices(NEW)).toBe(true);
    expect(suffices({ node: "26.0.0", sqlite: "4.0.0" })).toBe(true);
    for (const versions of [OLD, { node: "24.0.0", sqlite: "3.49.1" }, { node: "24.9.0", sqlite: "3.51.2" }])
      expect(suffices(versions)).toBe(false);
    expect(SQLITE_VERSION_MIN).toBe(limits.SQLITE_VERSION_MIN);
  });

  test("[K140] tools of the tests and a pinned Node are not needed where the Node of the machine suffices", () => {
    const { root, installed, record } = setup();
    const { "node_modules/linter": _, "node_modules/node": __, ...light } = installed;
    record(light);
    rmSync(pinnedNode(root));
    expect(whyInstall(root, "start", NEW)).toBeUndefined();
    expect(whyInstall(root, "start", OLD)).toBe("node is missing, the lock file says 24.1.0");
    expect(whyInstall(root, undefined, NEW)).toBe("node is missing, the lock file says 24.1.0");
    record({ ...light, "node_modules/node": { version: "24.1.0" } });
    expect(whyInstall(root, "start", OLD)).toBe("the repository's own Node is missing");
    expect(whyInstall(root, undefined, NEW)).toBe("linter is missing, the lock file says 3.0.0");
  });

  test("[K140] packages below those of the root are needed", () => {
    const { root, installed, record } = setup();
    const { "node_modules/a/node_modules/@scope/b": _, ...without } = installed;
    record(without);
    expect(whyInstall(root, "start", NEW)).toBe("@scope/b is missing, the lock file says 2.0.0");
  });

  test("[K140] npm is asked for the packages of the root alone, with a pinned Node, or for all", () => {
    expect(selection("start", NEW)).toEqual(["--workspaces=false"]);
    expect(selection("start", OLD)).toEqual(["--workspace=tools/node", "--include-workspace-root"]);
    expect(selection(undefined, NEW)).toEqual([]);
  });

  test("[K301] they take less than 100 MB on a machine with a recent Node", () => {
    const { packages } = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8"));
    const folders = [...neededPaths(packages, "start", NEW)].filter((path) => path !== "");
    // Optional packages of other platforms are not installed.
    const bytes = folders.map((path) => bytesIn(join(ROOT, path))).filter((size) => size !== undefined);
    expect(bytes.length).toBeGreaterThan(10);
    expect(bytes.reduce((sum, size) => sum + size, 0)).toBeLessThan(100_000_000);
  });

  test("[K141] linters, runtimes and test tools are no dependencies of the root", () => {
    const read = (path: string) => JSON.parse(readFileSync(join(ROOT, path), "utf8"));
    const { dependencies, devDependencies } = read("package.json");
    expect(Object.keys({ ...dependencies, ...devDependencies }).sort()).toEqual([
      ...[
        "@hono/node-server",
        "@modelcontextprotocol/server",
        "@types/node",
        "@types/react",
        "@types/ws",
        "croner",
        "hono",
        "rolldown",
        "typescript",
        "ws",
        "yaml",
      ],
    ]);
    expect(Object.keys(read("tools/node/package.json").devDependencies)).toEqual(["node"]);
  });
});
