/**
 * Takes pending events from the journal, as many as there is room for. SPEC: J49, J54, J67.
 *
 *     backlog() ──> claim a batch ──full──> claim a larger one ... ──not full──> nothing is pending
 *                        └──no room, no lease, not active──> later: whoever makes room calls `claim` again
 *
 * One claim is on its way at a time. What it does not know it takes for possible: the journal counts as having a backlog until a
 * claim has come back short, and whatever arrives meanwhile says so again.
 */
import { fromError } from "../message/error-data.ts";
import type { Claim } from "../store/journal.ts";
import type { Store } from "../store/store.ts";
import { EventRun } from "./event-run.ts";
import type { HeldEvents } from "./held-events.ts";
import type { LeaseKeeper } from "./lease-keeper.ts";
import type { BusObserver } from "./observation.ts";
import type { Publisher } from "./publisher.ts";
import type { Subscriptions } from "./subscriptions.ts";

interface ClaimerParts {
  readonly store: Store;
  readonly lease: LeaseKeeper;
  readonly held: HeldEvents;
  readonly publisher: Publisher;
  readonly subscriptions: Subscriptions;
  readonly observe: BusObserver;
}

/** Events asked for at once: few, when it is not known whether there are any, because their room is set aside meanwhile. */
const CLAIM_START = 32;
const CLAIM_MAX = 1_024;

export class Claimer {
  readonly #parts: ClaimerParts;
  #active = false;
  /** Whether the journal may have pending events. */
  #backlog: "none" | "perhaps" = "perhaps";
  #claiming = false;
  /** Settles when the claims under way are through. */
  #claims: Promise<void> = Promise.resolve();
  #limit = CLAIM_START;

  constructor(parts: ClaimerParts) {
    this.#parts = parts;
  }

  /** Whether events are taken at all: by claims, and from publishers of this process. */
  set active(active: boolean) {
    this.#active = active;
    this.#fitHandOver();
  }

  /** There may be pending events. */
  backlog(): void {
    this.#backlog = "perhaps";
    this.#fitHandOver();
    this.claim();
  }

  /** Claims, if something may be pending, until nothing is or there is no room. */
  claim(): void {
    if (this.#backlog === "perhaps" && !this.#claiming) this.#claims = this.#claimAll();
  }

  /** Looks into the journal now; resolves when it has nothing left that can be taken. */
  async look(): Promise<void> {
    await this.#claims;
    this.backlog();
    await this.#claims;
  }

  async #claimAll(): Promise<void> {
    this.#claiming = true;
    try {
      while (this.#backlog === "perhaps" && (await this.#claimBatch())) {}
    } catch (error) {
      this.#trouble("claiming", error);
    } finally {
      this.#claiming = false;
      this.#fitHandOver();
    }
  }

  /** One batch; false when it is no use to go on now. */
  async #claimBatch(): Promise<boolean> {
    const { held, lease, store } = this.#parts;
    const current = this.#active ? lease.current : undefined;
    if (current === undefined) return false;
    const limit = held.reserve(this.#limit);
    if (limit === 0) return false;
    this.#backlog = "none";
    held.claimBegins(current);
    try {
      const claims = await store.claim({ lease: current, limit, kinds: ["event"] });
      this.#limit = claims.length < limit ? CLAIM_START : Math.min(this.#limit * 2, CLAIM_MAX);
      if (claims.length === limit) this.#backlog = "perhaps";
      if (claims.length > 0) held.receive(claims.map((claim) => this.#runOf(claim)).filter((run) => run !== undefined));
      return true;
    } catch (error) {
      this.#backlog = "perhaps";
      lease.doubt(current);
      throw error;
    } finally {
      held.claimEnds(current);
      held.unreserve(limit);
    }
  }

  /** Undefined for a row that cannot be read: it is failed alone. */
  #runOf({ row, lease, attempt }: Claim): EventRun | undefined {
    const { id, topic, source, message, deliveries } = row;
    if (message === undefined) {
      void this.#failUnreadable({ id, lease, attempt }, row.unreadable ?? "the row cannot be read");
      return undefined;
    }
    const steps = this.#parts.subscriptions.stepsFor(topic);
    return new EventRun({ id, topic, source, message }, { lease, attempt, deliveries }, steps);
  }

  async #failUnreadable(claim: { id: number; lease: number; attempt: number }, error: string): Promise<void> {
    const { store, lease, observe } = this.#parts;
    observe({ kind: "unreadable", event: claim.id, error });
    try {
      await store.settle([{ ...claim, outcome: { kind: "failed", error } }]);
    } catch (trouble) {
      // Nobody here holds it: it goes back with its lease, and is failed the next time.
      lease.doubt(claim.lease);
      this.#trouble("failing an unreadable row", trouble);
    }
  }

  #fitHandOver(): void {
    const part = this.#backlog === "none" ? "all" : "half";
    this.#parts.publisher.handOver = this.#active ? part : "none";
  }

  #trouble(doing: string, error: unknown): void {
    this.#parts.observe({ kind: "store-trouble", doing, error: fromError(error).message });
  }
}
