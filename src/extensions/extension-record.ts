/**
 * One extension: who it is, in which state, why, and what it has. Everything that is wired for it leaves its opposite here; undoing runs
 * them backwards. The loader alone changes the state. SPEC: X13.
 *
 * ```
 *   INACTIVE ──started──> ACTIVE
 *       └──any failure──> ERROR <──failure, bad health──┘
 * ```
 * A disabled one stays INACTIVE. There is no way back from ERROR but another start of the kernel.
 */
import type { Capability } from "../loop/capability.ts";
import type { Found } from "./discovery.ts";
import type { Extension, ProviderKind } from "./extension.ts";
import type { Manifest } from "./manifest.ts";
import type { ScheduleStatus } from "./schedule-table.ts";

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

/** How far it has come; what was not reached needs no undoing. */
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
  /** What it brought, by the name that the kernel knows it under. */
  capabilities: Readonly<Record<string, Capability>> = {};
  /** Topics that its own code handles. */
  readonly subscribed = new Set<string>();
  /** Its background work; settles when that has ended. */
  service: Promise<void> | undefined;
  /** Fires when it begins to stop, and when it fails. */
  readonly ended = new AbortController();
  /** True once it has failed: nothing of it goes through to the kernel any more. */
  closed = false;
  readonly #undo: (() => void)[] = [];

  constructor(found: Found) {
    this.found = found;
    this.id = found.kind === "found" ? found.manifest.id : found.id;
    if (found.kind === "broken") this.fail(found.reason);
  }

  get manifest(): Manifest | undefined {
    return this.found.kind === "found" ? this.found.manifest : undefined;
  }

  get enabled(): boolean {
    return this.manifest?.enabled ?? true;
  }

  /** Whether it takes part, or is about to. */
  get usable(): boolean {
    return this.state !== "ERROR" && this.enabled;
  }

  /** Keeps what takes a wiring back. For one that has failed meanwhile it is taken back at once. */
  wired(undo: () => void): void {
    if (this.closed) undo();
    else this.#undo.push(undo);
  }

  /** Takes back everything that was wired, last first. */
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
