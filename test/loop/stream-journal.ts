/** A journal in memory for event streams, which counts how it is read. Rows can be removed, as retention does. */
import type { EventFeed, EventJournal, JournaledRow } from "../../src/loop/event-journal.ts";
import type { Message } from "../../src/message/envelope.ts";
import { type GoneRows, type JournalPosition, passedIn } from "../../src/store/journal-position.ts";
import { message } from "./loop-setup.ts";

/** The position after an id. */
export function at(id: number): JournalPosition {
  return { history: "h", lanes: new Map(id === 0 ? [] : [[0, id]]) };
}

export interface StreamJournal {
  readonly journal: EventJournal;
  /** Pages that were read, as the positions that they began after. */
  readonly pages: number[];
  /** Rows that were read, all pages together. */
  rowsRead(): number;
  /** Pages wait until the returned function is called. */
  hold(): () => void;
  append(type: string, count?: number): void;
  remove(id: number): void;
}

export function streamJournal(): StreamJournal {
  const rows = new Map<number, JournaledRow>();
  const pages: number[] = [];
  let lastId = 0;
  let read = 0;
  let mark = 0;
  let held: Promise<void> | undefined;
  let wake: (() => void)[] = [];
  const publish = (published: Message) => {
    rows.set(++lastId, { id: lastId, topic: published.type, message: published });
    mark++;
    for (const resolve of wake.splice(0)) resolve();
  };
  const feed: EventFeed = {
    get mark() {
      return mark;
    },
    end: async () => at(lastId),
    async page(after, limit) {
      await held;
      const passed = passedIn(after, 0);
      pages.push(passed);
      const found: JournaledRow[] = [];
      const gone: GoneRows[] = [];
      let previous = passed;
      for (let id = passed + 1; id <= lastId && found.length < limit; id++) {
        const row = rows.get(id);
        if (!row) continue;
        if (id > previous + 1) gone.push({ before: found.length, lane: 0, through: id - 1 });
        found.push(row);
        previous = id;
      }
      read += found.length;
      const isFull = found.length === limit;
      if (!isFull && lastId > previous) gone.push({ before: found.length, lane: 0, through: lastId });
      return { rows: found, end: at(isFull ? previous : Math.max(previous, lastId)), isFull, gone };
    },
    grown: (from, signal) =>
      new Promise((resolve) => {
        if (mark !== from || signal.aborted) return resolve();
        wake.push(resolve);
        signal.addEventListener("abort", () => {
          wake = wake.filter((one) => one !== resolve);
          resolve();
        });
      }),
  };
  return {
    journal: { publish: async (published) => publish(published), subscribe: () => undefined, feed },
    pages,
    rowsRead: () => read,
    hold: () => {
      let release: () => void = () => undefined;
      held = new Promise((resolve) => {
        release = resolve;
      });
      return release;
    },
    append: (type, count = 1) => {
      for (let n = 0; n < count; n++) publish(message("event", type, `a${lastId + 1}`, lastId + 1));
    },
    remove: (id) => void rows.delete(id),
  };
}
