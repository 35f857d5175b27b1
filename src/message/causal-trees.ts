/**
 * Rows of the journal under what caused them. Pure. SPEC: J77.
 *
 * A cause need not come before its effects in the journal: the row of a command that is handled in a transaction is written together with the events
 * it emits, after them. Nor can what somebody has written there be relied on: where causes go round in a circle, its first row is a root.
 */
import { causationOf, type Message } from "./envelope.ts";

/** The place of a row that is not there. */
const NONE = -1;

/** A row of the journal; one that cannot be read has no message. */
interface WithMessage {
  readonly message?: Pick<Message, "metadata"> | undefined;
}

/** A row and what it caused. */
export interface CausalTree<Row> {
  readonly row: Row;
  /** In the order of the journal. */
  readonly children: readonly CausalTree<Row>[];
}

/** The trees of rows that are in the order of the journal, their roots in that order too. */
export function causalTrees<Row extends WithMessage>(rows: readonly Row[]): CausalTree<Row>[] {
  const causes = causesOf(rows);
  cutCircles(causes);
  const nodes = rows.map((row) => ({ row, children: [] as CausalTree<Row>[] }));
  const roots: CausalTree<Row>[] = [];
  for (const [at, node] of nodes.entries()) (nodes[causes[at]!]?.children ?? roots).push(node);
  return roots;
}

/** For each row, which row caused it. */
function causesOf(rows: readonly WithMessage[]): number[] {
  const places = new Map<string, number>();
  for (const [at, { message }] of rows.entries()) if (message) places.set(message.metadata.id, at);
  return rows.map(({ message }) => {
    const causation = message && causationOf(message);
    return (causation === undefined ? undefined : places.get(causation)) ?? NONE;
  });
}

/** Takes its cause from the first row of each circle. Each row is passed once. */
function cutCircles(causes: number[]): void {
  /** For each row, from which one it was first come by on the way to the causes. */
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
