/**
 * Builds `shim.c` and runs programs of this folder under it. The C file documents the record and the orders of the
 * shim.
 *
 * Linux only, because it needs `LD_PRELOAD`. `requireShim` is the one place that gives the reason for a skipped test.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll } from "vitest";
import { plantedTree } from "../mutants/planted-tree.ts";
import { STORE_MUTANTS } from "../mutants/store-mutants.ts";

const here = dirname(fileURLToPath(import.meta.url));

export type ShimState = { readonly kind: "ready"; readonly library: string } | { readonly kind: "skipped" };

/** Compiles the shim into a directory that goes when the test file ends, or prints why it cannot and says "skipped". */
export function requireShim(): ShimState {
  if (process.platform !== "linux") {
    console.log(`crash tests skipped: the recorder needs LD_PRELOAD and /proc, this is ${process.platform}`);
    return { kind: "skipped" };
  }
  const library = join(temporaryDirectory("shim"), "shim.so");
  const args = ["-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-o", library, join(here, "shim.c"), "-lpthread"];
  for (const compiler of ["cc", "gcc", "clang"]) {
    const run = spawnSync(compiler, args, { encoding: "utf8" });
    if (run.error) continue;
    if (run.status === 0) return { kind: "ready", library };
    throw new Error(`${compiler} could not build test/crash/shim.c:\n${run.stderr}`);
  }
  const advice = "the recorder is 200 lines of C: install gcc (Debian: apt-get install gcc)";
  if (process.env["CI"]) throw new Error(`No C compiler found. ${advice}.`);
  console.log(`crash tests skipped: no C compiler found; ${advice}`);
  return { kind: "skipped" };
}

/** Programs that still run (or are stopped) and directories of a test file are removed at its end, however it ends. */
const running = new Set<ChildProcess>();
const directories: string[] = [];
afterAll(() => {
  for (const child of running) child.kill("SIGKILL");
  for (const directory of directories) rmSync(directory, { recursive: true, force: true });
});

/** In memory where there is some: an image is written, opened and thrown away a hundred times a second. */
export function temporaryDirectory(name: string): string {
  const parent = process.platform === "linux" ? "/dev/shm" : tmpdir();
  const path = mkdtempSync(join(realpathSync(parent), `millrace-${name}-`));
  directories.push(path);
  return path;
}

export interface ProgramOptions {
  readonly library: string;
  /** File in this folder. */
  readonly program: string;
  readonly args: readonly string[];
  /** The directory of the files that are recorded, and may fail. */
  readonly directory: string;
  readonly log?: string;
  /** A copy of the repository with a planted bug; its program runs instead. */
  readonly tree?: string | undefined;
}

/** A copy of the repository with the planted bug of this name; removed when the test file ends. */
export function treeWith(name: string): string {
  const mutant = STORE_MUTANTS.find((one) => one.name === name);
  if (mutant === undefined) throw new Error(`there is no mutant ${name} in test/mutants/store-mutants.ts`);
  const tree = plantedTree(mutant);
  directories.push(tree);
  return tree;
}

/** Starts a program of this folder under the shim, with pipes on stdin and stdout. */
export function startProgram(options: ProgramOptions): ChildProcess {
  const env: NodeJS.ProcessEnv = {
    ...process.env,
    LD_PRELOAD: options.library,
    SHIM_DIR: options.directory,
  };
  if (options.log !== undefined) env["SHIM_LOG"] = options.log;
  const folder = options.tree === undefined ? here : join(options.tree, "test", "crash");
  const args = ["--disable-warning=ExperimentalWarning", join(folder, options.program), ...options.args];
  const child = spawn(process.execPath, args, { env, stdio: ["pipe", "pipe", "inherit"] });
  running.add(child);
  child.once("exit", () => running.delete(child));
  return child;
}

/** Waits for the end of a program, which must come as it should. */
export async function finished(child: ChildProcess, expected: "exit" | "SIGKILL" = "exit"): Promise<void> {
  const { code, signal } = await exitOf(child);
  if (expected === "exit" ? code === 0 : signal === expected) return;
  throw new Error(`${child.spawnargs.join(" ")} ended with ${code ?? signal}`);
}

export function exitOf(child: ChildProcess): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
  if (child.exitCode !== null || child.signalCode !== null) {
    return Promise.resolve({ code: child.exitCode, signal: child.signalCode });
  }
  return new Promise((resolve) => child.once("exit", (code, signal) => resolve({ code, signal })));
}

/** The program's output, line by line. */
export function linesOf(child: ChildProcess): Interface {
  if (!child.stdout) throw new Error("the program has no pipe on stdout");
  return createInterface({ input: child.stdout });
}
