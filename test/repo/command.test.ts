/** The `millrace` command as a user meets it: a real process, real files, its output and its end. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { COMPILE_CACHE, KernelProcess, LEDGER_APP, MAIN } from "../kernel/kernel-process.ts";
import { type Ended, ROOT, runProgram, scratchFolder } from "./program.ts";

/** A working directory, and the command in it. */
function setup() {
  const cwd = scratchFolder();
  const millrace = (args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> =>
    runProgram(process.execPath, [MAIN, ...args], { cwd, env: { ...COMPILE_CACHE, ...env } });
  /** Runs a kernel until it has taken three commands, and stops it. */
  const leaveRows = async () => {
    const kernel = await KernelProcess.start(cwd);
    const client = await kernel.connect();
    for (const key of ["/a", "/b", "/c"]) await client.command("Memory.Set", { key, value: `value of ${key}` });
    await client.close();
    await kernel.stop();
  };
  return { cwd, millrace, leaveRows };
}

describe("start", () => {
  test("[K14] start prints version, runtime, store, time, active parts and the socket", async () => {
    const { cwd } = setup();
    const kernel = await KernelProcess.start(cwd, LEDGER_APP);
    const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    const [first, second, third] = kernel.output.split("\n");
    const major = process.versions.node.split(".")[0];
    const store = join(".millrace", "kernel.db");
    expect(first?.replace(/\d+ ms$/, "N ms")).toBe(
      `millrace ${version} · node ${major} · store ${store} (sqlite, durability power) · ready in N ms`,
    );
    expect(second).toMatch(/^ {2}routes \d+ {3}subscriptions 1 {3}actors \d+ {3}nodes 0 \(0 live\)$/);
    expect(third).toMatch(/^ {2}socket \.millrace\/kernel\.sock {3}pid \d+$/);
    expect(kernel.complaints).toBe("");
  });

  test.for(["SIGINT", "SIGTERM", "SIGHUP"] as const)(
    "[K156] %s ends a kernel gracefully, with exit code 0",
    async (signal) => {
      const { cwd } = setup();
      const kernel = await KernelProcess.start(cwd);
      kernel.signal(signal);
      expect(await kernel.ended()).toBe(0);
      expect(kernel.output).toMatch(/stopping: .*\nstopped\n$/);
      expect(readdirSync(join(cwd, ".millrace")).sort()).toEqual(["kernel.db", "kernel.lock"]);
    },
  );

  test("[K156] running work is finished first; a second signal ends at once", async () => {
    const { cwd } = setup();
    const kernel = await KernelProcess.start(cwd, LEDGER_APP);
    await using client = await kernel.connect();
    const held = client.command("Gate.Hold", null).catch(() => "never answered");
    await kernel.said(/holding/);
    kernel.signal("SIGTERM");
    await kernel.said(/stopping: work under way finishes first \(Gate\.Hold\); once more ends it at once\n/);
    kernel.signal("SIGTERM");
    expect(await kernel.ended()).toBe(130);
    expect(kernel.output).not.toMatch(/stopped/);
    expect(kernel.complaints).toBe(
      "millrace: ended at once: Gate.Hold did not finish; the next start continues from the journal\n",
    );
    await client.close();
    expect(await held).toBe("never answered");
  });

  test("[K156] a different second signal does not interrupt running work", async () => {
    const { cwd } = setup();
    const definition = JSON.stringify(join(ROOT, "src", "loop", "define-capability.ts"));
    writeFileSync(
      join(cwd, "app.mjs"),
      `import { capability } from ${definition};
       const handle = () => new Promise((done) => {
         process.once("SIGTERM", () => setImmediate(done, "done"));
         console.log("at work");
       });
       export default { work: capability({ description: "works", commands: { "Work.Do": { handle } } }) };`,
    );
    const kernel = await KernelProcess.start(cwd, "app.mjs");
    await using client = await kernel.connect();
    const work = client.command("Work.Do", null).catch(String);
    await kernel.said(/at work/);
    kernel.signal("SIGINT");
    await kernel.said(/stopping/);
    kernel.signal("SIGTERM");
    expect(await kernel.ended()).toBe(0);
    expect(kernel.output).toMatch(/stopping: .*\nstopped\n$/);
    expect(await work).toBe("done");
  });

  test("[K14] [K52] a signal that comes before it is ready ends it in good order too", async () => {
    const { cwd, millrace } = setup();
    writeFileSync(join(cwd, "app.mjs"), 'process.kill(process.pid, "SIGTERM");\nexport default {};\n');
    const ended = await millrace(["start", "app.mjs"]);
    expect(ended).toMatchObject({
      code: 0,
      stderr: "",
      stdout: expect.stringMatching(/\nstopped before it was ready\n$/),
    });
    expect(readdirSync(join(cwd, ".millrace"))).not.toContain("kernel.sock");
  });

  test("[K22] a second kernel in the same directory is refused, and the first goes on", async () => {
    const { cwd, millrace } = setup();
    const kernel = await KernelProcess.start(cwd);
    const refused = await millrace(["start"]);
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toMatch(/^millrace: a kernel is running in \.millrace \(pid \d+\); .*\n$/);
    await using client = await kernel.connect();
    expect(await client.query("Syscall.Ping", "still there")).toBe("still there");
    await kernel.kill();
    // A killed one leaves no obstacle.
    await KernelProcess.start(cwd);
  });

  test("[K163] [N11] a kernel whose directory was removed leaves the files of the next one", async () => {
    const { cwd, millrace } = setup();
    const first = await KernelProcess.start(cwd);
    rmSync(join(cwd, ".millrace"), { recursive: true });
    const second = await KernelProcess.start(cwd);
    await first.stop();
    expect(await millrace(["query", "Syscall.Ping", "1"])).toMatchObject({ code: 0 });
    expect(await second.stop()).toBe(0);
  });

  test("[K22] [K51] a kernel whose socket is gone is named with its process, by start and by doctor", async () => {
    const { cwd, millrace } = setup();
    const kernel = await KernelProcess.start(cwd);
    const [, pid] = /pid (\d+)/.exec(kernel.output) ?? [];
    expect((await millrace(["start"])).stderr).toBe(
      `millrace: a kernel is running in .millrace (pid ${pid}); stop it with: millrace send Syscall.Shutdown, or set MILLRACE_DIR\n`,
    );
    rmSync(kernel.socketPath);
    expect((await millrace(["start"])).stderr).toBe(
      `millrace: a kernel is running in .millrace without .millrace/kernel.sock: it is starting or ending, or the file was removed; end it with: kill ${pid}, or set MILLRACE_DIR\n`,
    );
    const doctor = await millrace(["doctor"]);
    expect(doctor.code).toBe(1);
    expect(doctor.stdout).toMatch(new RegExp(`^wrong leases .* without .*; end it with: kill ${pid}$`, "m"));
    expect(await kernel.stop()).toBe(0);
    expect(readdirSync(join(cwd, ".millrace")).sort()).toEqual(["kernel.db", "kernel.lock"]);
  });

  const uncaught: readonly (readonly [name: string, thrower: string, complaint: RegExp])[] = [
    [
      "a promise that nobody awaits",
      'Promise.reject(new Error("floating"))',
      /^millrace: a promise was not awaited, and its rejection was not caught; the kernel ends: Error: floating\n {2}at .*app\.mjs:2:\d+\)\n$/,
    ],
    [
      "an error in a callback",
      'setImmediate(() => { throw "loose"; })',
      /^millrace: an error was not caught; the kernel ends: loose\n$/,
    ],
  ];
  test.for(uncaught)(
    "[K60] %s ends it in good order with 1, and is told with its line",
    async ([, thrower, complaint]) => {
      const { cwd } = setup();
      const definition = JSON.stringify(join(ROOT, "src", "loop", "define-capability.ts"));
      writeFileSync(
        join(cwd, "app.mjs"),
        `import { capability } from ${definition};
       const handle = () => { ${thrower}; return 1; };
       export default { loose: capability({ description: "loses", commands: { "Loose.End": { handle } } }) };`,
      );
      const kernel = await KernelProcess.start(cwd, "app.mjs");
      await using client = await kernel.connect();
      expect(await client.command("Loose.End", null)).toBe(1);
      expect(await kernel.ended()).toBe(1);
      expect(kernel.complaints).toMatch(complaint);
      expect(kernel.output).toMatch(/\nstopping: .*\nstopped\n$/);
      expect(readdirSync(join(cwd, ".millrace")).sort()).toEqual(["kernel.db", "kernel.lock"]);
    },
  );

  test("[K60] an app that listens to uncaught errors decides about them itself", async () => {
    const { cwd } = setup();
    writeFileSync(
      join(cwd, "app.mjs"),
      `process.on("unhandledRejection", ({ message }) => console.log("heard", message));
       Promise.reject(new Error("floating"));
       export default {};`,
    );
    const kernel = await KernelProcess.start(cwd, "app.mjs");
    await kernel.said(/heard floating/);
    expect(await kernel.stop()).toBe(0);
    expect(kernel.complaints).toBe("");
  });

  const failing: readonly (readonly [app: string, complaint: RegExp])[] = [
    ['throw new Error("at import");', /^millrace: Error: at import\n {2}at .*app\.mjs:1:7\n$/],
    ['export default () => { throw new Error("made"); };', /^millrace: Error: made\n {2}at .*app\.mjs:1:30\)?\n$/],
    [
      "export default () => undefined;",
      /^millrace: the function that app\.mjs exports returns no capabilities; write: export default \(parts\) => .*\n$/,
    ],
    [
      "export default async () => undefined;",
      /^millrace: the function that app\.mjs exports returns no capabilities; .*\n$/,
    ],
    [
      "await new Promise(() => undefined);",
      /^millrace: app\.mjs never finished loading: it awaits, outside of any function, a promise that does not settle\n$/,
    ],
    [
      'import "./other"; export default {};',
      /^millrace: Cannot find module .*; an import names the file with its extension: other\.ts\n$/,
    ],
    ['import "./other.js"; export default {};', /^millrace: Cannot find module .*extension: other\.ts\n$/],
    ['import "./another"; export default {};', /^millrace: Cannot find module '.*another' imported from .*\n$/],
  ];
  test.for(failing)("[K14] an app that cannot be used is reported with its own lines: %s", async ([app, complaint]) => {
    const { cwd, millrace } = setup();
    writeFileSync(join(cwd, "other.ts"), "");
    writeFileSync(join(cwd, "app.mjs"), app);
    const ended = await millrace(["start", "app.mjs"]);
    expect(ended).toMatchObject({ code: 1, stdout: "" });
    expect(ended.stderr).toMatch(complaint);
  });

  test("[K14] a missing or invalid app gets a clear error", async () => {
    const { cwd, millrace } = setup();
    expect(await millrace(["start", "nowhere.ts"])).toMatchObject({
      code: 1,
      stderr: "millrace: there is no nowhere.ts; name the module of your app\n",
    });
    writeFileSync(join(cwd, "empty.mjs"), "export const nothing = 1;");
    expect((await millrace(["start", "empty.mjs"])).stderr).toMatch(/^millrace: empty\.mjs has no app; write: .*\n$/);
    writeFileSync(join(cwd, "bare.mjs"), 'import "no-such-package"; export default {};');
    expect((await millrace(["start", "bare.mjs"])).stderr).toMatch(
      /^millrace: Cannot find package 'no-such-package' .*bare\.mjs; install its dependencies first: npm install\n$/,
    );
    writeFileSync(join(cwd, "wrong.mjs"), "export default { thing: {} };");
    const wrong = await millrace(["start", "wrong.mjs"]);
    expect(wrong.code).toBe(1);
    expect(wrong.stderr).toMatch(/^millrace: the kernel cannot start:\n {2}- capability thing: has no description\n/);
    expect(existsSync(join(cwd, ".millrace", "kernel.sock"))).toBe(false);
  });
});

