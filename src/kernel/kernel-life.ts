/**
 * The life of a kernel: where it stands, why a boot is given up, who waits for the end, and that the process stays until then.
 *
 * ```
 *   booting ──boot is over──> running ──close──> stopping ──all is closed──> stopped
 *      └──given up: `goOn` throws at the next step──> what was opened is closed──^
 * ```
 * SPEC: K23, K52. What is opened and closed meanwhile is `kernel.ts`'s business.
 */

import type { Host, Timer } from "../host/host.ts";
import { TIMER_CHUNK_MS } from "../limits.ts";
import { MillraceError } from "../message/millrace-error.ts";

/** It was asked to close while it booted: by a timer, an extension, whoever sends `Syscall.Shutdown`. */
export class KernelClosedError extends MillraceError<"KERNEL_CLOSED"> {
  override readonly name = "KernelClosedError";

  constructor(message: string, options?: ErrorOptions) {
    super("KERNEL_CLOSED", message, options);
  }
}

export class KernelLife {
  readonly #host: Host;
  #state: "booting" | "running" | "stopping" | "stopped" = "booting";
  /** Why the boot is given up, where it is. */
  #givenUp: { readonly reason: unknown } | undefined;
  readonly #whenEnded: (() => void)[] = [];
  #alive: Timer | undefined;

  constructor(host: Host) {
    this.#host = host;
    this.#stayAlive();
  }

  get state(): "booting" | "running" | "stopping" | "stopped" {
    return this.#state;
  }

  /** A kernel that is open keeps the process alive, whoever waits for what: its own polls and renewals do not. */
  #stayAlive(): void {
    this.#alive = this.#host.timer(TIMER_CHUNK_MS, () => this.#stayAlive());
  }

  /** Between two steps of the boot. */
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

  /** What was opened is being closed: from here on that alone keeps the process. */
  unwinds(): void {
    this.#alive?.cancel();
  }

  ended(): void {
    this.#state = "stopped";
    for (const resolve of this.#whenEnded.splice(0)) resolve();
  }

  /** Resolves when it has ended, however. */
  end(): Promise<void> {
    if (this.#state === "stopped") return Promise.resolve();
    return new Promise((resolve) => this.#whenEnded.push(resolve));
  }
}
