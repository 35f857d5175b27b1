/**
 * The dispatch loop (ADR 004 §5): claims events, starts their handlers, and wakes up when there is work. SPEC: J49-J51,
 * J66-J73.
 *
 * ```
 *   idle ──start──> running <──resume/pause──> paused
 *                      └────────stop────────────┴──> stopping ──handlers over, or grace over──> stopped
 * ```
 * There is no polling loop. Each source of work calls it: an event published here, room after a run is over, a slot, a
 * gate or a commit that lets a run continue, writes of another process (`store.watch`), a retry that is due, a lease
 * that is current again, `requeue` and `resume`. A slow poll covers a missed call.
 */
import type { Host, Timer } from "../host/host.ts";
import { DISPATCH_BURST_MS, POLL_INTERVAL_MS, WATCH_PAUSE_MS } from "../limits.ts";
import { fromError } from "../message/error-data.ts";
import type { Store } from "../store/store.ts";
import type { Claimer } from "./claimer.ts";
import type { Consumers } from "./consumers.ts";
import type { Deliverer } from "./delivery.ts";
import type { EventRun } from "./event-run.ts";
import type { HeldEvents, HeldEventsListener } from "./held-events.ts";
import type { LeaseKeeper, LeaseListener } from "./lease-keeper.ts";
import type { BusObserver } from "./observation.ts";
import { leavingOf, releaseOf } from "./outcome.ts";
import type { RedeliveryTimer } from "./retry-timer.ts";
import type { SerialOrder } from "./serial-order.ts";
import type { SettleQueue } from "./settle-queue.ts";
import type { Slots } from "./slots.ts";

export interface DispatcherParts {
  readonly host: Host;
  readonly store: Store;
  readonly lease: LeaseKeeper;
  readonly held: HeldEvents;
  readonly slots: Slots;
  readonly serial: SerialOrder;
  readonly settles: SettleQueue;
  readonly retries: RedeliveryTimer;
  readonly claimer: Claimer;
  readonly consumers: Consumers;
  readonly delivery: Deliverer;
  readonly observe: BusObserver;
}

export type DispatcherState = "idle" | "running" | "paused" | "stopping" | "stopped";

interface Waiter {
  /**
   * Whether the wait includes events that are being claimed. Without it, `idle` would wait as long as others publish.
   */
  readonly until: "none-held" | "none-coming";
  readonly resolve: () => void;
}

/** Number of events that are started between two reads of the clock. */
const BURST_EVENTS = 64;

export class Dispatcher implements HeldEventsListener, LeaseListener {
  readonly #parts: DispatcherParts;
  #state: DispatcherState = "idle";
  /** Its state after the start; a pause may come before. */
  #startsAs: "running" | "paused" = "running";
  /** Whether a pump is queued already. */
  #pumpQueued = false;
  #poll: Timer | undefined;
  /** Until this time, on the monotonic clock, writes of others are not looked for; set while this process is busy. */
  #watchFromMs = 0;
  #watchTimer: Timer | undefined;
  /** Whether a noticed write may have left rows to claim. */
  #mayHaveRows = false;
  #unwatch: () => void = () => {};
  /** Callers that wait until no event is held. */
  #waiters: readonly Waiter[] = [];

  constructor(parts: DispatcherParts) {
    this.#parts = parts;
    parts.held.listener = this;
    parts.lease.listener = this;
    parts.retries.onReleased = () => this.backlog();
  }

  get state(): DispatcherState {
    return this.#state;
  }

  // Life -------------------------------------------------------------------------------------------------------------

