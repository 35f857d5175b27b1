/**
 * Checks a history of transactions that append unique numbers to lists and read them (the list-append test of Elle,
 * Kingsbury and Alvaro, VLDB 2020). A read list shows the order of the appends, so dependencies follow from it:
 *
 *   ww  a transaction appended directly after another one     wr  a read shows the append of another one
 *   rw  a read does not show the next append of another one   rt  a transaction ended before another one began
 *
 * A cycle is an anomaly. Without `rt` the history is not serializable, with `rt` it is not strict. Other anomalies need
 * no graph: a lost or repeated append, an aborted or intermediate read, two reads of which none is a prefix of the
 * other.
 */

export type Operation =
  | { readonly op: "append"; readonly key: string; readonly value: number }
  | { readonly op: "read"; readonly key: string; readonly values: readonly number[] };

export interface Run {
  readonly id: number;
  /**
   * `unknown`: its answer was lost, so it may have happened. The reads of failed and unknown runs count for nothing.
   */
  readonly status: "ok" | "failed" | "unknown";
  /** On one clock for all processes; the end of an unknown run is not used. */
  readonly beganAt: number;
  readonly endedAt: number;
  readonly operations: readonly Operation[];
}

export type AnomalyKind =
  | "G0"
  | "G1a"
  | "G1b"
  | "G1c"
  | "G-single"
  | "G2"
  | "not-strict"
  | "lost"
  | "twice"
  | "phantom"
  | "incompatible-order"
  | "internal";

export interface Anomaly {
  readonly kind: AnomalyKind;
  readonly about: string;
}

type EdgeKind = "ww" | "wr" | "rw" | "rt";
type Edges = Map<number, Map<number, EdgeKind>>;

/** `final`: the lists after the end of all runs, by key. */
export function checkHistory(runs: readonly Run[], final: ReadonlyMap<string, readonly number[]>): readonly Anomaly[] {
  const check = new Check(runs, final);
  check.reads();
  check.lists();
  check.cycles();
  return check.anomalies;
}

class Check {
  readonly anomalies: Anomaly[] = [];
  readonly #runs: readonly Run[];
  readonly #final: ReadonlyMap<string, readonly number[]>;
  /** The run that appended a value. Values are unique over all keys. */
  readonly #writers = new Map<number, { readonly run: Run; readonly key: string }>();

  constructor(runs: readonly Run[], final: ReadonlyMap<string, readonly number[]>) {
    this.#runs = runs;
    this.#final = final;
    for (const run of runs)
      for (const one of run.operations) {
        if (one.op !== "append") continue;
        if (this.#writers.has(one.value)) throw new Error(`the value ${one.value} was appended by two runs`);
        this.#writers.set(one.value, { run, key: one.key });
      }
  }

  #note(kind: AnomalyKind, about: string): void {
    this.anomalies.push({ kind, about });
  }

  /** The result of one read. */
  reads(): void {
    for (const run of this.#runs) {
      if (run.status !== "ok") continue;
      const appended = new Map<string, number[]>();
      const readBefore = new Map<string, readonly number[]>();
      for (const one of run.operations) {
        const own = appended.get(one.key) ?? [];
        if (one.op === "append") {
          appended.set(one.key, [...own, one.value]);
          continue;
        }
        this.#checkList(`run ${run.id}`, one.key, one.values, run);
        const before = readBefore.get(one.key);
        const isOwn = own.every((value, at) => one.values.at(at - own.length) === value);
        const others = one.values.slice(0, one.values.length - own.length);
        if (!isOwn || (before !== undefined && !isSame(others, before)))
          this.#note(
            "internal",
            `run ${run.id} does not read its own appends to ${one.key}, or another list than before`,
          );
        readBefore.set(one.key, others);
      }
    }
    for (const [key, values] of this.#final) this.#checkList("the end", key, values, undefined);
  }

  #checkList(who: string, key: string, values: readonly number[], reader: Run | undefined): void {
    if (new Set(values).size < values.length) this.#note("twice", `${who} reads a value twice in ${key}: ${values}`);
    for (const value of values) {
      const writer = this.#writers.get(value);
      if (writer === undefined || writer.key !== key) this.#note("phantom", `${who} reads ${value} in ${key}`);
      else if (writer.run.status === "failed")
        this.#note("G1a", `${who} reads ${value} in ${key}, of run ${writer.run.id}, which failed`);
    }
    // Each run's appends to a list are there as a whole.
    const last = values.at(-1);
    const writer = last === undefined ? undefined : this.#writers.get(last);
    if (writer === undefined || writer.run === reader) return;
    const own = appendsOf(writer.run, key);
    if (own.at(-1) !== last) this.#note("G1b", `${who} reads ${key} in the middle of run ${writer.run.id}`);
  }

  /** The order of each list: every read is a prefix of the list at the end, and no acknowledged append is missing. */
  lists(): void {
    for (const run of this.#runs) {
      if (run.status !== "ok") continue;
      for (const one of run.operations) {
        const list = this.#final.get(one.key) ?? [];
        if (one.op === "append") {
          if (!list.includes(one.value)) this.#note("lost", `run ${run.id} appended ${one.value} to ${one.key}`);
        } else if (!isSame(one.values, list.slice(0, one.values.length)))
          this.#note("incompatible-order", `run ${run.id} reads ${one.values} in ${one.key}, and the end is ${list}`);
      }
    }
  }

  cycles(): void {
    const data = this.#dependencies();
    const found = this.#findCycles(data);
    const isFound = found.length > 0;
    if (!isFound) this.#findCycles(withRealTime(data, this.#runs));
  }

  #findCycles(edges: Edges): readonly number[][] {
    const cycles = components(edges).flatMap((component) => {
      const cycle = shortestCycle(edges, new Set(component));
      return cycle === undefined ? [] : [cycle];
    });
    for (const cycle of cycles) {
      const kinds = cycle.map((from, at) => edges.get(from)?.get(cycle[(at + 1) % cycle.length] as number) as EdgeKind);
      const text = cycle.map((id, at) => `run ${id} -${kinds[at]}->`).join(" ");
      this.#note(kindOf(kinds), `${text} run ${cycle[0]}`);
    }
    return cycles;
  }

  #dependencies(): Edges {
    const edges: Edges = new Map();
    const add = (from: Run | undefined, to: Run | undefined, kind: EdgeKind) => {
      if (from === undefined || to === undefined || from === to) return;
      addEdge(edges, from.id, to.id, kind);
    };
    const writerOf = (value: number | undefined) => (value === undefined ? undefined : this.#writers.get(value)?.run);
    for (const values of this.#final.values())
      for (const [at, value] of values.entries()) if (at > 0) add(writerOf(values[at - 1]), writerOf(value), "ww");
    for (const run of this.#runs) {
      if (run.status !== "ok") continue;
      for (const one of run.operations) {
        if (one.op !== "read") continue;
        const list = this.#final.get(one.key) ?? [];
        add(writerOf(one.values.at(-1)), run, "wr");
        // The first append after the read that is not the run's own.
        const next = list.slice(one.values.length).find((value) => writerOf(value) !== run);
        add(run, writerOf(next), "rw");
      }
    }
    return edges;
  }
}

