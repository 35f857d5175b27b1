/**
 * The period of the event loop after a batch has answered its only caller. A new job in it comes from the same caller,
 * so it need not wait for a task. That wait costs a single event a twelfth of its latency.
 *
 *   over ──a batch answers one caller──> lasting ──TURN_JOBS promise jobs without another batch──> over
 *
 * Periods that follow each other without a task are limited in time, so that timers and sockets get in. SPEC: S89.
 */
import type { Host } from "../../host/host.ts";

/** Promise jobs that a caller may take from its answer to its next call. */
const TURN_JOBS = 32;
/** Time limit without a task in between. */
const TURNS_MS = 5;

export class AnswerTurn {
  readonly #host: Host;
  /** Promise jobs left in the period; 0 when it is over. */
  #jobsLeft = 0;
  /** Whether a counting promise job is queued. */
  #isCounting = false;
  /** A task must run before this time, by the monotonic clock. */
  #untilMs = 0;

  constructor(host: Host) {
    this.#host = host;
  }

  get lasts(): boolean {
    return this.#jobsLeft > 0 && this.#host.monotonic() < this.#untilMs;
  }

  /** A task has begun. */
  task(nowMs: number): void {
    this.#untilMs = nowMs + TURNS_MS;
  }

  /** A batch has answered this many callers. */
  answered(callers: number): void {
    this.#jobsLeft = callers === 1 ? TURN_JOBS : 0;
    if (this.#jobsLeft > 0 && !this.#isCounting) this.#count();
  }

  #count(): void {
    this.#isCounting = true;
    this.#host.microtask(this.#pass);
  }

  readonly #pass = (): void => {
    this.#isCounting = false;
    if (this.#jobsLeft === 0) return;
    this.#jobsLeft--;
    this.#count();
  };
}