describe("talking", () => {
  test("[K17] send, query and emit print their answers", async () => {
    const { cwd, millrace } = setup();
    await KernelProcess.start(cwd, LEDGER_APP);
    const sent = await millrace(["send", "Ledger.Add", '{"key":"a","amount":3}']);
    expect(sent).toMatchObject({ code: 0, stderr: "" });
    expect(sent.stdout).toMatch(/^reply {2}\{"total":3\} {3}\d+\.\d ms {3}[0-9a-f-]{36}\n$/);
    const asked = await millrace(["query", "Ledger.Read", "--json"]);
    expect(JSON.parse(asked.stdout)).toMatchObject({ kind: "reply", data: { entries: [["a", 3]], total: 3 } });
    const emitted = await millrace(["emit", "Some.Thing", '{"n":1}']);
    expect(emitted.stdout).toMatch(/^reply {2}\{"id":\d+,"messageId":"\w+"\} {3}/);
    const listed = await millrace(["ls", "events", "--topic", "Some.Thing", "--json"]);
    expect(JSON.parse(listed.stdout).message).toMatchObject({ kind: "event", data: { n: 1 } });
    const types = await millrace(["ls", "types"]);
    expect(types.stdout).toMatch(/^Ledger\.Add +command +ledger +adds up$/m);
  });

  test("[K17] - reads data from standard input", async () => {
    const { cwd } = setup();
    await KernelProcess.start(cwd);
    const told = spawnSync(process.execPath, [MAIN, "query", "Syscall.Ping", "-"], {
      ...{ cwd, env: { ...process.env, ...COMPILE_CACHE }, input: '{"from": "a pipe"}\n', encoding: "utf8" },
    });
    expect(told).toMatchObject({ status: 0, stdout: expect.stringMatching(/^reply {2}\{"from":"a pipe"\} /) });
  });

  test("[K43] graph tells that the app has no parts to draw", async () => {
    const { cwd, millrace } = setup();
    await KernelProcess.start(cwd);
    const drawn = await millrace(["graph"]);
    expect(drawn).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^only the parts that every kernel has; --all /),
    });
    expect((await millrace(["graph", "--all"])).stdout).toMatch(/^memory {3}/m);
  });

  test("[K17] an error answer and a timeout end with 1", async () => {
    const { cwd, millrace } = setup();
    await KernelProcess.start(cwd, LEDGER_APP);
    const unknown = await millrace(["send", "Nobody.There"]);
    expect(unknown).toMatchObject({ code: 1, stdout: "" });
    expect(unknown.stderr).toMatch(
      /^millrace: error 404: no capability handles command Nobody\.There; "millrace ls types" lists the types {3}[0-9a-f-]{36}\n$/,
    );
    const slip = await millrace(["query", "Ledger.Raed"]);
    expect(slip.stderr).toMatch(/no capability handles query Ledger\.Raed; did you mean Ledger\.Read\? {3}/);
    const other = await millrace(["send", "Ledger.Read"]);
    expect(other.stderr).toMatch(
      /no capability handles command Ledger\.Read; it is a query: millrace query Ledger\.Read {3}/,
    );
    const late = await millrace(["send", "Gate.Hold", "--timeout", "50"]);
    expect(late).toMatchObject({ code: 1, stdout: "" });
    expect(late.stderr).toMatch(/^millrace: no answer to Gate\.Hold within 50 ms \(id [0-9a-f-]{36}\)\n$/);
  });

  test("[K17] [K170] a line that the kernel refuses is reported at once with a remedy", async () => {
    const { cwd, millrace } = setup();
    writeFileSync(join(cwd, "millrace.config.yaml"), "lineBytesMax: 400\n");
    await KernelProcess.start(cwd);
    const long = JSON.stringify({ key: "/a", value: "x".repeat(400) });
    expect(await millrace(["send", "Memory.Set", long])).toEqual({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(
        /^millrace: Memory\.Set takes a line of \d+ bytes: line too long: the limit is 400 bytes; send it in parts, or set the kernel's lineBytesMax\n$/,
      ),
    });
  });

  test.for([
    ["send", "A.B"],
    ["query", "A.B"],
    ["emit", "A.B"],
    ["ls", "types"],
  ])("[K11] without a kernel %j ends with 3 and says how to start one", async (args) => {
    const { cwd, millrace } = setup();
    expect(await millrace(args)).toEqual({
      code: 3,
      stdout: "",
      stderr:
        "millrace: not reachable: no kernel on .millrace/kernel.sock; start one with: npm start, or millrace start app.ts\n",
    });
    expect(readdirSync(cwd)).toEqual([]);
  });

  test("[K18] trace shows the consequences of a command, also when the kernel is gone", async () => {
    const { cwd, millrace } = setup();
    const kernel = await KernelProcess.start(cwd, LEDGER_APP);
    const sent = await millrace(["send", "Ledger.Add", '{"key":"a","amount":3}', "--json"]);
    const id = JSON.parse(sent.stdout).metadata.causation;
    await using client = await kernel.connect();
    while (!((await client.query("Ledger.Read", null)) as { heard: string[] }).heard.includes("a"));
    await kernel.kill();
    const traced = await millrace(["trace", id]);
    expect(traced).toMatchObject({ code: 0, stderr: "" });
    const messages = traced.stdout.match(/^\W*(?:command|event) [\w.]+/gm);
    expect(messages).toEqual(["command Ledger.Add", "└─ event Entry.Added", "   └─ command Ledger.Hear"]);
    expect(traced.stdout).toMatch(/^├─ ledger\/total {3}3$/m);
    expect(traced.stdout).toMatch(/^ {3}└─ command Ledger\.Hear {3}done {3}ledger {3}\+\d+ ms$/m);
    expect((await millrace(["trace", "1"])).stdout).toBe(traced.stdout);
    expect(await millrace(["trace", "no-such-id"])).toMatchObject({
      code: 1,
      stderr:
        'millrace: there is no message no-such-id, and none with it as cause or correlation; "millrace ls events" lists the journal\n',
    });
  });

  test("[K19] tail shows the last rows and then new ones, until it is interrupted", async () => {
    const { cwd, millrace } = setup();
    const kernel = await KernelProcess.start(cwd);
    await using client = await kernel.connect();
    await client.emit("Some.Thing", { n: 1 });
    await client.emit("Some.Thing", { n: 2 });
    const last = await millrace(["tail", "--no-follow", "--last", "1", "--json"]);
    expect(JSON.parse(last.stdout).message.data).toEqual({ n: 2 });
    const child = spawn(process.execPath, [MAIN, "tail"], { cwd, stdio: ["ignore", "pipe", "inherit"] });
    let shown = "";
    // One listener for all output: without a listener, output is lost.
    child.stdout.on("data", (chunk) => {
      shown += chunk;
    });
    const until = async (text: string) => {
      while (!shown.includes(text)) await once(child.stdout, "data");
    };
    await until('{"n":2}');
    await client.emit("Some.Thing", { n: 3 });
    await until('{"n":3}');
    child.kill("SIGINT");
    const [code] = await once(child, "close");
    expect(code).toBe(0);
    expect(shown.trimEnd().split("\n")).toHaveLength(3);
  });
});

