/**
 * The program whose files fail. For each fault of its plan it runs a short workload on a new file while one call fails,
 * checks the store's promises, and goes on with the next fault: a process that dies of a fault fails the whole test.
 * Run a second time, as another process, it goes on with every file of the first run. Its marks name the trial of each
 * operation, so that a reader of the log can check each disk.
 */
import { join } from "node:path";
import { type Store, StoreError } from "../../src/store/store.ts";
import { ledgerOf, SPACE } from "./handling.ts";
import { arm, disarm, type FaultAction, type FaultClass, hasStruck, mark } from "./shim-orders.ts";
import { laterHost, openStore } from "./store-setting.ts";
import { type Life, Workload } from "./workload.ts";

export interface Trial {
  readonly name: string;
  readonly calls: FaultClass;
  readonly action: FaultAction;
  readonly nth: number;
  /** How many calls fail, from the nth on. */
  readonly times: number;
}

export interface FailingPlan {
  readonly directory: string;
  readonly seed: number;
  readonly rounds: number;
  /** The first call that fails is the first, then the one `step` calls later, and so on until there are no more. */
  readonly fault: Omit<Trial, "name" | "nth"> & { readonly step: number };
  /** Trials of an earlier process to go on with, instead of new ones. */
  readonly resume?: readonly string[];
}

/** The observations of one trial; the reader of the log judges the disk. */
export interface TrialReport {
  readonly trial: string;
  /** Whether the fault struck. */
  readonly struck: boolean;
  /** Reasons and codes of operations that were refused during the fault. */
  readonly refusals: readonly string[];
  /** Broken promises. */
  readonly problems: readonly string[];
}

/** The store is still open at `end`, and closed at `closed`. */
export type FailingMark = { readonly start: string } | { readonly end: TrialReport } | { readonly closed: string };

const DAY_MS = 86_400_000;

const plan = JSON.parse(process.argv[2] ?? "{}") as FailingPlan;

if (plan.resume) for (const trial of plan.resume) await resume(trial);
else {
  await failEverywhere();
  // Killed, because a clean exit lets the engine copy the logs of stopped stores; the next process needs them
  // unchanged.
  process.kill(process.pid, "SIGKILL");
}

async function failEverywhere(): Promise<void> {
  const { step, ...fault } = plan.fault;
  for (let nth = 1; ; nth += step) {
    if (!(await fail({ ...fault, name: `trial-${nth}`, nth }))) return;
  }
}

async function fail(trial: Trial): Promise<boolean> {
  const refusals: string[] = [];
  const problems: string[] = [];
  const { setting, workload } = prepare(trial.name, refusals, 0);
  arm(trial.calls, trial.nth, trial.action, trial.times);
  const store = await attempt(refusals, () => openStore(setting));
  const life = store && (await attempt(refusals, () => workload.begin(store, trial.name)));
  for (let round = 0; life && round < plan.rounds; round++) await attempt(refusals, () => workload.round(life));
  if (store) problems.push(...(await readProblems(store, refusals.some(isStop))));
  const struck = hasStruck();
  disarm();
  const duringFault = [...refusals];
  if (life) problems.push(...(await writeProblems(workload, life, trial, refusals)));
  tell({ end: { trial: trial.name, struck, refusals: duringFault, problems } });
  if (store) await attempt(refusals, () => store.close());
  tell({ closed: trial.name });
  return struck;
}

async function resume(name: string): Promise<void> {
  const refusals: string[] = [];
  const { setting, workload } = prepare(name, refusals, DAY_MS);
  const store = await openStore(setting, laterHost(DAY_MS));
  await workload.round(await workload.begin(store, `${name}-again`));
  const problems = refusals.map((reason) => `after the fault, another process was refused: ${reason}`);
  tell({ end: { trial: name, struck: true, refusals: [], problems } });
  await store.close();
  tell({ closed: name });
}

function prepare(name: string, refusals: string[], clockAheadMs: number) {
  tell({ start: name });
  const setting = { path: join(plan.directory, `${name}.db`), durability: "power" } as const;
  const isFirst = plan.resume === undefined;
  const who = { name: isFirst ? name : `${name}-again`, deedsBefore: isFirst ? 0 : 1_000_000, clockAheadMs };
  const workload = new Workload(
    { ...setting, ...who, seed: plan.seed, rounds: plan.rounds, foreignCheckpoints: false },
    {
      told: (told) => mark(JSON.stringify(told)),
      reached: () => undefined,
      refused: (_deed, reason) => refusals.push(reason),
    },
  );
  return { setting, workload };
}

function tell(text: FailingMark): void {
  mark(JSON.stringify(text));
}

/** Opening, and calls that are not operations of the workload, may fail too: with a code for the caller. */
async function attempt<T>(refusals: string[], run: () => Promise<T>): Promise<T | undefined> {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    refusals.push(error.code);
    return undefined;
  }
}

/** Stored data can be read although writes fail, as long as the store has not stopped. */
async function readProblems(store: Store, hasStopped: boolean): Promise<string[]> {
  try {
    await store.query({ limit: 10 });
    await store.load(SPACE, [ledgerOf("a")]);
    return [];
  } catch (error) {
    if (hasStopped && error instanceof StoreError && error.code === "STORE_STOPPED") return [];
    return [`reads are not served: ${error instanceof Error ? error.message : String(error)}`];
  }
}

/** The fault is over: a store that stopped stays stopped, any other takes writes again. */
async function writeProblems(workload: Workload, life: Life, trial: Trial, refusals: string[]): Promise<string[]> {
  const hadStopped = refusals.some(isStop);
  const before = refusals.length;
  await attempt(refusals, () => workload.round(life));
  const later = refusals.slice(before);
  if (refusals.some(isStop) && trial.action === "ENOSPC") return ["a full disk stopped the store"];
  if (hadStopped && later.length === 0) return ["a stopped store took writes again"];
  const other = later.find((reason) => !isStop(reason));
  return !hadStopped && other !== undefined ? [`writing did not resume: ${other}`] : [];
}

function isStop(reason: string): boolean {
  return reason === "STORE_STOPPED" || reason === "store-stopped";
}
