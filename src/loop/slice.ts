/**
 * How many turns share a macrotask: so many, and for so long. While turns take next to nothing the clock is not looked at after each
 * one, which costs a twentieth of a request; after one that took its time it is. SPEC: L5.
 */
import type { Host } from "../host/host.ts";
import { TURNS_SLICE_MAX, TURNS_SLICE_MS } from "../limits.ts";

/** Turns between two looks at the clock, at most. */
const STRIDE_MAX = 8;
/** What a stride of turns may take for the next one to be longer. */
const QUICK_MS = TURNS_SLICE_MS / 32;

export class Slice {
  readonly #host: Host;
  #turns = 0;
  #until = 0;
  #lookedAt = 0;
  #lookAfter = 1;
  #stride = 1;
  /** Until when slices may begin in tasks of others. */
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
   * In the task that brought a message; false where one must begin in a task of its own, because none has for as long as a slice may last. A
   * runtime may let timers in only after all the sockets that have something: with a thousand of them, that would be a thousand slices.
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
