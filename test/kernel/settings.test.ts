/** Sources of settings, their precedence, and reports of mistakes. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { systemHost } from "../../src/host/system-host.ts";
import { configuredOptions } from "../../src/kernel/configured-options.ts";
import { dataDirectory } from "../../src/kernel/data-directory.ts";
import { openStore } from "../../src/kernel/open-store.ts";
import {
  LIMIT_NAMES,
  listSettings,
  readSettings,
  type SettingName,
  type SettingSources,
  unknownVariables,
} from "../../src/kernel/settings.ts";
import type { Message } from "../../src/message/envelope.ts";
import { scratchFolder } from "../repo/program.ts";

interface Given extends Partial<SettingSources> {
  readonly files?: Readonly<Record<string, string>>;
}

async function read({ files = {}, environment = {}, ...more }: Given) {
  const folder = scratchFolder();
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return readSettings({ folder, environment, ...more });
}

/** The variable of a setting: `mailboxMax` is `MILLRACE_MAILBOX_MAX`. */
function variableOf(name: string): string {
  return `MILLRACE_${name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
}

async function problems(given: Given): Promise<readonly string[]> {
  return read(given).then(
    () => [],
    (error: { problems: readonly string[] }) => error.problems,
  );
}

describe("settings", () => {
  test("[K28] without any source all settings have their defaults", async () => {
    const settings = listSettings(await read({}));
    expect(settings.slice(10).filter(({ value, origin }) => value !== undefined || origin !== "default")).toEqual([]);
    expect(settings.slice(0, 10)).toEqual([
      { name: "directory", value: ".millrace", origin: "default" },
      { name: "store", value: undefined, origin: "default" },
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

  test("[K28] code comes before the environment, and that before the file, per setting", async () => {
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
    expect(settings).toMatchObject({
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

  test("[K28] [K56] limits, retention and lease of a kernel may be set by file and by variables", async () => {
    const folder = scratchFolder();
    const numbers = listSettings(await read({}))
      .map(({ name }) => name)
      .filter((name) => name !== "receiptsKeepMs" && /Max|Ms$|concurrency/.test(name));
    writeFileSync(join(folder, "millrace.config.yaml"), numbers.map((name, n) => `${name}: ${n + 1}\n`).join(""));
    const settings = await readSettings({ folder, environment: { MILLRACE_MAILBOX_MAX: "77" } });
    const directory = dataDirectory({ MILLRACE_DIR: folder });
    const { limits, retention, leaseMs } = await configuredOptions(settings, directory);
    const at = (name: string) => numbers.indexOf(name as SettingName) + 1;
    expect(limits).toEqual({
      ...Object.fromEntries(LIMIT_NAMES.map((name) => [name, at(name)])),
      mailboxMax: 77,
    });
    expect({ retention, leaseMs }).toEqual({
      retention: { maxAgeMs: at("retentionMaxAgeMs"), maxSettled: at("retentionMaxSettled") },
      leaseMs: at("leaseMs"),
    });
    const variables = Object.fromEntries(numbers.map((name) => [variableOf(name), "none"]));
    expect((await problems({ environment: variables })).length).toBe(numbers.length);
    const store = await openStore(systemHost(), join(folder, "kernel.db"), { payloadBytesMax: 3 });
    const message: Message = { kind: "event", type: "Test.Event", data: "xx", metadata: { id: "a", timestamp: 0 } };
    const entry = { message, topic: "t", source: "s", as: { status: "pending" as const } };
    expect(await store.append([entry])).toMatchObject({ reason: "too-large" });
    await store.close();
  });

  test("[K28] the settings file may be JSON, JavaScript or TypeScript", async () => {
    const json = await read({ files: { "millrace.config.json": '{ "log": "error" }' } });
    expect(json.log).toEqual({ value: "error", origin: "millrace.config.json:1:10" });
    const typed = "const level: string = 'error';\nexport default { log: level, requestTimeoutMs: 1 + 1 };\n";
    const module = await read({ files: { "millrace.config.ts": typed } });
    expect(module.log).toEqual({ value: "error", origin: "millrace.config.ts" });
    expect(module.requestTimeoutMs.value).toBe(2);
  });

  test("[K165] all problems of the settings are reported together, with their places", async () => {
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
      expect.stringMatching(/^--requestTimeoutMs: requestTimeoutMs must be a whole number from 1 to \d+, got -1/),
    ]);
    expect(await problems({ environment: { MILLRACE_MAILBOX_MAX: "lots" } })).toEqual([
      'MILLRACE_MAILBOX_MAX: mailboxMax must be a whole number of at least 1, got "lots"',
    ]);
    const directory = await problems({ files: { "millrace.config.yaml": "directory: x\n" } });
    expect(directory).toEqual([expect.stringMatching(/directory: is not known here/)]);
    const two = await problems({ files: { "millrace.config.yaml": "", "millrace.config.ts": "" } });
    expect(two).toEqual(["there are millrace.config.yaml and millrace.config.ts; keep one of them"]);
    const broken = await problems({
      environment: { MILLRACE_LOG: "loud" },
      files: { "millrace.config.mjs": 'throw new Error("no such variable");' },
    });
    expect(broken).toEqual([
      "millrace.config.mjs: cannot be read: no such variable",
      expect.stringMatching(/^MILLRACE_LOG: log must be one of/),
    ]);
    const none = await problems({ files: { "millrace.config.js": "export const log = 1;\n" } });
    expect(none).toEqual([expect.stringMatching(/^millrace\.config\.js: must be a mapping/)]);
  });

  test("[K165] an unknown name in the file gets the nearest known name as a suggestion", async () => {
    const found = await problems({ files: { "millrace.config.yaml": "mailboxMaks: 5\n" } });
    expect(found).toEqual(["millrace.config.yaml:1:1: mailboxMaks: is not known here; did you mean mailboxMax?"]);
  });

  test("[K57] unknown variables with our prefix are reported with the nearest known name", async () => {
    const known = listSettings(await read({})).map(({ name }) => variableOf(name === "directory" ? "dir" : name));
    const said = Object.fromEntries(
      [...known, "MILLRACE_FILE", "MILLRACE_PINNED_NODE", "MILL"].map((name) => [name, "1"]),
    );
    expect(unknownVariables(said)).toEqual([]);
    const prefix = "MILLRACE_";
    const misspelt = {
      [`${prefix}LGO`]: "1",
      [`${prefix}MAILBOX_MAKS`]: "1",
      [`${prefix}SHEEP`]: "1",
      [`${prefix}EMPTY`]: "",
    };
    expect(unknownVariables({ ...said, ...misspelt })).toEqual([
      "the variable MILLRACE_LGO is not known here; did you mean MILLRACE_LOG?",
      "the variable MILLRACE_MAILBOX_MAKS is not known here; did you mean MILLRACE_MAILBOX_MAX?",
      `the variable MILLRACE_SHEEP is not known here; known are ${[...known, "MILLRACE_FILE"].join(", ")}`,
    ]);
  });
});
