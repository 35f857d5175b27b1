/**
 * Random programs for twin runs. Cells have no label, "a" or "b". Computed values choose, follow, fail and catch.
 * Processes count their runs, forget the place that woke them, write, create nodes, send and wait behind gates.
 * Handlers and transactions read and pass values on (`twin-streams.ts`). Observers with a clearance note the values
 * that they are shown, their number and their order.
 *
 * A program runs with two sets of secrets. An observer below the secrets must note the same in both.
 */
import fc from "fast-check";
import type { Cell } from "../../src/cells/cell.ts";
import type { Space } from "../../src/cells/space.ts";
import type { Stream } from "../../src/cells/stream.ts";
import { LabelError } from "../../src/store/label.ts";
import { setup } from "../scheduler/scheduler-setup.ts";
import { eventNote, type HandlerSpec, handlers, makeStreams, STREAMS } from "./twin-streams.ts";
import { numberOf } from "./twin-values.ts";

interface ProgramSite {
  readonly space: Space;
  /** Cells, outs and computed values. */
  readonly places: readonly Cell<unknown>[];
  readonly streams: readonly Stream<number>[];
}

/** Which of the two worlds a run lives in. */
export type World = 0 | 1;

const LOW = 3;
const CELLS = 6;
/** The last three of the cells: one with "a", two with "b". */
const LABELS = [[], [], [], ["a"], ["b"], ["b"]] as const;
const OUTS = 4;
const OUT_LABELS = [[], [], ["a"], ["a", "b"]] as const;

interface Expression {
  readonly kind: "sum" | "choose" | "point" | "fail" | "catch" | "shape";
  /** Places, counted over cells, outs and the computed values before this one. */
  readonly of: readonly [number, number, number];
  readonly clearance: readonly string[] | undefined;
}

interface Process {
  readonly reads: readonly [number, number];
  /** Looks at its second place only in so many first runs, or when the first place is above this. */
  readonly firstRuns: number;
  readonly above: number;
  readonly out: number;
  readonly writes: "count" | "value" | "causes" | "first";
  readonly makes: boolean;
  /** The stream to which it sends the values that it has read. */
  readonly sends: number | undefined;
  /** Throws at its end if this is the sum of the values that it has read. */
  readonly failsAt: number;
  readonly debounceMs: number;
  readonly clearance: readonly string[] | undefined;
}

type Step =
  | { readonly kind: "set"; readonly cell: number; readonly values: readonly [number, number] }
  | { readonly kind: "settle" }
  | { readonly kind: "advance"; readonly ms: number }
  | { readonly kind: "observe"; readonly place: number; readonly clearance: readonly string[] }
  | { readonly kind: "drop"; readonly process: number }
  | { readonly kind: "send"; readonly stream: number; readonly value: number }
  | { readonly kind: "transact"; readonly stream: number; readonly reads: number; readonly above: number };

export interface Program {
  readonly computed: readonly Expression[];
  readonly processes: readonly Process[];
  readonly handlers: readonly HandlerSpec[];
  readonly steps: readonly Step[];
}

const clearance: fc.Arbitrary<readonly string[] | undefined> = fc.constantFrom(
  undefined,
  undefined,
  undefined,
  [],
  ["a"],
);
const place = fc.nat(30);
const value = fc.nat(3);

const computed: fc.Arbitrary<Expression[]> = fc.array(
  fc.record({
    kind: fc.constantFrom("sum", "choose", "choose", "point", "fail", "catch", "shape"),
    of: fc.tuple(place, place, place),
    clearance,
  }),
  { minLength: 1, maxLength: 6 },
);

function processes(sends: Process["sends"][], debounceMs: number[]): fc.Arbitrary<Process[]> {
  return fc.array(
    fc.record({
      reads: fc.tuple(place, place),
      firstRuns: fc.nat(2),
      above: fc.nat(3),
      out: fc.nat(OUTS - 1),
      writes: fc.constantFrom("count", "value", "causes", "first"),
      makes: fc.boolean(),
      sends: fc.constantFrom(...sends),
      failsAt: fc.nat(6),
      debounceMs: fc.constantFrom(...debounceMs),
      clearance,
    }),
    { maxLength: 4 },
  );
}

