/**
 * Publishing: an event is checked, made a message, and appended to the journal. Calls no handler. SPEC: J40, J41,
 * J45-J47, J66.
 *
 * If this process has room, the row is written as already claimed by it, and the event goes to the dispatcher as soon
 * as it is durable, without being read back. Otherwise it is written as pending, and the dispatcher is woken.
 *
 * Events that many callers publish in one turn go to the store in one call: a call for each costs as much again as
 * writing it. An event that is too large is left out, so that it fails alone; the others keep their order, because they
 * are not sent again after later events. If the store could not write, none of them is stored.
 */
import type { Host } from "../host/host.ts";
import { DEPTH_MAX, OBJECT_KEYS_MAX, PAYLOAD_BYTES_MAX } from "../limits.ts";
import { checkMessage, ID_LENGTH_MAX, isId, type Message } from "../message/envelope.ts";
import { isCleanText, type JsonLimits } from "../message/json.ts";
import { cloneJson } from "../message/json-copy.ts";
import { causedBy, eventMessage, type Lineage } from "../message/lineage.ts";
import { problemText, show, within } from "../message/problem.ts";
import type { CommitOutcome } from "../store/commit.ts";
import type { JournalEntry } from "../store/journal.ts";
import type { Rejection } from "../store/rejection.ts";
import type { AppendOutcome, Store } from "../store/store.ts";
import { BusError, notPublished } from "./bus-error.ts";
import type { Event } from "./event.ts";
import { EventRun, type RunClaim } from "./event-run.ts";
import type { Emitter, HandlerEmitOptions } from "./handler.ts";
import type { HeldEvents } from "./held-events.ts";
import type { JournalSignal } from "./journal-signal.ts";
import type { LeaseKeeper } from "./lease-keeper.ts";
import { UNHEARD } from "./outcome.ts";
import type { TopicMatches } from "./topic-match.ts";
import type { Topics } from "./topics.ts";

/** Options of `bus.publish`: its lineage, and a signal. */
export interface PublishOptions {
  /** Names the conversation; all messages that handlers emit carry it on. */
  readonly correlation?: string | undefined;
  /** The id of the message that caused this one. */
  readonly causation?: string | undefined;
  /**
   * Gives up if it is aborted before the event is sent to the store. Afterwards the promise tells whether the event was
   * stored.
   */
  readonly signal?: AbortSignal;
}

/** An event of `publishMany`. */
export interface Publication extends Omit<PublishOptions, "signal"> {
  readonly topic: string;
  readonly source: string;
  readonly payload: unknown;
}

/** The caller that waits for an event on its way to the store. */
interface Caller {
  readonly resolve: (id: number) => void;
  readonly reject: (error: unknown) => void;
  /** Aborted when the caller gives up. */
  readonly signal?: AbortSignal | undefined;
}

/** Events that go to the store in one call, and the caller of each. */
interface Outgoing {
  readonly entries: JournalEntry[];
  readonly callers: Caller[];
  /** Whether some callers may have given up. */
  hasSignals: boolean;
}

type Appended = AppendOutcome & { readonly kind: "appended" };

/** The claim of events that go to the store as claimed: a lease, and reserved room. */
interface Grant {
  readonly lease: number;
  readonly count: number;
}

/** Share of the room that published events may take; the rest is for events that wait already. */
export type HandOver = "all" | "half" | "none";

/** Events in one call: short enough to share a transaction with others. */
const PUBLISHED_TOGETHER_MAX = 256;
const PENDING: JournalEntry["as"] = { status: "pending" };
/** A payload is one level deep in its message, whose depth is bounded. */
const PAYLOAD_LIMITS: JsonLimits = { bytesMax: PAYLOAD_BYTES_MAX, depthMax: DEPTH_MAX - 1, keysMax: OBJECT_KEYS_MAX };

export class Publisher implements Emitter {
  /** Which entries of a commit are for this bus; those of the other kind wait for another one. */
  readonly #kind: "event" | "command";
  readonly #host: Host;
  readonly #store: Store;
  readonly #topics: Topics;
  readonly #held: HeldEvents;
  readonly #lease: LeaseKeeper;
  readonly #matches: TopicMatches;
  readonly #signal: JournalSignal;
  /**
   * Half while there may be a backlog, whose older events must not be overtaken for ever. 0 while the dispatcher does
   * not run.
   */
  handOver: HandOver = "none";
  /** Events published in this turn; undefined without any. */
  #outgoing: Outgoing | undefined;
  #unheard: (JournalEntry["as"] & { readonly status: "done" }) | undefined;
  #claimed: JournalEntry["as"] & { readonly status: "claimed" } = { status: "claimed", lease: 0 };

