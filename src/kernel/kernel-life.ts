/**
 * The life cycle of a kernel: its state, the abort of a boot, waiters for the end, and keeping the process alive.
 *
 * ```
 *   booting ──boot is over──> running ──close──> stopping ──all is closed──> stopped
 *      └──aborted: `goOn` throws at the next step──> opened parts are closed──^
 * ```
 * SPEC: K23, K52. `kernel.ts` opens and closes the parts.
 */

import type { Grace } from "../host/grace.ts";
import type { Host, Timer } from "../host/host.ts";
import { Waiters } from "../host/waiters.ts";
import { LAST_ANSWERS_MS, TIMER_CHUNK_MS } from "../limits.ts";
import { MillraceError } from "../message/millrace-error.ts";

/** It was closed while it booted: by a timer, an extension, or `Syscall.Shutdown`. */
export class KernelClosedError extends MillraceError<"KERNEL_CLOSED"> {
  override readonly name = "KernelClosedError";

  constructor(message: string, options?: ErrorOptions) {
    super("KERNEL_CLOSED", message, options);
  }
}

export class KernelLife {
  readonly #host: Host;
  #state: "booting" | "running" | "stopping" | "stopped" = "booting";
  /** Why the boot is aborted, if it is. */
  #givenUp: { readonly reason: unknown } | undefined;
  readonly #whenEnded = new Waiters();
  #alive: Timer | undefined;

  constructor(host: Host) {
    this.#host = host;
    this.#stayAlive();
  }

  get state(): "booting" | "running" | "stopping" | "stopped" {
    return this.#state;
  }

  /** An open kernel keeps the process alive: its polls and renewals do not. */
  #stayAlive(): void {
    this.#alive = this.#host.timer(TIMER_CHUNK_MS, () => this.#stayAlive());
  }

  /** Called between two steps of the boot. */
  goOn(): void {
    if (this.#givenUp) throw this.#givenUp.reason;
  }

  /** The boot ends at its next step; the first reason counts. */
  giveUp(reason: unknown): void {
    this.#givenUp ??= { reason };
  }

  booted(): void {
    this.goOn();
    this.#state = "running";
  }

  stops(): void {
    this.#state = "stopping";
  }

  /** The parts are being closed: from now on only that keeps the process alive. */
  unwinds(): void {
    this.#alive?.cancel();
  }

  ended(): void {
    this.#state = "stopped";
    this.#whenEnded.release();
  }

  /** Resolves when it has ended in any way. */
  end(): Promise<void> {
    if (this.#state === "stopped") return Promise.resolve();
    return this.#whenEnded.wait();
  }
}

interface Step {
  readonly name: string;
  close(graceMs: number): Promise<void>;
}

/**
 * The parts opened by a boot, closed in the opposite order, also after a failed boot. SPEC: K23.
 */
export class OpenedSteps {
  readonly #steps: Step[] = [];

  note(name: string, close: (graceMs: number) => Promise<void>): void {
    this.#steps.push({ name, close });
  }

  /** Each part gets the rest of the grace, and at least a moment. A failure does not keep other parts open. */
  async close(grace: Grace): Promise<void> {
    const leastMs = Math.min(grace.ms, LAST_ANSWERS_MS);
    const failed: { readonly name: string; readonly error: unknown }[] = [];
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) {
      try {
        await step.close(Math.max(grace.leftMs, leastMs));
      } catch (error) {
        failed.push({ name: step.name, error });
      }
    }
    if (failed.length === 0) return;
    const names = failed.map(({ name }) => name).join(", ");
    const errors = failed.map(({ error }) => error);
    throw new AggregateError(errors, `the kernel did not close cleanly: ${names}`);
  }
}
