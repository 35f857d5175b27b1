/**
 * The description of a benchmark: a grid of systems (columns) and workloads (rows). The limit (the bare engine with the
 * same work), the peers (alternatives for a user) and ours run in one run, interleaved, because times on a shared
 * machine vary by 2x from run to run, and ratios of one run do not.
 */

/** How much work a run may do: `quick` fits a minute, `long` may take as long as it needs. */
export type Scale = "quick" | "full" | "long";

export interface Benchmark {
  /** One word, which `npm run bench -- <name>` selects. */
  readonly name: string;
  /** One line for a person. */
  readonly what: string;
  /** Columns, in the order in which each round runs them. Exactly one has the role `ours`. */
  readonly systems: readonly System[];
  /** Whether each round is taken in a process of its own; see `apart.ts`. */
  readonly apart?: true;
  /** Rows, in order. */
  readonly workloads: readonly Workload[];
}

export interface System {
  readonly name: string;
  /** `orientation` is printed and takes part in no ratio. */
  readonly role: "limit" | "ours" | "peer" | "orientation";
  /**
   * Asked once, before the first round: why the system cannot run here (its service or package is missing), if it
   * cannot.
   */
  unavailable?(): Promise<string | undefined>;
}

export interface Workload {
  /** The property that neighbouring workloads share, for example a durability; printed above them. */
  readonly group: string;
  readonly name: string;
  readonly metrics: readonly Metric[];
  /** The smallest scale that includes it; `quick` when left out. */
  readonly from?: Scale;
  /** One run of each system that can do this, by the system's name. A run sets up, measures itself and cleans up. */
  readonly runs: Readonly<Record<string, (scene: Scene) => Promise<Sample>>>;
}

export interface Metric {
  /** Key into the samples, and its label. */
  readonly name: string;
  readonly better: "higher" | "lower";
  /** One or several, all of which are to be reached; absent where the number is only reported. */
  readonly target?: Target | readonly Target[];
}

/** A target: a ratio to the limit, to the best peer or to one system by name, or a bound on our own number. */
export interface Target {
  readonly of: "limit" | "best peer" | "itself" | { readonly system: string };
  readonly atLeast?: number;
  readonly atMost?: number;
}

/** One number for each metric. */
export type Sample = Readonly<Record<string, number>>;

/** The arguments of a run. */
export interface Scene {
  readonly scale: Scale;
  /** An empty directory, gone after the run. */
  readonly directory: string;
  /** A directory that is built once, by the first run that asks for it, and kept until the benchmark ends. */
  shared(name: string, build: (directory: string) => Promise<void>): Promise<string>;
}
