/**
 * A send: one value for one stream, and what became of it. Every send ends in exactly one outcome.
 *
 * ```
 *   launched ──its attempt's commit is applied──> queued ──handler ran──> committing ──confirmed──> over
 *      (only where an attempt sent it)            ^ │ ^└─ waiting at the head for something: `wait`
 *                                                 │ │ └── stale: again, at its old place
 *                              there is a handler └aside: nothing handles its stream
 * ```
 */
import type { Json } from "../message/json.ts";
import { join, type Label, PUBLIC } from "../store/label.ts";
import { Receipt } from "../store/receipt.ts";
import { receiptOf } from "../store/receipt-name.ts";
import type { Rejection } from "../store/rejection.ts";
import type { ReplicaDocument } from "../store/replica-document.ts";
import type { Commit } from "../store/transaction.ts";
import type { Demand, Home } from "../work/attempt.ts";
import type { Lineage } from "../work/lineage.ts";
import type { Retries } from "../work/retries.ts";
import type { EventStem } from "./event-id.ts";
import type { StreamRecord } from "./stream-record.ts";

export type SendFailure =
  /** The handler threw. */
  | "threw"
  /** The handler took longer than its timeout. */
  | "timeout"
  /** What finds out what the handler reads threw. */
  | "preflight"
  /** Something that the handler reads, or the handler itself, could not be loaded. */
  | "load"
  /** What the handler returned cannot be stored. */
  | "result"
  /** The store will never take the commit. */
  | "rejected"
  /** It was tried again for as long as the window allows. */
  | "gave-up";

export type SendOutcome =
  /** This send's handling is committed; `result` is what the handler returned. */
  | { readonly kind: "handled"; readonly id: string; readonly result: Json }
  /** The event was handled before, here or elsewhere; `result` is what that handling returned. */
  | { readonly kind: "already"; readonly id: string; readonly result: Json }
  | {
      readonly kind: "failed";
      readonly id: string;
      readonly reason: SendFailure;
      readonly message: string;
      readonly error?: unknown;
      /** The last answer of the store; its class says whether it could ever have been made. */
      readonly rejection?: Rejection;
    }
  /** It was not handled and will not be: who sent it failed, or nobody is left who could handle it. */
  | {
      readonly kind: "dropped";
      readonly id: string;
      readonly reason: "origin-failed" | "no-handler" | "closed";
      readonly message: string;
    }
  /** The queue is full: send it again later. */
  | { readonly kind: "refused"; readonly id: string; readonly reason: "queue-full"; readonly message: string };

export interface SendOptions {
  /** The caller's own id; sent twice under it by the same session, it is handled once. */
  readonly id?: string;
  /** Who the caller is, where that outlives this process; else ids count for as long as the space is open here. */
  readonly session?: string;
  /** An event id as it was minted by an earlier send: the same event again, wherever it was sent first. */
  readonly eventId?: string;
  /** A commit that this send depends on: it waits until that is confirmed and is dropped if that fails. */
  readonly origin?: Commit;
  /** Called with the outcome, once. */
  readonly onOutcome?: (outcome: SendOutcome) => void;
}

/** What the sender gets. */
export interface Sent {
  /** The durable event id. */
  readonly id: string;
  /** Never rejects. */
  readonly outcome: Promise<SendOutcome>;
}

/** What the head of a queue waits for. */
export type Wait =
  /** Nodes it reads from are gated, or an asynchronous run is under way: looked at again in every pass. */
  | { readonly kind: "nodes" }
  /** Documents it reads are being loaded. */
  | { readonly kind: "load"; readonly missing: ReadonlySet<Home> }
  /** A handler is being looked for. */
  | { readonly kind: "handler-load" }
  /** The commit that it was sent by is not confirmed. */
  | { readonly kind: "origin" }
  /** Its commit was stale: others' commits are being read, or it pauses. */
  | { readonly kind: "retry" }
  /** Its receipt is looked for. */
  | { readonly kind: "receipt" }
  /** What its handler asked to be brought here before it runs. */
  | { readonly kind: "presync" };

