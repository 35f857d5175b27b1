/**
 * Order for subscriptions that ask for it: no event of a serial key is handled before all earlier ones are settled, in
 * any process. SPEC: J64, J65.
 *
 * A process knows the events that it holds. Before it handles event n, it asks the journal once for unsettled events up
 * to n that are not held here; they become blockers of their lanes. The checked range is remembered
 * (`#checkedThrough`), and ids that were held here need no check, so that a process alone on its store hardly ever
 * asks. A settled event becomes unsettled again only by `requeue`, so a check stays true. A requeued event takes its
 * old place: it precedes all waiting events, and waits for the running handler. The process that takes it knows that,
 * and so do processes that check its range later. A process that has checked before may begin a later event meanwhile:
 * to avoid that, it would have to read all unsettled events below before each handler.
 *
 * A blocker is remembered until a check finds it settled: at once if an event waits for it, and otherwise whenever the
 * number of blockers has doubled. For a later subscription all is checked again, because earlier checks did not cover
 * it.
 */
import type { Host } from "../host/host.ts";
import { BLOCKERS_UNASKED_MAX, JOURNAL_PAGE_ROWS, TOPICS_REMEMBERED_MAX } from "../limits.ts";
import { fromError } from "../message/error-data.ts";
import type { JournalRow } from "../store/journal.ts";
import type { Store } from "../store/store.ts";
import { makeEvent } from "./event.ts";
import type { EventRun } from "./event-run.ts";
import { SerialLane } from "./event-run.ts";
import { journalPages } from "./journal-pages.ts";
import type { BusObserver } from "./observation.ts";
import type { Step, Subscriptions } from "./subscriptions.ts";

/**
 * How a run has left this process: settled; given back, with the finished shares in the journal; or lost, with an
 * unknown result. Only a settled or recorded share lets its successors go.
 */
export type RunEnd = "settled" | "given-back" | "lost";

export class SerialOrder {
  readonly #host: Host;
  readonly #store: Store;
  readonly #subscriptions: Subscriptions;
  readonly #observe: BusObserver;
  readonly #lanes = new Map<string, SerialLane>();
  /** Runs held here, by id. */
  readonly #held = new Map<number, EventRun>();
  /** Lanes that wait for an event held elsewhere, by its id. */
  readonly #blocked = new Map<number, Set<SerialLane>>();
  /** From this number on, blockers without a waiting event are checked too. */
  #askAllFrom = BLOCKERS_UNASKED_MAX;
  /** Every event up to this id is settled, held here or a blocker. */
  #checkedThrough = 0;
  /** Ids above it that are or were held here. */
  readonly #seen = new Set<number>();
  /** The highest id for which an event waits. */
  #wanted = 0;
  #asking = false;
  /** Another process may have settled blockers since the last check. */
  #lookAgain = false;
  /** Settled here while the journal was being asked: its answer may still show them. */
  readonly #settledMeanwhile = new Set<number>();
  /** Told of a parked run that may go on. */
  onOpen: (run: EventRun) => void = () => {};

  constructor(parts: { host: Host; store: Store; subscriptions: Subscriptions; observe: BusObserver }) {
    this.#host = parts.host;
    this.#store = parts.store;
    this.#subscriptions = parts.subscriptions;
    this.#observe = parts.observe;
  }

  /** Number of remembered unsettled events of other processes. */
  get blockers(): number {
    return this.#blocked.size;
  }

  /** A subscription with a serial order was added. */
  askAnew(): void {
    this.#checkedThrough = 0;
    this.#seen.clear();
  }

