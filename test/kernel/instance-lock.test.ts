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

test("[K69] a kernel whose directory was removed and made again by another one leaves the pid file of that one", () => {
  const folder = mkdtempSync(join(tmpdir(), "millrace-lock-"));
  const lock = InstanceLock.take(dataDirectory({ MILLRACE_DIR: folder }));
  writeFileSync(join(folder, "kernel.pid"), `${process.pid + 1}\n`);
  lock[Symbol.dispose]();
  expect(readFileSync(join(folder, "kernel.pid"), "utf8")).toBe(`${process.pid + 1}\n`);
});
