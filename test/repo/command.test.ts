/** The `millrace` command as a user meets it: a real process, real files, what it prints and how it ends. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { type Ended, ROOT, runProgram, scratchFolder } from "./program.ts";

const MAIN = join(ROOT, "src", "cli", "main.ts");

/** Without it every process would strip the types of the whole store again: 0.5 s instead of 0.14 s. */
const compiled = mkdtempSync(join(tmpdir(), "millrace-compiled-"));
afterAll(() => rmSync(compiled, { recursive: true, force: true }));

/** A working directory, and the command in it. */
function setup() {
  const cwd = scratchFolder();
  const millrace = (args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> =>
    runProgram(process.execPath, [MAIN, ...args], { cwd, env: { NODE_COMPILE_CACHE: compiled, ...env } });
  return { cwd, millrace };
}

/** Starts the command and kills it as soon as it has said that much. */
async function killAfter(cwd: string, said: string): Promise<void> {
  const child = spawn(process.execPath, [MAIN, "start"], { cwd, stdio: ["ignore", "pipe", "ignore"] });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => {
    output += chunk;
    if (output.includes(said)) child.kill("SIGKILL");
  });
  await once(child, "close");
}

function accountOf({ stdout }: Ended) {
  const found = stdout.match(
    /account +started for the (\w+) time; (\d+) events published, (\d+) handled(?:, (\d+) held.*)?: (\d+) lost, (\d+) handled twice/,
  );
  expect(found, stdout).not.toBeNull();
  const [, times, ...numbers] = found!;
  const [published, handled, held, lost, twice] = numbers.map((text) => Number(text ?? 0));
  return { times, published, handled, held, lost, twice };
}

describe("start", () => {
  test("[K14] says version, runtime, store and time, what it did and what is not built", async () => {
    const { millrace } = setup();
    const ended = await millrace(["start"]);
    expect(ended).toMatchObject({ code: 0, stderr: "" });
    const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    const [first] = ended.stdout.split("\n");
    const major = process.versions.node.split(".")[0];
    const store = join(".millrace", "kernel.db");
    expect(first?.replace(/\d+ ms$/, "N ms")).toBe(
      `millrace ${version} · node ${major} · store ${store} (sqlite, durability power) · ready in N ms`,
    );
    expect(ended.stdout).toMatch(/built .*message, host, store/);
    expect(ended.stdout).toMatch(/There is no daemon yet/);
  });

  test("[K14] the account goes on from start to start", async () => {
    const { millrace } = setup();
    const sum = { held: 0, lost: 0, twice: 0 };
    expect(accountOf(await millrace(["start"]))).toEqual({ times: "first", published: 4, handled: 4, ...sum });
    expect(accountOf(await millrace(["start"]))).toEqual({ times: "2nd", published: 8, handled: 8, ...sum });
    expect(accountOf(await millrace(["start"]))).toEqual({ times: "3rd", published: 12, handled: 12, ...sum });
  });

  test("[K14] the account adds up after starts that were killed", async () => {
    const { cwd, millrace } = setup();
    for (const said of ["ready", "ready", "self-check", "ready"]) await killAfter(cwd, said);
    const ended = await millrace(["start"]);
    const account = accountOf(ended);
    expect(account).toMatchObject({ lost: 0, twice: 0 });
    expect(account.handled! + account.held!).toBe(account.published);
    expect(ended.code).toBe(0);
    expect((await millrace(["verify"])).code).toBe(0);
  });

  test("[K14] the account adds up after several starts at once", async () => {
    const { millrace } = setup();
    const ended = await Promise.all([1, 2, 3].map(() => millrace(["start"])));
    expect(ended.map(({ code, stderr }) => ({ code, stderr }))).toEqual(Array(3).fill({ code: 0, stderr: "" }));
    expect(accountOf(await millrace(["start"]))).toMatchObject({ times: "4th", published: 16, handled: 16, lost: 0 });
  });
});

