/**
 * The real host with timers that fire only when a test says so: the order between two tasks does not depend on the
 * machine.
 */
import type { Host, Timer } from "../../src/host/host.ts";
import { ControlledHost } from "./controlled-host.ts";

export class HeldTimers extends ControlledHost implements Host {
  readonly #waiting = new Set<() => void>();

  override monotonic(): number {
    return 0;
  }

  override timer(_delayMs: number, fire: () => void): Timer {
    // Each its own, even where one function is given twice.
    const one = () => fire();
    this.#waiting.add(one);
    return { cancel: () => this.#waiting.delete(one) };
  }

  /** Fires the timers that wait now. */
  fire(): void {
    const waiting = [...this.#waiting];
    for (const one of waiting) if (this.#waiting.delete(one)) one();
  }

  /** Runs all work that needs no timer. */
  async tasks(): Promise<void> {
    for (let turn = 0; turn < 10; turn++) await this.yield();
  }
}
