/**
 * What ends the process of a kernel, and how. SPEC: K14, K60.
 *
 *     running ──signal, or an error that nobody caught──> stopping: work under way finishes ──closed──> ended, 0 or 1
 *                                                            └──the same signal again──> ended at once, 130
 *
 * Another signal than the first is no second wish: what a terminal sends to all, `millrace dev` hears as well, and ends us with a signal of
 * its own; service managers send two in a row. After an error that nobody caught, nobody knows what was left half done; so the kernel
 * ends, and what does not end in time is left.
 */
import type { Host } from "../host/host.ts";
import type { FaultLines } from "../kernel/fault-lines.ts";
import { thrownWhere } from "../kernel/faults.ts";
import type { Kernel } from "../kernel/kernel.ts";
import { DRAIN_MS } from "../limits.ts";
import { thrownText } from "../message/error-data.ts";
import type { Terminal } from "./terminal.ts";
import { END_SIGNALS, EXIT, type ExitCode } from "./verb.ts";

/** A little more than the kernel itself takes for what is under way. */
const PATIENCE_MS = DRAIN_MS + 2_000;
/** Work under way that is named; more is counted. */
const NAMED_MAX = 5;

/** By the event with which the runtime tells of it. */
const UNCAUGHT = {
  unhandledRejection: "a promise was not awaited, and nobody caught what it was rejected with",
  uncaughtException: "an error was thrown that nobody caught",
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
    // Started by `millrace dev`: when that is gone, nobody would end this one.
    process.once("disconnect", () => this.#signalled("disconnect"));
    // The channel alone does not keep a kernel that has closed.
    process.channel?.unref();
    process.on("unhandledRejection", (thrown) => this.#uncaught("unhandledRejection", thrown));
    process.on("uncaughtException", (thrown: unknown) => this.#uncaught("uncaughtException", thrown));
  }

  /** Aborted by what ends it before the kernel is there. */
  get boot(): AbortSignal {
    return this.#boot.signal;
  }

  /** With which it ends once it has stopped. */
  get exitCode(): ExitCode {
    return this.#exitCode;
  }

  /** From now on it is this kernel that ends. */
  end(kernel: Kernel): void {
    this.#kernel = kernel;
  }

  #signalled(why: string): void {
    if (this.#heard.has(why)) return this.#endNow();
    this.#stop(why);
  }

  #uncaught(event: keyof typeof UNCAUGHT, thrown: unknown): void {
    // An app that listens to it has decided itself what it means.
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
    this.#terminal.complain(`ended at once: ${unfinished}; the next start takes up what the journal has`);
    process.exit(EXIT.interrupted);
  }

  /** Types of the requests that wait for their answers, and subscribers that handle an event. */
  #underWay(): string {
    if (this.#kernel === undefined) return "";
    const requests = [...this.#kernel.loop.pending].map(({ type }) => type);
    const subscribers = this.#kernel.bus.subscriptions().filter(({ running }) => running > 0);
    const names = [...new Set([...requests, ...subscribers.map(({ subscriberId }) => subscriberId)])];
    const more = names.length - NAMED_MAX;
    return `${names.slice(0, NAMED_MAX).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
  }
}
