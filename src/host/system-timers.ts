/**
 * All timers of a system host behind one `setTimeout`, armed for the earliest deadline. SPEC: H4-H6.
 *
 *     idle --set--> waiting --setTimeout calls--> (due? fire one) --more due--> turning --task--> (fire one) ...
 *      ^               ^ |                              |                          |
 *      |               +-+ not due yet: wait again      +------ none left ---------+--> idle
 *
 * Runtimes round delays, may fire a little early, and accept no delay above 2^31 - 1 ms. With all deadlines in one
 * heap, order holds, no timer fires early, and a long wait is a chain of short ones. Each due timer gets its own task,
 * so that its microtasks and sockets come before the next.
 */

import { TIMER_CHUNK_MS } from "../limits.ts";
import type { Timer } from "./host.ts";
import type { Platform, Timeout } from "./platform.ts";
import { type TimerEntry, TimerHeap } from "./timer-heap.ts";

type Wake =
  | { readonly kind: "idle" }
  /** `timeout` fires at about `atMs`, which is at or before the earliest deadline. */
  | { readonly kind: "waiting"; readonly timeout: Timeout; readonly atMs: number; keepsAlive: boolean }
  /** A task is queued that looks for due timers. */
  | { readonly kind: "turning" };

const IDLE: Wake = { kind: "idle" };
const TURNING: Wake = { kind: "turning" };

export class SystemTimers {
  readonly #platform: Platform;
  readonly #heap = new TimerHeap();
  #wake: Wake = IDLE;

  constructor(platform: Platform) {
    this.#platform = platform;
  }

  set(delayMs: number, fire: () => void, keepAlive: boolean): Timer {
    const entry = this.#heap.add(this.#platform.monotonicMs() + delayMs, keepAlive, fire);
    this.#arm();
    return { cancel: () => this.#cancel(entry) };
  }

  #cancel(entry: TimerEntry): boolean {
    const removed = this.#heap.remove(entry);
    if (removed) this.#arm();
    return removed;
  }

  /** Updates `#wake` to the heap. A wake-up that is now too early stays: moving it costs more. */
  #arm(): void {
    if (this.#wake.kind === "turning") return;
    const first = this.#heap.peek();
    if (first === undefined) {
      this.#rest();
    } else if (this.#wake.kind === "idle" || this.#wake.atMs > first.deadlineMs) {
      this.#rest();
      this.#waitFor(first.deadlineMs);
    }
    this.#fitKeepAlive();
  }

  #rest(): void {
    if (this.#wake.kind === "waiting") this.#wake.timeout.stop();
    this.#wake = IDLE;
  }

  #waitFor(deadlineMs: number): void {
    const nowMs = this.#platform.monotonicMs();
    if (deadlineMs <= nowMs) {
      this.#wake = TURNING;
      this.#platform.macrotask(() => this.#turn());
      return;
    }
    const delayMs = Math.min(Math.ceil(deadlineMs - nowMs), TIMER_CHUNK_MS);
    const timeout = this.#platform.startTimeout(delayMs, () => this.#turn());
    this.#wake = { kind: "waiting", timeout, atMs: Math.min(deadlineMs, nowMs + delayMs), keepsAlive: true };
  }

  #fitKeepAlive(): void {
    if (this.#wake.kind !== "waiting") return;
    const keepsAlive = this.#heap.keepAliveCount > 0;
    if (this.#wake.keepsAlive === keepsAlive) return;
    this.#wake.keepsAlive = keepsAlive;
    this.#wake.timeout.keepAlive(keepsAlive);
  }

  #turn(): void {
    this.#wake = IDLE;
    const first = this.#heap.peek();
    const due = first !== undefined && first.deadlineMs <= this.#platform.monotonicMs();
    if (due) this.#heap.remove(first);
    // Armed before the callback runs, so that an error in it stops no other timer.
    this.#arm();
    if (due) first.fire();
  }
}