export class Send implements Sent {
  readonly stream: StreamRecord;
  readonly value: Json;
  /** The attempt that sent it; undefined for plain code. */
  readonly origin: Lineage | undefined;
  /** What whoever sent it had read by then is labelled with. */
  readonly #sentUnder: Label;
  /** Its place in the queue, given when it is queued and kept when it comes back. */
  order = 0;
  state: "launched" | "queued" | "aside" | "running" | "committing" | "over" = "launched";
  wait: Wait | undefined;
  /** What its handler reads, demanded while it waits and while it runs. */
  closure: Demand | undefined;
  attempts = 0;
  /** The time that ids of its messages carry, once its handler has sent one. */
  bornMs: number | undefined;
  /** Made by the first rejection of its commit. */
  retries: Retries | undefined;
  /** Documents that its handler reads and that were not here: held until it is over, or one might go when the next one comes. */
  #needed: ReplicaDocument[] | undefined;
  /** Whether its id was given by the caller: then it may have been handled before, and its receipt is looked for. */
  mayBeKnown = false;
  /** Whether what the handler asked for has been brought here. */
  synced = false;
  /** The event's id, or the number from which it follows: those that wait need none. */
  readonly #name: string | number;
  /** What the id begins with that follows from a number, once it is minted. */
  #stem: EventStem | undefined;
  readonly #onOutcome: ((outcome: SendOutcome) => void) | undefined;
  #result: SendOutcome | undefined;
  /** What the handler returned, where the outcome is that and has not been asked for. */
  #returned: Json | undefined;
  #outcome: Promise<SendOutcome> | undefined;
  #resolve: ((outcome: SendOutcome) => void) | undefined;

  constructor(parts: {
    name: string | number;
    stream: StreamRecord;
    value: Json;
    origin?: Lineage | undefined;
    label?: Label | undefined;
    onOutcome?: ((outcome: SendOutcome) => void) | undefined;
  }) {
    this.#name = parts.name;
    this.stream = parts.stream;
    this.value = parts.value;
    this.origin = parts.origin;
    this.#sentUnder = parts.label ?? PUBLIC;
    this.#onOutcome = parts.onOutcome;
  }

  /** What whoever sent it knew: by then, and by the end of the attempt, which decides whether it was sent at all. */
  get label(): Label {
    return this.origin === undefined ? this.#sentUnder : join(this.#sentUnder, this.origin.label);
  }

  get id(): string {
    return typeof this.#name === "number" ? this.#minted().id(this.#name) : this.#name;
  }

  /** The witness of its handling. */
  receipt(result: Json): Receipt {
    if (typeof this.#name === "number") return this.#minted().receipt(this.#name, result);
    return new Receipt(receiptOf({ kind: "send", id: this.#name }), result);
  }

  #minted(): EventStem {
    this.#stem ??= this.stream.stem;
    return this.#stem;
  }

  /** Made when first asked for: most sends are not waited for one by one. */
  get outcome(): Promise<SendOutcome> {
    if (this.#returned !== undefined) this.#result ??= { kind: "handled", id: this.id, result: this.#returned };
    this.#outcome ??= this.#result
      ? Promise.resolve(this.#result)
      : new Promise((resolve) => {
          this.#resolve = resolve;
        });
    return this.#outcome;
  }

  /** Keeps documents that are being loaded for its handler. */
  needs(documents: readonly Home[]): void {
    this.#needed ??= [];
    for (const { document } of documents) {
      document.observers++;
      this.#needed.push(document);
    }
  }

  /** The one outcome. What comes after it changes nothing. */
  end(outcome: SendOutcome): void {
    if (this.state === "over") return;
    this.#letGo();
    this.#result = outcome;
    this.#resolve?.(outcome);
    this.#onOutcome?.(outcome);
  }

  /** Whether somebody is to be told of the outcome. */
  get isAwaited(): boolean {
    return this.#resolve !== undefined || this.#onOutcome !== undefined;
  }

  /** The outcome of most: what the handler returned is committed, and nobody has asked for it yet. */
  endUnheard(result: Json): void {
    if (this.state === "over") return;
    this.#letGo();
    this.#returned = result;
  }

  #letGo(): void {
    this.state = "over";
    this.wait = undefined;
    this.closure?.release();
    this.closure = undefined;
    if (this.#needed !== undefined) for (const document of this.#needed) document.observers--;
  }
}
