/**
 * The operations that the recorded program began, and their answers, from the marks in the log. An operation is
 * acknowledged at exactly one position among the writes and syncs. Operations acknowledged before a crash must be there
 * after it.
 */
import type { Published } from "./handling.ts";

export type Deed =
  | { readonly kind: "publish"; readonly events: readonly Published[] }
  | { readonly kind: "claim" }
  | { readonly kind: "handle"; readonly event: string; readonly lane: number }
  | { readonly kind: "fire"; readonly event: string }
  | { readonly kind: "settle"; readonly event: string }
  | { readonly kind: "fail"; readonly event: string; readonly error: string }
  /** Sets one key of both ledgers to `{ n: <deed number>, text }`. */
  | { readonly kind: "write"; readonly key: string; readonly text: string }
  | { readonly kind: "retain" };

/** The answer: ids of published events, or claims. */
export interface Answer {
  readonly ids?: readonly number[];
  readonly claims?: readonly { readonly id: number; readonly attempt: number }[];
}

export type HistoryMark =
  | { readonly begin: number; readonly deed: Deed }
  | { readonly ack: number; readonly answer: Answer };

export type Progress = "begun" | "acknowledged";

export interface KnownEvent extends Published {
  /** The deed that published it: its events came together. */
  readonly deed: number;
  publish: Progress;
  /** Known from the acknowledgement. */
  journalId?: number;
  handle?: Progress;
  lane?: number;
  fire?: Progress;
  settle?: Progress;
  fail?: Progress;
  error?: string;
}

export interface LedgerKey {
  /** The written texts, by the number of the operation. */
  readonly begun: Map<number, string>;
  acknowledged: number;
}

export class History {
  readonly events = new Map<string, KnownEvent>();
  readonly ledger = new Map<string, LedgerKey>();
  /** Journal id to the attempts of its acknowledged claims. */
  readonly attempts = new Map<number, number>();
  readonly #deeds = new Map<number, Deed>();
  /** Whether settled rows may be missing. */
  retained = false;
  acknowledged = 0;

  apply(mark: HistoryMark): void {
    if ("begin" in mark) {
      this.#deeds.set(mark.begin, mark.deed);
      this.#progress(mark.begin, mark.deed, "begun");
      return;
    }
    const deed = this.#deeds.get(mark.ack);
    if (!deed) throw new Error(`deed ${mark.ack} was acknowledged and never begun`);
    this.acknowledged += 1;
    this.#progress(mark.ack, deed, "acknowledged");
    if (deed.kind === "publish") {
      for (const [index, event] of deed.events.entries()) {
        const id = mark.answer.ids?.[index];
        if (id !== undefined) this.event(event.id).journalId = id;
      }
    }
    for (const { id, attempt } of mark.answer.claims ?? []) this.attempts.set(id, attempt);
  }

  event(id: string): KnownEvent {
    const event = this.events.get(id);
    if (!event) throw new Error(`the history has no event ${id}`);
    return event;
  }

  /** An acknowledged operation stays acknowledged, even if it begins again. */
  #progress(n: number, deed: Deed, progress: Progress): void {
    switch (deed.kind) {
      case "publish":
        for (const event of deed.events) this.#published(n, event, progress);
        return;
      case "handle":
        Object.assign(this.event(deed.event), {
          handle: later(this.event(deed.event).handle, progress),
          lane: deed.lane,
        });
        return;
      case "fire":
        this.event(deed.event).fire = later(this.event(deed.event).fire, progress);
        return;
      case "settle":
        this.event(deed.event).settle = later(this.event(deed.event).settle, progress);
        return;
      case "fail":
        Object.assign(this.event(deed.event), {
          fail: later(this.event(deed.event).fail, progress),
          error: deed.error,
        });
        return;
      case "write":
        this.#written(n, deed.key, deed.text, progress);
        return;
      case "retain":
        this.retained = true;
        return;
      case "claim":
    }
  }

  #published(deed: number, event: Published, progress: Progress): void {
    const known = this.events.get(event.id);
    if (known) known.publish = progress;
    else this.events.set(event.id, { ...event, deed, publish: progress });
  }

  #written(n: number, key: string, text: string, progress: Progress): void {
    const known = this.ledger.get(key) ?? { begun: new Map(), acknowledged: 0 };
    this.ledger.set(key, known);
    if (progress === "begun") known.begun.set(n, text);
    else known.acknowledged = Math.max(known.acknowledged, n);
  }
}

function later(before: Progress | undefined, now: Progress): Progress {
  return before === "acknowledged" ? before : now;
}
