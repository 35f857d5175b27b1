/**
 * The states of a node that components keep for it: its time gate, and the row from which it was resumed. They refer to
 * no other part of the scheduler.
 */
import type { RecordedBasis } from "../store/store.ts";

/** Times are of the host's monotonic clock. */
export interface GateState {
  debounceMs: number;
  /** Where the debounce was set since the registration: the policy does not override application code. */
  debouncedBy: "registration" | "policy" | "application";
  noAutoDebounce: boolean;
  throttleMs: number;
  /** The last invalidation: no run before the debounce has passed since. `NEVER` if it was not timed. */
  changedAt: number;
  /** The end of the last run: no run before the throttle has passed since. `NEVER` if it was not timed. */
  ranAt: number;
  backoffUntil: number;
  /** How often in a row the node exhausted its budget. */
  exhaustions: number;
  /** How often in a row a commit of its writes was rejected. */
  conflicts: number;
  /** Its commit was stale: closed until the changed documents have arrived here. */
  catchingUp: boolean;
  /** A breakpoint: closed until it is released. */
  stopped: boolean;
  /** Whether the node waits for its gate now. */
  held: boolean;
  /** Runs that were slow enough for the automatic debounce. */
  slowRuns: number;
}

/** Gate settings as they are persisted: only differences from the registration. */
export interface GateSettings {
  readonly debounceMs?: number;
  readonly throttleMs?: number;
  readonly noAutoDebounce?: boolean;
}

export interface Persisted {
  /** Differs from that of the row if the code has changed, which makes the row useless. */
  readonly fingerprint: string;
}

/** A stored row in the format of `basis-row.ts`. */
export interface Observation extends Pick<RecordedBasis, "inputs" | "output"> {
  readonly settings: RowSettings;
}

interface RowSettings {
  /** The digest of all values that the run read. */
  readonly seen: string;
  readonly gate?: GateSettings;
  /** The text of the error that the last run threw. */
  readonly error?: string;
  readonly creates?: boolean;
  /** Some inputs are not stored, so the row alone cannot prove that no input changed. */
  readonly open?: boolean;
}
