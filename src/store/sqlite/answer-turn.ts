/**
 * The turn of the event loop in which a batch has answered its only caller. Whoever asks again in it is that caller, and nobody else can
 * have come in between: what he asks for need not wait for a task, which costs a lone event as much as a twelfth of its way.
 *
 *   over ──a batch answers one caller──> lasting ──so many promise jobs without another batch──> over
 *
 * Turns that follow each other without a task in between are bounded in time, so that timers and sockets get in. SPEC: S89.
 */
import type { Host } from "../../host/host.ts";

/** Promise jobs that a caller may take from his answer to what he asks for next. */
const TURN_JOBS = 32;
/** Without a task in between. */
const TURNS_MS = 5;

export class AnswerTurn {
  readonly #host: Host;
  /** Promise jobs that it still lasts; 0 when it is over. */
  #jobsLeft = 0;
  /** Whether a promise job is queued that counts. */
  #isCounting = false;
  /** By then others must have had a task. By the monotonic clock. */
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

  /** A batch has answered so many callers. */
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
