/** The attempt that runs now, to which launched work is tied, and transactions within it. SPEC: I10, R28, U43. */
import type { Host } from "../host/host.ts";
import { WORK_WINDOW_MS } from "../limits.ts";
import { thrownText } from "../message/error-data.ts";
import type { Commit } from "../store/commit.ts";
import type { Label } from "../store/label.ts";
import { PUBLIC } from "../store/label.ts";
import type { Rejection } from "../store/rejection.ts";
import type { Replica } from "../store/replica.ts";
import { StoreError } from "../store/store.ts";
import type { Attempt } from "../work/attempt.ts";
import { isThenable } from "../work/handler-call.ts";
import { AttemptLineage } from "../work/lineage.ts";
import { Retries } from "../work/retries.ts";
import type { Background } from "./run-commits.ts";
import type { Runner } from "./runner.ts";

export class Attempts {
  readonly #runner: Runner;
  readonly #host: Host;
  readonly #background: Background;

  constructor(parts: { host: Host; runner: Runner; background: Background }) {
    this.#host = parts.host;
    this.#runner = parts.runner;
    this.#background = parts.background;
  }

  /**
   * Undefined for plain code and for nodes: an effect may run any number of times, so its launches are tied to no
   * commit.
   */
  get current(): AttemptLineage | undefined {
    const { current, active } = this.#runner;
    return current === null ? active?.lineage : undefined;
  }

  /** The label of the reads so far, of the current run or attempt. */
  get label(): Label {
    const { current, active } = this.#runner;
    return current?.label ?? active?.label ?? PUBLIC;
  }

  /** Whether a transaction that begins now is part of a run or an attempt. */
  get isUnderWay(): boolean {
    const { current, active } = this.#runner;
    return current !== null || active !== null;
  }

  /** Runs code as part of the current run or attempt. If it throws, its own writes and launches are rolled back. */
  transactInside<T>(code: (attempt: Attempt | undefined) => T): T {
    const { current, active } = this.#runner;
    if (current !== null) return this.#runner.atomically(current, () => synchronous(() => code(undefined)));
    const part = () => synchronous(() => code(active as Attempt));
    if (active === null) throw new Error("no run and no attempt is under way");
    const { lineage } = active;
    const { launched } = lineage;
    try {
      return active.atomically(part);
    } catch (error) {
      lineage.cancelFrom(launched, `the transaction threw: ${thrownText(error)}`);
      throw error;
    }
  }

  /**
   * The lineage of a commit that the caller made. The commit may have an outcome already, or be empty: only its outcome
   * counts.
   */
  lineageOf(replica: Replica, commit: Commit): AttemptLineage {
    const lineage = new AttemptLineage(replica);
    commit.outcome.then((answer) => {
      if (answer.kind === "committed") lineage.confirm();
      else if (answer.class === "unknown") this.#background.background(this.#findOut(lineage, commit, answer));
      else lineage.fail(answer.message);
    });
    return lineage;
  }

  /** Asks the store whether a commit with unknown outcome landed; launched work waits for the answer. */
  async #findOut(lineage: AttemptLineage, commit: Commit, rejection: Rejection): Promise<void> {
    const { replica } = lineage;
    const retries = new Retries({ host: this.#host, replica, windowMs: WORK_WINDOW_MS });
    const { kind } = await retries.next(rejection, commit);
    if (kind === "done") lineage.confirm();
    else lineage.fail(rejection.message);
  }
}

/**
 * The result of a transaction's code. Throws if it is asynchronous: writes after an `await` would not be part of the
 * commit.
 */
export function synchronous<T>(code: () => T): T {
  const result = code();
  if (!isThenable(result)) return result;
  // The transaction failed, so a rejection of this promise is not reported. A foreign thenable is not called.
  if (result instanceof Promise) result.catch(() => undefined);
  throw new StoreError(
    "STORE_MISUSE",
    "the code of a transaction must not be asynchronous: its writes after an await would not be part of it; use begin() for a transaction that waits",
  );
}