describe("files", () => {
  test("[K10] what is made is its owner's alone", async () => {
    const { cwd, millrace } = setup();
    await millrace(["start"]);
    expect(statSync(join(cwd, ".millrace")).mode & 0o777).toBe(0o700);
    for (const name of readdirSync(join(cwd, ".millrace"))) {
      expect(statSync(join(cwd, ".millrace", name)).mode & 0o777, name).toBe(0o600);
    }
  });

  test("[K10] MILLRACE_DIR says where they are; empty, it says nothing", async () => {
    const { cwd, millrace } = setup();
    await millrace(["start"], { MILLRACE_DIR: join("deep", "elsewhere") });
    expect(existsSync(join(cwd, "deep", "elsewhere", "kernel.db"))).toBe(true);
    expect(existsSync(join(cwd, ".millrace"))).toBe(false);
    await millrace(["start"], { MILLRACE_DIR: "" });
    expect(existsSync(join(cwd, ".millrace", "kernel.db"))).toBe(true);
  });

  test("[K10] a directory that others may enter is complained about and left as it is", async () => {
    const { cwd, millrace } = setup();
    mkdirSync(join(cwd, ".millrace"));
    chmodSync(join(cwd, ".millrace"), 0o755);
    const ended = await millrace(["start"]);
    expect(ended.stderr).toBe("millrace: .millrace is open to others (mode 755); run: chmod 700 .millrace\n");
    expect(ended.code).toBe(0);
    expect(statSync(join(cwd, ".millrace")).mode & 0o777).toBe(0o755);
    expect(await millrace(["doctor"])).toMatchObject({ code: 1, stdout: expect.stringMatching(/wrong +directory/) });
  });
});

