/**
 * `millrace doctor`: checks the runtime, the settings and their origin, the data directory, its kernel, the schema,
 * permissions and hash chain of the store file, leases and receipts, or the facts of a database; and runs a small
 * workload on a temporary store. It changes no other file.
 */

import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Client } from "../client/client.ts";
import { systemHost } from "../host/system-host.ts";
import { type DataDirectory, dataDirectory, directoryProblem } from "../kernel/data-directory.ts";
import type { WorkView } from "../kernel/inspect-capability.ts";
import { InstanceLock, runningIn } from "../kernel/instance-lock.ts";
import type { KernelHealth } from "../kernel/kernel-options.ts";
import { type KernelStore, openStore, openStoreForReading } from "../kernel/open-store.ts";
import { selfCheck } from "../kernel/self-check.ts";
import { listSettings, readSettings, SettingsError } from "../kernel/settings.ts";
import {
  type Growth,
  growthOf,
  type ReceiptFacts,
  receiptFacts,
  type StoreFacts,
  storeFacts,
} from "../kernel/store-facts.ts";
import { SQLITE_VERSION_MIN } from "../limits.ts";
import { Failure, thrownText } from "../message/error-data.ts";
import { checkDatabase, type DatabaseFinding as Finding } from "./check-database.ts";
import { connectKernel, isTaken } from "./connection.ts";
import { workText } from "./explanation.ts";
import { runtimeVersion } from "./runtime.ts";
import { EXIT, type ExitCode, JSON_OPTION, type Verb, type VerbCall } from "./verb.ts";

export const doctor: Verb = {
  name: "doctor",
  usage: "[--json]",
  summary: "check the runtime, the data directory and the store file, and run a short self-test",
  example: "millrace doctor",
  options: { json: JSON_OPTION },
  wordsMax: 0,
  run,
};

/** A healthy kernel answers far sooner. */
const KERNEL_ANSWERS_MS = 5_000;
/** Limit of stuck handlers named in one line. */
const STUCK_NAMED_MAX = 5;
/** Limit of counted rows. */
const HELD_ROWS_MAX = 10_000;

async function run(call: VerbCall): Promise<ExitCode> {
  const { options, environment, terminal } = call;
  const findings = [checkRuntime(), checkEngine(), await checkSettings(environment), checkDirectory(environment)];
  terminal.progress("asking the kernel");
  findings.push(await checkKernel(call));
  terminal.progress("reading the store");
  const place = environment["MILLRACE_STORE"] || undefined;
  findings.push(...(place === undefined ? await checkFile(environment) : await checkDatabase(place)));
  terminal.progress("doing a little work");
  findings.push(await checkWork());
  const ok = findings.every((finding) => finding.ok);
  if (options["json"]) {
    terminal.line(JSON.stringify({ ok, findings }));
  } else {
    for (const finding of findings) {
      const mark = finding.isNote ? "note  " : finding.ok ? terminal.good("ok    ") : terminal.bad("wrong ");
      terminal.line(`${mark}${finding.check.padEnd(12)}${finding.found}`);
    }
  }
  return ok ? EXIT.ok : EXIT.failed;
}

/** The shim in `bin/` has refused a runtime that is too old. */
function checkRuntime(): Finding {
  const version = runtimeVersion();
  return { check: "runtime", ok: true, found: version.replace(/^[a-z]/, (letter) => letter.toUpperCase()) };
}

function checkEngine(): Finding {
  const version = process.versions["sqlite"] ?? "0";
  const ok = version.localeCompare(SQLITE_VERSION_MIN, "en", { numeric: true }) >= 0;
  const found = ok ? version : `${version} can lose committed data; take a Node with ${SQLITE_VERSION_MIN} or later`;
  return { check: "SQLite", ok, found };
}

function checkDirectory(environment: VerbCall["environment"]): Finding {
  const directory = dataDirectory(environment);
  const problem = directoryProblem(directory);
  if (problem) return { check: "directory", ok: false, found: problem };
  const found = existsSync(directory.path)
    ? `${directory.path}, its owner's alone`
    : `${directory.path} is not there yet; "millrace start" makes it`;
  return { check: "directory", ok: true, found };
}

