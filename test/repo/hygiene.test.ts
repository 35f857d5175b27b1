/** Texts that must be neither in a tracked file nor in the lock file. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { unknownVariables } from "../../src/kernel/settings.ts";
import { ROOT } from "./program.ts";

/** Homes and workspaces of a machine; places that every machine has (/tmp, /usr) are no secret. */
const MACHINE_PATH = /(?<![\w.])\/(?:root|home|Users|work)\/[\w.-]+/;
const REGISTRY = /https?:\/\/[^\s"]*(?:registry|npmjs)[^\s"]*/;

function trackedTexts(): { file: string; text: string }[] {
  const files = execFileSync("git", ["ls-files", "-z"], { cwd: ROOT, encoding: "utf8" }).split("\0").filter(Boolean);
  return files
    .filter((file) => existsSync(join(ROOT, file)))
    .map((file) => ({ file, text: readFileSync(join(ROOT, file), "utf8") }));
}

function findings(pattern: RegExp): string[] {
  return trackedTexts().flatMap(({ file, text }) => {
    const found = text.match(pattern);
    return found ? [`${file}: ${found[0]}`] : [];
  });
}

const isClone = existsSync(join(ROOT, ".git"));

describe.skipIf(!isClone)(`tracked files${isClone ? "" : " (this is no clone)"}`, () => {
  test("[K5] no file holds a path of a contributor's machine", () => {
    expect(findings(MACHINE_PATH)).toEqual([]);
    const sample = ["", "home", "ada"].join("/");
    expect(`see ${sample}/notes`.match(MACHINE_PATH)?.[0]).toBe(sample);
  });

  test("[K5] none holds the address of a package registry", () => {
    expect(findings(REGISTRY)).toEqual([]);
  });

  test("[K57] none names a variable of ours that the product does not know", () => {
    // As it is used or quoted; in a sentence it may be a slip.
    const named = trackedTexts().flatMap(({ text }) => text.match(/\bMILLRACE_[A-Z_]*[A-Z](?=["`\]:=,}])/g) ?? []);
    expect(named.length).toBeGreaterThan(20);
    // The example of `unknownVariables` has a misspelt name.
    const known = named.filter((name) => name !== "MILLRACE_DURABLITY");
    expect(unknownVariables(Object.fromEntries(known.map((name) => [name, "1"])))).toEqual([]);
  });
});

describe("lock files", () => {
  test("[K5] packages are named by version and hash, not by where they were fetched", () => {
    for (const lockFile of ["package-lock.json", join("bench", "peers", "package-lock.json")]) {
      const { packages } = JSON.parse(readFileSync(join(ROOT, lockFile), "utf8"));
      // Folders of this repository (`tools/`) have neither version nor hash.
      const entries = Object.entries<{ resolved?: string; integrity?: string; link?: true }>(packages).filter(
        ([path, { link }]) => path.startsWith("node_modules/") && !link,
      );
      expect(entries.length).toBeGreaterThan(0);
      expect(entries.filter(([, { resolved }]) => resolved !== undefined)).toEqual([]);
      expect(entries.filter(([, { integrity }]) => integrity === undefined)).toEqual([]);
    }
  });
});
