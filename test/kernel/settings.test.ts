/** Where settings come from, who wins, and how one is told what is wrong. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { listSettings, readSettings, type SettingSources } from "../../src/kernel/settings.ts";
import { scratchFolder } from "../repo/program.ts";

interface Given extends Partial<SettingSources> {
  readonly files?: Readonly<Record<string, string>>;
}

async function read({ files = {}, environment = {}, ...more }: Given) {
  const folder = scratchFolder();
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return readSettings({ folder, environment, ...more });
}

async function problems(given: Given): Promise<readonly string[]> {
  return read(given).then(
    () => [],
    (error: { problems: readonly string[] }) => error.problems,
  );
}

describe("settings", () => {
  test("[K28] nobody has said anything", async () => {
    expect(listSettings(await read({}))).toEqual([
      { name: "directory", value: ".millrace", origin: "default" },
      { name: "app", value: undefined, origin: "default" },
      { name: "extensions", value: undefined, origin: "default" },
      { name: "agent", value: undefined, origin: "default" },
      { name: "durability", value: "power", origin: "default" },
      { name: "clearance", value: undefined, origin: "default" },
      { name: "requestTimeoutMs", value: undefined, origin: "default" },
      { name: "receiptsKeepMs", value: undefined, origin: "default" },
      { name: "log", value: "warn", origin: "default" },
    ]);
  });

  test("[K28] code comes before the environment, that before the file, each setting by itself", async () => {
    const settings = await read({
      files: { "millrace.config.yaml": "app: file.ts\nlog: info\nrequestTimeoutMs: 5000\nextensions: ./ext\n" },
      environment: {
        MILLRACE_APP: "variable.ts",
        MILLRACE_LOG: "debug",
        MILLRACE_RECEIPTS_KEEP_MS: "3600000",
        MILLRACE_AGENT: "",
        MILLRACE_DIR: "elsewhere",
      },
      code: { app: "word.ts", agent: undefined },
    });
    expect(settings).toEqual({
      directory: { value: "elsewhere", origin: "MILLRACE_DIR" },
      app: { value: "word.ts", origin: "code" },
      extensions: { value: "./ext", origin: "millrace.config.yaml:4:13" },
      agent: { value: undefined, origin: "default" },
      durability: { value: "power", origin: "default" },
      clearance: { value: undefined, origin: "default" },
      requestTimeoutMs: { value: 5000, origin: "millrace.config.yaml:3:19" },
      receiptsKeepMs: { value: 3_600_000, origin: "MILLRACE_RECEIPTS_KEEP_MS" },
      log: { value: "debug", origin: "MILLRACE_LOG" },
    });
  });

  test("[K28] the file may be JSON, JavaScript or TypeScript", async () => {
    const json = await read({ files: { "millrace.config.json": '{ "log": "error" }' } });
    expect(json.log).toEqual({ value: "error", origin: "millrace.config.json:1:10" });
    const typed = "const level: string = 'error';\nexport default { log: level, requestTimeoutMs: 1 + 1 };\n";
    const module = await read({ files: { "millrace.config.ts": typed } });
    expect(module.log).toEqual({ value: "error", origin: "millrace.config.ts" });
    expect(module.requestTimeoutMs.value).toBe(2);
  });

  test("[K28] everything that is wrong is told together, with its place", async () => {
    const found = await problems({
      files: { "millrace.config.yaml": "log: loud\ncolour: red\nrequestTimeoutMs: soon\n" },
      environment: { MILLRACE_DURABILITY: "none" },
      code: { requestTimeoutMs: -1 },
    });
    expect(found).toEqual([
      'millrace.config.yaml:1:6: log: must be one of debug, info, warn, error, got "loud"',
      expect.stringMatching(/^millrace\.config\.yaml:2:1: colour: is not known here; known are app, extensions/),
      expect.stringMatching(/^millrace\.config\.yaml:3:19: requestTimeoutMs: must be a whole number from 1 to/),
      'MILLRACE_DURABILITY: durability must be one of power, process, got "none"',
      expect.stringMatching(/^code: requestTimeoutMs must be a whole number from 1 to \d+, got -1/),
    ]);
    const directory = await problems({ files: { "millrace.config.yaml": "directory: x\n" } });
    expect(directory).toEqual([expect.stringMatching(/directory: is not known here/)]);
    const two = await problems({ files: { "millrace.config.yaml": "", "millrace.config.ts": "" } });
    expect(two).toEqual(["there are millrace.config.yaml and millrace.config.ts; keep one of them"]);
    const none = await problems({ files: { "millrace.config.js": "export const log = 1;\n" } });
    expect(none).toEqual([expect.stringMatching(/^millrace\.config\.js: must be a mapping/)]);
  });
});
