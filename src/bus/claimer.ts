/**
 * Takes pending events from the journal, as many as there is room for. SPEC: J49, J54, J67, J88, J95.
 *
 *     backlog() ──> claim a batch ──full──> claim a larger one ... ──not full──> the journal has no pending event
 *                        └──no room, no lease, not active──> later: the code that makes room calls `claim` again
 *
 * One claim runs at a time. The journal counts as having a backlog until a claim has returned fewer events than asked
 * for; every later event raises the flag again.
 *
 * If a process dies, each event that it held may be the reason. Events to which this happened more than once are
 * suspects: they are taken one at a time, so that the next death identifies the poison message, which fails in the end.
 * A death counts only if the handling of the suspect had begun, which is written to the journal first (`delivery.ts`).
 */
import type { Host } from "../host/host.ts";
import { EVENT_DEATHS_MAX, EVENT_SUSPECT_DEATHS, FULL_TOPICS_MAX } from "../limits.ts";
import type { Message } from "../message/envelope.ts";
import { fromError } from "../message/error-data.ts";
import type { Claim } from "../store/journal.ts";
import { isAway } from "../store/parking.ts";
import type { Store } from "../store/store.ts";
import type { Consumers } from "./consumers.ts";
import type { Match } from "./event-run.ts";
import { EventRun } from "./event-run.ts";
import type { HeldEvents } from "./held-events.ts";
import type { LeaseKeeper } from "./lease-keeper.ts";
import type { BusObserver } from "./observation.ts";
import { runFailure } from "./outcome.ts";
import type { Publisher } from "./publisher.ts";
import type { TopicMatches } from "./topic-match.ts";

interface ClaimerParts {
  readonly kind: "event" | "command";
  readonly host: Host;
  readonly store: Store;
  readonly lease: LeaseKeeper;
  readonly held: HeldEvents;
  readonly publisher: Publisher;
  readonly matches: TopicMatches;
  readonly consumers: Consumers;
  readonly observe: BusObserver;
}

/**
 * Events asked for at once: few while it is not known whether there are any, because their room is reserved meanwhile.
 */
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
  /** The held suspect. If it waits for its order, it gives way: the event before it may be another suspect. */
  #suspect: EventRun | undefined;

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

  /** Claims until no event is pending or there is no room. */
  claim(): void {
    if (this.#suspect?.state === "over" || this.#suspect?.state === "at-order") {
      this.#suspect = undefined;
      this.#backlog = "perhaps";
    }
    if (this.#backlog === "perhaps" && !this.#claiming) this.#claims = this.#claimAll();
  }

  /** Reads the journal now; resolves when it has no event left that can be taken. */
  async look(): Promise<void> {
    await this.#claims;
    this.backlog();
    await this.#claims;
  }

  /** Whether a claim runs, or the next one is about to. */
  get isClaiming(): boolean {
    return this.#claiming;
  }

  async #claimAll(): Promise<void> {
    this.#claiming = true;
    try {
      // Handlers that return at once make room in the same turn: a long backlog would keep the host out.
      while ((await this.#claimBatch()) && this.#backlog === "perhaps") await this.#parts.host.yield();
    } catch (error) {
      this.#trouble("claiming", error);
    } finally {
      this.#claiming = false;
      this.#fitHandOver();
    }
  }

  /** One batch; false if another one would be of no use now. */
  async #claimBatch(): Promise<boolean> {
    const { held, lease, store, kind, consumers } = this.#parts;
    const current = this.#active ? lease.current : undefined;
    if (current === undefined || store.connection.state !== "connected") return false;
    const { fullTopics } = held;
    // A slow subscription to all topics: its line is served before more is claimed.
    if (fullTopics.size > FULL_TOPICS_MAX) return false;
    const limit = held.reserve(this.#limit);
    if (limit === 0) return false;
    this.#backlog = "none";
    held.claimBegins(current);
    try {
      const suspects = { from: EVENT_SUSPECT_DEATHS, limit: this.#suspect === undefined ? 1 : 0 };
      const claims = await store.claim({
        lease: current,
        limit,
        kinds: [kind],
        suspects,
        consumers: consumers.running,
        ...(fullTopics.size === 0 ? {} : { exceptTopics: [...fullTopics] }),
      });
      this.#limit = claims.length < limit ? CLAIM_START : Math.min(this.#limit * 2, CLAIM_MAX);
      if (claims.length === limit || claims.some(isSuspect)) this.#backlog = "perhaps";
      if (claims.length > 0) held.receive(claims.map((claim) => this.#runOf(claim)).filter((run) => run !== undefined));
      return true;
    } catch (error) {
      this.#backlog = "perhaps";
      // No event was claimed; the dispatcher calls again when the store is connected.
      if (isAway(error)) return false;
      lease.doubt(current);
      throw error;
    } finally {
      held.claimEnds(current);
      held.unreserve(limit);
    }
  }

  /** Undefined for a row that cannot be read, and for one that too many processes died with: these fail alone. */
  #runOf(claim: Claim): EventRun | undefined {
    const { row, lease, attempt } = claim;
    const { id, topic, source, message, deliveries, deaths = 0 } = row;
    if (message === undefined) {
      void this.#fail(claim, "unreadable", row.unreadable ?? "the row cannot be read");
      return undefined;
    }
    const { matches, store } = this.#parts;
    const match = matches.for(topic);
    if (deaths >= EVENT_DEATHS_MAX) {
      const reason = `its process died ${deaths} times while handling it`;
      // `onFailed` is tried once: a further death is its own.
      if (deaths === EVENT_DEATHS_MAX && match.steps.some(({ subscription }) => subscription.handlesFailures))
        return this.#condemned(claim, match, reason);
      void this.#fail(claim, "gave-up", reason);
      return undefined;
    }
    const atMs = store.now();
    const facts = { id, topic, source, message };
    if (!isSuspect(claim)) return new EventRun(facts, { lease, attempt, deliveries, atMs, deaths }, match);
    const suspicion = { begun: false };
    this.#suspect = new EventRun(facts, { lease, attempt, deliveries, atMs, deaths, suspicion }, match);
    return this.#suspect;
  }

  /** An event whose handlers are not called any more, except for their `onFailed`. */
  #condemned({ row, lease, attempt }: Claim, match: Match, condemned: string): EventRun {
    const { id, topic, source, deliveries, deaths } = row;
    this.#parts.observe({ kind: "gave-up", event: id, error: condemned });
    const claimed = {
      lease,
      attempt,
      deliveries,
      atMs: this.#parts.store.now(),
      suspicion: { begun: false },
      condemned,
    };
    const facts = { id, topic, source, message: row.message as Message };
    this.#suspect = new EventRun(facts, { ...claimed, deaths: deaths ?? 0 }, { ...match, missing: [] });
    return this.#suspect;
  }

  async #fail(claim: Claim, kind: "unreadable" | "gave-up", error: string): Promise<void> {
    this.#parts.observe({ kind, event: claim.row.id, error });
    try {
      await this.#parts.store.settle([runFailure(claim, error)]);
    } catch (trouble) {
      // No run of this process has it: it goes back with its lease, and fails the next time.
      this.#parts.lease.doubt(claim.lease);
      this.#trouble("failing a row that cannot be handled", trouble);
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

function isSuspect({ row }: Claim): boolean {
  return (row.deaths ?? 0) >= EVENT_SUSPECT_DEATHS;
}
