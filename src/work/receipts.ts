/**
 * Looks for the receipt of an invocation before its handler is called, past the replica: a receipt is not made a
 * document in memory for that. Looks of one turn go to the store in one call. SPEC: U5-U8, U11.
 */
import type { Host } from "../host/host.ts";
import { ID_AHEAD_MS_MAX, RECEIPTS_KEEP_MS_MIN } from "../limits.ts";
import { firstIdAt } from "../message/id-time.ts";
import type { Json } from "../message/json.ts";
import type { DocumentRef } from "../store/document.ts";
import { requireAbsent } from "../store/receipt.ts";
import { commandOf, type Invocation, madeAt, receiptOf } from "../store/receipt-name.ts";
import type { Rejection } from "../store/rejection.ts";
import type { Replica } from "../store/replica.ts";
import { HandledIds } from "./handled-ids.ts";

/** The answer of the store about an invocation. */
export type Known =
  | { readonly kind: "new" }
  | { readonly kind: "handled"; readonly value: Json }
  /** It was made before the horizon: the store cannot tell any more. */
  | { readonly kind: "too-old"; readonly rejection: Rejection };

interface Looks {
  readonly refs: DocumentRef[];
  readonly values: Promise<readonly (Json | undefined)[]>;
}

const NEW: Known = { kind: "new" };
/** Names of receipts of commands begin with it. */
const COMMANDS = receiptOf({ kind: "command", id: "" }).id;

export class Receipts {
  readonly #host: Host;
  readonly #replica: Replica;
  readonly #commands = new HandledIds();
  /** Looks that go to the store at the end of this turn. */
  #looks: Looks | undefined;

  constructor(host: Host, replica: Replica) {
    this.#host = host;
    this.#replica = replica;
    replica.foreignReceipts = {
      noted: (name) => {
        const id = commandOf(name);
        if (id !== undefined) this.isNew(id);
      },
      missed: () => this.#commands.forget(host.now()),
    };
    // Until it is known, or if it cannot be, every id is looked up.
    this.#floor().then(
      (ms) => {
        this.#commands.floorMs = ms;
      },
      () => undefined,
    );
  }

  /** Whether a command was certainly not handled before. No statement, and true once for each id. */
  isNew(commandId: string): boolean {
    return this.#commands.isNew(commandId, this.#host.now());
  }

  async look(invocation: Invocation): Promise<Known> {
    const ref = receiptOf(invocation);
    // An attempt of this process may be about to leave it.
    for (let own = this.#replica.pendingReceipt(ref); own; own = this.#replica.pendingReceipt(ref)) await own.outcome;
    const value = await this.#load(ref);
    if (value !== undefined) return { kind: "handled", value };
    // Receipts are kept for an hour at least. Clocks may differ by more: then the commit is refused instead.
    const madeAtMs = madeAt(ref.id) ?? Number.POSITIVE_INFINITY;
    return madeAtMs > this.#host.now() - RECEIPTS_KEEP_MS_MIN ? NEW : this.#againstHorizon(ref);
  }

  /** An empty commit, on the condition that the receipt is absent and could still be there. */
  async #againstHorizon(ref: DocumentRef): Promise<Known> {
    const question = this.#replica.transaction();
    const outcome = await question.commitReads(requireAbsent(ref)).outcome;
    return outcome.kind === "rejected" && outcome.reason === "too-old" ? { kind: "too-old", rejection: outcome } : NEW;
  }

  async #load(ref: DocumentRef): Promise<Json | undefined> {
    const looks = this.#looks ?? this.#collect();
    const at = looks.refs.push(ref) - 1;
    return (await looks.values)[at];
  }

  #collect(): Looks {
    const refs: DocumentRef[] = [];
    const values = Promise.resolve().then(async () => {
      this.#looks = undefined;
      const { documents } = await this.#replica.loadStored(refs);
      return documents.map(({ value }) => value);
    });
    this.#looks = { refs, values };
    return this.#looks;
  }

  /**
   * The time of the newest receipt of a command, or now. Clients' clocks may be ahead, so it is searched for up to an
   * hour from now.
   */
  async #floor(): Promise<number> {
    const startMs = this.#host.now();
    const endMs = startMs + ID_AHEAD_MS_MAX;
    if (!(await this.#hasReceipts(startMs, endMs))) return startMs;
    let [lowMs, highMs] = [startMs, endMs];
    while (highMs - lowMs > 1) {
      const middleMs = Math.floor((lowMs + highMs) / 2);
      if (await this.#hasReceipts(middleMs, endMs)) lowMs = middleMs;
      else highMs = middleMs;
    }
    return highMs;
  }

  /** Whether a command has a receipt that was made in this time. */
  async #hasReceipts(fromMs: number, toMs: number): Promise<boolean> {
    const { scope, id: from } = receiptOf({ kind: "command", id: firstIdAt(fromMs) });
    const { id: to } = receiptOf({ kind: "command", id: firstIdAt(toMs) });
    const first = await this.#replica.firstStoredAfter(scope, COMMANDS, from);
    return first !== undefined && first < to;
  }
}