  constructor(parts: {
    kind: "event" | "command";
    host: Host;
    store: Store;
    topics: Topics;
    held: HeldEvents;
    lease: LeaseKeeper;
    matches: TopicMatches;
    signal: JournalSignal;
  }) {
    this.#kind = parts.kind;
    this.#host = parts.host;
    this.#store = parts.store;
    this.#topics = parts.topics;
    this.#held = parts.held;
    this.#lease = parts.lease;
    this.#matches = parts.matches;
    this.#signal = parts.signal;
  }

  /** Appends events in order, all or none; resolves with their ids once they are durable. */
  async publishMany(publications: readonly Publication[]): Promise<readonly number[]> {
    const entries = publications.map((publication) => this.#entry(publication));
    // Events that were published earlier in this turn go first.
    this.flush();
    const outcome = await this.send(entries, () => this.#store.append(entries));
    if (outcome.kind === "rejected") throw notPublished(outcome);
    return outcome.ids;
  }

  /** Appends an event; resolves with its id once it is durable. Rejects for an invalid event. */
  publish(publication: Publication, lineage?: Lineage, signal?: AbortSignal): Promise<number> {
    return new Promise((resolve, reject) => {
      const entry = this.#entry(publication, lineage);
      const outgoing = this.#collecting();
      outgoing.entries.push(entry);
      outgoing.callers.push({ resolve, reject, signal });
      if (signal !== undefined) outgoing.hasSignals = true;
    });
  }

  /**
   * Appends an event that is a message already, with an id that another process may have chosen. The same message is
   * the same event, and any process may hold it: so it is never handed over, but claimed from the journal.
   */
  async publishMessage(message: Message, topic: string, source: string): Promise<number> {
    const entries = [this.#entryOf("event", message, topic, source)];
    this.flush();
    const outcome = await this.#store.append(entries);
    this.#sent(entries, outcome);
    if (outcome.kind === "rejected") throw notPublished(outcome);
    return outcome.ids[0]!;
  }

  /** Appends a command likewise; a new one is handed over if there is room. */
  async keep(command: Message, source: string): Promise<{ readonly id: number; readonly isNew: boolean }> {
    const entries = [this.#entryOf("command", command, command.type, source)];
    const outcome = await this.send(entries, () => this.#store.append(entries));
    if (outcome.kind === "rejected") throw notPublished(outcome);
    return { id: outcome.ids[0]!, isNew: outcome.repeated !== true };
  }

  #entryOf(kind: "event" | "command", message: Message, topic: string, source: string): JournalEntry {
    const checked = checkMessage(message);
    if (checked.kind === "refused") throw invalid(`the message cannot be published: ${checked.message}`);
    if (message.kind !== kind) throw invalid(`only ${kind}s are taken here, got a ${message.kind}`);
    this.#topics.wire(topic);
    checkSource(source);
    return { topic, source, message, as: PENDING };
  }

  async emitNow(
    cause: Event,
    subscriberId: string,
    topic: string,
    payload: unknown,
    { source = subscriberId }: HandlerEmitOptions = {},
  ): Promise<number> {
    return this.publish({ topic, source, payload }, causedBy(cause.message));
  }

  /**
   * Sends entries to the store by `send`, pending ones as claimed by this process while there is room. It receives
   * those when the store confirms them. Entries with another status are sent unchanged.
   */
  async send<Outcome extends AppendOutcome | CommitOutcome>(
    entries: JournalEntry[],
    send: () => Promise<Outcome>,
  ): Promise<Outcome> {
    const grant = this.#claimAhead(entries);
    let outcome: Outcome | undefined;
    try {
      outcome = await send();
      return outcome;
    } finally {
      this.#answered(entries, grant, outcome);
    }
  }

  /** Marks entries as claimed by this process, as far as there is room; undefined when none is. */
  #claimAhead(entries: JournalEntry[]): Grant | undefined {
    if (this.handOver === "none") return undefined;
    const pending = this.#settleUnheard(entries);
    const lease = this.#lease.current;
    const count = lease === undefined ? 0 : this.#held.reserve(pending, this.handOver === "all" ? 1 : 0.5);
    if (lease === undefined || count === 0) return undefined;
    this.#claim(entries, count, lease);
    this.#held.claimBegins(lease);
    return { lease, count };
  }

  /** The store has answered, or will not: its events are received. */
  #answered(
    entries: readonly JournalEntry[],
    grant: Grant | undefined,
    outcome: AppendOutcome | CommitOutcome | undefined,
  ): void {
    if (grant !== undefined) {
      const isUnknown = outcome === undefined || (outcome.kind === "rejected" && outcome.class === "unknown");
      if (isUnknown) this.#lease.doubt(grant.lease);
      this.#held.unreserve(grant.count);
    }
    if (outcome !== undefined) this.#sent(entries, outcome);
    if (grant !== undefined) this.#held.claimEnds(grant.lease);
  }

  /**
   * An event without a consumer is written as done: claiming and settling it would cost as much again (J53). Returns
   * how many may be claimed: those of a topic with a full line stay in the journal.
   */
  #settleUnheard(entries: JournalEntry[]): number {
    let pending = 0;
    for (let at = 0; at < entries.length; at++) {
      const entry = entries[at]!;
      if (!this.#isPending(entry)) continue;
      const { steps, missing, version } = this.#matches.for(entry.topic);
      if (this.#held.fullTopics.has(entry.topic)) continue;
      if (steps.length + missing.length > 0) pending++;
      else entries[at] = { ...entry, as: this.#unheardAt(version) };
    }
    return pending;
  }

  #isPending({ as, message }: JournalEntry): boolean {
    return as.status === "pending" && message.kind === this.#kind;
  }

  /** The state of an event without a consumer, by that version of the table of consumers. */
  #unheardAt(version: number | undefined): JournalEntry["as"] {
    if (this.#unheard === undefined || this.#unheard.consumers !== version) {
      const consumers = version === undefined ? {} : { consumers: version };
      this.#unheard = { status: "done", ending: UNHEARD, ...consumers };
    }
    return this.#unheard;
  }

  #claim(entries: JournalEntry[], count: number, lease: number): void {
    if (this.#claimed.lease !== lease) this.#claimed = { status: "claimed", lease };
    for (let at = 0, left = count; left > 0; at++) {
      const entry = entries[at]!;
      if (!this.#isPending(entry) || this.#held.fullTopics.has(entry.topic)) continue;
      entries[at] = { ...entry, as: this.#claimed };
      left--;
    }
  }

  /** Receives the claimed events, and reports the waiting ones. */
  #sent(entries: readonly JournalEntry[], outcome: AppendOutcome | CommitOutcome): void {
    if (outcome.kind === "rejected" || entries.length === 0) return;
    this.#signal.raise();
    const ids = outcome.kind === "appended" ? outcome.ids : outcome.journalIds;
    // An event that was in the journal before may be held by any process: the journal knows.
    const isRepeated = outcome.kind === "appended" && outcome.repeated === true;
    const runs: EventRun[] = [];
    let claim: RunClaim | undefined;
    let hasPending = false;
    for (let at = 0; at < entries.length; at++) {
      const { topic, source, message, as } = entries[at]!;
      if (message.kind !== this.#kind) continue;
      if (as.status === "claimed" && !isRepeated) {
        claim ??= { lease: as.lease, attempt: 1, deliveries: [] };
        runs.push(new EventRun({ id: ids[at]!, topic, source, message }, claim, this.#matches.for(topic)));
      } else if ((as.status === "pending" && !this.#held.fullTopics.has(topic)) || as.status === "claimed")
        hasPending = true;
    }
    if (runs.length > 0) this.#held.receive(runs);
    if (hasPending) this.#held.listener?.backlog();
  }

  /** Where the next event of this turn goes. */
  #collecting(): Outgoing {
    if (this.#outgoing?.entries.length === PUBLISHED_TOGETHER_MAX) this.flush();
    if (this.#outgoing === undefined) {
      this.#outgoing = { entries: [], callers: [], hasSignals: false };
      this.#host.microtask(this.flush);
    }
    return this.#outgoing;
  }

  /** Sends the events that were published in this turn so far. */
  readonly flush = (): void => {
    const outgoing = this.#outgoing;
    this.#outgoing = undefined;
    if (outgoing !== undefined) this.#sendTogether(outgoing);
  };

  #sendTogether(outgoing: Outgoing): void {
    const sent = outgoing.hasSignals ? withoutAborted(outgoing) : outgoing;
    const { entries, callers } = sent;
    if (entries.length === 0) return;
    const grant = this.#claimAhead(entries);
    this.#store.append(entries, "too-large").then(
      (outcome) => {
        if (outcome.kind === "rejected") this.#refused(sent, grant, outcome);
        else if (outcome.leftOut === undefined) this.#stored(sent, grant, outcome);
        else this.#stored(withoutLeftOut(sent, outcome.leftOut), grant, fitting(outcome));
      },
      (error: unknown) => {
        this.#answered(entries, grant, undefined);
        for (const { reject } of callers) reject(error);
      },
    );
  }

  #stored({ entries, callers }: Outgoing, grant: Grant | undefined, outcome: Appended): void {
    // First: the events are durable, and publishers do not wait for handlers.
    for (let at = 0; at < callers.length; at++) callers[at]!.resolve(outcome.ids[at]!);
    this.#answered(entries, grant, outcome);
  }

  #refused({ entries, callers }: Outgoing, grant: Grant | undefined, outcome: Rejection): void {
    this.#answered(entries, grant, outcome);
    const isGuilty = outcome.class === "refused" || outcome.class === "permanent";
    for (let at = 0; at < callers.length; at++) {
      // With several events it is not known which; our stores refuse an event of this process only for its size.
      if (isGuilty && callers.length > 1) this.#sendAlone(entries[at]!, callers[at]!);
      else callers[at]!.reject(notPublished(outcome));
    }
  }

  #sendAlone(entry: JournalEntry, caller: Caller): void {
    const hasSignals = caller.signal !== undefined;
    this.#sendTogether({ entries: [{ ...entry, as: PENDING }], callers: [caller], hasSignals });
  }

  #entry(publication: Publication, lineage: Lineage = lineageOf(publication)): JournalEntry {
    const { topic, source, payload } = publication;
    const type = this.#topics.wire(topic);
    checkSource(source);
    // Copied now: the caller may change it before the turn ends, and handlers here get this very copy.
    const copy = cloneJson(payload, PAYLOAD_LIMITS);
    if (copy.kind === "impure")
      throw invalid(`the event cannot be published: ${problemText(within("payload", copy.problem))}`);
    const message: Message = eventMessage(this.#host, type, copy.value, lineage);
    return { topic, source, message, as: PENDING };
  }
}

/** Rejects events that are too large. */
function withoutLeftOut({ entries, callers }: Outgoing, leftOut: ReadonlyMap<number, Rejection>): Outgoing {
  for (const [at, refusal] of leftOut) callers[at]!.reject(notPublished(refusal));
  const isLeft = (_: unknown, at: number) => !leftOut.has(at);
  return { entries: entries.filter(isLeft), callers: callers.filter(isLeft), hasSignals: false };
}

/** The answer for the others. */
function fitting(outcome: Appended): Appended {
  return { ...outcome, ids: outcome.ids.filter((id) => id > 0) };
}

/** Rejects events whose callers have given up; they are not sent. */
function withoutAborted({ entries, callers }: Outgoing): Outgoing {
  const left: Outgoing = { entries: [], callers: [], hasSignals: true };
  for (const [at, caller] of callers.entries()) {
    if (caller.signal?.aborted) {
      caller.reject(caller.signal.reason);
      continue;
    }
    left.entries.push(entries[at]!);
    left.callers.push(caller);
  }
  return left;
}

function checkSource(source: string): void {
  if (isId(source) && isCleanText(source)) return;
  throw invalid(`source names the publisher, in 1 to ${ID_LENGTH_MAX} characters; got ${show(source)}`);
}

function lineageOf({ correlation, causation }: Publication): Lineage {
  const lineage: { correlation?: string; causation?: string } = {};
  if (correlation !== undefined) lineage.correlation = named("correlation", correlation);
  if (causation !== undefined) lineage.causation = named("causation", causation);
  return lineage;
}

function named(what: string, id: string): string {
  if (isId(id) && isCleanText(id)) return id;
  throw invalid(`${what} must be a text of 1 to ${ID_LENGTH_MAX} characters, got ${show(id)}`);
}

function invalid(message: string): BusError {
  return new BusError("BUS_EVENT_INVALID", message);
}
