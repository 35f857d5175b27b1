/** How `npm test` finds the tests that run on Deno and Bun too. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { findPortableTests } from "../../scripts/portable-tests.ts";
import { ROOT, scratchFolder } from "./program.ts";

function setup(files: Readonly<Record<string, string>>) {
  const folder = scratchFolder();
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  const { files: found, problems } = findPortableTests(folder);
  return { found: found.map((path) => path.slice(folder.length + 1)), problems };
}

const PORTABLE = 'import { expect, test } from "#test";\n';
const NODE = 'import { readFileSync } from "node:fs";\n';
const VITEST = 'import {\n  expect,\n  test,\n} from "vitest";\n';

describe("portable tests", () => {
  test("[K8] a test that takes its tools from #test is portable, and so is one that calls a suite which does", () => {
    const { found, problems } = setup({
      "message/line.test.ts": PORTABLE,
      "store/memory.test.ts": 'import { suite } from "./suite.ts";\n',
      "store/sqlite.test.ts": `import { suite } from "./suite.ts";\n${NODE}`,
      "store/suite.ts": `${PORTABLE}import type { Stats } from "node:fs";\n`,
      "repo/clone.test.ts": VITEST,
    });
    expect(found).toEqual([join("message", "line.test.ts"), join("store", "memory.test.ts")]);
    expect(problems).toEqual([]);
  });

  test("[K8] a test that claims to be portable and needs Node, itself or further on, is a problem", () => {
    const { found, problems } = setup({
      "repo/a.test.ts": PORTABLE + NODE,
      "repo/b.test.ts": `${PORTABLE}import { x } from "./c.ts";\n`,
      "repo/c.ts": 'export { y } from "./d.ts";\n',
      "repo/d.ts": VITEST,
    });
    expect(found).toEqual([]);
    expect(problems).toEqual([
      expect.stringMatching(/^test\/repo\/a\.test\.ts imports "#test", but reaches "node:fs" in .*a\.test\.ts$/),
      expect.stringMatching(/^test\/repo\/b\.test\.ts imports "#test", but reaches "vitest" in .*d\.ts$/),
    ]);
  });

  test("[K8] a test of the core that runs on Node alone has to be named", () => {
    const { problems } = setup({ "bus/bus.test.ts": VITEST, "host/process-end.test.ts": VITEST + NODE });
    expect(problems).toEqual([expect.stringContaining("test/bus/bus.test.ts is a test of the core")]);
  });

  test("[K8] tests of this repository use no part that one runtime lacks", () => {
    const { files, problems } = findPortableTests(join(ROOT, "test"));
    expect(problems).toEqual([]);
    expect(files.length).toBeGreaterThan(15);
  });
});
