/** Shared by the cases of `describeOnce`: the trial of a case, and handlers. */
import type { Cell } from "../../src/cells/cell.ts";
import type { Json } from "../../src/message/json.ts";
import type { Tx } from "../../src/work/tx.ts";
import type { Fault, LineCall } from "../store/faulty-store.ts";
import type { Ability, CaseHandler, Ended, Entry, EntryPoint } from "./entry-points.ts";
import type { Process, World } from "./world.ts";

/** Where a case is tried: one entry point of one process, or of several. */
export interface Trial {
  readonly world: World;
  readonly process: Process;
  readonly total: Cell<number>;
  readonly entryPoint: EntryPoint;
  readonly entry: Entry;
  readonly isAsync: boolean;
  /** Calls of the handler so far, in all processes. */
  readonly calls: () => number;
  readonly handle: (id?: string, data?: Json) => Promise<Ended>;
  /** A second process on the same disk with the same handler. */
  readonly restart: () => Promise<Trial>;
}

export type Body = (trial: Trial) => Promise<void>;

export interface Case {
  /** Begins with its rule. */
  readonly title: string;
  /** The parts of entry points that it uses. */
  readonly needs?: readonly Ability[];
  /** Of the handler. */
  readonly clearance?: readonly string[];
  readonly handler: (process: Process) => CaseHandler;
  readonly body: Body;
}

export const ID = "0199a3f2-0000-7000-8000-000000000001";
/** Far ahead of the simulation's clock. */
export const FUTURE_ID = "0fffffff-0000-7000-8000-000000000001";

/** A constant, because linters refuse objects with this key. */
export const THEN = "then";

export const totalOf = ({ space }: Process) => space.cell<number>("total", 0);

/** Adds one to the total and gives the sum. */
export const add = (process: Process) => {
  const total = totalOf(process);
  return (_data: Json, tx: Tx) => {
    const sum = (tx.get(total) ?? 0) + 1;
    tx.set(total, sum);
    return sum;
  };
};

export const adds = (process: Process): CaseHandler => add(process);

/** Changes the first commit that writes the total. */
export function atFirst(fault: Fault, more: (call: LineCall) => boolean = writesTotal) {
  let isFirst = true;
  return (call: LineCall): Fault => {
    if (!isFirst || !more(call)) return {};
    isFirst = false;
    return fault;
  };
}

export function writesTotal({ request }: LineCall): boolean {
  return request?.patches.some(({ id }) => id === "total") ?? false;
}

export const tick = ({ host }: Process) => new Promise<void>((resolve) => void host.timer(5, resolve));

export const done = (result: Json): Ended => ({ kind: "done", result });
