/** The pages that a reader may copy from. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../repo/program.ts";

export const PAGES: readonly string[] = [
  "README.md",
  ...readdirSync(join(ROOT, "docs"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => join("docs", name))
    .sort(),
];
