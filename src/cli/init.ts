/**
 * `millrace init`: creates a small running app in an empty directory. Overwrites no file. SPEC: K46.
 */

import { existsSync, readdirSync, realpathSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { makeFolder } from "../kernel/folder.ts";
import { MillraceError } from "../message/millrace-error.ts";
import { EXIT, type ExitCode, type Verb, type VerbCall } from "./verb.ts";
import { packageFolder, packageVersion } from "./version.ts";

export class DirectoryNotEmptyError extends MillraceError<"DIRECTORY_NOT_EMPTY"> {
  override readonly name = "DirectoryNotEmptyError";

  constructor(message: string, options?: ErrorOptions) {
    super("DIRECTORY_NOT_EMPTY", message, options);
  }
}

export const init: Verb = {
  name: "init",
  usage: "[directory]",
  summary: "make a small app in an empty directory",
  example: "millrace init my-app\ncd my-app && npm install && npx millrace dev app.ts",
  options: {},
  wordsMax: 1,
  run,
};

async function run({ words: [named = "."], terminal }: VerbCall): Promise<ExitCode> {
  const folder = resolve(named);
  if (existsSync(folder) && statSync(folder).isDirectory() && readdirSync(folder).some((name) => !name.startsWith(".")))
    throw new DirectoryNotEmptyError(`${named} is not empty; name a new directory: millrace init my-app`);
  makeFolder(folder, { mode: 0o777, advice: "name another one: millrace init my-app" });
  const made = files(folder);
  for (const [name, text] of Object.entries(made)) writeFileSync(join(folder, name), text);
  const enter = named === "." ? "" : `cd ${named} && `;
  terminal.line(`made ${named}: ${Object.keys(made).join(", ")}`);
  terminal.line(`next:  ${enter}npm install && npm test && npx millrace dev app.ts`);
  terminal.line(`then:  npx millrace send Greeter.Hello '{"name": "Ada"}'`);
  return EXIT.ok;
}

function files(folder: string): Record<string, string> {
  return {
    "package.json": packageJson(folder),
    "app.ts": APP,
    "app.test.ts": APP_TEST,
    "millrace.config.ts": CONFIG,
    "tsconfig.json": `${JSON.stringify({ compilerOptions: COMPILER_OPTIONS }, null, 2)}\n`,
    ".gitignore": "node_modules\n.millrace\n",
  };
}

/** Matches Node's type stripping: syntax that is not erased is an error in the editor, not at the start. */
const COMPILER_OPTIONS = {
  target: "esnext",
  module: "nodenext",
  types: ["node"],
  strict: true,
  noEmit: true,
  skipLibCheck: true,
  allowImportingTsExtensions: true,
  erasableSyntaxOnly: true,
  verbatimModuleSyntax: true,
};

/** The running version; in a clone, the clone itself. */
function dependency(folder: string): string {
  const here = packageFolder();
  if (basename(dirname(here)) === "node_modules") return `^${packageVersion()}`;
  return `file:${relative(realpathSync(folder), realpathSync(here)).replaceAll("\\", "/")}`;
}

function packageJson(folder: string): string {
  // Characters that npm allows in a name.
  const name =
    basename(folder)
      .toLowerCase()
      .replaceAll(/[^a-z0-9-]+/g, "-")
      .replaceAll(/^-+|-+$/g, "") || "app";
  const content = {
    name,
    private: true,
    type: "module",
    scripts: { dev: "millrace dev app.ts", start: "millrace start app.ts", test: "node --test", types: "tsc --noEmit" },
    dependencies: { millrace: dependency(folder) },
    // The command finds this Node beside the package if the one in the path is too old; `npx node` runs it.
    devDependencies: { "@types/node": "^24.0.0", node: "^24.0.0", typescript: "^7.0.0" },
    // Its install script fetches the binary of this platform; npm warns about scripts that are not listed here.
    allowScripts: { node: true },
  };
  return `${JSON.stringify(content, null, 2)}\n`;
}

const APP = `// A first app: a command, an event that it emits, a handler of that event, and a value derived from state.
import { app, on, type } from "millrace";

// Keeps computed values over a restart. Change it when code changes that a computed value's function calls.
export const version = "1";

export default app("greeter", ({ cell, computed, effect, event }) => {
  const greetings = cell<string[]>("greetings", []);
  const summary = computed("summary", () => \`\${greetings.get().length} greeted\`);
  const greeted = event("Greeter.Greeted", type<{ name: string }>());

  // Runs again whenever the summary has changed.
  effect(() => console.log(\`summary   \${summary.get()}\`));

  return {
    description: "says hello",
    commands: {
      "Greeter.Hello": ({ name }: { name: string }, tx) => {
        // The write, the event and the answer are one commit: all of it happens, or nothing, once.
        tx.update(greetings, (all) => [...all, name]);
        tx.emit(greeted, { name });
        return { text: \`Hello \${name}\` };
      },
    },
    queries: { "Greeter.Summary": () => summary.get() },
    on: { audit: on(greeted, (data) => console.log("audit    ", JSON.stringify(data)), { retry: 5 }) },
  };
});
`;

const APP_TEST = `// The app under test: a whole kernel in memory, on simulated time, that the test can kill. Run it with: npm test
import assert from "node:assert/strict";
import { test } from "node:test";
import { testKernel } from "millrace/testing";
import greeter from "./app.ts";

test("a greeting survives a crash, and a repeated one counts once", async () => {
  await using t = await testKernel(greeter);
  assert.deepEqual(await t.command("Greeter.Hello", { name: "Ada" }, { id: "first" }), { text: "Hello Ada" });
  await t.crash(); // kill -9, and a new process on the same disk
  await t.command("Greeter.Hello", { name: "Ada" }, { id: "first" }); // The client repeats it.
  assert.equal(await t.query("Greeter.Summary"), "1 greeted");
});
`;

const CONFIG = `// Settings of the kernel in this folder. Your editor lists them; "npx millrace doctor" shows their values and origins.
import type { Config } from "millrace/kernel";

export default { log: "info" } satisfies Config;
`;
