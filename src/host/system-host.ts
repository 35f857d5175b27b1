/**
 * The host of a real process: the runtime's clocks, timers, task queue and random source. SPEC: H2-H11.
 *
 * Errors of a timer, task or microtask are not caught: they reach the runtime as uncaught errors, and other queued
 * callbacks still run.
 */

import { asyncContext } from "./async-context.ts";
import { type Host, requireDelay, type Timer, type TimerOptions } from "./host.ts";
import { type Platform, webPlatform } from "./platform.ts";
import { type RandomSource, randomBytes, randomUnit } from "./random-source.ts";
import { SystemTimers } from "./system-timers.ts";
import { UuidV7Minter } from "./uuid-v7.ts";

const POOL_WORDS = 2_048;

/** `platform` is for tests of the host itself, which need a movable clock. */
export function systemHost(platform: Platform = webPlatform()): Host {
  return new SystemHost(platform);
}

class SystemHost implements Host {
  readonly #platform: Platform;
  readonly #timers: SystemTimers;
  readonly #random: RandomSource;
  readonly #ids: UuidV7Minter;

  constructor(platform: Platform) {
    this.#platform = platform;
    this.#timers = new SystemTimers(platform);
    this.#random = new RandomPool(platform);
    this.#ids = new UuidV7Minter(() => platform.wallMs(), this.#random);
  }

  now(): number {
    return this.#platform.wallMs();
  }

  monotonic(): number {
    return this.#platform.monotonicMs();
  }

  timer(delayMs: number, fire: () => void, options?: TimerOptions): Timer {
    requireDelay(delayMs);
    return asyncContext.clear(() => this.#timers.set(delayMs, fire, options?.keepAlive ?? true));
  }

  task(run: () => void): void {
    if (asyncContext.get() === undefined) this.#platform.macrotask(run);
    else asyncContext.clear(() => this.#platform.macrotask(run));
  }

  yield(): Promise<void> {
    return new Promise((resolve) => this.#platform.macrotask(resolve));
  }

  microtask(run: () => void): void {
    if (asyncContext.get() === undefined) this.#platform.microtask(run);
    else asyncContext.clear(() => this.#platform.microtask(run));
  }

  report(error: unknown, what = "a listener failed"): void {
    this.#platform.complain(what, error);
  }

  id(nowMs?: number): string {
    return this.#ids.mint(nowMs);
  }

  random(): number {
    return randomUnit(this.#random);
  }

  randomBytes(length: number): Uint8Array<ArrayBuffer> {
    return randomBytes(this.#random, length);
  }
}

/** Cryptographic random words, drawn in blocks: a block takes 3 us, for 256 words as for this size. */
class RandomPool implements RandomSource {
  readonly #platform: Platform;
  readonly #words = new Uint32Array(POOL_WORDS);
  /** Words before it are used up and overwritten by zero, so that they cannot be read later. */
  #next = POOL_WORDS;

  constructor(platform: Platform) {
    this.#platform = platform;
  }

  uint32(): number {
    if (this.#next === this.#words.length) {
      this.#platform.fillRandom(this.#words);
      this.#next = 0;
    }
    const word = this.#words[this.#next]!;
    this.#words[this.#next++] = 0;
    return word;
  }
}
