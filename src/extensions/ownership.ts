/**
 * One owner of a name among the processes on a store: work that must run once, like the connection of a channel. SPEC:
 * X80-X82. The row of the due table has its owner, a beat that the owner changes, and the term: the number of owners so
 * far, which is a fencing token.
 *
 * ```
 *   looking ──row is free, or unchanged for a lease──> owner
 *   owner ──renewal refused, or none for 3/4 of a lease──> ended ──> looking
 * ```
 * Whether an owner lives is measured on the own monotonic clock, by whether its row changes.
 */
import type { Host, Timer } from "../host/host.ts";
import { SCHEDULE_ROWS_MAX } from "../limits.ts";
import { equal } from "../message/equality.ts";
import { isJsonObject, type Json } from "../message/json.ts";
import { type DueTableRow, NEVER_MS, type ScheduleDueTable, takeAsRead } from "./schedule-row.ts";

export const OWNER_KIND = "owner";

export interface OwnershipParts {
  readonly host: Host;
  readonly due: ScheduleDueTable;
  /** Begins the id of this process in rows; the same for all of its names. */
  readonly holder: string;
  readonly leaseMs: number;
  /** No other process has the store: another owner is dead. */
  readonly alone: boolean;
}

/** The facts of an owner that its work gets. */
export interface OwnerTerm {
  /** The number of owners so far, with this one. Systems outside may refuse a smaller one than they have seen. */
  readonly term: number;
}

/** The work of the owner. It ends when the signal fires. */
export type OwnedWork = (signal: AbortSignal, owner: OwnerTerm) => Promise<unknown>;

interface OwnerRow {
  /** Null: nobody has it. */
  readonly by: string | null;
  readonly beat: number;
  readonly term: number;
}

export class Ownership {
  readonly #parts: OwnershipParts;
  readonly #key: string;
  readonly #work: OwnedWork;
  readonly #failed: (thrown: unknown) => void;
  #timer: Timer | undefined;
  #state: "looking" | "owner" | "closed" = "looking";
  /** The row at the last look, and since when it is known to be so, on the monotonic clock. */
  #seen: { readonly data: Json | undefined; readonly sinceMs: number } | undefined;
  #term: AbortController | undefined;
  /** The number of the last term here. */
  #number = 0;
  /** Ends the term when no renewal comes through. */
  #deadline: Timer | undefined;
  #running: Promise<void> = Promise.resolve();
  #turn: Promise<void> = Promise.resolve();

  /** `failed`: the work threw, and another process may take over. */
  constructor(parts: OwnershipParts, key: string, work: OwnedWork, failed: (thrown: unknown) => void) {
    this.#parts = parts;
    this.#key = key;
    this.#work = work;
    this.#failed = failed;
    this.#next(0);
  }

  /** Ends the work, waits for it, and leaves the name to the next process. */
  async close(): Promise<void> {
    const wasOwner = this.#state === "owner";
    this.#state = "closed";
    this.#timer?.cancel();
    this.#endTerm("the process gives up the name");
    await this.#turn;
    await this.#running;
    if (wasOwner) await this.#leave(this.#number);
  }

  #next(delayMs: number): void {
    if (this.#state === "closed") return;
    this.#timer = this.#parts.host.timer(
      delayMs,
      () => {
        this.#turn = this.#look()
          // A store that is away: the deadline ends the term, and the next turn asks again.
          .catch(() => undefined)
          .then(() => this.#next(this.#parts.leaseMs / 3));
      },
      { keepAlive: false },
    );
  }

