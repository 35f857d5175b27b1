/** `dev`, `init` and `bench`: from an empty directory to an app that is started again when it changes. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, renameSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { Client } from "../../src/client/client.ts";
import { COMPILE_CACHE, MAIN } from "../kernel/kernel-process.ts";
import { ROOT } from "../repo/program.ts";
import { setup } from "./cli-setup.ts";

/** `millrace dev`, as a user at a terminal runs it. */
class Dev {
  readonly child: ChildProcess;
  output = "";
  readonly #looks: (() => void)[] = [];
  readonly #closed: Promise<unknown>;

  constructor(cwd: string, app: string) {
    const { MILLRACE_DIR, ...env } = process.env;
    const stdio = ["ignore", "pipe", "pipe"] as const;
    this.child = spawn(process.execPath, [MAIN, "dev", app], {
      cwd,
      env: { ...env, ...COMPILE_CACHE },
      stdio: [...stdio],
    });
    for (const stream of [this.child.stdout, this.child.stderr])
      stream?.on("data", (chunk) => {
        this.output += chunk;
        for (const look of this.#looks.splice(0)) look();
      });
    this.#closed = once(this.child, "close");
    onTestFinished(async () => {
      this.child.kill("SIGKILL");
      await this.gone();
    });
  }

  async said(pattern: RegExp): Promise<RegExpMatchArray> {
    for (;;) {
      const found = this.output.match(pattern);
      if (found) return found;
      if (this.child.exitCode !== null) throw new Error(`it ended: ${this.output}`);
      await Promise.race([new Promise<void>((look) => this.#looks.push(look)), this.#closed]);
    }
  }

  /** Resolves when the process and its children have closed their output. */
  async gone(): Promise<void> {
    await this.#closed;
  }
}

/** The app of `init`, with the package found in the sources. */
async function newApp() {
  const parts = setup();
  expect((await parts.millrace("init", "app")).code).toBe(0);
  const file = join(parts.cwd, "app", "app.ts");
  const text = readFileSync(file, "utf8")
    .replace('"millrace"', JSON.stringify(join(ROOT, "src", "index.ts")))
    .replace('"millrace/kernel"', JSON.stringify(join(ROOT, "src", "kernel", "index.ts")));
  writeFileSync(file, text);
  const ask = async (type: string) => {
    await using client = await Client.connect({ path: join(parts.cwd, ".millrace", "kernel.sock") });
    return await client.query(type, null);
  };
  return { ...parts, file, text, ask };
}

describe("init", () => {
  test("[K46] init creates a small app and overwrites no file", async () => {
    const { cwd, millrace } = setup();
    expect(await millrace("init", "app")).toMatchObject({ code: 0, stderr: "" });
    expect(readdirSync(join(cwd, "app")).sort()).toEqual([
      ...[".gitignore", "app.test.ts", "app.ts", "millrace.config.ts", "package.json", "tsconfig.json"],
    ]);
    const { name, type, dependencies } = JSON.parse(readFileSync(join(cwd, "app", "package.json"), "utf8"));
    expect({ name, type }).toEqual({ name: "app", type: "module" });
    // A clone made it, which the registry may not know.
    expect(dependencies.millrace).toMatch(/^file:/);
    expect(resolve(realpathSync(join(cwd, "app")), dependencies.millrace.slice("file:".length))).toBe(
      realpathSync(ROOT),
    );
    expect(await millrace("init", "app")).toEqual({
      ...{ code: 1, stdout: "", stderr: "millrace: app is not empty; name a new directory: millrace init my-app\n" },
    });
  });
});

describe("dev", () => {
  test("[K45] dev starts the app, and again when a file changes, with its state", async () => {
    const { cwd, file, text, millrace, ask } = await newApp();
    const dev = new Dev(cwd, join("app", "app.ts"));
    await dev.said(/socket .*pid \d+/);
    expect((await millrace("send", "Greeter.Hello", '{"name": "Ada"}')).stdout).toMatch(/Hello Ada/);
    writeFileSync(file, text.replace("greeted`", "people greeted`"));
    await dev.said(/app\.ts changed; starting again[\s\S]*socket .*pid \d+/);
    expect(await ask("Greeter.Summary")).toBe("1 people greeted");
    // Computed values are resumed if their code is the same, without a first call with `undefined`.
    for (const name of ["app.log", "state.json", "state.yaml"])
      writeFileSync(join(cwd, "app", name), "what an app writes is no reason");
    writeFileSync(join(cwd, "app", "notes.ts"), "");
    await dev.said(/notes\.ts changed; starting again[\s\S]*socket .*pid \d+/);
    expect(dev.output.split("notes.ts changed")[1]).not.toContain("0 people greeted");
    expect(dev.output).not.toMatch(/app\.log|state\./);
    for (const name of ["package.json", "manifest.yaml", "millrace.config.json"]) {
      writeFileSync(join(cwd, "app", name), "{}");
      await dev.said(new RegExp(`${name} changed; starting again[\\s\\S]*socket .*pid \\d+`));
    }
    dev.child.kill("SIGINT");
    await dev.gone();
    expect(dev.child.exitCode).toBe(0);
    expect(existsSync(join(cwd, ".millrace", "kernel.sock"))).toBe(false);
  });

  test("[K45] dev restarts for a file replaced by an editor, and for later writes to it", async () => {
    const { cwd, file, text } = await newApp();
    const dev = new Dev(cwd, join("app", "app.ts"));
    await dev.said(/socket .*pid \d+/);
    const replace = (content: string) => {
      writeFileSync(`${file}.new`, content);
      renameSync(`${file}.new`, file);
    };
    replace(`${text}\nconsole.log("the second");`);
    await dev.said(/the second[\s\S]*socket .*pid \d+/);
    writeFileSync(file, `${text}\nconsole.log("the third");`);
    await dev.said(/the third[\s\S]*socket .*pid \d+/);
    mkdirSync(join(cwd, "app", "parts"));
    await dev.said(/parts changed; starting again[\s\S]*the third[\s\S]*socket .*pid \d+/);
    writeFileSync(join(cwd, "app", "parts", "names.ts"), "export const name = 1;");
    await dev.said(/names\.ts changed; starting again/);
  });

  test("[K45] dev reports an app that does not start, and starts it again when it is fixed", async () => {
    const { cwd, file, text } = await newApp();
    writeFileSync(file, "export const nothing = 1;");
    const dev = new Dev(cwd, join("app", "app.ts"));
    await dev.said(/has no app; write: [\s\S]*the app ended \(1\); it starts again when a file changes/);
    writeFileSync(file, text);
    await dev.said(/socket .*pid \d+/);
  });

  test("[K160] a killed dev leaves no kernel behind", async () => {
    const { cwd, ask } = await newApp();
    const dev = new Dev(cwd, join("app", "app.ts"));
    await dev.said(/socket .*pid \d+/);
    dev.child.kill("SIGKILL");
    await dev.gone();
    await expect(ask("Greeter.Summary")).rejects.toMatchObject({ reason: "NOT_REACHABLE" });
  });
});

describe("bench", () => {
  test("[K47] bench prints numbers and leaves no file behind", async () => {
    const { cwd, millrace, json } = setup();
    expect((await millrace("bench", "--seconds", "1")).stdout).toMatch(/^events published +[\d,]+ \/s .*\n/);
    const [measured] = (await json("bench", "--seconds", "1")) as Record<string, number>[];
    for (const name of ["published", "handled", "commands", "oneCommandMs"])
      expect(measured?.[name]).toBeGreaterThan(0);
    expect(readdirSync(cwd)).toEqual([]);
  });
});
