/**
 * Looks for the receipt of an invocation before its handler is called, past the replica: a receipt is not made a
 * document in memory for that. Looks of one turn go to the store in one call. A command that waits in a mailbox is
 * looked up while it waits, together with those around it. SPEC: U5-U8, U11.
 */
import type { Host } from "../host/host.ts";
import { ID_AHEAD_MS_MAX, LOOKS_AHEAD_MAX, RECEIPTS_KEEP_MS_MIN } from "../limits.ts";
import { firstIdAt } from "../message/id-time.ts";
import type { Json } from "../message/json.ts";
import type { Commit } from "../store/commit.ts";
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

/** For each receipt of some looks its pending commit in this process, and its stored value. */
interface Found {
  readonly pending: readonly (Commit | undefined)[];
  readonly values: readonly (Json | undefined)[];
}

interface Looks {
  readonly refs: DocumentRef[];
  readonly found: Promise<Found>;
}

/** A look for a command that waits for its turn. */
interface LookAhead {
  readonly answer: Promise<Known>;
  /** Once the store has answered. */
  known: Known | undefined;
}

const NEW: Known = { kind: "new" };
/** A turn of the loop takes one or two. */
const QUIET_JOBS = 4;
/** Each may bring a stored answer of up to a megabyte. */
const LOOKS_AT_ONCE_MAX = 32;
/** Characters of a stored answer that is kept until the turn of its command; a longer one is read again. */
const ANSWER_AHEAD_MAX = 4_096;
/** Names of receipts of commands begin with it. */
const COMMANDS = receiptOf({ kind: "command", id: "" }).id;

/** One for each replica: each notice of a foreign receipt concerns all entry points. */
const OF_REPLICA = new WeakMap<Replica, Receipts>();

export class Receipts {
  readonly #host: Host;
  readonly #replica: Replica;
  readonly #commands = new HandledIds();
  /** Looks that go to the store at the end of this turn. */
  #looks: Looks | undefined;
  /** By the name of the receipt, until the turn of the command or until a commit writes the receipt. */
  readonly #ahead = new Map<string, LookAhead>();

  /** The receipts of the space of a replica. Made by its first entry point or its first send with an id. */
  static of(replica: Replica, host: Host): Receipts {
    let receipts = OF_REPLICA.get(replica);
    if (receipts === undefined) {
      receipts = new Receipts(host, replica);
      OF_REPLICA.set(replica, receipts);
    }
    return receipts;
  }

  private constructor(host: Host, replica: Replica) {
    this.#host = host;
    this.#replica = replica;
    replica.foreignReceipts = {
      noted: (name) => {
        const id = commandOf(name);
        if (id !== undefined) this.isNew(id);
        this.written(name);
      },
      missed: () => {
        this.#commands.forget(host.now());
        this.#ahead.clear();
      },
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

  /** Begins to look for the receipt of a command that waits for its turn, if its id is in doubt. */
  lookAhead(invocation: Invocation): void {
    if (!this.#commands.isInDoubt(invocation.id, this.#host.now())) return;
    const ref = receiptOf(invocation);
    if (this.#ahead.has(ref.id)) return;
    // Commands that never have a turn leave theirs behind. All others look again at their turn.
    if (this.#ahead.size >= LOOKS_AHEAD_MAX) this.#ahead.clear();
    const look: LookAhead = { answer: this.#look(ref), known: undefined };
    // The command looks again at its turn.
    const forget = () => {
      if (this.#ahead.get(ref.id) === look) this.#ahead.delete(ref.id);
    };
    look.answer.then((known) => {
      if (known.kind !== "handled" || JSON.stringify(known.value).length <= ANSWER_AHEAD_MAX) look.known = known;
      else forget();
    }, forget);
    this.#ahead.set(ref.id, look);
  }

  /** A commit that writes this receipt is on its way: looks from before it are void. */
  written(name: string): void {
    if (this.#ahead.size > 0) this.#ahead.delete(name);
  }

  /** Looks for the receipt of an invocation; without a promise if that was done ahead. */
  look(invocation: Invocation): Known | Promise<Known> {
    const ref = receiptOf(invocation);
    const ahead = this.#ahead.get(ref.id);
    if (ahead === undefined) return this.#look(ref);
    this.#ahead.delete(ref.id);
    return ahead.known ?? ahead.answer;
  }

  async #look(ref: DocumentRef): Promise<Known> {
    const looks = this.#looks ?? this.#collect();
    const at = looks.refs.push(ref) - 1;
    const { pending, values } = await looks.found;
    // An attempt of this process may be about to leave it.
    const own = pending[at];
    if (own !== undefined) {
      await own.outcome;
      return this.#look(ref);
    }
    const value = values[at];
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

  #collect(): Looks {
    const refs: DocumentRef[] = [];
    const found = this.#gathered(refs).then(async () => {
      const pending = this.#replica.pendingReceipts(refs);
      const { documents } = await this.#replica.loadStored(refs);
      return { pending, values: documents.map(({ value }) => value) };
    });
    this.#looks = { refs, found };
    return this.#looks;
  }

  /** Resolves when no look was added during some promise jobs: messages of a burst come one by one, each in a job. */
  async #gathered(refs: readonly DocumentRef[]): Promise<void> {
    for (let quietJobs = 0; quietJobs < QUIET_JOBS && refs.length < LOOKS_AT_ONCE_MAX; ) {
      const before = refs.length;
      await undefined;
      quietJobs = refs.length > before ? 0 : quietJobs + 1;
    }
    this.#looks = undefined;
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