  async start(): Promise<void> {
    const { lease, store, retries, claimer, consumers } = this.#parts;
    // Steps that can fail come first, so that a failed start can be tried again.
    await store.recover();
    await consumers.start();
    await lease.start();
    this.#unwatch = store.watch(({ journal, own, connection }) => {
      if (connection && store.connection.state === "connected") this.#connected();
      if (journal) this.#noticed(own?.claimable !== false);
    });
    this.#state = this.#startsAs;
    claimer.active = this.#state === "running";
    this.#armPoll();
    await retries.start();
    this.backlog();
  }

  /** Starts no more events and gives back those that have not begun. */
  pause(): void {
    if (this.#state === "idle") this.#startsAs = "paused";
    if (this.#state !== "running") return;
    this.#state = "paused";
    this.#parts.claimer.active = false;
    this.#giveBack(this.#parts.held.takeBackAll());
  }

  resume(): void {
    if (this.#state === "idle") this.#startsAs = "running";
    if (this.#state !== "paused") return;
    this.#state = "running";
    this.#parts.claimer.active = true;
    this.runReady();
    this.backlog();
  }

  /** Waits at most `graceMs` for the events that have begun; another process gets the others. */
  async stop(graceMs: number): Promise<void> {
    const { held, lease, retries, consumers } = this.#parts;
    this.#state = "stopping";
    this.#parts.claimer.active = false;
    this.#giveBack(held.takeBackAll());
    await this.#drain(graceMs);
    this.#state = "stopped";
    const left = [...held];
    this.#leave(left);
    this.#poll?.cancel();
    this.#watchTimer?.cancel();
    this.#unwatch();
    retries.stop();
    await consumers.stop();
    // A handler that still runs would run twice at once if its event were free now; the lease runs out instead.
    if (left.length > 0) await this.#tellLeft(left);
    await lease.stop(left.length === 0 ? "ended" : "left");
  }

  #leave(runs: readonly EventRun[]): void {
    const reason = new Error("the bus has stopped");
    for (const run of runs) {
      run.handling?.cancel(reason);
      this.#parts.held.over(run, "lost");
    }
  }

  /** A graceful end: these events are not counted as victims of a crash. */
  async #tellLeft(runs: readonly EventRun[]): Promise<void> {
    try {
      await this.#parts.store.settle(runs.map(leavingOf));
    } catch (error) {
      this.#trouble("leaving events behind", error);
    }
  }

  /** Resolves when no event is held and the journal has none that could be taken now. */
  async idle(): Promise<void> {
    const { held, claimer } = this.#parts;
    for (;;) {
      await claimer.look();
      // An event that was given back meanwhile is in the journal again: it is claimed by now, or in the next round.
      if (held.size > 0) await new Promise<void>((resolve) => this.#wait("none-held", resolve));
      else if (!claimer.isClaiming) return;
    }
  }

  /** Resolves when no event is held or being claimed, or the time is over. */
  #drain(graceMs: number): Promise<void> {
    if (this.#parts.held.isEmpty) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = graceMs === Number.POSITIVE_INFINITY ? undefined : this.#parts.host.timer(graceMs, resolve);
      this.#wait("none-coming", () => {
        timer?.cancel();
        resolve();
      });
    });
  }

  #wait(until: Waiter["until"], resolve: () => void): void {
    this.#waiters = [...this.#waiters, { until, resolve }];
    this.#parts.settles.isAwaited = true;
  }

  // Wake-ups ---------------------------------------------------------------------------------------------------------

  runReady(): void {
    if (this.#pumpQueued) return;
    this.#pumpQueued = true;
    this.#parts.host.microtask(this.#pump);
  }

  runsReceived(): void {
    // Too late: they are in the journal under a lease that is closed, or runs out.
    if (this.#state === "stopped") this.#leave([...this.#parts.held]);
    // In a microtask: the publishers of these events continue before a synchronous handler runs.
    else this.runReady();
  }

  runBegins(run: EventRun): void {
    if (run.state === "over") return;
    if (this.#state === "running") this.#parts.held.resume(run);
    else this.#giveBack([run]);
  }

  /** There may be pending events in the journal. */
  backlog(): void {
    this.#parts.claimer.backlog();
  }

  runOver(): void {
    this.#tellWaiters();
    this.#retireLeases();
    this.#parts.claimer.claim();
  }

  claimsOver(): void {
    this.#tellWaiters();
    this.#retireLeases();
  }

  #tellWaiters(): void {
    const { held, settles } = this.#parts;
    const waiters = this.#waiters;
    if (waiters.length === 0 || held.size > 0) return;
    const isOver = ({ until }: Waiter) => until === "none-held" || held.isEmpty;
    this.#waiters = waiters.filter((waiter) => !isOver(waiter));
    settles.isAwaited = this.#waiters.length > 0;
    for (const waiter of waiters) if (isOver(waiter)) waiter.resolve();
  }

  leaseCurrent(): void {
    this.runReady();
    this.backlog();
  }

  /** On each renewal, also recovers the events of processes that have died. */
  leaseRenewed(): void {
    this.#retireLeases();
    void this.#recover();
  }

  leaseRetired(): void {
    this.backlog();
  }

  leaseLost(lease: number): void {
    const { held } = this.#parts;
    // Running handlers continue; their results are not settled, and their transactions do not commit.
    for (const run of held.under(lease)) if (run.state !== "settling") held.over(run, "lost");
  }

  /** The server of the store can be reached again, perhaps with another history. */
  #connected(): void {
    const { lease, consumers } = this.#parts;
    lease.connected();
    consumers.declareAgain();
    this.backlog();
  }

  /** The journal has been written to, perhaps by this process. */
  #noticed(mayHaveRows: boolean): void {
    const { host, serial } = this.#parts;
    // An own write that left no claimable row can only end the wait of a serial order.
    if (!mayHaveRows && !serial.isBlocked) return;
    this.#mayHaveRows ||= mayHaveRows;
    if (this.#watchTimer !== undefined) return;
    const waitMs = this.#watchFromMs - host.monotonic();
    if (waitMs <= 0) return this.#look();
    // It keeps the process alive: the write may be an event, and no other work may be left that waits for it.
    this.#watchTimer = host.timer(waitMs, () => this.#look());
  }

  #look(): void {
    const { host, serial } = this.#parts;
    this.#watchTimer = undefined;
    this.#watchFromMs = host.monotonic() + WATCH_PAUSE_MS;
    serial.recheck();
    const mayHaveRows = this.#mayHaveRows;
    this.#mayHaveRows = false;
    if (mayHaveRows) this.backlog();
  }

  #armPoll(): void {
    const { host, retries, serial } = this.#parts;
    this.#poll = host.timer(
      POLL_INTERVAL_MS,
      () => {
        this.#armPoll();
        serial.recheck();
        void retries.release();
        // Lines of slow subscriptions are shortened by the pump.
        this.runReady();
        this.backlog();
      },
      { keepAlive: false },
    );
  }

  /**
   * Ends leases in doubt as soon as no handler runs under them. Waiting events are given back: they may wait for an
   * event of which this process has lost track.
   */
  #retireLeases(): void {
    const { lease, held } = this.#parts;
    // Handlers that `stop` left behind still run, and their events are not held.
    if (this.#state === "stopped") return;
    for (const one of lease.retiring) {
      this.#giveBack(held.takeBackUnder(one));
      if (!held.uses(one)) void lease.retire(one);
    }
  }

  /** Takes over the events of processes that are gone. */
  async #recover(): Promise<void> {
    try {
      if ((await this.#parts.store.recover()) > 0) this.backlog();
    } catch (error) {
      this.#trouble("recovering", error);
    }
  }

  // Starting handlers ------------------------------------------------------------------------------------------------

  readonly #pump = (): void => {
    this.#pumpQueued = false;
    const { host, held, lease, slots, delivery } = this.#parts;
    if (this.#state === "stopped" || this.#state === "idle") return;
    if (lease.current === undefined) {
      // The loop or the store was held up for longer than the lease: no handler starts before the owner is known.
      void lease.renew();
      return;
    }
    // Events that were being claimed at the pause come too late.
    if (this.#state !== "running" && held.waiting > 0) this.#giveBack(held.takeBackAll());
    const startMs = host.monotonic();
    const which = this.#state === "running" ? "all" : "begun";
    for (let started = 1; slots.hasFree; started++) {
      const run = slots.next() ?? held.next(which);
      if (run === undefined) break;
      delivery.advance(run);
      if (started % BURST_EVENTS === 0 && host.monotonic() - startMs > DISPATCH_BURST_MS) {
        this.#pumpQueued = true;
        host.task(this.#pump);
        break;
      }
    }
    this.#giveBack(slots.adapt());
    held.adapt();
    if (held.waiting > held.bound.limit) this.#giveBack(held.takeBackSurplus());
    this.#parts.claimer.claim();
  };

  #giveBack(runs: readonly EventRun[]): void {
    for (const run of runs) this.#parts.settles.add(run, releaseOf(run));
  }

  #trouble(doing: string, error: unknown): void {
    this.#parts.observe({ kind: "store-trouble", doing, error: fromError(error).message });
  }
}
