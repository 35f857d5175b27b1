/**
 * The streams of a twin run: handlers that read, write, count, pass on, publish and fail, with or without a clearance.
 * A handler with a clearance is an observer: it notes its values, their ids and their order.
 */
import fc from "fast-check";
import type { Cell } from "../../src/cells/cell.ts";
import type { Space } from "../../src/cells/space.ts";
import type { Stream } from "../../src/cells/stream.ts";
import type { JournalRow } from "../../src/store/journal.ts";
import { LabelError } from "../../src/store/label.ts";
import type { Tx } from "../../src/work/tx.ts";
import { numberOf } from "./twin-values.ts";

export const STREAMS = 3;

export interface HandlerSpec {
  readonly reads: readonly [number, number];
  /** Reads its second place only if the value sent plus the first place is above this. */
  readonly above: number;
  readonly writes: "nothing" | "value" | "before";
  readonly out: number;
  /** The stream to which it passes a value, before or after its reads. */
  readonly passes: { readonly to: number; readonly first: boolean } | undefined;
  readonly emits: "nothing" | "before" | "after";
  readonly failsAt: number;
  readonly catches: boolean;
  readonly clearance: readonly string[] | undefined;
}

const place = fc.nat(30);

export const handlers: fc.Arbitrary<readonly HandlerSpec[]> = fc.array(
  fc.record({
    reads: fc.tuple(place, place),
    above: fc.nat(5),
    writes: fc.constantFrom("nothing", "value", "before"),
    out: fc.nat(3),
    passes: fc.option(fc.record({ to: fc.nat(STREAMS - 1), first: fc.boolean() }), { nil: undefined }),
    emits: fc.constantFrom("nothing", "nothing", "before", "after"),
    failsAt: fc.nat(9),
    catches: fc.boolean(),
    clearance: fc.constantFrom<readonly string[] | undefined>(undefined, [], [], ["a"]),
  }),
  { minLength: STREAMS, maxLength: STREAMS },
);

export interface StreamNote {
  readonly clearance: readonly string[];
  readonly what: string;
}

export interface Handled {
  readonly space: Space;
  /** Cells, outs and computed values. */
  readonly places: readonly Cell<unknown>[];
  readonly outs: readonly Cell<unknown>[];
  readonly notes: StreamNote[];
}

export function makeStreams(site: Handled, specs: readonly HandlerSpec[]): readonly Stream<number>[] {
  const streams = specs.map((_, i) => site.space.stream<number>(`stream ${i}`));
  for (const [i, spec] of specs.entries()) handle(site, streams, spec, i);
  return streams;
}

function handle(
  { places, outs, notes }: Handled,
  streams: readonly Stream<number>[],
  spec: HandlerSpec,
  index: number,
): void {
  const { clearance, writes, passes, emits, catches } = spec;
  const [x, y] = spec.reads.map((n) => places[n % places.length]) as [Cell<unknown>, Cell<unknown>];
  const out = outs[spec.out] as Cell<unknown>;
  const look = (cell: Cell<unknown>): number => {
    try {
      return numberOf(cell.get());
    } catch (error) {
      if (!catches || !(error instanceof LabelError)) throw error;
      return 9;
    }
  };
  const run = (value: number, context: Tx, note: (what: string) => void) => {
    note(`is given ${value} as ${context.id} ${context.attempt} ${context.newId()}`);
    // Values passed on become smaller, so that no cycle of streams runs for ever.
    const pass = (less: number) => {
      if (passes !== undefined && less >= 0 && less < value) context.sendTo(streams[passes.to] as Stream<number>, less);
    };
    if (passes?.first) pass(value - 1);
    if (writes === "before") out.set(value);
    if (emits === "before") context.emit("twin.before", { index, value });
    const first = look(x);
    const second = value + first > spec.above ? look(y) : 0;
    const sum = value + first + second;
    note(`has seen ${first} and ${second}`);
    if (!passes?.first) pass(Math.min(value - 1, first));
    if (writes === "value") out.set(sum);
    if (emits === "after") context.emit("twin.after", { index, sum });
    if (sum === spec.failsAt) throw new Error("failed");
    return sum;
  };
  const handler = (value: number, context: Tx) => {
    const seen: string[] = [];
    try {
      return run(value, context, (what) => seen.push(what));
    } catch (error) {
      // An attempt that was abandoned to bring its reads up to date is not counted: its occurrence is not protected.
      if (!(error instanceof Error)) seen.length = 0;
      throw error;
    } finally {
      if (clearance !== undefined) for (const what of seen) notes.push({ clearance, what: `stream ${index} ${what}` });
    }
  };
  streams[index]?.handle(handler, clearance === undefined ? {} : { clearance });
}

/** An event as an observer with a clearance sees it: all fields except the number of its row. */
export function eventNote({ topic, source, message }: JournalRow): { label: readonly string[]; what: string } {
  const { data, metadata } = message ?? { data: null, metadata: undefined };
  const { label = [], ...rest } = (metadata ?? {}) as Record<string, unknown>;
  return { label: label as readonly string[], what: `event ${topic} of ${source}: ${JSON.stringify([data, rest])}` };
}
