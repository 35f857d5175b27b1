/**
 * A clone of the repository as its users have it: the two commands, a conversation over the socket, and `kill -9` at
 * random moments under load, during start and work. The result is checked from outside: over the socket, and in the
 * file itself.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { whyInstall } from "../../scripts/installed.mjs";
import { Client } from "../../src/client/client.ts";
import { systemHost } from "../../src/host/system-host.ts";
import { KernelProcess, LEDGER_APP } from "../kernel/kernel-process.ts";
import { inTheFile, type Ledger, Load, until, untilNothingIsOpen } from "../kernel/ledger.ts";
import { counted, isLongRun, type LongPart, Rounds, roundsMax, timeoutMs } from "../portable/long-run.ts";
import { ROOT, runProgram, scratchFolder } from "../repo/program.ts";

const PART: LongPart = { name: "kill -9 of a clone", short: 25, long: 300, minutes: 3 };
/** An installation takes minutes. */
const COMMANDS_TIME_LIMIT_MS = isLongRun ? 3_600_000 : 600_000;
const SEED = Number(process.env["TEST_SEED"] ?? systemHost().now() % 1_000_000);
const isClone = existsSync(join(ROOT, ".git"));

/** Numbers from 0 to below a bound, the same for the same seed. */
function dice(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state % below;
  };
}

/** A clone in an empty directory, with the packages of this one, unless the run is long and installs its own. */
async function clone({ install }: { install: boolean }): Promise<string> {
  const folder = join(scratchFolder(), "clone");
  const cloned = await runProgram("git", ["clone", "--quiet", ROOT, folder]);
  expect(cloned).toMatchObject({ code: 0 });
  if (install) return folder;
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  // Otherwise the first command would install there, which is here.
  expect(whyInstall(folder), "what is installed must be what the committed lock file says").toBeUndefined();
  return folder;
}

describe.skipIf(!isClone)(`a clone${isClone ? "" : " (this is none, so it cannot be cloned)"}`, () => {
  test("[K49] [K3] npm start runs a kernel that answers on its socket and ends when it is told", {
    timeout: COMMANDS_TIME_LIMIT_MS,
  }, async () => {
    const folder = await clone({ install: isLongRun });
    const { MILLRACE_DIR, ...env } = process.env;
    const child = spawn("npm", ["start"], { cwd: folder, env, stdio: ["ignore", "pipe", "inherit"], detached: true });
    const closed = once(child, "close");
    onTestFinished(() => {
      // The whole group: npm, the shell and the kernel. Gone is fine.
      if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    });
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => {
      output += chunk;
    });
    while (!/socket .*pid \d+\n/.test(output)) await Promise.race([once(child.stdout, "data"), closed]);
    await using client = await Client.connect({ path: join(folder, ".millrace", "kernel.sock") });
    expect(await client.query("Syscall.Ping", "hello")).toBe("hello");
    await client.command("Memory.Set", { key: "/colour", value: "green" });
    expect(await client.query("Memory.Get", { key: "/colour" })).toEqual({ value: "green" });
    await client.command("Syscall.Shutdown", null);
    const [code] = await closed;
    expect(code).toBe(0);
  });

  test.runIf(isLongRun)(
    "[K49] [K3] [K111] in a clone npm test installs missing tools, and the clone builds and passes tests of the kernel",
    {
      timeout: COMMANDS_TIME_LIMIT_MS,
    },
    async () => {
      const folder = await clone({ install: true });
      const planned = await runProgram("npm", ["test", "--", "--plan"], { cwd: folder });
      expect(planned).toMatchObject({ code: 0 });
      expect(planned.stdout).toContain("tests on Node: short");
      const built = await runProgram("npm", ["run", "build"], { cwd: folder });
      expect(built).toMatchObject({ code: 0 });
      const vitest = join(folder, "node_modules", ".bin", "vitest");
      const tested = await runProgram(vitest, ["run", "test/kernel/kernel.test.ts"], {
        cwd: folder,
        env: { TEST_LONG: "" },
      });
      expect(tested, tested.stdout).toMatchObject({ code: 0 });
    },
  );

  test(`[K49] [K25] [K26] [J2] [J3] ${roundsMax(PART)} kills of a busy clone lose no write and repeat no effect (seed ${SEED})`, {
    timeout: timeoutMs(PART),
  }, async () => {
    const folder = await clone({ install: false });
    const built = await runProgram("npm", ["run", "--silent", "build"], { cwd: folder });
    expect(built).toMatchObject({ code: 0 });
    const app = ledgerApp(folder);
    const main = join(folder, "bin", "millrace.mjs");
    const host = systemHost();
    const roll = dice(SEED);
    let kernel = await KernelProcess.start(folder, app, main);
    await using client = await kernel.connect({ timeoutMs: timeoutMs(PART) });
    const load = new Load(client);
    let beforeReady = 0;
    const budget = new Rounds(PART);
    for (let kills = 0; budget.goesOn(kills); kills++) {
      // One in four dies while it starts: at recovery, while it opens its file, before it has a socket.
      if (roll(4) === 0) {
        await new Promise<void>((resolve) => host.timer(roll(400), resolve));
        beforeReady++;
      } else {
        await kernel.ready();
        await load.more(roll(60));
        // And then at any moment of the next few commits.
        await new Promise<void>((resolve) => host.timer(roll(12), resolve));
      }
      await kernel.kill();
      kernel = KernelProcess.launch(folder, app, main);
    }
    await kernel.ready();
    await load.end();
    await load.check();
    const { size } = load.acknowledged;
    const requeued = await untilNothingIsOpen(client, folder);
    await until(client, "Ledger.Read", null, (answer) => (answer as never as Ledger | null)?.heard.length === size);
    counted(budget.done, "kills of a clone");
    counted(size, "commands answered across kills");
    console.log(
      `${budget.done} kills, ${beforeReady} of them while it started; ${size} commands acknowledged, each done once; ${requeued} requeued`,
    );
    expect(await kernel.stop()).toBe(0);
    expect(inTheFile(folder)).toEqual({ commands: size, events: size, open: 0, failed: [] });
    const verified = await runProgram(process.execPath, [main, "verify"], { cwd: folder });
    expect(verified).toMatchObject({ code: 0, stderr: "" });
  });
});

/** The ledger app of the kernel's tests, as a user of the package would write it. */
function ledgerApp(folder: string): string {
  const text = readFileSync(LEDGER_APP, "utf8")
    .replace('"../../src/kernel/kernel.ts"', '"millrace/kernel"')
    .replaceAll(/"..\/..\/src\/loop\/[\w-]+\.ts"/g, '"millrace/loop"');
  writeFileSync(join(folder, "ledger.ts"), text);
  return "ledger.ts";
}