/** Whether a kernel runs in the directory and answers, and its health. */
async function checkKernel(call: VerbCall): Promise<Finding> {
  const check = "kernel";
  const directory = dataDirectory(call.environment);
  if (!isTaken(call)) {
    const found = `none is running in ${directory.path}; start one with: millrace start app.ts`;
    return { check, ok: true, isNote: true, found };
  }
  try {
    await using client = await connectKernel(call);
    const health = (await client.query("Kernel.Health", null, {
      timeoutMs: KERNEL_ANSWERS_MS,
    })) as never as KernelHealth;
    const problems = kernelProblems(health, health.work.stuck === 0 ? [] : await askWork(client));
    const found = problems.length === 0 ? "a kernel is running, and its store works" : problems.join("; ");
    return { check, ok: problems.length === 0, found };
  } catch (error) {
    // A connection with a clearance may not query the health, but it was answered.
    if (error instanceof Failure && error.code === 403) return { check, ok: true, found: "it answers" };
    const found = `one holds ${directory.path} and does not answer: ${thrownText(error)}; see: ${runningIn(directory)}`;
    return { check, ok: false, found };
  }
}

async function askWork(client: Pick<Client, "query">): Promise<readonly WorkView[]> {
  const answer = await client.query("Kernel.Work", null, { timeoutMs: KERNEL_ANSWERS_MS });
  return (answer as never as { work: readonly WorkView[] }).work;
}

/** Problems of a kernel, by its health and its running handlers. */
export function kernelProblems(health: KernelHealth, work: readonly WorkView[]): string[] {
  const unwell = Object.entries(health.actors).filter(([, state]) => state !== "running");
  const failed = health.extensions.filter(({ state }) => state === "ERROR").map(({ id }) => id);
  const { trouble, away, historyLost } = health.store;
  const stuck = work.filter(({ state }) => state === "stuck").slice(0, STUCK_NAMED_MAX);
  const others = health.work.stuck - stuck.length;
  return [
    ...(trouble === undefined ? [] : [trouble]),
    ...(away === undefined ? [] : [awayText(away)]),
    ...(historyLost === undefined ? [] : [historyLost]),
    ...unwell.map(([name, state]) => `${name} is ${state}`),
    ...failed.map((id) => `the extension ${id} has failed`),
    ...stuck.map((one) => `stuck: ${workText(one)}, ${one.id}`),
    ...(others > 0 ? [`${others} more handlers are stuck; see: millrace ls work`] : []),
  ];
}

function awayText({ sinceMs, reason, parked }: NonNullable<KernelHealth["store"]["away"]>): string {
  return `store: away since ${new Date(sinceMs).toISOString()}, ${parked} writes parked: ${reason}`;
}

/** Settings that were set or that matter anyway, with their origins. */
async function checkSettings(environment: VerbCall["environment"]): Promise<Finding> {
  const check = "settings";
  try {
    const settings = listSettings(await readSettings({ environment, folder: process.cwd() }));
    const made = settings.filter(({ value }) => value !== undefined);
    return {
      check,
      ok: true,
      found: made.map(({ name, value, origin }) => `${name} ${value} (${origin})`).join(" · "),
    };
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    return { check, ok: false, found: error.message };
  }
}

async function checkFile(environment: VerbCall["environment"]): Promise<Finding[]> {
  const directory = dataDirectory(environment);
  const { databaseFile } = directory;
  if (!existsSync(databaseFile)) return [{ check: "store", ok: true, found: `${databaseFile} is not there yet` }];
  try {
    const facts = storeFacts(databaseFile);
    await using store = await openStoreForReading(systemHost(), databaseFile);
    return [
      checkSchema(facts),
      checkPermissions(databaseFile, facts),
      await checkLeases(store, directory),
      await checkConsumers(store, InstanceLock.isHeld(directory)),
      checkReceipts(receiptFacts(databaseFile), systemHost().now()),
      checkGrowth(growthOf(databaseFile, systemHost().now())),
      await checkJournal(store, databaseFile),
    ];
  } catch (error) {
    // A store that does not open is a finding.
    return [{ check: "store", ok: false, found: thrownText(error) }];
  }
}

function checkSchema({ schema, journalMode, bytes, logBytes }: StoreFacts): Finding {
  const size = `${Math.ceil(bytes / 1_024)} KiB and ${Math.ceil(logBytes / 1_024)} KiB of log`;
  return { check: "schema", ok: journalMode === "wal", found: `version ${schema}, ${journalMode}, ${size}` };
}

