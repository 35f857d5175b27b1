/**
 * Version and folder of this package; the paths are the same from `src/` and `dist/`.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export function packageVersion(): string {
  return JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")).version;
}

export function packageFolder(): string {
  return fileURLToPath(new URL("../..", import.meta.url));
}