  /** Gives a run its place in the order. A `serialBy` that throws gives its step no lane. */
  arrive(run: EventRun): void {
    if (!this.#subscriptions.hasSerial) return;
    const checkedBefore = this.#checkedThrough;
    this.#see(run.id);
    // The same event may come again while an earlier run of it waits for the answer to its settle; only the last one
    // counts.
    this.#leaveLanes(this.#held.get(run.id));
    this.#held.set(run.id, run);
    this.#unblock(run.id);
    run.lanes = run.steps.map((step) =>
      step.subscription.serialBy && !run.isOver(step) ? this.#enter(run, step) : undefined,
    );
    // Runs that waited for a check have their answer if the gap has closed by itself.
    if (this.#wanted > checkedBefore && this.#checkedThrough > checkedBefore) this.#openAll();
  }

  /** Whether the run's present step may be done now; if not, `onOpen` tells when. */
  mayStart(run: EventRun): boolean {
    const lane = run.lanes?.[run.position];
    if (lane === undefined) return true;
    if (this.#checkedThrough >= run.id) return lane.first === run;
    this.#wanted = Math.max(this.#wanted, run.id);
    void this.#ask();
    return false;
  }

  /** The handler of the run's present step is at work, until `handled`. */
  handling(run: EventRun): void {
    const lane = run.lanes?.[run.position];
    if (lane !== undefined) lane.inside = run;
  }

  handled(run: EventRun): void {
    const lane = run.lanes?.[run.position];
    if (lane?.inside !== run) return;
    lane.inside = undefined;
    this.#open(lane);
  }

  /** The run has left: settled, or unsettled in another process from now on. */
  leave(run: EventRun, end: RunEnd): void {
    const held = this.#held.get(run.id);
    // A later run of the same event counts instead.
    if (held !== undefined && held !== run) return;
    if (end === "settled" && this.#asking) this.#settledMeanwhile.add(run.id);
    if (held === undefined) {
      // It came before the first ordered subscription; later runs may wait for it as for one of another process.
      if (end === "settled") this.#unblock(run.id);
      return;
    }
    this.#held.delete(run.id);
    for (const [at, lane] of run.lanes?.entries() ?? []) {
      const result = run.results[at]?.kind;
      const isInJournal = result === "recorded" || (result === "done" && end === "given-back");
      if (lane && end !== "settled" && !isInJournal) this.#block(run.id, lane);
    }
    this.#leaveLanes(run);
  }

  /** Whether a run waits for an event that this process does not hold. */
  get isBlocked(): boolean {
    return this.#blocked.size > 0;
  }

  /** Checks the blockers again, after another process may have settled some. */
  recheck(): void {
    this.#lookAgain = this.isBlocked;
    if (this.#lookAgain || this.#wanted > this.#checkedThrough) void this.#ask();
  }

  /** Why the serial key of a run's present step could not be had, if it could not. */
  static keyError(run: EventRun, step: Step): string | undefined {
    try {
      keyOf(run.event, step);
      return undefined;
    } catch (error) {
      return fromError(error).message;
    }
  }

  #leaveLanes(run: EventRun | undefined): void {
    for (const lane of run?.lanes ?? []) {
      if (lane === undefined) continue;
      lane.remove(run!);
      this.#open(lane);
    }
  }

  #enter(run: EventRun, step: Step): SerialLane | undefined {
    try {
      const lane = this.#laneOf(step, keyOf(run.event, step));
      lane.add(run);
      return lane;
    } catch {
      // The step itself fails with this error when its turn comes (`keyError`).
      return undefined;
    }
  }

  #laneOf({ subscriber }: Step, key: string): SerialLane {
    const name = `${subscriber}\0${key}`;
    const known = this.#lanes.get(name);
    if (known) return known;
    const lane = new SerialLane(name);
    this.#lanes.set(name, lane);
    return lane;
  }

  #see(id: number): void {
    if (id <= this.#checkedThrough) return;
    // Forgetting only means that the journal is asked.
    if (this.#seen.size >= TOPICS_REMEMBERED_MAX) this.#seen.clear();
    this.#seen.add(id);
    while (this.#seen.delete(this.#checkedThrough + 1)) this.#checkedThrough++;
  }

  #block(id: number, lane: SerialLane): void {
    lane.blockers.add(id);
    const lanes = this.#blocked.get(id) ?? new Set();
    this.#blocked.set(id, lanes.add(lane));
  }

  #unblock(id: number): void {
    const lanes = this.#blocked.get(id);
    if (!lanes) return;
    this.#blocked.delete(id);
    for (const lane of lanes) {
      lane.blockers.delete(id);
      this.#open(lane);
    }
  }

  #openAll(): void {
    for (const lane of [...this.#lanes.values()]) this.#open(lane);
  }

  #open(lane: SerialLane): void {
    if (lane.isEmpty) this.#lanes.delete(lane.name);
    const { first } = lane;
    if (first?.state === "at-order" && first.lanes?.[first.position] === lane) this.onOpen(first);
  }

  /**
   * Asks until the wanted range is known, one question at a time. A failed question is asked again by the next
   * `recheck`.
   */
  async #ask(): Promise<void> {
    if (this.#asking) return;
    this.#asking = true;
    try {
      while (this.#lookAgain || this.#wanted > this.#checkedThrough) {
        if (this.#wanted > this.#checkedThrough) await this.#askForUnsettled(this.#wanted);
        if (this.#lookAgain) await this.#askForBlockers();
      }
    } catch (error) {
      this.#observe({ kind: "store-trouble", doing: "keeping the serial order", error: fromError(error).message });
    } finally {
      this.#asking = false;
      this.#settledMeanwhile.clear();
    }
  }

  async #askForUnsettled(through: number): Promise<void> {
    // The middle question is framed, so that a row which changes sides between two of them is still seen.
    const from = this.#checkedThrough;
    const before = await this.#rows("processing", from, through);
    const pending = await this.#rows("pending", from, through);
    const after = await this.#rows("processing", from, through);
    // The range below is to be asked again by now.
    if (this.#checkedThrough < from) return;
    for (const row of [...before, ...pending, ...after]) this.#takeBlocker(row);
    this.#checkedThrough = Math.max(this.#checkedThrough, through);
    for (const id of this.#seen) if (id <= this.#checkedThrough) this.#seen.delete(id);
    this.#openAll();
  }

  async #rows(status: "pending" | "processing", from: number, through: number): Promise<JournalRow[]> {
    const rows: JournalRow[] = [];
    const reader = { host: this.#host, store: this.#store };
    for await (const page of journalPages(reader, { status, kind: "event", cursor: from })) {
      rows.push(...page.filter((row) => row.id <= through));
      if (page.at(-1)!.id >= through) break;
    }
    return rows;
  }

  #takeBlocker(row: JournalRow): void {
    if (this.#held.has(row.id) || this.#settledMeanwhile.has(row.id) || this.#seen.has(row.id)) return;
    for (const lane of this.#lanesOf(row)) this.#block(row.id, lane);
  }

  /** The lanes in which an event of the journal is not settled. */
  #lanesOf({ id, topic, source, message, deliveries }: JournalRow): SerialLane[] {
    if (message === undefined) return [];
    const lanes: SerialLane[] = [];
    for (const step of this.#subscriptions.stepsFor(topic)) {
      if (!step.subscription.serialBy) continue;
      const status = deliveries.find((delivery) => delivery.subscriber === step.subscriber)?.status;
      if (status === "done" || status === "failed") continue;
      try {
        lanes.push(this.#laneOf(step, keyOf(makeEvent({ id, topic, source, message }), step)));
      } catch {
        // It will fail when it is handled, and blocks no other.
      }
    }
    return lanes;
  }

  async #askForBlockers(): Promise<void> {
    this.#lookAgain = false;
    const askAll = this.#blocked.size >= this.#askAllFrom;
    let asked = 0;
    for (const [id, lanes] of [...this.#blocked]) {
      if (!askAll && ![...lanes].some((lane) => lane.runs.length > 0)) continue;
      if (++asked % JOURNAL_PAGE_ROWS === 0) await this.#host.yield();
      const [row] = await this.#store.query({ id, limit: 1 });
      const left = row === undefined || isSettled(row) ? [] : this.#lanesOf(row);
      if (left.length === 0) this.#unblock(id);
    }
    if (askAll) this.#askAllFrom = Math.max(BLOCKERS_UNASKED_MAX, 2 * this.#blocked.size);
  }

  /** Throws when the order contradicts itself. */
  checkInvariants(): void {
    for (const lane of this.#lanes.values()) {
      lane.runs.forEach((run, at) => {
        if (at > 0 && lane.runs[at - 1]!.id >= run.id) throw new Error(`serial lane ${lane.name} is out of order`);
        if (this.#held.get(run.id) !== run)
          throw new Error(`serial lane ${lane.name} has event ${run.id}, not held here`);
      });
      for (const id of lane.blockers) {
        if (!this.#blocked.get(id)?.has(lane)) throw new Error(`blocker ${id} of ${lane.name} is not known as one`);
        if (this.#held.has(id)) throw new Error(`event ${id} is held here and a blocker`);
      }
    }
  }
}

function isSettled({ status }: JournalRow): boolean {
  return status === "done" || status === "failed";
}

function keyOf(event: EventRun["event"], { subscription }: Step): string {
  const key: unknown = subscription.serialBy?.(event);
  if (typeof key === "string") return key;
  throw new TypeError(`serialBy of ${subscription.subscriberId} must give a string, got ${typeof key}`);
}
