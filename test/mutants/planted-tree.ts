/**
 * A copy of the repository with a planted bug, in the system's temporary folder. Files are hard links where the file
 * system allows it; the file with the bug is a file of its own. The work tree is never changed.
 */
import {
  chmodSync,
  copyFileSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type Mutant, plantIn } from "./mutant.ts";

const ROOT = dirname(dirname(import.meta.dirname));

/** The files that tests of `src/` use. Installed packages are linked as a folder. */
const FOLDERS = ["bin", "docs", "examples", "scripts", "src", "test"];
const FILES = ["package.json", "package-lock.json", "tsconfig.json", "tsconfig.core.json", "vitest.config.ts"];

/** Makes the copy and gives its path; `removeTree` takes it away. */
export function plantedTree(mutant: Mutant, root: string = ROOT): string {
  const text = plantIn(readFileSync(join(root, mutant.file), "utf8"), mutant);
  const tree = healthyTree(root);
  const planted = join(tree, mutant.file);
  // Removed first: writing into the link would change the work tree.
  rmSync(planted);
  writeFileSync(planted, text);
  return tree;
}

/** A copy without a bug. */
export function healthyTree(root: string = ROOT): string {
  const tree = mkdtempSync(join(tmpdir(), "millrace-mutant-"));
  // Some tests run a program of the tree as another user.
  chmodSync(tree, 0o755);
  for (const folder of FOLDERS) linkFolder(join(root, folder), join(tree, folder));
  for (const file of FILES) linkFile(join(root, file), join(tree, file));
  symlinkSync(join(root, "node_modules"), join(tree, "node_modules"));
  return tree;
}

export function removeTree(tree: string): void {
  rmSync(tree, { recursive: true, force: true });
}

function linkFolder(from: string, to: string): void {
  mkdirSync(to);
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) linkFolder(source, target);
    else if (entry.isFile()) linkFile(source, target);
  }
}

function linkFile(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch {
    // Another file system, or one without hard links.
    copyFileSync(from, to);
  }
}
