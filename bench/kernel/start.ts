/**
 * The start of the command from the built package, until it prints that it is ready: on an empty directory, and with a
 * million rows in the journal, beside the same Node without work. Also the cost of an idle kernel.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, existsSync, readdirSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Sample, Scale, Scene, Workload } from "../harness/benchmark.ts";
import { fillJournal } from "../store/full-journal.ts";

const COMMAND = fileURLToPath(new URL("../../bin/millrace.mjs", import.meta.url));
const READY = "ready, ms";
const IDLE = "ms of CPU in each second";
const IDLE_SECONDS: Readonly<Record<Scale, number>> = { quick: 3, full: 10, long: 30 };
const LONG_JOURNAL = 1_000_000;

export const startWorkloads: readonly Workload[] = [
  {
    group: "from the start of the process until it is ready",
    name: "an empty directory",
    metrics: [{ name: READY, better: "lower", target: { of: "itself", atMost: 150 } }],
    runs: { bare: bareNode, millrace: ({ directory }) => untilReady(directory) },
  },
  {
    group: "from the start of the process until it is ready",
    name: "a million rows in the journal",
    from: "full",
    metrics: [{ name: READY, better: "lower", target: { of: "itself", atMost: 1_000 } }],
    runs: { millrace: async (scene) => untilReady(await longJournal(scene)) },
  },
  {
    group: "a kernel that nobody talks to",
    name: "idle",
    metrics: [{ name: IDLE, better: "lower", target: { of: "itself", atMost: 2 } }],
    runs: { millrace: idle },
  },
];

/** Node itself, until it has printed a word. */
async function bareNode(): Promise<Sample> {
  const began = performance.now();
  const child = spawn(process.execPath, ["-e", "console.log('ready')"], { stdio: ["ignore", "pipe", "inherit"] });
  await said(child, "ready");
  const took = performance.now() - began;
  await ended(child);
  return { [READY]: took };
}

async function untilReady(directory: string): Promise<Sample> {
  const began = performance.now();
  const child = start(directory);
  await said(child, "ready");
  const took = performance.now() - began;
  await stop(child);
  return { [READY]: took };
}

function longJournal({ shared }: Scene): Promise<string> {
  return shared("long journal", async (directory) => {
    await fillJournal(directory, LONG_JOURNAL);
    renameSync(join(directory, "millrace.db"), join(directory, "kernel.db"));
  });
}

async function idle({ directory, scale }: Scene): Promise<Sample> {
  const child = start(directory);
  await said(child, "ready");
  await pause(1_000);
  const before = cpuMs(child);
  await pause(IDLE_SECONDS[scale] * 1_000);
  const used = cpuMs(child) - before;
  await stop(child);
  return { [IDLE]: used / IDLE_SECONDS[scale] };
}

/** Of all its threads, to the microsecond. */
function cpuMs({ pid }: ChildProcess): number {
  const threads = `/proc/${pid}/task`;
  if (!existsSync(threads)) throw new Error("what a process takes is read from /proc, which this system has not");
  const each = readdirSync(threads).map((thread) => readFileSync(join(threads, thread, "schedstat"), "utf8"));
  return each.reduce((sum, text) => sum + Number(text.split(" ")[0]) / 1e6, 0);
}

function start(directory: string): ChildProcess {
  // As the command makes it; of one that others may read it would say so.
  chmodSync(directory, 0o700);
  const env = { ...process.env, MILLRACE_DIR: directory };
  return spawn(process.execPath, [COMMAND, "start"], { cwd: directory, env, stdio: ["ignore", "pipe", "inherit"] });
}

function said(child: ChildProcess, word: string): Promise<void> {
  let text = "";
  return new Promise((resolve, reject) => {
    child.stdout?.on("data", (chunk: Buffer) => {
      text += chunk.toString("utf8");
      if (text.includes(word)) resolve();
    });
    child.once("exit", (code) => reject(new Error(`it ended with ${code} before it said ${word}: ${text}`)));
  });
}

async function stop(child: ChildProcess): Promise<void> {
  child.kill("SIGTERM");
  await ended(child);
}

function ended(child: ChildProcess): Promise<unknown> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => child.once("exit", resolve));
}
