/** What a kernel is opened with, what its capabilities are built from, and what it says of itself. */
import type { App } from "../app/app.ts";
import type { EventBus } from "../bus/event-bus.ts";
import type { RetentionPolicy } from "../bus/retention.ts";
import type { Pattern } from "../cells/pattern.ts";
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

/** What capabilities may be built from. */
export interface KernelParts {
  readonly host: Host;
  readonly store: Store;
  readonly bus: EventBus;
  readonly space: Space;
}

export interface KernelOptions {
  /** Time and chance; those of the process unless given. */
  readonly host?: Host;
  /** Opened by the caller, who may want another backend; closed by the kernel. */
  readonly store: Store;
  /** Apps that it runs, each in a space of its own name. */
  readonly apps?: readonly App[];
  readonly capabilities?:
    | Readonly<Record<string, Capability>>
    | ((parts: KernelParts) => Readonly<Record<string, Capability>>);
  /** A folder of extensions, or each by itself. */
  readonly extensions?: ExtensionSources;
  /** Whose agent answers where several extensions offer one; the first one's unless given. */
  readonly agent?: string;
  /** Where extensions keep files of their own; `.millrace/extensions`, or below `MILLRACE_DIR`, unless given. */
  readonly extensionData?: string;
  /** What extensions say; warnings and errors go to the error output unless given. */
  readonly log?: Log;
  /** Patterns whose pieces are taken up again at boot; those of others are left as they are, and named by `health`. */
  readonly patterns?: readonly Pattern[];
  /**
   * Keeps what is computed over a restart; without it, values are computed again when somebody looks. Names the app's code: a computation
   * is taken up again if its function and this version are the same, so change it with whatever the functions call.
   */
  readonly version?: string;
  /** Where to listen; no socket unless given. */
  readonly socketPath?: string;
  /**
   * What clients of the socket may know, by the names of labels; without one, everything. They reach `Memory.*`, which then answers
   * what lies within, and capabilities that have a clearance within it themselves; the rest is refused with 403.
   */
  readonly clearance?: readonly string[];
  /** What clients, mailboxes, handlers and documents may cost; each by itself, and what `limits.ts` says unless given. */
  readonly limits?: KernelLimits;
  /** Which handled events are removed from the journal; those of more than 30 days ago unless `maxAgeMs` is given. Dead letters stay. */
  readonly retention?: RetentionPolicy;
  /** After this long a client's request is answered with 504. */
  readonly requestTimeoutMs?: number;
  /**
   * For how long the handling of a message or send is remembered, from when that was made; 30 days unless given. A message that is older than
   * `keepMs` and comes again is refused as too old, and so is one that comes for the first time.
   */
  readonly receipts?: ReceiptPolicy;
  /** How long this process holds an event without a sign of life; another takes it over within two leases. Default 30 s. */
  readonly leaseMs?: number;
  /** No other process has the store open: what a dead one was running by a schedule is run again at once, not when its lease is over. */
  readonly alone?: boolean;
  /** Hears what the kernel says of itself (`Sys.*`), of every message that is routed too. */
  readonly observe?: Observer;
  /** Hears of what has failed, which costs ordinary work nothing. Unless one of the two is given, that goes to the error output. */
  readonly observeFaults?: Observer;
  /** Keeps what recent commits changed and which nodes ran because of them, for `millrace trace`. Off unless asked for. */
  readonly trace?: boolean;
  /** Name of the kernel's own space. */
  readonly space?: string;
  /** Gives up the boot: what was opened is closed again, and `open` rejects with the signal's reason. After the boot it means nothing. */
  readonly signal?: AbortSignal;
}

/** Throws for an option that is not known. */
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

export interface KernelHealth {
  /** Which store it is on, and why that has stopped, if it has. */
  readonly store: { readonly backend: string; readonly trouble?: string };
  /** `degraded` while a handler is stuck (`work.stuck`). */
  readonly state: "running" | "degraded" | "stopping" | "stopped";
  /** Asynchronous handlers that run. */
  readonly work: WorkHealth;
  readonly quiescent: boolean;
  readonly recovered: number;
  readonly routes: number;
  readonly subscriptions: number;
  readonly actors: Readonly<Record<string, string>>;
  readonly connections: number;
  readonly extensions: readonly ExtensionStatus[];
  /** Pieces that run, and those that could not be taken up again. */
  readonly pieces: number;
  readonly piecesLeft: Resumed["left"];
  /** Computations and effects, and how many of them somebody looks at. */
  readonly nodes: number;
  readonly liveNodes: number;
}
