/**
 * One extension: its manifest, its state with the reason, and its parts. Each wiring leaves its undo function here;
 * undoing runs them backwards. The loader alone changes the state. SPEC: X13.
 *
 * ```
 *   INACTIVE ──started──> ACTIVE
 *       └──any failure──> ERROR <──failure, bad health──┘
 * ```
 * A disabled one stays INACTIVE. A restart replaces the record of one in ERROR by a new one: a record is one life.
 */
import type { Capability } from "../loop/capability.ts";
import { type Found, inPlace } from "./discovery.ts";
import type { Extension } from "./extension.ts";
import { ExtensionError } from "./extension-error.ts";
import type { Manifest } from "./manifest.ts";
import type { ProviderKind } from "./providers.ts";
import type { ExtensionSchedule, ScheduleStatus } from "./schedule-table.ts";

/** The state of an extension in its life. */
export type ExtensionState = "INACTIVE" | "ACTIVE" | "ERROR";

/** As `Kernel.Health` tells it. */
export interface ExtensionStatus {
  readonly id: string;
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly state: ExtensionState;
  readonly enabled: boolean;
  /** Why it is in ERROR. */
  readonly reason?: string;
  readonly folder?: string;
  readonly providers: readonly ProviderKind[];
  readonly dependsOn: readonly string[];
  readonly publishes: readonly string[];
  readonly subscribes: readonly string[];
  readonly schedules: readonly ScheduleStatus[];
}

/** The last step that it reached; later steps need no undoing. */
type Progress = "found" | "made" | "initialized" | "started";

export class ExtensionRecord {
  readonly id: string;
  readonly found: Found;
  state: ExtensionState = "INACTIVE";
  reason: string | undefined;
  progress: Progress = "found";
  /** Set from `made` on. */
  extension: Extension | undefined;
  providers: readonly ProviderKind[] = [];
  /** Its capabilities, by the kernel's name for each. */
  capabilities: Readonly<Record<string, Capability>> = {};
  /** The manifest that follows from the code of a defined extension. */
  computed: Manifest | undefined;
  /** Its schedules, if its code defines them. */
  scheduled: () => readonly ExtensionSchedule[] = () => [];
  /** Topics that its own code handles. */
  readonly subscribed = new Set<string>();
  /** Its background work; settles when that has ended. */
  service: Promise<void> | undefined;
  /** Fires when it begins to stop, and when it fails. */
  readonly ended = new AbortController();
  /** True once it has failed: its calls to the kernel are refused. */
  closed = false;
  readonly #undo: (() => void)[] = [];

  /** Settles when the end of a failed one is through. */
  ending: Promise<void> = Promise.resolve();
  /** Counts the lives of the extension in this process, from 0. */
  readonly life: number;

  constructor(found: Found, life = 0) {
    this.found = found;
    this.life = life;
    this.id = found.kind === "found" ? found.manifest.id : found.id;
    if (found.kind === "broken") this.fail(found.reason);
  }

  get manifest(): Manifest | undefined {
    return this.computed ?? (this.found.kind === "found" ? this.found.manifest : undefined);
  }

  get enabled(): boolean {
    return this.manifest?.enabled ?? true;
  }

  /** Its next life, from its files as they are now. */
  async renewed(): Promise<ExtensionRecord> {
    const { found, life } = this;
    if (found.folder === undefined) return new ExtensionRecord(found, life + 1);
    const now = await inPlace(found.folder, life + 1);
    const isOther = now.kind === "found" && now.manifest.id !== this.id;
    const reason = `its manifest has another id now; restart the kernel`;
    const next: Found = isOther ? { kind: "broken", id: this.id, folder: found.folder, reason } : now;
    return new ExtensionRecord(next.kind === "broken" ? { ...next, id: this.id } : next, life + 1);
  }

  /** Whether it takes part, or is about to. */
  get usable(): boolean {
    return this.state !== "ERROR" && this.enabled;
  }

  /** Keeps the undo function of a wiring. For an extension that has failed meanwhile it is called at once. */
  wired(undo: () => void): void {
    if (this.closed) undo();
    else this.#undo.push(undo);
  }

  /** Undoes all wirings, last first. */
  unwire(): void {
    for (let undo = this.#undo.pop(); undo !== undefined; undo = this.#undo.pop()) undo();
  }

  fail(reason: string): void {
    this.state = "ERROR";
    this.reason = reason;
    this.closed = true;
    this.ended.abort(new Error(`the extension ${this.id} has failed: ${reason}`));
  }

  status(schedules: readonly ScheduleStatus[]): ExtensionStatus {
    const { id, manifest, state, reason, enabled, providers } = this;
    const { folder } = this.found;
    return {
      ...{ id, name: manifest?.name ?? id, version: manifest?.version ?? "", description: manifest?.description ?? "" },
      ...{ state, enabled, providers, schedules },
      ...(reason === undefined ? {} : { reason }),
      ...(folder === undefined ? {} : { folder }),
      dependsOn: manifest?.dependsOn ?? [],
      publishes: manifest?.publishes.map(({ topic }) => topic) ?? [],
      subscribes: manifest?.subscribes.map(({ topic }) => topic) ?? [],
    };
  }
}

/**
 * A failed extension and those that failed with it because they depend on it, dependencies first. Throws if it has not
 * failed.
 */
export function recordsToRestart(records: readonly ExtensionRecord[], id: string): ExtensionRecord[] {
  const record = records.find((one) => one.id === id);
  if (record === undefined) {
    const known = records.map((one) => one.id).join(", ") || "none";
    throw new ExtensionError("EXTENSION_UNKNOWN_NAME", `there is no extension ${id}; there are ${known}`);
  }
  if (record.state !== "ERROR")
    throw new ExtensionError("EXTENSION_MISUSE", `${id} is ${record.state}; only an extension in ERROR is restarted`);
  const restarted = [record];
  for (const one of restarted) {
    const dependents = records.filter(
      (other) => other.state === "ERROR" && other.manifest?.dependsOn.includes(one.id) && !restarted.includes(other),
    );
    restarted.push(...dependents);
  }
  return dependenciesFirst(restarted);
}

function dependenciesFirst(records: readonly ExtensionRecord[]): ExtensionRecord[] {
  const ordered: ExtensionRecord[] = [];
  const add = (record: ExtensionRecord) => {
    if (ordered.includes(record)) return;
    // One that depends on itself by a circle is found by the loader, and stays in ERROR.
    const rest = records.filter((one) => one !== record && !ordered.includes(one));
    for (const one of rest) {
      const isCircle = one.manifest?.dependsOn.includes(record.id);
      if (record.manifest?.dependsOn.includes(one.id) && !isCircle) add(one);
    }
    if (!ordered.includes(record)) ordered.push(record);
  };
  for (const record of records) add(record);
  return ordered;
}