describe("files", () => {
  test("[K10] created files are accessible only to their owner", async () => {
    const { cwd } = setup();
    await KernelProcess.start(cwd);
    expect(readdirSync(join(cwd, ".millrace"))).toContain("kernel.sock");
    expect(statSync(join(cwd, ".millrace")).mode & 0o777).toBe(0o700);
    for (const name of readdirSync(join(cwd, ".millrace"))) {
      expect(statSync(join(cwd, ".millrace", name)).mode & 0o777, name).toBe(0o600);
    }
  });

  test("[K10] [K54] MILLRACE_DIR and MILLRACE_FILE name the files; empty variables count as not set", async () => {
    const { cwd, millrace, leaveRows } = setup();
    await leaveRows();
    const { stderr } = await millrace(["verify"], { MILLRACE_DIR: join("deep", "elsewhere") });
    expect(stderr).toContain(join("deep", "elsewhere", "kernel.db"));
    expect(await millrace(["verify"], { MILLRACE_DIR: join(cwd, ".millrace") })).toMatchObject({ code: 0 });
    expect(await millrace(["verify"], { MILLRACE_DIR: "" })).toMatchObject({ code: 0 });
    // A file of another name: that of a program which opens its own store.
    renameSync(join(cwd, ".millrace", "kernel.db"), join(cwd, "shop.db"));
    const listed = await millrace(["ls", "events", "--json"], { MILLRACE_FILE: "shop.db" });
    expect(listed.stdout.trimEnd().split("\n")).toHaveLength(6);
    expect((await millrace(["ls", "events"], { MILLRACE_FILE: "" })).stderr).toMatch(
      /no \.millrace\/kernel\.db; .*MILLRACE_FILE or MILLRACE_STORE\n$/,
    );
    expect((await millrace(["ls", "events"], { MILLRACE_FILE: "none.db" })).stderr).toMatch(
      /no none\.db; check the path\n$/,
    );
  });

  // Root may look everywhere.
  test.skipIf(process.getuid?.() === 0)("[K10] [K11] another user's directory is reported in one line", async () => {
    const { cwd, millrace, leaveRows } = setup();
    await leaveRows();
    chmodSync(join(cwd, ".millrace"), 0o000);
    const [looked, sent] = [await millrace(["ls", "events"]), await millrace(["send", "Syscall.Ping"])];
    chmodSync(join(cwd, ".millrace"), 0o700);
    expect(looked).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^millrace: .*cannot be read: EACCES.*; is it another user's\?\n$/),
    });
    expect(sent).toMatchObject({
      code: 3,
      stderr: expect.stringMatching(/^millrace: not reachable: this user may not use .*; it is its owner's alone\n$/),
    });
  });

  test("[K10] a directory open to others is reported, and closed by start", async () => {
    const { cwd, millrace } = setup();
    mkdirSync(join(cwd, ".millrace"));
    chmodSync(join(cwd, ".millrace"), 0o755);
    expect(await millrace(["doctor"])).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/wrong +directory +\.millrace is open to others \(mode 755\)/),
    });
    expect(statSync(join(cwd, ".millrace")).mode & 0o777).toBe(0o755);
    const kernel = await KernelProcess.start(cwd);
    expect(statSync(join(cwd, ".millrace")).mode & 0o777).toBe(0o700);
    await kernel.stop();
    expect(kernel.complaints).toBe("millrace: .millrace was open to others; it is its owner's alone now\n");
  });
});

