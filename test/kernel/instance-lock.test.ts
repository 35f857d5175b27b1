import { existsSync, lstatSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { dataDirectory } from "../../src/kernel/data-directory.ts";
import { InstanceLock } from "../../src/kernel/instance-lock.ts";

test("[K69] kernel.pid is a new file: a link under that name is replaced, and its target unchanged", () => {
  const folder = mkdtempSync(join(tmpdir(), "millrace-lock-"));
  const target = join(folder, "target");
  writeFileSync(target, "as it was");
  symlinkSync(target, join(folder, "kernel.pid"));
  const lock = InstanceLock.take(dataDirectory({ MILLRACE_DIR: folder }));
  expect(readFileSync(target, "utf8")).toBe("as it was");
  expect(lstatSync(join(folder, "kernel.pid")).isFile()).toBe(true);
  expect(readFileSync(join(folder, "kernel.pid"), "utf8")).toBe(`${process.pid}\n`);
  lock[Symbol.dispose]();
  expect(existsSync(join(folder, "kernel.pid"))).toBe(false);
});
