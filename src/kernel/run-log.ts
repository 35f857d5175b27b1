/**
 * The changes of recent commits and the nodes that ran because of them, for `millrace trace`. In memory, bounded, and
 * only with `KernelOptions.trace`: then a commit costs one entry here, and a run one in the scheduler's trace.
 *
 * A run belongs to a commit if it came later and was caused by one of its changes, or by the output of such a run. A
 * run for several commits belongs to each of them. A restart begins with an empty log.
 */
import type { Space } from "../cells/space.ts";
import { COMMITS_TRACED_MAX, TRACED_VALUE_BYTES_MAX } from "../limits.ts";
import type { Json } from "../message/json.ts";
import { placeText } from "../message/path.ts";
import type { Scheduler } from "../scheduler/scheduler.ts";
import type { TraceEntry } from "../scheduler/trace.ts";
import type { Change, Notification } from "../store/change.ts";
import type { CommitIdentity } from "../store/commit.ts";

/** Characters shown of a long value. */
const CUT_CHARACTERS = 200;

export interface TracedChange {
  readonly document: string;
  readonly path: readonly string[];
  /** Absent if there was no value. */
  readonly before?: Json;
  readonly after?: Json;
}

export interface TracedRun {
  readonly node: string;
  readonly kind: TraceEntry["kind"];
  readonly because: readonly string[];
  readonly detail?: string;
}

export interface TracedCommit extends CommitIdentity {
  readonly changes: readonly TracedChange[];
  readonly runs: readonly TracedRun[];
}

interface Entry {
  readonly changes: readonly Change[];
  /** The scheduler's last trace entry when the commit was applied; later entries came after it. */
  readonly after: TraceEntry | undefined;
}

export class RunLog {
  readonly #scheduler: Scheduler;
  readonly #entries = new Map<string, Entry>();
  readonly #unsubscribe: (() => void)[] = [];

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
    scheduler.setTraceEnabled("run", true);
  }

  /** Notes the commits of a space of the scheduler. */
  add(space: Space): void {
    this.#unsubscribe.push(space.replica(space.name).subscribe((notification) => this.#noted(notification)));
  }

  close(): void {
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
  }

  /** Undefined for a commit of another process or an old one. */
  find(commit: CommitIdentity): TracedCommit | undefined {
    const entry = this.#entries.get(keyOf(commit));
    if (!entry) return undefined;
    const { session, localSequence } = commit;
    return { session, localSequence, changes: entry.changes.map(traced), runs: this.#runsBecause(entry) };
  }

  #noted({ kind, commit, changes }: Notification): void {
    if (kind !== "commit" || commit === undefined) return;
    this.#entries.set(keyOf(commit), { changes, after: this.#scheduler.getTrace().at(-1) });
    if (this.#entries.size <= COMMITS_TRACED_MAX) return;
    const [oldest] = this.#entries.keys();
    this.#entries.delete(oldest as string);
  }

  #runsBecause({ changes, after }: Entry): TracedRun[] {
    const trace = this.#scheduler.getTrace();
    const outputs = new Map(this.#scheduler.getGraphSnapshot().map(({ id, writes }) => [id, writes]));
    const causes: string[] = changes.map(({ scope, id, path }) => addressText(scope, id, path));
    const runs = new Map<string, TracedRun>();
    // If the mark was dropped from a long trace, `indexOf` is -1, and all remaining entries came later.
    for (const { node, kind, because, detail } of trace.slice(after ? trace.indexOf(after) + 1 : 0)) {
      if (runs.has(node) || !because.some((cause) => causes.some((changed) => concerns(changed, cause)))) continue;
      runs.set(node, { node, kind, because, ...(detail === undefined ? {} : { detail }) });
      causes.push(...(outputs.get(node) ?? []));
    }
    return [...runs.values()];
  }
}

function keyOf({ session, localSequence }: CommitIdentity): string {
  return `${session} ${localSequence}`;
}

/** In the scheduler's address format. */
function addressText(scope: string, id: string, path: readonly string[]): string {
  const document = scope === "space" ? id : `${scope}:${id}`;
  return placeText(document, path);
}

/** Whether two addresses in the scheduler's format are equal or one is above the other. */
export function concerns(a: string, b: string): boolean {
  const [short, long] = a.length <= b.length ? [a, b] : [b, a];
  if (short === long) return true;
  return long.startsWith(short) && (long.startsWith(" /", short.length) || long.startsWith("/", short.length));
}

function traced({ scope, id, path, before, after }: Change): TracedChange {
  return {
    document: addressText(scope, id, []),
    path,
    ...(before === undefined ? {} : { before: cut(before) }),
    ...(after === undefined ? {} : { after: cut(after) }),
  };
}

/** The value, or its beginning and length. */
export function cut(value: Json): Json {
  const text = JSON.stringify(value);
  if (text.length <= TRACED_VALUE_BYTES_MAX) return value;
  return { cut: text.slice(0, CUT_CHARACTERS), characters: text.length };
}
