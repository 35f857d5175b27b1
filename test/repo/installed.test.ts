/** When the set-up script installs: only if what is there is not what the lock file says. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { pinnedNode, whyInstall } from "../../scripts/installed.mjs";
import { scratchFolder } from "./program.ts";

const LOCK = {
  "": { name: "clone" },
  "node_modules/node": { version: "24.1.0" },
  "node_modules/a": { version: "1.0.0" },
  "node_modules/a/node_modules/@scope/b": { version: "2.0.0" },
  "node_modules/for-another-platform": { version: "1.0.0", optional: true },
};

/** A clone in which everything is installed. */
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
  test("[K3] a complete installation is left alone, whoever made it", () => {
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
