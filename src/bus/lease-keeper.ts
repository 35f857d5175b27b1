/**
 * The lease under which this process holds events. SPEC: J70-J72.
 *
 * ```
 *   none ──open──> held ──renewed every third of its time──> held
 *                   │ │ renewal refused: it expired and another process recovered its events
 *                   │ └──────> lost (the listener is told) ──open──> held, under a new number
 *                   └─in doubt─> retiring ──no event is held under it──> closed
 * ```
 * A lease is in doubt if a claim or a publish under it got no answer: the store may have written rows that this process
 * does not know of and would keep for ever. So this process continues under a new lease, finishes the known events
 * under the old one, and closes it: the unknown rows go back to pending.
 *
 * A held lease is *current* while it cannot have expired, even for a process whose clock is ahead by a quarter of it.
 * After a blocked event loop or a failed renewal it is not current: no handler starts under it until a renewal has
 * succeeded.
 */
import type { Host, Timer } from "../host/host.ts";
import { SETTLE_RETRY_MS } from "../limits.ts";
import { fromError } from "../message/error-data.ts";
import { type Store, StoreError } from "../store/store.ts";
import type { Consumers } from "./consumers.ts";
import type { BusObserver } from "./observation.ts";

/**
 * The part of its time for which a lease counts as certain; the rest allows for clocks that differ. It is renewed every
 * third.
 */
const CERTAIN_SHARE = 0.75;

export interface LeaseListener {
  /** Another process may hold the events of the lease. */
  leaseLost(lease: number): void;
  /** A lease has become current. */
  leaseCurrent(): void;
  /** A third of the lease has passed again. */
  leaseRenewed(): void;
  /** A lease in doubt was closed: its rows are pending. */
  leaseRetired(): void;
}

export class LeaseKeeper {
  readonly #host: Host;
  readonly #store: Store;
  readonly #durationMs: number;
  readonly #observe: BusObserver;
  readonly #consumers: Consumers;
  #lease: number | undefined;
  /** Of the data that have the lease. */
  #history = "";
  /** Leases in doubt: renewed, and not used for further events. */
  readonly #retiring = new Set<number>();
  /** On the monotonic clock, counted from before the store was asked. */
  #currentUntilMs = 0;
  #timer: Timer | undefined;
  /** Set while the store has not taken a lease. */
  #retry: Timer | undefined;
  #state: "stopped" | "running" = "stopped";
  #renewing: Promise<void> | undefined;
  listener: LeaseListener | undefined;

  constructor(parts: {
    host: Host;
    store: Store;
    leaseMs: number;
    observe: BusObserver;
    consumers: Consumers;
  }) {
    this.#host = parts.host;
    this.#store = parts.store;
    this.#durationMs = parts.leaseMs;
    this.#observe = parts.observe;
    this.#consumers = parts.consumers;
  }

  /** The lease that events can be claimed and handled under now; undefined while there is none that is certain. */
  get current(): number | undefined {
    return this.#lease !== undefined && this.#host.monotonic() < this.#currentUntilMs ? this.#lease : undefined;
  }

  get retiring(): ReadonlySet<number> {
    return this.#retiring;
  }

  /** A request to the store under the lease got no answer. */
  doubt(lease: number): void {
    if (lease !== this.#lease) return;
    this.#lease = undefined;
    this.#retiring.add(lease);
    void this.renew();
  }

  /** The store is connected again. Data with another history do not have the leases, or gave their numbers away. */
  connected(): void {
    if (this.#state !== "running") return;
    if (this.#store.connection.history !== this.#history) {
      const leases = [...this.#retiring, ...(this.#lease === undefined ? [] : [this.#lease])];
      this.#lease = undefined;
      this.#retiring.clear();
      for (const lease of leases) this.#lost(lease);
    }
    void this.renew();
  }

  /** Ends a retiring lease; its remaining rows go back to pending. */
  async retire(lease: number): Promise<void> {
    if (!this.#retiring.delete(lease)) return;
    await this.#close(lease);
    this.listener?.leaseRetired();
  }

  async start(): Promise<void> {
    await this.#open();
    this.#state = "running";
    this.#arm();
  }

  /** Renews now; opens a new lease if the old one is lost. */
  renew(): Promise<void> {
    this.#renewing ??= this.#renew().then((isDone) => {
      this.#renewing = undefined;
      if (this.#state !== "running") return;
      // The store refused it, as it would refuse any lease, and is not asked again at once. Or the lease came into
      // doubt during the renewal.
      if (!isDone) this.#renewLater();
      else if (this.#lease === undefined) void this.renew();
    });
    return this.#renewing;
  }

  #renewLater(): void {
    this.#retry?.cancel();
    this.#retry = this.#host.timer(SETTLE_RETRY_MS, () => void this.renew(), { keepAlive: false });
  }

  /** Stops renewing. An `ended` lease is closed; one under which handlers still run is left to run out. */
  async stop(how: "ended" | "left"): Promise<void> {
    this.#state = "stopped";
    this.#timer?.cancel();
    this.#retry?.cancel();
    await this.#renewing;
    const leases = [...this.#retiring, ...(this.#lease === undefined ? [] : [this.#lease])];
    this.#lease = undefined;
    this.#retiring.clear();
    if (how === "ended") for (const lease of leases) await this.#close(lease);
  }

  async #close(lease: number): Promise<void> {
    try {
      await this.#store.closeLease(lease);
    } catch (error) {
      // It runs out by itself.
      this.#trouble("closing a lease", error);
    }
  }

  #arm(): void {
    if (this.#state === "stopped") return;
    this.#timer = this.#host.timer(this.#durationMs / 3, () => void this.#tick(), { keepAlive: false });
  }

  async #tick(): Promise<void> {
    await this.renew();
    this.#arm();
    this.listener?.leaseRenewed();
  }

  async #open(): Promise<void> {
    const askedAtMs = this.#host.monotonic();
    const { lease } = await this.#store.openLease(this.#durationMs, this.#consumers.running);
    this.#history = this.#store.connection.history;
    this.#consumers.leaseOpened(lease);
    this.#hold(lease, askedAtMs);
  }

  #hold(lease: number, askedAtMs: number): void {
    const wasCurrent = this.current !== undefined;
    this.#lease = lease;
    this.#currentUntilMs = askedAtMs + this.#durationMs * CERTAIN_SHARE;
    if (!wasCurrent) this.listener?.leaseCurrent();
  }

  /** Whether the store has answered. */
  async #renew(): Promise<boolean> {
    try {
      for (const lease of [...this.#retiring]) {
        if (await this.#store.renewLease(lease, this.#durationMs)) continue;
        this.#retiring.delete(lease);
        this.#lost(lease);
      }
      await this.#renewCurrent();
      return true;
    } catch (error) {
      this.#trouble("renewing the lease", error);
      return false;
    }
  }

  async #renewCurrent(): Promise<void> {
    const lease = this.#lease;
    const askedAtMs = this.#host.monotonic();
    if (lease !== undefined) {
      const renewed = await this.#store.renewLease(lease, this.#durationMs);
      if (lease !== this.#lease) return;
      if (renewed) return this.#hold(lease, askedAtMs);
      this.#lease = undefined;
      this.#lost(lease);
    }
    if (this.#state === "running") await this.#open();
  }

  #lost(lease: number): void {
    this.#observe({ kind: "lease-lost", lease });
    this.listener?.leaseLost(lease);
  }

  #trouble(doing: string, error: unknown): void {
    if (error instanceof StoreError && error.code === "STORE_CLOSED") this.#state = "stopped";
    this.#observe({ kind: "store-trouble", doing, error: fromError(error).message });
  }
}
