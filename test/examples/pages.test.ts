/**
 * The pages of the documentation as a reader follows them: files are written, commands are run, and their output is
 * compared with the page.
 */
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ROOT } from "../repo/program.ts";
import { codeBlocks, isUnmarked } from "./code-block.ts";
import { PAGES } from "./documentation.ts";
import { exchangesOf, ShellSession } from "./shell-session.ts";
import { UserProject } from "./user-project.ts";

const pages = PAGES.map((page) => ({ page, blocks: codeBlocks(page, readFileSync(join(ROOT, page), "utf8")) }));
const followed = pages.filter(({ blocks }) => blocks.some(({ use }) => use.kind === "commands"));

let project: UserProject;
beforeAll(async () => {
  project = await UserProject.build();
  cpSync(join(ROOT, "examples", "back-office"), join(project.folder, "back-office"), { recursive: true });
});
afterAll(() => project?.[Symbol.dispose]());

describe("pages", () => {
  test("[K151] what looks like a command runs, or says why it does not", () => {
    const unmarked = pages.flatMap(({ blocks }) => blocks.filter(isUnmarked).map(({ place }) => place));
    expect(unmarked).toEqual([]);
    expect(isUnmarked(codeBlocks("page.md", "```\n$ rm -rf .\n```\n")[0]!)).toBe(true);
    expect(isUnmarked(codeBlocks("page.md", "```sh not-run: no\n$ rm -rf .\n```\n")[0]!)).toBe(false);
  });

  test.for(followed)("[K151] $page can be followed", async ({ page, blocks }) => {
    // The pages of the tutorial are read one after the other, in one directory.
    const isTutorial = page.startsWith(join("docs", "tutorial"));
    const folder = join(project.folder, isTutorial ? "tutorial" : page.replaceAll(/\W/g, "-"));
    mkdirSync(folder, { recursive: true });
    const app = join(project.folder, "back-office", "app.ts");
    await using session = new ShellSession(folder, join(project.packageFolder, "bin", "millrace.mjs"), app);
    for (const { place, code, use } of blocks) {
      if (use.kind === "file") {
        mkdirSync(dirname(join(folder, use.name)), { recursive: true });
        writeFileSync(join(folder, use.name), code);
      }
      if (use.kind !== "commands") continue;
      for (const exchange of exchangesOf(code)) {
        const { printed, matches } = await session.run(exchange);
        if (!matches) expect(printed, `${place}: ${exchange.command}`).toBe(exchange.expected);
      }
    }
    if (!isTutorial) return;
    // A kernel that is left running is in the way of the next page.
    const text = blocks.map(({ code }) => code).join("");
    expect(text.lastIndexOf("Syscall.Shutdown"), "where the page stops its kernel").toBeGreaterThan(
      text.lastIndexOf("$ npx millrace start"),
    );
    await session.kernelEnded();
  });

  test("[K7] outputs on a page are compared, except parts that differ between runs", async () => {
    const folder = join(project.folder, "compared");
    mkdirSync(folder);
    await using session = new ShellSession(folder, "none");
    const run = async (code: string) => (await session.run(exchangesOf(code)[0]!)).matches;
    expect(await run("$ echo took 12 ms\ntook 9.5 ms\n")).toBe(true);
    expect(await run("$ echo took 12 ms\ntook 12 s\n")).toBe(false);
    expect(await run("$ printf 'a\\nb\\nc\\n'\na\n…\nc\n")).toBe(true);
    expect(await run("$ printf 'a\\nb\\n'\na\n")).toBe(false);
    expect(await run("$ echo a.c\nabc\n")).toBe(false);
  });
});
