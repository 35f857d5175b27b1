/** The program of `docs/how-to/existing-app.md`, as a user would run it beside the built package. */
import { readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { codeBlocks, saidOutput } from "../../examples/code-block.ts";
import { UserProject } from "../../examples/user-project.ts";
import { ROOT, runProgram } from "../../repo/program.ts";
import { NO_POSTGRES, testServer } from "./server.ts";

const server = testServer();
const PAGE = join("docs", "how-to", "existing-app.md");

describe.skipIf(NO_POSTGRES !== undefined)("the page about existing apps", () => {
  test("[S271] [U90] its program publishes from plain pg, and handles each order once", async () => {
    const [block] = codeBlocks(PAGE, readFileSync(join(ROOT, PAGE), "utf8"));
    const code = block?.code ?? "";
    using project = await UserProject.build();
    symlinkSync(join(ROOT, "node_modules", "pg"), join(project.folder, "node_modules", "pg"));
    project.write("existing-app.ts", code);
    const env = { ...process.env, DATABASE_URL: server.url };
    const ended = await runProgram(process.execPath, ["existing-app.ts"], { cwd: project.folder, env });
    expect(ended).toEqual({ code: 0, stderr: "", stdout: saidOutput(code) });
  });
});