describe("calls", () => {
  const wrong: readonly (readonly [args: string[], complaint: RegExp])[] = [
    [["frobnicate"], /^millrace: there is no verb "frobnicate"; "millrace --help" lists them\n$/],
    [["send", "Greeter.Hello"], /^millrace: "send" is not built yet: it comes with the kernel; .*\n$/],
    [["start", "now"], /^millrace: one word too many: "now"; usage: millrace start\n$/],
    [["ls", "events", "--bogus"], /^millrace: Unknown option '--bogus'; usage: millrace ls events .*\n$/],
    [["ls", "events", "--limit", "0"], /^millrace: --limit is a whole number from 1 to 10000, not "0"\n$/],
    [
      ["ls", "events", "--status", "odd"],
      /^millrace: --status is one of pending, processing, done, failed, not "odd"\n$/,
    ],
    [["ls", "actors"], /^millrace: only events can be listed so far: "millrace ls events"\n$/],
    [["--nonsense"], /^millrace: there is no verb "--nonsense"; .*\n$/],
  ];
  test.for(wrong)("[K11] [K12] a wrong call ends with 2 and one line: %j", async ([args, complaint]) => {
    const { cwd, millrace } = setup();
    const ended = await millrace(args);
    expect(ended).toMatchObject({ code: 2, stdout: "" });
    expect(ended.stderr).toMatch(complaint);
    expect(readdirSync(cwd)).toEqual([]);
  });

  test("[K11] what fails ends with 1 and one line that says what to do", async () => {
    const { cwd, millrace } = setup();
    expect(await millrace(["verify"])).toEqual({
      code: 1,
      stdout: "",
      stderr: 'millrace: there is no .millrace/kernel.db; run "millrace start" once, or set MILLRACE_DIR\n',
    });
    writeFileSync(join(cwd, "notes.txt"), "not a database, but long enough to be taken for one".repeat(10));
    const refused = await millrace(["verify", "notes.txt"]);
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toMatch(/^millrace: notes\.txt .*\n$/);
    const inTheWay = await millrace(["start"], { MILLRACE_DIR: "notes.txt" });
    expect(inTheWay).toMatchObject({ code: 1, stdout: "" });
    expect(inTheWay.stderr).toMatch(/^millrace: .*notes\.txt.*\n$/);
  });

  test("[K12] help and version", async () => {
    const { millrace } = setup();
    const help = await millrace(["--help"]);
    expect(help).toMatchObject({ code: 0, stderr: "" });
    for (const verb of ["start", "ls events", "verify", "doctor"]) expect(help.stdout).toContain(`  ${verb}`);
    expect(await millrace([])).toEqual({ ...help, code: 2 });
    expect((await millrace(["ls", "--help"])).stdout).toMatch(/^usage: millrace ls events/);
    expect((await millrace(["--version"])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });
});

describe("looking", () => {
  test("[K13] with --json every line is a value", async () => {
    const { millrace } = setup();
    await millrace(["start"]);
    const listed = await millrace(["ls", "events", "--json", "--limit", "3", "--status", "done"]);
    const rows = listed.stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(rows.map(({ id, topic }) => ({ id, topic }))).toEqual([
      { id: 4, topic: "millrace.started" },
      { id: 3, topic: "millrace.started" },
      { id: 2, topic: "millrace.started" },
    ]);
    expect(JSON.parse((await millrace(["verify", "--json"])).stdout)).toMatchObject({
      ok: true,
      rows: 4,
      problems: [],
    });
    expect(JSON.parse((await millrace(["doctor", "--json"])).stdout)).toMatchObject({ ok: true });
    expect((await millrace(["ls", "events", "--topic", "none"])).stdout).toBe("no events\n");
  });

  test("[K13] no colour in a pipe or under NO_COLOR", async () => {
    const { millrace } = setup();
    const colour = "\u001b[";
    expect((await millrace(["doctor"])).stdout).not.toContain(colour);
    expect((await millrace(["doctor"], { FORCE_COLOR: "1" })).stdout).toContain(colour);
    expect((await millrace(["doctor"], { NO_COLOR: "1" })).stdout).not.toContain(colour);
  });

  test("[K13] a reader that goes away early is not an error", async () => {
    const { cwd, millrace } = setup();
    await millrace(["start"]);
    const child = spawn(process.execPath, [MAIN, "ls", "events"], { cwd, stdio: ["ignore", "pipe", "pipe"] });
    let complaints = "";
    child.stderr.on("data", (chunk: Buffer) => {
      complaints += chunk;
    });
    child.stdout.destroy();
    const [code] = await once(child, "close");
    expect({ code, complaints }).toEqual({ code: 0, complaints: "" });
  });

  test("[K15] looking makes no file", async () => {
    const { cwd, millrace } = setup();
    for (const args of [["doctor"], ["verify"], ["ls", "events"]]) await millrace(args);
    expect(readdirSync(cwd)).toEqual([]);
  });

  test("[K15] looking works while others write", async () => {
    const { millrace } = setup();
    await millrace(["start"]);
    const [started, listed, verified] = await Promise.all([
      millrace(["start"]),
      millrace(["ls", "events"]),
      millrace(["verify"]),
    ]);
    expect([started, listed, verified].map(({ code, stderr }) => ({ code, stderr }))).toEqual(
      Array(3).fill({ code: 0, stderr: "" }),
    );
  });

  test("[K11] a damaged file is found by verify and by doctor", async () => {
    const { cwd, millrace } = setup();
    await millrace(["start"]);
    const file = join(cwd, ".millrace", "kernel.db");
    const bytes = readFileSync(file);
    const place = bytes.indexOf('{"start":1,"number":1}');
    expect(place).toBeGreaterThan(0);
    bytes.write("7", place + '{"start":1,"number":'.length);
    writeFileSync(file, bytes);
    expect(await millrace(["verify"])).toMatchObject({ code: 1, stdout: expect.stringContaining("damaged") });
    expect(await millrace(["doctor"])).toMatchObject({ code: 1, stdout: expect.stringMatching(/wrong +store/) });
  });
});