const steps: fc.WeightedArbitrary<Step>[] = [
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("set" as const),
      cell: fc.nat(CELLS - 1),
      values: fc.tuple(value, value),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("settle" as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("advance" as const), ms: fc.nat(20) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("observe" as const),
      place,
      clearance: fc.constantFrom<string[]>([], ["a"]),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("drop" as const), process: fc.nat(3) }) },
];

const sending: fc.WeightedArbitrary<Step>[] = [
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("send" as const), stream: fc.nat(STREAMS - 1), value }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("transact" as const),
      stream: fc.nat(STREAMS - 1),
      reads: place,
      above: value,
    }),
  },
];

/** Cells, computed values and processes. */
export const programs: fc.Arbitrary<Program> = fc.record({
  computed,
  processes: processes([undefined], [0, 0, 0, 10]),
  handlers: fc.constant([]),
  steps: fc.array(fc.oneof(...steps), { minLength: 3, maxLength: 14 }),
});

/**
 * The same with streams, and without gates: whether a gate is closed shows in how sends and runs take turns, and that
 * is time.
 */
export const streamPrograms: fc.Arbitrary<Program> = fc.record({
  computed,
  processes: processes([undefined, 0, 1, 2], [0]),
  handlers,
  steps: fc.array(fc.oneof(...steps, ...sending), { minLength: 3, maxLength: 14 }),
});

/** The values shown to observers, in order, with the clearance of each observer. */
export interface Note {
  readonly clearance: readonly string[];
  readonly what: string;
}

/** `secret` says which labels' values differ between the two worlds. */
export async function runTwin(program: Program, world: World, secret: readonly string[]): Promise<Note[]> {
  const { space, host, line, quiet } = await setup();
  const notes: Note[] = [];
  const places = makePlaces(space, program);
  await quiet();
  const streams = makeStreams({ space, places, outs: places.slice(CELLS, CELLS + OUTS), notes }, program.handlers);
  const site: ProgramSite = { space, places, streams };
  const cancels = program.processes.map((process, i) => startProcess(site, process, i));
  for (const clearance of [[], ["a"]]) observeAll(space, places, clearance, notes);
  await quiet();
  for (const [i, step] of program.steps.entries()) {
    for (const clearance of [[], ["a"]]) notes.push({ clearance, what: `step ${i}` });
    switch (step.kind) {
      case "set": {
        const isSecret = LABELS[step.cell]?.some((name) => secret.includes(name)) ?? false;
        (places[step.cell] as Cell<number>).set(step.values[isSecret ? world : 0]);
        break;
      }
      case "settle":
        await quiet();
        break;
      case "advance":
        await host.advance(step.ms);
        break;
      case "observe": {
        const cell = places[step.place % places.length] as Cell<unknown>;
        observe(space, cell, step.clearance, `late ${i}`, notes);
        break;
      }
      case "drop":
        cancels[step.process]?.();
        break;
      case "send":
        await quiet();
        streams[step.stream]?.send(step.value);
        await quiet();
        break;
      case "transact":
        await quiet();
        transact(site, step);
        await quiet();
        break;
    }
  }
  await host.advance(10_000);
  for (const row of await line.store.query({ limit: 1_000 })) {
    const { label, what } = eventNote(row);
    notes.push({ clearance: label, what });
  }
  space.scheduler.checkInvariants();
  // Not waited for: a program may never come to rest.
  void space.close();
  return notes;
}

