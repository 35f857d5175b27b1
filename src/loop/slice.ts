/**
 * Limits the number and the time of turns in one macrotask. While turns are short, the clock is not read after each
 * one, which would cost a twentieth of a request; after a long one it is. SPEC: L5.
 */
import type { Host } from "../host/host.ts";
import { TURNS_SLICE_MAX, TURNS_SLICE_MS } from "../limits.ts";

/** Turns between two reads of the clock, at most. */
const STRIDE_MAX = 8;
/** The next stride is longer if this one took less. */
const QUICK_MS = TURNS_SLICE_MS / 32;

export class Slice {
  readonly #host: Host;
  #turns = 0;
  #until = 0;
  #lookedAt = 0;
  #lookAfter = 1;
  #stride = 1;
  /** Until then, slices may begin in tasks of adapters. */
  #atOnceUntil: number;

  constructor(host: Host) {
    this.#host = host;
    this.#atOnceUntil = host.monotonic() + TURNS_SLICE_MS;
  }

  /** In a task of its own. */
  begin(): void {
    this.#start();
    this.#atOnceUntil = this.#until;
  }

  /**
   * Begins in the task that brought a message. False if the slice must begin in a task of its own, because none has for
   * the length of a slice. A runtime may run timers only after all ready sockets: with a thousand of them, that would
   * be a thousand slices.
   */
  beginAtOnce(): boolean {
    this.#start();
    return this.#lookedAt < this.#atOnceUntil;
  }

  #start(): void {
    this.#turns = 0;
    this.#lookedAt = this.#host.monotonic();
    this.#until = this.#lookedAt + TURNS_SLICE_MS;
    this.#lookAfter = this.#stride;
  }

  /** Asked after each turn. */
  isOver(): boolean {
    if (++this.#turns >= TURNS_SLICE_MAX) return true;
    if (this.#turns < this.#lookAfter) return false;
    const now = this.#host.monotonic();
    this.#stride = now - this.#lookedAt < QUICK_MS ? Math.min(this.#stride * 2, STRIDE_MAX) : 1;
    this.#lookAfter = this.#turns + this.#stride;
    this.#lookedAt = now;
    return now >= this.#until;
  }
}
