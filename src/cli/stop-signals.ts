/**
 * How the process of a kernel ends. SPEC: K14, K60.
 *
 *     running ──signal, or an uncaught error──> stopping: running work finishes ──closed──> ended, 0 or 1
 *                                                  └──the same signal again──> ended at once, 130
 *
 * A different second signal does not force the end: a terminal signals `millrace dev` too, which then sends its own
 * signal, and service managers send two in a row. After an uncaught error the state is unknown, so the kernel ends, and
 * work that does not finish in time is abandoned.
 */
import type { Host } from "../host/host.ts";
import type { FaultLines } from "../kernel/fault-lines.ts";
import { thrownWhere } from "../kernel/faults.ts";
import type { Kernel } from "../kernel/kernel.ts";
import { DRAIN_MS } from "../limits.ts";
import { thrownText } from "../message/error-data.ts";
import type { Terminal } from "./terminal.ts";
import { END_SIGNALS, EXIT, type ExitCode } from "./verb.ts";

/** A little more than the kernel's own grace for running work. */
const PATIENCE_MS = DRAIN_MS + 2_000;
/** Limit of named running work; the rest is counted. */
const NAMED_MAX = 5;

/** By the runtime's event name. */
const UNCAUGHT = {
  unhandledRejection: "a promise was not awaited, and its rejection was not caught",
  uncaughtException: "an error was not caught",
} as const;

export class StopSignals {
  readonly #host: Host;
  readonly #terminal: Terminal;
  readonly #faults: FaultLines;
  readonly #boot = new AbortController();
  #kernel: Kernel | undefined;
  readonly #heard = new Set<string>();
  #exitCode: ExitCode = EXIT.ok;

  constructor(host: Host, terminal: Terminal, faults: FaultLines) {
    this.#host = host;
    this.#terminal = terminal;
    this.#faults = faults;
    for (const signal of END_SIGNALS) process.on(signal, () => this.#signalled(signal));
    // Started by `millrace dev`: if the parent is gone, this process must end by itself.
    process.once("disconnect", () => this.#signalled("disconnect"));
    // The channel alone must not keep a closed kernel alive.
    process.channel?.unref();
    process.on("unhandledRejection", (thrown) => this.#uncaught("unhandledRejection", thrown));
    process.on("uncaughtException", (thrown: unknown) => this.#uncaught("uncaughtException", thrown));
  }

  /** Aborted by a stop before the kernel exists. */
  get boot(): AbortSignal {
    return this.#boot.signal;
  }

  /** The exit code after the stop. */
  get exitCode(): ExitCode {
    return this.#exitCode;
  }

  /** From now on this kernel is stopped. */
  end(kernel: Kernel): void {
    this.#kernel = kernel;
  }

  #signalled(why: string): void {
    if (this.#heard.has(why)) return this.#endNow();
    this.#stop(why);
  }

  #uncaught(event: keyof typeof UNCAUGHT, thrown: unknown): void {
    // An app with its own listener decides itself.
    if (process.listenerCount(event) > 1) return;
    this.#faults.say(`${UNCAUGHT[event]}; the kernel ends: ${thrownWhere(thrown)}`);
    if (this.#exitCode === EXIT.failed) return;
    this.#exitCode = EXIT.failed;
    this.#host.timer(PATIENCE_MS, () => process.exit(EXIT.failed), { keepAlive: false });
    this.#stop(event);
  }

  #stop(why: string): void {
    this.#heard.add(why);
    if (this.#heard.size > 1) return;
    const under = this.#underWay();
    this.#terminal.line(
      `stopping: work under way finishes first${under === "" ? "" : ` (${under})`}; once more ends it at once`,
    );
    if (this.#kernel === undefined) return this.#boot.abort();
    this.#kernel.close().catch((error: unknown) => {
      this.#terminal.complain(thrownText(error));
      process.exit(EXIT.failed);
    });
  }

  #endNow(): void {
    const under = this.#underWay();
    const unfinished = under === "" ? "it had not closed yet" : `${under} did not finish`;
    this.#terminal.complain(`ended at once: ${unfinished}; the next start continues from the journal`);
    process.exit(EXIT.interrupted);
  }

  /** Types of the waiting requests, and subscribers that handle an event. */
  #underWay(): string {
    if (this.#kernel === undefined) return "";
    const requests = [...this.#kernel.loop.pending].map(({ type }) => type);
    const subscribers = this.#kernel.bus.subscriptions().filter(({ running }) => running > 0);
    const names = [...new Set([...requests, ...subscribers.map(({ subscriberId }) => subscriberId)])];
    const more = names.length - NAMED_MAX;
    return `${names.slice(0, NAMED_MAX).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
  }
}
