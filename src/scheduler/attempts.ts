/**
 * Which attempt runs now, so that what is launched is tied to it: the handler of a send, or a transaction of plain code. The lineage of a
 * transaction is made by the first launch in it and follows its commit. SPEC: I10.
 */
import { thrownText } from "../message/error-data.ts";
import type { CommitOutcome } from "../store/commit.ts";
import type { Label } from "../store/label.ts";
import type { Replica } from "../store/replica.ts";
import type { Commit } from "../store/transaction.ts";
import type { Closure } from "./closure.ts";
import { Lineage } from "./lineage.ts";
import type { Runner } from "./runner.ts";
import type { Transacted, Turns } from "./turns.ts";

export class Attempts {
  readonly #runner: Runner;
  readonly #turns: Turns;
  /** What the transaction that runs now has launched. */
  #transaction: Lineage | undefined;

  constructor(runner: Runner, turns: Turns) {
    this.#runner = runner;
    this.#turns = turns;
  }

  /** Undefined for plain code and for nodes: effects run again as they like, and what they launch is nobody's. */
  get current(): Lineage | undefined {
    const { current, handling } = this.#runner;
    if (current !== null) return undefined;
    if (handling !== null) return handling.lineage;
    const replica = this.#turns.transactsOn;
    if (replica !== undefined) this.#transaction ??= new Lineage(replica);
    return this.#transaction;
  }

  /** What whoever runs now has read so far is labelled with. */
  get label(): Label {
    const { current, handling } = this.#runner;
    return current?.label ?? handling?.label ?? this.#turns.label;
  }

  /** Runs code as one commit; what it launches follows that. One inside another is part of it. */
  transact<T>(replica: Replica, code: () => T, changeGroup?: string, closure?: Closure): Transacted<T> {
    if (this.#turns.isTransacting) return this.#turns.transact(replica, code, changeGroup);
    try {
      const transacted = this.#turns.transact(replica, code, changeGroup, closure);
      this.#transacted(transacted);
      return transacted;
    } catch (error) {
      this.#take()?.fail(`the transaction threw: ${thrownText(error)}`);
      throw error;
    }
  }

  /** The transaction has ended. Without a commit it wrote nothing, and is run again if it has looked at what is not here. */
  #transacted({ commit, standing, missing, label }: Transacted<unknown>): void {
    const lineage = this.#take();
    if (lineage === undefined) return;
    if (label !== undefined) lineage.label = label;
    if (commit === undefined && missing !== undefined) return lineage.fail("it read documents before they were loaded");
    if (commit === undefined) return standing === undefined ? lineage.confirm() : follow(lineage, standing);
    lineage.applied({ session: commit.session, localSequence: commit.localSequence });
    follow(lineage, commit.outcome);
  }

  #take(): Lineage | undefined {
    const lineage = this.#transaction;
    this.#transaction = undefined;
    return lineage;
  }
}

/** The lineage of a commit that somebody has made. It may be over, or may have written nothing: its outcome alone decides. */
export function lineageOf(replica: Replica, commit: Commit): Lineage {
  const lineage = new Lineage(replica);
  follow(lineage, commit.outcome);
  return lineage;
}

function follow(lineage: Lineage, outcome: Promise<CommitOutcome>): void {
  outcome.then((answer) => {
    if (answer.kind === "committed") lineage.confirm();
    else lineage.fail(answer.message);
  });
}
