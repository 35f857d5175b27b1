/** A file system of a few megabytes, for tests that fill it. */
import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll } from "vitest";
import { temporaryDirectory } from "./shim.ts";

/** The directory of a fresh tmpfs, or undefined, with the reason printed. */
export function mountSmallDisk(bytes: number): string | undefined {
  if (process.platform !== "linux" || process.getuid?.() !== 0) {
    console.log("full disk test skipped: mounting a small tmpfs needs root on Linux");
    return undefined;
  }
  const directory = join(temporaryDirectory("full"), "disk");
  mkdirSync(directory);
  const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${bytes}`, "tmpfs", directory], {
    encoding: "utf8",
  });
  if (mounted.status !== 0) {
    console.log(`full disk test skipped: mount is not permitted here (${(mounted.stderr ?? "").trim()})`);
    return undefined;
  }
  afterAll(() => {
    spawnSync("umount", [directory]);
  });
  return directory;
}
