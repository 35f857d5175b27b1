/**
 * The lease under which this process holds events. SPEC: J70-J72.
 *
 * ```
 *   none ──open──> held ──renewed every third of its time──> held
 *                    │ renewal refused: it expired and somebody recovered its events
 *                    └──────> lost (told to the listener) ──open──> held, under a new number
 * ```
 * A held lease is *current* while it cannot have expired. If the event loop was blocked for longer, or the store could not
 * renew, it is not current: no handler is started under it until a renewal has said that it is still ours.
 */
import type { Host, Timer } from "../host/host.ts";
import { fromError } from "../message/error-data.ts";
import { type Store, StoreError } from "../store/store.ts";
import type { BusObserver } from "./observation.ts";

export interface LeaseListener {
  /** Whatever was held under the lease is somebody else's. */
  leaseLost(lease: number): void;
  /** A lease is current that was not. */
  leaseCurrent(): void;
  /** A third of the lease has passed again. */
  leaseRenewed(): void;
}

export class LeaseKeeper {
  readonly #host: Host;
  readonly #store: Store;
  readonly #durationMs: number;
  readonly #observe: BusObserver;
  #lease: number | undefined;
  /** By the monotonic clock: counted from before the store was asked, so that the store's own expiry is later. */
  #currentUntilMs = 0;
  #timer: Timer | undefined;
  #state: "stopped" | "running" = "stopped";
  #renewing: Promise<void> | undefined;
  listener: LeaseListener | undefined;

  constructor(parts: { host: Host; store: Store; leaseMs: number; observe: BusObserver }) {
    this.#host = parts.host;
    this.#store = parts.store;
    this.#durationMs = parts.leaseMs;
    this.#observe = parts.observe;
  }

  /** The lease that events can be claimed and handled under now; undefined while there is none that is certain. */
  get current(): number | undefined {
    return this.#lease !== undefined && this.#host.monotonic() < this.#currentUntilMs ? this.#lease : undefined;
  }

  async start(): Promise<void> {
    this.#state = "running";
    await this.#open();
    this.#arm();
  }

  /** Renews now; opens a new lease if the old one is lost. */
  renew(): Promise<void> {
    this.#renewing ??= this.#renew().finally(() => {
      this.#renewing = undefined;
    });
    return this.#renewing;
  }

  /** Stops renewing. An `ended` lease is closed; one under which handlers still run is left to run out. */
  async stop(how: "ended" | "left"): Promise<void> {
    this.#state = "stopped";
    this.#timer?.cancel();
    await this.#renewing;
    const lease = this.#lease;
    this.#lease = undefined;
    if (how === "left" || lease === undefined) return;
    try {
      await this.#store.closeLease(lease);
    } catch (error) {
      // It runs out by itself.
      this.#trouble("closing the lease", error);
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
    const { lease } = await this.#store.openLease(this.#durationMs);
    this.#hold(lease, askedAtMs);
  }

  #hold(lease: number, askedAtMs: number): void {
    const wasCurrent = this.current !== undefined;
    this.#lease = lease;
    this.#currentUntilMs = askedAtMs + this.#durationMs;
    if (!wasCurrent) this.listener?.leaseCurrent();
  }

  async #renew(): Promise<void> {
    try {
      const lease = this.#lease;
      const askedAtMs = this.#host.monotonic();
      if (lease !== undefined && (await this.#store.renewLease(lease, this.#durationMs))) {
        this.#hold(lease, askedAtMs);
        return;
      }
      if (lease !== undefined) this.#lost(lease);
      if (this.#state === "running") await this.#open();
    } catch (error) {
      this.#trouble("renewing the lease", error);
    }
  }

  #lost(lease: number): void {
    this.#lease = undefined;
    this.#observe({ kind: "lease-lost", lease });
    this.listener?.leaseLost(lease);
  }

  #trouble(doing: string, error: unknown): void {
    if (error instanceof StoreError && error.code === "STORE_CLOSED") this.#state = "stopped";
    this.#observe({ kind: "store-trouble", doing, error: fromError(error).message });
  }
}
