/**
 * Positions of followers of the journal: the last row that was passed in each lane, and the history that it belongs to.
 * A lane is a part of the journal that one process appends to; ids increase in it. Clients get a position as an opaque
 * text, the cursor. SPEC: J172-J175.
 *
 * A position of another history cannot be continued: rows after it may be missing or repeated.
 */
import type { JournalRow } from "./journal.ts";

export interface JournalPosition {
  /** Empty at the start. */
  readonly history: string;
  /** The last id that was passed, by lane. A lane that is not named was not passed at all. */
  readonly lanes: ReadonlyMap<number, number>;
}

/** Before the first row of any history. */
export const JOURNAL_START: JournalPosition = { history: "", lanes: new Map() };

export interface JournalPage {
  /** In order of id. */
  readonly rows: readonly JournalRow[];
  /**
   * After the last row, or after all rows if the page is short. Its history differs from that of the requested position
   * if the data have another: then there are no rows, and it is the place to go on from.
   */
  readonly end: JournalPosition;
  /** Whether rows after `end` may exist. */
  readonly isFull: boolean;
  /** Removed rows after the requested position, in the order in which a follower meets them. */
  readonly gone: readonly GoneRows[];
}

/** Rows of a lane that were removed, from the requested position or the previous row of the lane on. */
export interface GoneRows {
  /** The row of the page before which they were; the number of rows if they were after the last. */
  readonly before: number;
  readonly lane: number;
  /** The last of them has this id, or a smaller one. */
  readonly through: number;
}

const START_TEXT = "start";

/** The opaque text of a position. */
export function cursorOf({ history, lanes }: JournalPosition): string {
  if (history === "") return START_TEXT;
  const passed = [...lanes].sort(([a], [b]) => a - b).map(([lane, id]) => `.${lane}-${id}`);
  return history + passed.join("");
}

/** The position of a cursor; undefined if no store made it. */
export function positionOf(cursor: string): JournalPosition | undefined {
  if (cursor === START_TEXT) return JOURNAL_START;
  const [history = "", ...passed] = cursor.split(".");
  if (!/^[\w-]+$/.test(history)) return undefined;
  const lanes = new Map<number, number>();
  for (const text of passed) {
    const [, lane, id] = /^(\d{1,4})-(\d{1,16})$/.exec(text) ?? [];
    if (lane === undefined || !Number.isSafeInteger(Number(id))) return undefined;
    lanes.set(Number(lane), Number(id));
  }
  return { history, lanes };
}

/** The last id that a position has passed in a lane; 0 if it has passed none. */
export function passedIn({ lanes }: JournalPosition, lane: number): number {
  return lanes.get(lane) ?? 0;
}

/** The position that has also passed a lane up to an id. */
export function passing(position: JournalPosition, history: string, lane: number, id: number): JournalPosition {
  if (position.history !== "" && passedIn(position, lane) >= id) return position;
  return { history, lanes: new Map(position.lanes).set(lane, id) };
}

export function journalLaneOf({ lane = 0 }: Pick<JournalRow, "lane">): number {
  return lane;
}

/** Whether a position has passed all that another has. Positions of two histories cannot be compared. */
export function covers(position: JournalPosition, other: JournalPosition): boolean {
  if (other.history !== "" && position.history !== other.history) return false;
  for (const [lane, id] of other.lanes) if (passedIn(position, lane) < id) return false;
  return true;
}

/** The position that has passed what either has. */
export function union(one: JournalPosition, other: JournalPosition): JournalPosition {
  if (covers(one, other)) return one;
  if (covers(other, one)) return other;
  const lanes = new Map(one.lanes);
  for (const [lane, id] of other.lanes) if (passedIn(one, lane) < id) lanes.set(lane, id);
  return { history: one.history || other.history, lanes };
}

/** Where a position of another history goes on: no lane is further than the end. */
export function withinPosition(position: JournalPosition, end: JournalPosition): JournalPosition {
  const lanes = new Map<number, number>();
  for (const [lane, id] of end.lanes) {
    const passed = Math.min(passedIn(position, lane), id);
    if (passed > 0) lanes.set(lane, passed);
  }
  return { history: end.history, lanes };
}

/** The greatest id that was passed: orders positions roughly by time. */
export function timeOf({ lanes }: JournalPosition): number {
  let greatest = 0;
  for (const id of lanes.values()) if (id > greatest) greatest = id;
  return greatest;
}