function makePlaces(space: Space, { computed }: Program): Cell<unknown>[] {
  const places: Cell<unknown>[] = [];
  for (let i = 0; i < CELLS; i++) {
    const cell = space.cell<number>(`cell ${i}`, undefined, { label: LABELS[i] });
    cell.set(i < LOW ? i : 0);
    places.push(cell);
  }
  for (let i = 0; i < OUTS; i++) {
    const cell = space.cell<unknown>(`out ${i}`, undefined, { label: OUT_LABELS[i] });
    cell.set({ n: 0 });
    places.push(cell.key("n" as never));
  }
  for (const [i, expression] of computed.entries()) {
    const [x, y, z] = expression.of.map((n) => places[n % places.length] as Cell<unknown>) as [Cell, Cell, Cell];
    const options = expression.clearance === undefined ? {} : { clearance: expression.clearance };
    places.push(space.computed(`computed ${i}`, () => evaluate(expression.kind, x, y, z), options));
  }
  return places;
}

function evaluate(kind: Expression["kind"], x: Cell, y: Cell, z: Cell): unknown {
  switch (kind) {
    case "sum":
      return numberOf(x.get()) + numberOf(y.get());
    case "choose":
      return numberOf(x.get()) > 1 ? y.get() : z.get();
    case "point":
      return (numberOf(x.get()) % 2 === 0 ? y : z).asLink();
    case "fail":
      if (numberOf(x.get()) === 2) throw new Error("two");
      return y.get();
    case "catch":
      try {
        return numberOf(x.get());
      } catch (error) {
        if (!(error instanceof LabelError)) throw error;
        return y.get();
      }
    case "shape":
      return numberOf(x.get()) > 0 ? { [String(y.get())]: z.get() } : [y.get()];
  }
}

/** The closure counts its runs: the count is a fact that it knows beside its reads. */
function startProcess({ space, places, streams }: ProgramSite, process: Process, index: number): () => void {
  const [x, y] = process.reads.map((n) => places[n % places.length] as Cell<unknown>) as [Cell, Cell];
  const out = places[CELLS + process.out] as Cell<unknown>;
  const { clearance, debounceMs } = process;
  let count = 0;
  return space.effect(
    (run) => {
      count++;
      if (process.writes === "first") out.set(count);
      const first = numberOf(x.get());
      const second = count <= process.firstRuns || first > process.above ? numberOf(y.get()) : 0;
      if (process.makes && second > 0) space.computed(`made ${index}`, () => numberOf(x.get()) + count).get();
      // Bounded, because its sends may wake it.
      if (process.sends !== undefined && count <= 3) streams[process.sends]?.send(first + second);
      if (process.writes === "count") out.set(count);
      if (process.writes === "value") out.set(first + second);
      if (process.writes === "causes") out.set(run.causes.map(String).join());
      if (first + second === process.failsAt + 1) throw new Error("failed");
    },
    { id: `process ${index}`, ...(clearance ? { clearance } : {}), ...(debounceMs > 0 ? { debounceMs } : {}) },
  );
}

/** Sends only if the value read is above a limit, so that the send itself reveals the comparison. */
function transact({ space, places, streams }: ProgramSite, step: Step & { kind: "transact" }): void {
  const code = () => {
    const seen = numberOf(places[step.reads % places.length]?.get());
    if (seen > step.above) streams[step.stream]?.send(seen);
  };
  // The outcome is not noted.
  space.transact(code).catch(() => undefined);
}

function observeAll(space: Space, places: readonly Cell<unknown>[], clearance: readonly string[], notes: Note[]): void {
  for (const [i, place] of places.entries()) observe(space, place, clearance, `${i}`, notes);
}

function observe(space: Space, cell: Cell<unknown>, clearance: readonly string[], name: string, notes: Note[]): void {
  const id = `observer ${name} of ${clearance.join()}`;
  space.effect(
    (run) => {
      const causes = run.causes.map(String).join();
      notes.push({ clearance, what: `${name} because of [${causes}]: ${shown(cell)}` });
    },
    { id, clearance },
  );
}

function shown(cell: Cell<unknown>): string {
  try {
    return JSON.stringify(cell.get()) ?? "nothing";
  } catch (error) {
    if (error instanceof LabelError) return `${error.code} ${error.message}`;
    throw error;
  }
}
