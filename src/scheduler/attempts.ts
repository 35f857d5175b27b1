/**
 * Which attempt runs now, so that what is launched is tied to it: the handler of a send, or a transaction of plain code. The lineage of a
 * transaction is made by the first launch in it and follows its commit. SPEC: I10.
 */
import type { Host } from "../host/host.ts";
import { WORK_WINDOW_MS } from "../limits.ts";
import { thrownText } from "../message/error-data.ts";
import type { CommitOutcome } from "../store/commit.ts";
import type { Label } from "../store/label.ts";
import type { Rejection } from "../store/rejection.ts";
import type { Replica } from "../store/replica.ts";
import type { Commit } from "../store/transaction.ts";
import { Lineage } from "../work/lineage.ts";
import { Retries } from "../work/retries.ts";
import type { Closure } from "./closure.ts";
import type { Background } from "./run-commits.ts";
import type { Runner } from "./runner.ts";
import { synchronous, type Transacted, type Turns } from "./turns.ts";

export class Attempts {
  readonly #runner: Runner;
  readonly #turns: Turns;
  readonly #host: Host;
  readonly #background: Background;
  /** What the transaction that runs now has launched. */
  #transaction: Lineage | undefined;

  constructor(parts: { host: Host; runner: Runner; turns: Turns; background: Background }) {
    this.#host = parts.host;
    this.#runner = parts.runner;
    this.#turns = parts.turns;
    this.#background = parts.background;
  }

  /** Undefined for plain code and for nodes: effects run again as they like, and what they launch is nobody's. */
  get current(): Lineage | undefined {
    const { current, active: handling } = this.#runner;
    if (current !== null) return undefined;
    if (handling !== null) return handling.lineage;
    const replica = this.#turns.transactsOn;
    if (replica !== undefined) this.#transaction ??= new Lineage(replica);
    return this.#transaction;
  }

  /** What whoever runs now has read so far is labelled with. */
  get label(): Label {
    const { current, active: handling } = this.#runner;
    return current?.label ?? handling?.label ?? this.#turns.label;
  }

  /** Whether a transaction that begins now is a part of what runs: of a node's run, a handling or another transaction. */
  get isUnderWay(): boolean {
    const { current, active: handling } = this.#runner;
    return current !== null || handling !== null || this.#turns.isTransacting;
  }

  /** Runs code as a part of what is under way: if it throws, nothing of it has happened. */
  transactInside<T>(replica: Replica, code: () => T): T {
    const { current, active: handling } = this.#runner;
    const launched = (handling?.lineage ?? this.#transaction)?.launched ?? 0;
    const part = () => synchronous(code);
    try {
      if (current !== null) return this.#runner.atomically(current, part);
      return handling === null ? this.#turns.atomically(replica, part) : handling.atomically(part);
    } catch (error) {
      const lineage = handling?.lineage ?? this.#transaction;
      if (current === null) lineage?.cancelFrom(launched, `the transaction threw: ${thrownText(error)}`);
      throw error;
    }
  }

  /** Runs code as one commit; what it launches follows that. */
  transact<T>(replica: Replica, code: () => T, changeGroup?: string, closure?: Closure): Transacted<T> {
    if (this.isUnderWay) return { result: this.transactInside(replica, code), commit: undefined };
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
    this.#follow(lineage, commit);
  }

  /** The lineage of a commit that somebody has made. It may be over, or may have written nothing: its outcome alone decides. */
  lineageOf(replica: Replica, commit: Commit): Lineage {
    const lineage = new Lineage(replica);
    this.#follow(lineage, commit);
    return lineage;
  }

  #follow(lineage: Lineage, commit: Commit): void {
    commit.outcome.then((answer) => {
      if (answer.kind === "committed") lineage.confirm();
      else if (answer.class === "unknown") this.#background.background(this.#findOut(lineage, commit, answer));
      else lineage.fail(answer.message);
    });
  }

  /** Asks the store for a commit that it gave no answer to; launched work waits until then. */
  async #findOut(lineage: Lineage, commit: Commit, rejection: Rejection): Promise<void> {
    const { replica } = lineage;
    const retries = new Retries({ host: this.#host, replica, windowMs: WORK_WINDOW_MS });
    const { kind } = await retries.next(rejection, commit);
    if (kind === "done") lineage.confirm();
    else lineage.fail(rejection.message);
  }

  #take(): Lineage | undefined {
    const lineage = this.#transaction;
    this.#transaction = undefined;
    return lineage;
  }
}

function follow(lineage: Lineage, outcome: Promise<CommitOutcome>): void {
  outcome.then((answer) => {
    if (answer.kind === "committed") lineage.confirm();
    else lineage.fail(answer.message);
  });
}