function checkPermissions(file: string, { mode }: StoreFacts): Finding {
  const ok = process.platform === "win32" || (mode & 0o077) === 0;
  const found = ok ? "its owner's alone" : `others may read or write it; run: chmod 600 ${file}`;
  return { check: "permissions", ok, found: `mode ${mode.toString(8)}: ${found}` };
}

/** Rows held by leases, and whether their kernel runs and is reachable. */
async function checkLeases(store: KernelStore, directory: DataDirectory): Promise<Finding> {
  const running = InstanceLock.isHeld(directory);
  const held = await store.query({ status: "processing", limit: HELD_ROWS_MAX });
  const leases = new Set(held.map(({ lease }) => lease));
  const { pending, failed } = await store.count();
  if (running && !existsSync(directory.socketFile)) return { check: "leases", ok: false, found: runningIn(directory) };
  const who = running
    ? `a kernel is running and holds ${held.length}`
    : held.length === 0
      ? "no kernel is running"
      : `no kernel is running; ${held.length} are left of one that was killed (lease ${[...leases].join(", ")}), and the next takes them up`;
  return { check: "leases", ok: true, found: `${who}; ${pending} events wait, ${failed} have failed` };
}

/** Consumers that events wait for. Without a running kernel that is normal. */
async function checkConsumers(store: KernelStore, running: boolean): Promise<Finding> {
  const { consumers } = await store.consumers();
  const missing = consumers.filter(({ leases, waiting }) => leases.length === 0 && (running || waiting > 0));
  const awaited = missing.filter(({ waiting }) => waiting > 0);
  const named = missing.map(({ name, pattern, waiting }) => `${name} on ${pattern} (${waiting} events wait)`);
  const remedy = 'mend it and start it, or "millrace consumers remove NAME" if it is gone for good';
  const found =
    missing.length === 0
      ? `${consumers.length} declared`
      : `${consumers.length} declared; not running: ${named.join(", ")}${awaited.length === 0 ? "" : `; ${remedy}`}`;
  return { check: "consumers", ok: !running || awaited.length === 0, found };
}

/**
 * The number of receipts and the horizon. A horizon in the future was moved by a wrong clock, and earlier messages are
 * refused.
 */
function checkReceipts({ receipts, ending, horizonMs }: ReceiptFacts, nowMs: number): Finding {
  const kept = `${receipts} kept, ${ending} of what says when it was made`;
  const since =
    horizonMs === undefined ? "none was removed" : `of what was made since ${new Date(horizonMs).toISOString()}`;
  const isAhead = horizonMs !== undefined && horizonMs > nowMs;
  const found = isAhead
    ? `${since}, which is to come: what is made before is refused; check the clock`
    : `${kept}; ${since}`;
  return { check: "receipts", ok: !isAhead, found };
}

/** Rows and receipts of one day; the kernel's retention removes older ones. */
function checkGrowth({ rows, bytes, receipts, deadLetters }: Growth): Finding {
  const day = `${rows} journal rows with ${Math.ceil(bytes / 1_024)} KiB of data, ${receipts} receipts`;
  return { check: "growth", ok: true, found: `${day} in the last day; ${deadLetters} dead letters, which are kept` };
}

async function checkJournal(store: KernelStore, file: string): Promise<Finding> {
  const { ok, rows, documents, problems } = await store.verify();
  const found = ok ? `${rows} journal rows and ${documents} documents, all as written` : problems.join("; ");
  return { check: "store", ok, found: `${file}: ${found}` };
}

/** Publishes events and handles each in one commit with its receipt, on a temporary file. */
async function checkWork(): Promise<Finding> {
  const check = "self-check";
  let folder: string | undefined;
  try {
    folder = mkdtempSync(join(tmpdir(), "millrace-doctor-"));
    const host = systemHost();
    const began = host.monotonic();
    await using store = await openStore(host, join(folder, "kernel.db"));
    const { published, handled, waiting } = await selfCheck(store, host);
    const ok = published === handled + waiting;
    const took = Math.round(host.monotonic() - began);
    return {
      check,
      ok,
      found: `${published} events published, ${handled} handled, in ${took} ms on a file of its own`,
    };
  } catch (error) {
    return { check, ok: false, found: thrownText(error) };
  } finally {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  }
}
