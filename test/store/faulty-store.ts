/**
 * A real store behind a faulty line: calls can be held before they arrive, their answers held on the way back, commits
 * refused before the store sees them, made without an answer, or sent twice. The promises of the interface (`store.ts`)
 * hold: writes arrive and are answered in the order of the calls, and an answer that shows a commit comes after the
 * answer to it.
 *
 *     const line = new FaultyLine(memoryStore({ host }));
 *     line.plan = ({ method }) => (method === "commit" ? { answered: gate.opened } : {});
 *     await Replica.open({ store: line.store, ... });
 */
import type { CommitOutcome, CommitRequest } from "../../src/store/commit.ts";
import type { DocumentRef } from "../../src/store/document.ts";
import { type Rejection, rejected } from "../../src/store/rejection.ts";
import type { FeedPage, LoadResult, Store } from "../../src/store/store.ts";

export interface LineCall {
  readonly method: "load" | "commit" | "changesSince";
  readonly request?: CommitRequest;
  /** The documents of a load. */
  readonly refs?: readonly DocumentRef[];
}

export interface Fault {
  /** The call arrives at the store after this. */
  readonly arrives?: Promise<void>;
  /** The answer arrives at the caller after this. */
  readonly answered?: Promise<void>;
  /** Instead of making the commit; a load or a look at the feed throws it. */
  readonly instead?: Rejection | Error;
  /** The commit is made, and the caller gets an unknown outcome. */
  readonly loseAnswer?: boolean;
  /** The commit is sent twice, as if the first answer had been lost; the caller gets the second. */
  readonly sendTwice?: boolean;
}

const NEVER = new Promise<never>(() => undefined);
const NOTHING_ASKED = { arrived: Promise.resolve(), answered: Promise.resolve() };

export class FaultyLine {
  readonly store: Store;
  /** Decides the fault of a call; none unless given. */
  plan: (call: LineCall) => Fault = () => ({});
  /** Commits that arrived at the store, in order. */
  readonly arrived: CommitRequest[] = [];
  readonly #inner: Store;
  /** Of the commit that was asked for last: when it has arrived, and when it is answered. */
  #lastAsked: { readonly arrived: Promise<unknown>; readonly answered: Promise<unknown> } = NOTHING_ASKED;
  /** When every commit that has arrived, and so may be shown, is answered. */
  #shownAnswered: Promise<unknown> = Promise.resolve();
  #isCut = false;

  constructor(inner: Store) {
    this.#inner = inner;
    const faulty = {
      load: (space: string, refs: readonly DocumentRef[]) => this.#load(space, refs),
      commit: (request: CommitRequest) => this.#commit(request),
      changesSince: (space: string, sequence: number, limit: number) => this.#changesSince(space, sequence, limit),
    };
    this.store = new Proxy(inner, {
      get: (target, name) => {
        if (this.#isCut) return () => NEVER;
        if (Object.hasOwn(faulty, name)) return Reflect.get(faulty, name);
        const member: unknown = Reflect.get(target, name);
        return typeof member === "function" ? member.bind(target) : member;
      },
    });
  }

  /** From now on no call arrives and no answer comes back, as if the process had died. */
  cut(): void {
    this.#isCut = true;
  }

  #load(space: string, refs: readonly DocumentRef[]): Promise<LoadResult> {
    return this.#read(this.plan({ method: "load", refs }), () => this.#inner.load(space, refs));
  }

  #changesSince(space: string, sequence: number, limit: number): Promise<FeedPage> {
    return this.#read(this.plan({ method: "changesSince" }), () => this.#inner.changesSince(space, sequence, limit));
  }

  async #read<T>(fault: Fault, read: () => Promise<T>): Promise<T> {
    await fault.arrives;
    if (fault.instead instanceof Error) throw fault.instead;
    const result = await read();
    const shown = this.#shownAnswered;
    await fault.answered;
    await shown;
    return result;
  }

  #commit(request: CommitRequest): Promise<CommitOutcome> {
    const fault = this.plan({ method: "commit", request });
    const before = this.#lastAsked;
    const made = before.arrived.then(() => this.#make(request, fault, () => answered));
    const answer = this.#answer(made, fault, before.answered);
    const answered = answer.catch(() => undefined);
    this.#lastAsked = { arrived: made.catch(() => undefined), answered };
    return answer;
  }

  async #make(request: CommitRequest, fault: Fault, answered: () => Promise<unknown>): Promise<CommitOutcome> {
    await fault.arrives;
    if (fault.instead instanceof Error) throw fault.instead;
    if (fault.instead) return fault.instead;
    this.arrived.push(request);
    this.#shownAnswered = answered();
    if (fault.sendTwice) await this.#inner.commit(request);
    return this.#inner.commit(request);
  }

  async #answer(made: Promise<CommitOutcome>, fault: Fault, before: Promise<unknown>): Promise<CommitOutcome> {
    try {
      const outcome = await made;
      return fault.loseAnswer ? rejected("unknown", "no-answer", "the line went dead") : outcome;
    } finally {
      await fault.answered;
      await before;
    }
  }
}

/** A promise that a test resolves. */
export class Gate {
  readonly opened: Promise<void>;
  readonly open: () => void;

  constructor() {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.opened = promise;
    this.open = resolve;
  }
}
