/**
 * The options of a kernel, the parts for its capabilities, and its health.
 */
import type { App } from "../app/app.ts";
import type { EventBus } from "../bus/event-bus.ts";
import type { RetentionPolicy } from "../bus/retention.ts";
import type { Pattern } from "../cells/piece.ts";
import type { Resumed } from "../cells/pieces.ts";
import type { Space } from "../cells/space.ts";
import type { ExtensionSources } from "../extensions/discovery.ts";
import type { ExtensionStatus } from "../extensions/extension-record.ts";
import type { Log } from "../extensions/logger.ts";
import type { Host } from "../host/host.ts";
import type { Capability } from "../loop/capability.ts";
import type { Observer } from "../loop/observation.ts";
import { unknownOption } from "../message/near-word.ts";
import type { ReceiptPolicy } from "../store/receipt-keeper.ts";
import type { Store } from "../store/store.ts";
import type { WorkHealth } from "../work/work-board.ts";
import type { KernelLimits } from "./kernel-limits.ts";

/** The parts from which capabilities are built. */
export interface KernelParts {
  readonly host: Host;
  readonly store: Store;
  readonly bus: EventBus;
  readonly space: Space;
}

/** Options of `Kernel.open`. */
export interface KernelOptions {
  /** Clock and randomness; defaults to those of the process. */
  readonly host?: Host;
  /** Opened by the caller; closed by the kernel. */
  readonly store: Store;
  /** Apps that it runs, each in a space of its own name. */
  readonly apps?: readonly App[];
  readonly capabilities?:
    | Readonly<Record<string, Capability>>
    | ((parts: KernelParts) => Readonly<Record<string, Capability>>);
  /** A folder of extensions, or single ones. */
  readonly extensions?: ExtensionSources;
  /** The extension whose agent answers if several have one; default: the first. */
  readonly agent?: string;
  /** Folder for files of extensions; default: `.millrace/extensions`, or below `MILLRACE_DIR`. */
  readonly extensionData?: string;
  /** Log output of extensions; default: warnings and errors on stderr. */
  readonly log?: Log;
  /** Patterns whose pieces are resumed at boot; other pieces stay unchanged and are named by `health`. */
  readonly patterns?: readonly Pattern[];
  /**
   * Keeps computed values over a restart; without it, values are computed again when they are read. Names the app's
   * code: a computed value is reused if its function and this version are the same, so change it with code that the
   * functions call.
   */
  readonly version?: string;
  /** The socket's path; default: no socket. */
  readonly socketPath?: string;
  /**
   * The clearance of socket clients, as names of labels; default: unlimited. They reach `Memory.*`, which then
   * answers within it, and capabilities with a clearance within it; other requests are refused with 403.
   */
  readonly clearance?: readonly string[];
  /** Limits of clients, mailboxes, handlers and documents; defaults are in `limits.ts`. */
  readonly limits?: KernelLimits;
  /** Retention of handled events; default: 30 days. Dead letters stay. */
  readonly retention?: RetentionPolicy;
  /** Timeout of a client's request, answered with 504. */
  readonly requestTimeoutMs?: number;
  /**
   * How long receipts are kept, counted from the creation of the message; default: 30 days. An older message is
   * refused as too old, also if it comes for the first time.
   */
  readonly receipts?: ReceiptPolicy;
  /**
   * How long this process holds an event without a renewal; another takes it over within two leases. Default 30 s.
   */
  readonly leaseMs?: number;
  /**
   * No other process has the store open: slots of a dead process's schedules are run again at once, not after its
   * lease.
   */
  readonly alone?: boolean;
  /** Receives the kernel's observations (`Sys.*`), including one per routed message. */
  readonly observe?: Observer;
  /** Receives only faults, at no cost for ordinary work. Without both observers, faults go to stderr. */
  readonly observeFaults?: Observer;
  /** Keeps the changes of recent commits and the runs that they caused, for `millrace trace`. Default: off. */
  readonly trace?: boolean;
  /** Name of the kernel's own space. */
  readonly space?: string;
  /**
   * Aborts the boot: opened parts are closed again, and `open` rejects with the signal's reason. No effect after the
   * boot.
   */
  readonly signal?: AbortSignal;
}

/** Throws for an unknown option. */
export function requireKernelOptions(options: KernelOptions): void {
  const problem = unknownOption(options, KNOWN);
  if (problem !== undefined) throw new TypeError(`Kernel.open: ${problem}`);
}

const KNOWN: Readonly<Record<keyof KernelOptions, true>> = {
  ...{
    host: true,
    store: true,
    apps: true,
    capabilities: true,
    extensions: true,
    agent: true,
    extensionData: true,
    log: true,
  },
  ...{ patterns: true, version: true, socketPath: true, clearance: true, limits: true, retention: true },
  ...{ requestTimeoutMs: true, receipts: true, leaseMs: true, alone: true, observe: true, observeFaults: true },
  ...{ trace: true, space: true, signal: true },
};

/** The answer of `Kernel.Health`. */
export interface KernelHealth {
  /** The store's backend, and why it has stopped, if it has. */
  readonly store: {
    readonly backend: string;
    readonly trouble?: string;
    /** While the server of the data cannot be reached: since when, why, and the number of parked writes. */
    readonly away?: { readonly sinceMs: number; readonly reason: string; readonly parked: number };
    /** Acknowledged commits that a restore or failover has lost. */
    readonly historyLost?: string;
  };
  /**
   * `degraded` while the store is away or has lost commits, while a handler is stuck (`work.stuck`), or ten handlers
   * of one actor have timed out and still run.
   */
  readonly state: "running" | "degraded" | "stopping" | "stopped";
  /** Running asynchronous handlers. */
  readonly work: WorkHealth;
  readonly quiescent: boolean;
  readonly recovered: number;
  readonly routes: number;
  readonly subscriptions: number;
  readonly actors: Readonly<Record<string, string>>;
  readonly connections: number;
  readonly extensions: readonly ExtensionStatus[];
  /** Running pieces, and those that could not be resumed. */
  readonly pieces: number;
  readonly piecesLeft: Resumed["left"];
  /** Computed values and effects, and how many of them are observed. */
  readonly nodes: number;
  readonly liveNodes: number;
}