/** The kind of a cycle, after Adya: the weakest level that forbids it. */
function kindOf(kinds: readonly EdgeKind[]): AnomalyKind {
  if (kinds.includes("rt")) return "not-strict";
  const reads = kinds.filter((kind) => kind === "rw").length;
  if (reads > 1) return "G2";
  if (reads === 1) return "G-single";
  return kinds.includes("wr") ? "G1c" : "G0";
}

/** The stronger edge stays: one of the data tells more than one of time, and `ww` more than `wr` and `rw`. */
const RANK: Readonly<Record<EdgeKind, number>> = { ww: 0, wr: 1, rw: 2, rt: 3 };

function addEdge(edges: Edges, from: number, to: number, kind: EdgeKind): void {
  const out = edges.get(from) ?? new Map<number, EdgeKind>();
  edges.set(from, out);
  const known = out.get(to);
  if (known === undefined || RANK[kind] < RANK[known]) out.set(to, kind);
}

function withRealTime(edges: Edges, runs: readonly Run[]): Edges {
  const all: Edges = new Map([...edges].map(([from, out]) => [from, new Map(out)]));
  for (const from of runs) {
    if (from.status !== "ok") continue;
    for (const to of runs) if (to.status !== "failed" && from.endedAt < to.beganAt) addEdge(all, from.id, to.id, "rt");
  }
  return all;
}

/** Strongly connected components of more than one node (Tarjan), without recursion. */
function components(edges: Edges): readonly (readonly number[])[] {
  const index = new Map<number, number>();
  const low = new Map<number, number>();
  const stack: number[] = [];
  const onStack = new Set<number>();
  const found: number[][] = [];
  const open = (node: number) => {
    index.set(node, index.size);
    low.set(node, index.size - 1);
    stack.push(node);
    onStack.add(node);
    return { node, next: [...(edges.get(node)?.keys() ?? [])].values() };
  };
  for (const root of edges.keys()) {
    if (index.has(root)) continue;
    const path = [open(root)];
    for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
      const { node } = top;
      const { value: to, done } = top.next.next();
      if (done !== true) {
        if (!index.has(to)) path.push(open(to));
        else if (onStack.has(to)) low.set(node, Math.min(low.get(node) as number, index.get(to) as number));
        continue;
      }
      path.pop();
      const above = path.at(-1)?.node;
      if (above !== undefined) low.set(above, Math.min(low.get(above) as number, low.get(node) as number));
      if (low.get(node) !== index.get(node)) continue;
      const component = stack.splice(stack.lastIndexOf(node));
      for (const one of component) onStack.delete(one);
      if (component.length > 1) found.push(component);
    }
  }
  return found;
}

/** A shortest cycle inside a component, by a search from each of its nodes. */
function shortestCycle(edges: Edges, component: ReadonlySet<number>): number[] | undefined {
  let best: number[] | undefined;
  for (const start of component) {
    const cycle = cycleThrough(edges, component, start);
    if (cycle !== undefined && (best === undefined || cycle.length < best.length)) best = cycle;
    if (best?.length === 2) break;
  }
  return best;
}

function cycleThrough(edges: Edges, component: ReadonlySet<number>, start: number): number[] | undefined {
  const before = new Map<number, number>();
  let wave = [start];
  while (wave.length > 0) {
    const next: number[] = [];
    for (const node of wave)
      for (const to of edges.get(node)?.keys() ?? []) {
        if (to === start) {
          const cycle = [node];
          for (let at = before.get(node); at !== undefined; at = before.get(at)) cycle.unshift(at);
          return cycle;
        }
        if (!component.has(to) || before.has(to)) continue;
        before.set(to, node);
        next.push(to);
      }
    wave = next;
  }
  return undefined;
}

function appendsOf(run: Run, key: string): readonly number[] {
  return run.operations.flatMap((one) => (one.op === "append" && one.key === key ? [one.value] : []));
}

function isSame(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((value, at) => value === b[at]);
}