describe("places that cannot be written", () => {
  const long = "d".repeat(150);
  const unusable: readonly (readonly [directory: string, why: string])[] = [
    ["notes.txt", "notes.txt is not a directory"],
    ["notes.txt/below", "notes.txt is not a directory"],
    [long, `the socket's path ${long}/kernel.sock has 162 bytes`],
    // The permissions of this folder allow new files, and yet none can be created.
    ...(process.platform === "linux" ? [["/proc/millrace", "no file can be created in /proc"] as const] : []),
    // Root may write everywhere.
    ...(process.getuid?.() === 0 ? [] : [["locked/below", "locked"] as const]),
  ];
  test.for(unusable)(
    "[K152] [K51] %s is refused by start in one line, and doctor gives the reason",
    async ([directory, why]) => {
      const { cwd, millrace } = setup();
      writeFileSync(join(cwd, "notes.txt"), "mine");
      mkdirSync(join(cwd, "locked"), { mode: 0o500 });
      const refused = await millrace(["start"], { MILLRACE_DIR: directory });
      expect(refused).toMatchObject({
        code: 1,
        stdout: "",
        stderr: expect.stringMatching(/^millrace: .*MILLRACE_DIR\n$/),
      });
      expect(refused.stderr).toContain(why);
      const { code, stdout } = await millrace(["doctor"], { MILLRACE_DIR: directory });
      expect(code).toBe(1);
      expect(stdout.split("\n").find((line) => /^wrong +directory/.test(line))).toContain(why);
      expect(readdirSync(cwd).sort()).toEqual(["locked", "notes.txt"]);
    },
  );

  test("[K152] an obstacle to the lock or to the socket is named", async () => {
    const { cwd, millrace } = setup();
    mkdirSync(join(cwd, ".millrace", "kernel.lock"), { recursive: true, mode: 0o700 });
    expect((await millrace(["start"])).stderr).toMatch(/^millrace: \.millrace\/kernel\.lock cannot be locked: .*\n$/);
    mkdirSync(join(cwd, ".millrace", "kernel.sock"));
    expect((await millrace(["doctor"])).stdout).toMatch(
      /^wrong directory +\.millrace\/kernel\.sock is in the socket's way/m,
    );
  });

  test.runIf(process.platform === "linux")("[K46] init and bench say so too", async () => {
    const { millrace } = setup();
    const made = await millrace(["init", "/proc/app"]);
    expect(made).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^millrace: \/proc\/app cannot be used: .*\n$/),
    });
    const measured = await millrace(["bench"], { MILLRACE_DIR: "/proc/x/y" });
    expect(measured).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^millrace: \/proc\/x cannot be used: .*\n$/),
    });
  });
});

