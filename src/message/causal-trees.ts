/**
 * Groups journal rows under their causes. Pure. SPEC: J77.
 *
 * A cause may come after its effects in the journal: a transactional command is written together with its events, after
 * them. Causes written by clients are not trusted: in a cycle, the first row becomes a root.
 */
import { causationOf, type Message } from "./envelope.ts";

/** Index of a missing row. */
const NONE = -1;

/** A row of the journal; an unreadable one has no message. */
interface WithMessage {
  readonly message?: Pick<Message, "metadata"> | undefined;
}

/** A row and its effects. */
export interface CausalTree<Row> {
  readonly row: Row;
  /** In the order of the journal. */
  readonly children: readonly CausalTree<Row>[];
}

/** The trees of rows in journal order; the roots are in that order too. */
export function causalTrees<Row extends WithMessage>(rows: readonly Row[]): CausalTree<Row>[] {
  const causes = causesOf(rows);
  cutCircles(causes);
  const nodes = rows.map((row) => ({ row, children: [] as CausalTree<Row>[] }));
  const roots: CausalTree<Row>[] = [];
  for (const [at, node] of nodes.entries()) (nodes[causes[at]!]?.children ?? roots).push(node);
  return roots;
}

/** The index of each row's cause. */
function causesOf(rows: readonly WithMessage[]): number[] {
  const places = new Map<string, number>();
  for (const [at, { message }] of rows.entries()) if (message) places.set(message.metadata.id, at);
  return rows.map(({ message }) => {
    const causation = message && causationOf(message);
    return (causation === undefined ? undefined : places.get(causation)) ?? NONE;
  });
}

/** Removes the cause from the first row of each cycle. Visits each row once. */
function cutCircles(causes: number[]): void {
  /** For each row, the start of the walk that first visited it. */
  const passedFrom = causes.map(() => NONE);
  for (const start of causes.keys()) {
    let at = start;
    for (; at !== NONE && passedFrom[at] === NONE; at = causes[at]!) passedFrom[at] = start;
    if (at !== NONE && passedFrom[at] === start) causes[firstOfCircle(causes, at)] = NONE;
  }
}

function firstOfCircle(causes: readonly number[], start: number): number {
  let first = start;
  for (let at = causes[start]!; at !== start; at = causes[at]!) first = Math.min(first, at);
  return first;
}
