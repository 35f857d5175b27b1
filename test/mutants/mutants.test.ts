/**
 * The list of planted bugs is up to date, and the script that plants them tells a caught one from one that survived.
 */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ROOT, runProgram } from "../repo/program.ts";
import { MUTANTS } from "./list.ts";
import { type Mutant, plantIn } from "./mutant.ts";
import { failingBefore, runMutant } from "./mutant-run.ts";
import { plantedTree, removeTree } from "./planted-tree.ts";

const SAMPLE: Mutant = {
  name: "sample",
  breaks: "M1",
  file: "src/message/near-word.ts",
  find: "export function",
  replace: "export function",
  tests: ["test/message/topic.test.ts"],
};

/** Ids of rules of the spec, and of its promises. */
const RULES = new Set(
  readdirSync(join(ROOT, "docs"), { recursive: true, encoding: "utf8" })
    .filter((name) => /^(SPEC|spec[/\\].*)\.md$/.test(name))
    .flatMap((name) => [...readFileSync(join(ROOT, "docs", name), "utf8").matchAll(/^- \*\*([A-Z]\d+)\*\*/gm)])
    .map(([, id]) => id as string),
);
/** Each room of `src/` has at least this many. */
const ROOM_MIN = 3;
/** Tested in a browser, which does not load a planted tree. */
const IN_BROWSERS = ["react"];
const ROOMS = readdirSync(join(ROOT, "src"), { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && !IN_BROWSERS.includes(entry.name))
  .map(({ name }) => name);
const PROMISES = [...readFileSync(join(ROOT, "docs", "SPEC.md"), "utf8").matchAll(/^- \*\*([A-Z]\d+)\*\*/gm)].map(
  ([, id]) => id as string,
);

describe("the list of planted bugs", () => {
  test.for(MUTANTS)("[K116] $name stands in its file once, and its tests are there", (mutant) => {
    const path = join(ROOT, mutant.file);
    expect(existsSync(path), `${mutant.file} is gone; update the list in test/mutants/`).toBe(true);
    const text = readFileSync(path, "utf8");
    expect(plantIn(text, mutant)).not.toBe(text);
    expect(mutant.tests.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });

  test("[K115] the list has at least 40 mutants with unique names, two for each promise", () => {
    expect(MUTANTS.length).toBeGreaterThanOrEqual(40);
    expect(new Set(MUTANTS.map(({ name }) => name)).size).toBe(MUTANTS.length);
    const count = (id: string) => MUTANTS.filter(({ breaks }) => breaks === id).length;
    expect(PROMISES.filter((id) => count(id) < 2)).toEqual([]);
  });

  test("[K115] each family of rules has at least two", () => {
    const text = readFileSync(join(ROOT, "docs", "SPEC.md"), "utf8");
    const families = [...text.matchAll(/^\| ([A-Z](?:, [A-Z])*) +\|/gm)].flatMap(([, ids]) =>
      (ids as string).split(", "),
    );
    expect(families).toContain("P");
    const count = (family: string) => MUTANTS.filter(({ breaks }) => breaks.startsWith(family)).length;
    expect(families.filter((family) => count(family) < 2)).toEqual([]);
  });

  test(`[K115] each breaks a rule of the spec, and each room has at least ${ROOM_MIN}`, () => {
    expect(MUTANTS.filter(({ breaks }) => !RULES.has(breaks)).map(({ name }) => name)).toEqual([]);
    const inRoom = (room: string) => MUTANTS.filter(({ file }) => file.startsWith(`src/${room}/`)).length;
    expect(ROOMS.filter((room) => inRoom(room) < ROOM_MIN)).toEqual([]);
  });

  test("[K115] each file of `src/work` has one, except lists of errors", () => {
    const files = readdirSync(join(ROOT, "src", "work")).filter((name) => name !== "work-error.ts");
    expect(files.filter((name) => !MUTANTS.some(({ file }) => file === `src/work/${name}`))).toEqual([]);
  });

  test("[K116] a text that is gone, or stands there twice, is an error that says to update the list", () => {
    const mutant = { ...SAMPLE, find: "b" };
    expect(() => plantIn("a c", mutant)).toThrow(/its text "b" is no longer in .*; update the list in test\/mutants\//);
    expect(() => plantIn("a b b", mutant)).toThrow(/its text "b" stands 2 times in .*; update the list/);
    expect(plantIn("a b $& c", { ...mutant, replace: "$&$1" })).toBe("a $&$1 $& c");
  });

  test("[K118] neither src/ nor the package has a planted bug or a hook for one", () => {
    const files = ["src", "dist"].flatMap((folder) =>
      readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" }).map((name) => join(ROOT, folder, name)),
    );
    const scripts = files.filter((file) => /\.(ts|js)$/.test(file) && statSync(file).isFile());
    expect(scripts.length).toBeGreaterThan(100);
    expect(scripts.filter((file) => /planted|plantedBug|mutant/i.test(readFileSync(file, "utf8")))).toEqual([]);
  });
});

describe("planting", () => {
  const file = "src/message/topic.ts";
  const text = readFileSync(join(ROOT, file), "utf8");
  const [exported = ""] = text.match(/export function \w+\([^)]*\)[^{]*\{\n/) ?? [];
  const wrong: Mutant = { ...SAMPLE, file, find: exported, replace: `${exported}  throw new Error("planted");\n` };

  test("[K117] the work tree is not changed, and the tree goes away", () => {
    const before = statSync(join(ROOT, file));
    const tree = plantedTree(wrong);
    expect(readFileSync(join(tree, file), "utf8")).toContain('throw new Error("planted")');
    expect(readFileSync(join(ROOT, file), "utf8")).toBe(text);
    expect(statSync(join(ROOT, file)).mtimeMs).toBe(before.mtimeMs);
    removeTree(tree);
    expect(existsSync(tree)).toBe(false);
  });

  test("[K115] a bug that a test notices is caught", async () => {
    expect(await runMutant(wrong)).toMatchObject({ kind: "caught" });
  });

  test("[K115] a change that no test notices has survived", async () => {
    expect(await runMutant({ ...wrong, replace: `/* the same */ ${exported}` })).toEqual({ kind: "survived" });
  });

  test("[K115] a change that cannot be loaded is not caught, and neither is one without tests", async () => {
    expect(await runMutant({ ...wrong, replace: `${exported} ) {{{` })).toMatchObject({ kind: "broken" });
    expect(await runMutant({ ...wrong, tests: ["test/message/arbitraries.ts"] })).toMatchObject({ kind: "broken" });
  });

  test("[K115] a test file that passes without a bug counts, and one that does not is named", async () => {
    expect([...(await failingBefore(["test/message/topic.test.ts"]))]).toEqual([]);
    const failing = await failingBefore(["test/message/arbitraries.ts"]);
    expect([...failing.keys()]).toEqual(["test/message/arbitraries.ts"]);
  });

  test("[K115] a bug that makes a process spin ends with the processor time that it may take, and is not caught", async () => {
    const spinning = { ...wrong, replace: `${exported}  for (;;);\n` };
    expect(await runMutant(spinning, 10)).toMatchObject({ kind: "broken" });
  });

  test("[K115] a name that no bug has is an error", async () => {
    const { code, stderr } = await runProgram(process.execPath, ["test/mutants/run.ts", "no-such-bug"]);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining("--list lists them") });
  });
});