  async #look(): Promise<void> {
    const { host, due, alone, holder, leaseMs } = this.#parts;
    const askedAtMs = host.monotonic();
    const rows = await due.dueRows(NEVER_MS, SCHEDULE_ROWS_MAX, OWNER_KIND);
    const stored = rows.find(({ key }) => key === this.#key);
    const row = stored && ownerIn(stored);
    if (this.#state === "owner" && row?.by === holder && row.term === this.#number) {
      const isHeld = await this.#replace(stored, { ...row, beat: row.beat + 1 });
      // The deadline may have passed meanwhile.
      if (isHeld && this.#isOwning()) this.#arm(askedAtMs);
      else this.#lose();
      return;
    }
    if (this.#state === "owner") return this.#lose();
    // The owner may have changed its row until the store answered, so the time of the answer counts.
    if (this.#seen === undefined || !equal(this.#seen.data, stored?.data))
      this.#seen = { data: stored?.data, sinceMs: host.monotonic() };
    const isFree = row === undefined || row.by === null || row.by === holder || alone;
    if (!isFree && askedAtMs - this.#seen.sinceMs < leaseMs) return;
    // The work of an earlier term has to end before the next one begins.
    await this.#running;
    const next = { by: holder, beat: 1, term: (row?.term ?? 0) + 1 };
    if (this.#state !== "looking" || !(await this.#replace(stored, next))) return;
    this.#begin(next.term, askedAtMs);
  }

  #begin(term: number, askedAtMs: number): void {
    if (this.#isClosed()) {
      this.#running = this.#leave(term);
      return;
    }
    this.#state = "owner";
    this.#number = term;
    const ended = new AbortController();
    this.#term = ended;
    this.#arm(askedAtMs);
    this.#running = Promise.resolve()
      .then(() => this.#work(ended.signal, { term }))
      .then(
        () => undefined,
        async (thrown: unknown) => {
          if (ended.signal.aborted) return;
          this.#state = "closed";
          this.#timer?.cancel();
          this.#deadline?.cancel();
          await this.#leave(term);
          this.#failed(thrown);
        },
      );
  }

  #isClosed(): boolean {
    return this.#state === "closed";
  }

  #isOwning(): boolean {
    return this.#state === "owner";
  }

  /** Counts from before the store was asked, so that the term ends here before it ends elsewhere. */
  #arm(askedAtMs: number): void {
    const { host, leaseMs } = this.#parts;
    this.#deadline?.cancel();
    const leftMs = askedAtMs + (leaseMs * 3) / 4 - host.monotonic();
    this.#deadline = host.timer(Math.max(0, leftMs), () => this.#lose(), { keepAlive: false });
  }

  #lose(): void {
    if (this.#state !== "owner") return;
    this.#state = "looking";
    this.#seen = undefined;
    this.#endTerm("another process may have the name");
  }

  #endTerm(reason: string): void {
    this.#deadline?.cancel();
    this.#term?.abort(new Error(reason));
    this.#term = undefined;
  }

  /** Frees the row, unless a later term has it. If that fails, the next process waits for a lease. */
  async #leave(term: number): Promise<void> {
    try {
      const rows = await this.#parts.due.dueRows(NEVER_MS, SCHEDULE_ROWS_MAX, OWNER_KIND);
      const stored = rows.find(({ key }) => key === this.#key);
      const row = stored && ownerIn(stored);
      if (row?.by === this.#parts.holder && row.term === term) await this.#replace(stored, { ...row, by: null });
    } catch {
      return;
    }
  }

  /** False if the row has changed since it was read. */
  async #replace(stored: DueTableRow | undefined, row: OwnerRow): Promise<boolean> {
    const at = { kind: OWNER_KIND, key: this.#key, dueAtMs: NEVER_MS, data: { ...row } };
    const [done = false] = await this.#parts.due.changeDue(
      stored === undefined ? [{ op: "add", ...at }] : [takeAsRead(stored), { op: "put", ...at }],
    );
    return done;
  }
}

function ownerIn({ data }: DueTableRow): OwnerRow | undefined {
  if (!isJsonObject(data)) return undefined;
  const { by, beat, term } = data;
  if ((by !== null && typeof by !== "string") || typeof beat !== "number" || typeof term !== "number") return undefined;
  return { by, beat, term };
}