describe("calls", () => {
  const wrong: readonly (readonly [args: string[], complaint: RegExp])[] = [
    [["frobnicate"], /^millrace: there is no verb "frobnicate"; "millrace --help" lists them\n$/],
    [["sned"], /^millrace: there is no verb "sned"; did you mean send\? "millrace --help" lists them\n$/],
    [["ls", "events", "--limit", "-1"], /^millrace: --limit is a whole number from 1 to 10000, not "-1"\n$/],
    [["send", "Memory.Set", "--timeout", "-1"], /^millrace: --timeout is a whole number from 1 to .*, not "-1"\n$/],
    [["send", "Memory.Set", "-"], /^millrace: the data is not JSON \(.*\); the standard input has to have .*\n$/],
    [["emit"], /^millrace: name a type of event, like Email\.Received\n$/],
    [["show", "document"], /^millrace: name the document by its id: millrace show document <id>\n$/],
    [["start", "app.ts", "now"], /^millrace: one word too many: "now"; usage: millrace start \[app\] \[--store URL\] /],
    [["send"], /^millrace: name a type, like Memory\.Set; .*\n$/],
    [["send", "Memory.Set", "{oops"], /^millrace: the data is not JSON \(.*\); put it in single quotes: .*\n$/],
    [["send", "memory"], /^millrace: a message type is two PascalCase names .*\n$/],
    [["emit", "Email received"], /^millrace: a message type is two PascalCase names .*\n$/],
    [["send", "Memory.Set", "--timeout", "soon"], /^millrace: --timeout is a whole number from 1 to .*\n$/],
    [["trace"], /^millrace: name a message id or a correlation; .*\n$/],
    [["ls", "events", "--bogus"], /^millrace: Unknown option '--bogus'; usage: millrace ls events.*\n$/],
    [["ls", "events", "--limit", "0"], /^millrace: --limit is a whole number from 1 to 10000, not "0"\n$/],
    [
      ["ls", "events", "--status", "odd"],
      /^millrace: --status is one of pending, processing, done, failed, not "odd"\n$/,
    ],
    [["ls", "sheep"], /^millrace: name the kind to list: events, requests, .*\n$/],
    [["bench", "x", "y"], /^millrace: one word too many: "x"; usage: millrace bench .*\n$/],
    [["tail", "--lsat", "5"], /^millrace: Unknown option '--lsat'; did you mean --last\? usage: millrace tail .*\n$/],
    [["help", "sned"], /^millrace: there is no verb "sned"; did you mean send\? .*\n$/],
    [
      ["emit", "email.received"],
      /^millrace: email\.received is a topic; name the type: millrace emit Email\.Received\n$/,
    ],
    [["--nonsense"], /^millrace: there is no verb "--nonsense"; .*\n$/],
    [["trace", ""], /^millrace: one word is empty; usage: millrace trace <id> .*\n$/],
    [["dev", ""], /^millrace: one word is empty; usage: millrace dev <app> .*\n$/],
    [["hlep"], /^millrace: there is no verb "hlep"; did you mean help\? .*\n$/],
    [["sned", "--help"], /^millrace: there is no verb "sned"; did you mean send\? .*\n$/],
    [["help", "send", "now"], /^millrace: one word too many: "now"; usage: millrace help \[verb\]\n$/],
    [["--version", "now"], /^millrace: one word too many: "now"; usage: millrace --version\n$/],
    [["send", "--", "--help"], /^millrace: a message type is two PascalCase names .*\n$/],
  ];
  test.for(wrong)("[K11] [K12] a wrong call ends with 2 and one line: %j", async ([args, complaint]) => {
    const { cwd, millrace } = setup();
    const ended = await millrace(args);
    expect(ended).toMatchObject({ code: 2, stdout: "" });
    expect(ended.stderr).toMatch(complaint);
    expect(readdirSync(cwd)).toEqual([]);
  });

  test("[K11] an app that is no TypeScript is refused in one line with the file and the line", async () => {
    const { cwd, millrace } = setup();
    writeFileSync(join(cwd, "app.ts"), "const fine = 1;\nthis is not\n");
    const refused = await millrace(["start", "app.ts"]);
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toMatch(/^millrace: app\.ts cannot be read: .* \(.*app\.ts:2\)\n$/);
  });

  test("[K11] a failure ends with 1 and one line with a remedy", async () => {
    const { cwd, millrace } = setup();
    expect(await millrace(["verify"])).toEqual({
      code: 1,
      stdout: "",
      stderr:
        'millrace: there is no .millrace/kernel.db; run "millrace start" once, or set MILLRACE_DIR, MILLRACE_FILE or MILLRACE_STORE\n',
    });
    writeFileSync(join(cwd, "notes.txt"), "not a database, but long enough to be taken for one".repeat(10));
    const refused = await millrace(["verify", "notes.txt"]);
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toMatch(/^millrace: notes\.txt .*\n$/);
    writeFileSync(join(cwd, "empty.db"), "");
    expect((await millrace(["verify", "empty.db"])).stderr).toBe(
      "millrace: empty.db is empty: no kernel has written to it yet; check the path\n",
    );
    const inTheWay = await millrace(["start"], { MILLRACE_DIR: "notes.txt" });
    expect(inTheWay).toMatchObject({ code: 1, stdout: "" });
    expect(inTheWay.stderr).toMatch(/^millrace: .*notes\.txt.*\n$/);
  });

  const helpful: readonly (readonly [args: string[], like: string[]])[] = [
    [["help"], []],
    [["-h"], []],
    [["help", "help"], []],
    [["help", "--help"], []],
    [["--help", "--help"], []],
    [["help", "version"], []],
    [["--version", "--help"], []],
    [["--help", "send"], ["send"]],
    [["-h", "send"], ["send"]],
    [["help", "send", "--help"], ["send"]],
    [["send", "-h"], ["send"]],
    [["send", "--bogus", "--timeout", "--help"], ["send"]],
    [["send", "too", "many", "words", "--help"], ["send"]],
  ];
  test.for(helpful)("[K153] %j shows help, of all or of %j", async ([args, [verb]]) => {
    const { cwd, millrace } = setup();
    const { code, stdout, stderr } = await millrace(args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(
      verb === undefined ? /^millrace: a durable.*\n\nusage: millrace <verb>/ : /^usage: millrace send </,
    );
    expect(readdirSync(cwd)).toEqual([]);
  });

  test("[K57] an unknown variable with our prefix is reported once, and the verb continues", async () => {
    const { cwd, millrace } = setup();
    const misspelt = { [["MILLRACE", "DRI"].join("_")]: "elsewhere" };
    const complaint = "millrace: the variable MILLRACE_DRI is not known here; did you mean MILLRACE_DIR?\n";
    writeFileSync(join(cwd, "app.mjs"), 'process.kill(process.pid, "SIGTERM");\nexport default {};\n');
    expect(await millrace(["start", "app.mjs"], misspelt)).toMatchObject({ code: 0, stderr: complaint });
    expect(await millrace(["verify"], misspelt)).toMatchObject({ code: 0, stderr: complaint });
    expect(await millrace(["--help"], misspelt)).toMatchObject({ code: 0, stderr: "" });
  });

  test("[K153] help and version work", async () => {
    const { millrace } = setup();
    const help = await millrace(["--help"]);
    expect(help).toMatchObject({ code: 0, stderr: "" });
    expect(await millrace([])).toEqual({ ...help, code: 2 });
    const verbs = [...help.stdout.matchAll(/^ {2}([a-z]+) {2}/gm)].map(([, verb]) => verb as string);
    expect(verbs.sort().join(" ")).toBe(
      "backup bench cancel completion consumers copy dev discard doctor emit erase export extension graph import init ls mcp migrate pg purge query requeue restore send show start tail token trace verify why",
    );
    for (const verb of verbs) {
      expect(help.stdout).toMatch(new RegExp(`^  ${verb} `, "m"));
      const { code, stdout } = await millrace([verb, "--help"]);
      expect((await millrace(["help", verb])).stdout).toBe(stdout);
      expect(code).toBe(0);
      expect(stdout).toMatch(new RegExp(`^usage: millrace ${verb}.*\\n.*\\n\\n[^]*example:\\n {2}millrace ${verb}`));
      // Each option of the usage line is explained, and no other is.
      const [usage = "", ...rest] = stdout.split("\n");
      const named = [...usage.matchAll(/--[a-z-]+/g)].map(([option]) => option);
      const explained = rest.flatMap((line) => line.match(/^ {2}(--[a-z-]+)(?: [A-Z]+)? {2,}\S/)?.[1] ?? []);
      expect([...explained].sort(), verb).toEqual([...named].sort());
    }
    expect((await millrace(["--version"])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });
});

describe("looking", () => {
  test.runIf(process.platform === "linux")(
    "[K154] output that cannot be written is an error, in one line",
    async () => {
      const { cwd } = setup();
      const line = `"${process.execPath}" "${MAIN}" --help > /dev/full`;
      expect(await runProgram("/bin/sh", ["-c", line], { cwd, env: COMPILE_CACHE })).toEqual({
        code: 1,
        stdout: "",
        stderr: "millrace: its output cannot be written: ENOSPC: no space left on device, write\n",
      });
    },
  );

  test("[K13] with --json every line is a JSON value", async () => {
    const { millrace, leaveRows } = setup();
    await leaveRows();
    const listed = await millrace(["ls", "events", "--json", "--limit", "3", "--topic", "Memory.Set"]);
    const rows = listed.stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(rows.map(({ message }) => message.data.key)).toEqual(["/c", "/b", "/a"]);
    expect(JSON.parse((await millrace(["verify", "--json"])).stdout)).toMatchObject({
      ok: true,
      rows: 6,
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

  test("[K154] a reader that stops early is not an error", async () => {
    const { cwd, leaveRows } = setup();
    await leaveRows();
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
    for (const args of [
      ["doctor"],
      ["verify"],
      ["ls", "events"],
      ["tail"],
      ["trace", "x"],
      ["why", "x"],
      ["show", "x"],
      ["graph"],
    ])
      await millrace(args);
    expect(readdirSync(cwd)).toEqual([]);
  });

  test("[K15] looking changes no byte of a stopped kernel's file", async () => {
    const { cwd, millrace, leaveRows } = setup();
    await leaveRows();
    const file = join(cwd, ".millrace", "kernel.db");
    const before = readFileSync(file);
    const looks = [
      ["doctor"],
      ["verify"],
      ["ls", "events"],
      ["ls", "requests"],
      ["why", "1"],
      ["show", "1"],
      ["purge", "--keep", "0"],
    ];
    for (const args of looks) expect(await millrace(args), args.join(" ")).toMatchObject({ code: 0 });
    expect(readFileSync(file).equals(before)).toBe(true);
  });

  test("[K15] looking works while a kernel writes", async () => {
    const { cwd, millrace } = setup();
    const kernel = await KernelProcess.start(cwd);
    await using client = await kernel.connect();
    let looking = true;
    const writing = (async () => {
      for (let n = 0; looking; n++) await client.command("Memory.Set", { key: "/n", value: n });
    })();
    const looks = await Promise.all([["ls", "events"], ["verify"], ["doctor"]].map((args) => millrace(args)));
    looking = false;
    await writing;
    expect(looks.map(({ code, stderr }) => ({ code, stderr }))).toEqual(Array(3).fill({ code: 0, stderr: "" }));
  });

  test("[K11] a damaged file is found by verify and by doctor", async () => {
    const { cwd, millrace, leaveRows } = setup();
    await leaveRows();
    const file = join(cwd, ".millrace", "kernel.db");
    const bytes = readFileSync(file);
    const place = bytes.indexOf("value of /b");
    expect(place).toBeGreaterThan(0);
    bytes.write("X", place);
    writeFileSync(file, bytes);
    expect(await millrace(["verify"])).toMatchObject({ code: 1, stdout: expect.stringContaining("damaged") });
    expect(await millrace(["doctor"])).toMatchObject({ code: 1, stdout: expect.stringMatching(/wrong +store/) });
  });
});
