/**
 * A whole kernel for tests: memory store, simulated time, simulated process. Time passes only where the test says so,
 * and while it waits for an answer. `crash` kills the process at once, `restart` ends it in order; a new one opens
 * the same disk. SPEC: T60-T66.
 *
 *     await using t = await testKernel(shop);
 *     await t.command("Shop.Order", { price: 30 });
 *     await t.advance("1 d");
 *     await t.crash();
 */
import { isApp } from "../app/app.ts";
import type { AnyApp, Caller } from "../app/caller.ts";
import { type Duration, durationMs } from "../app/duration.ts";
import { type SimulatedHost, simulatedHost } from "../host/simulated-host.ts";
import { type SimulatedProcess, simulatedProcess } from "../host/simulated-process.ts";
import { JOURNAL_PAGE_ROWS } from "../limits.ts";
import type { Message } from "../message/envelope.ts";
import { Failure } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import { show } from "../message/problem.ts";
import type { JournalRow } from "../store/journal.ts";
import { MemoryDisk } from "../store/memory/memory-disk.ts";
import { memoryStore } from "../store/memory/memory-store.ts";
import { OpenKernel } from "./app-kernel.ts";
import { Kernel } from "./kernel.ts";
import type { KernelOptions } from "./kernel-options.ts";

/** Options of `testKernel`. */
export interface TestKernelOptions
  extends Omit<KernelOptions, "host" | "store" | "apps" | "capabilities" | "socketPath"> {
  /** Choices and random values follow from it: the same seed, the same run. Default 1. */
  readonly seed?: number;
}

/** Capabilities by name, or a function that builds them from the parts of a kernel. */
export type TestedCapabilities = NonNullable<KernelOptions["capabilities"]>;

/** An app, several apps, or capabilities. */
export type Tested = AnyApp | readonly AnyApp[] | TestedCapabilities;

/** A kernel in a test, with the calls of its apps. */
export type TestKernelOf<A> = Omit<TestKernel, keyof Caller<A>> & Caller<A>;

export async function openTestKernel(tested: Tested, options: TestKernelOptions): Promise<TestKernel> {
  const test = new TestKernel(tested, options);
  await test.restart();
  return test;
}

/** The process of one kernel, from its start to its end. */
interface Running {
  readonly process: SimulatedProcess;
  readonly open: OpenKernel;
  /** Rejects when the process ends; its calls are not answered any more. */
  readonly ended: PromiseWithResolvers<never>;
}

/** The untyped kernel below `testKernel(app)`, on simulated time. */
export class TestKernel implements AsyncDisposable {
  /** Time, randomness and tasks; `host.now()` is simulated time. */
  readonly host: SimulatedHost;
  readonly #options: TestKernelOptions;
  readonly #disk = new MemoryDisk();
  readonly #faults: Message[] = [];
  #tested: Tested;
  #running: Running | undefined;
  /** Settles when the present driver of the simulation has ended: one drives at a time. */
  #driven: Promise<unknown> = Promise.resolve();

  constructor(tested: Tested, { seed = 1, ...options }: TestKernelOptions) {
    this.#tested = tested;
    this.#options = options;
    this.host = simulatedHost(seed);
  }

  /** The kernel of the present process: `bus`, `space`, `loop`, `health()`. */
  get kernel(): Kernel {
    return this.#open.kernel;
  }

  get #open(): OpenKernel {
    if (this.#running === undefined) throw new Error("the kernel does not run; call restart()");
    return this.#running.open;
  }

  // Calls -----------------------------------------------------------------------------------------------------------

  /** Sends a command, and lets time pass until it is answered. */
  command(...call: Parameters<OpenKernel["command"]>): Promise<Json> {
    return this.#ask((open) => open.command(...call));
  }

  /** The same, with a failure as a value. */
  safeCommand(...call: Parameters<OpenKernel["safeCommand"]>): ReturnType<OpenKernel["safeCommand"]> {
    return this.#ask((open) => open.safeCommand(...call));
  }

  query(...call: Parameters<OpenKernel["query"]>): Promise<Json> {
    return this.#ask((open) => open.query(...call));
  }

  /** Answers of a query, of the present process. They come while time passes: `settle()`, `advance()`. */
  live(...call: Parameters<OpenKernel["live"]>): ReturnType<OpenKernel["live"]> {
    return this.#open.live(...call);
  }

  /** Events of the journal, of the present process. They come while time passes. */
  events(...call: Parameters<OpenKernel["events"]>): ReturnType<OpenKernel["events"]> {
    return this.#open.events(...call);
  }

  /** Publishes an event; resolves with its journal id. */
  publish(...call: Parameters<Kernel["publish"]>): Promise<number> {
    return this.#ask(({ kernel }) => kernel.publish(...call));
  }

  // Time ------------------------------------------------------------------------------------------------------------

  /** Lets time pass: milliseconds, or text like `"5 min"`. All that falls due meanwhile runs. */
  advance(duration: Duration): Promise<void> {
    const ms = durationMs(duration, "advance: the duration");
    return this.#drive(() => this.host.advance(ms));
  }

  /** Runs all work that is possible without the passing of time, writes to the disk included. */
  settle(): Promise<void> {
    return this.#drive(() => this.host.advance(0));
  }

  // The process -----------------------------------------------------------------------------------------------------

  /** Ends the process in order and starts another on the same disk; with `tested`, that runs from now on. */
  async restart(tested: Tested = this.#tested): Promise<void> {
    await this.#stop();
    await this.#start(tested);
  }

  /** Kills the process at once and starts another. State that was not durable is lost. */
  async crash(tested: Tested = this.#tested): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    running?.process.kill();
    running?.ended.reject(killed());
    await this.#start(tested);
  }

  async #stop(): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    if (running === undefined) return;
    await this.#drive(() => this.host.run(() => running.open.close()));
    running.process.kill();
    running.ended.reject(killed());
  }

  async #start(tested: Tested): Promise<void> {
    this.#tested = tested;
    const process = simulatedProcess(this.host);
    const store = memoryStore({ host: process, disk: this.#disk });
    const kernel = await this.#drive(() =>
      this.host.run(() =>
        Kernel.open({
          observeFaults: (fault) => this.#faults.push(fault),
          log: () => undefined,
          ...this.#options,
          ...{ host: process, store },
          ...optionsOf(tested),
        }),
      ),
    );
    const ended = Promise.withResolvers<never>();
    // Only calls that wait are told.
    ended.promise.catch(() => undefined);
    this.#running = { process, open: new OpenKernel(kernel, process), ended };
    await this.settle();
  }

  /** Ends the process in order. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#stop();
  }

  // Looking ---------------------------------------------------------------------------------------------------------

  /** Events that failed for good, and commands that nobody waited for: the latest 1,000, oldest first. */
  async deadLetters(): Promise<readonly JournalRow[]> {
    const { rows } = await this.#ask(({ kernel }) => kernel.bus.failures({ limit: JOURNAL_PAGE_ROWS }));
    return rows.toReversed();
  }

  /**
   * Faults that the kernel has reported since they were last taken: errors of handlers, effects and computed values.
   */
  takeFaults(): Message[] {
    return this.#faults.splice(0);
  }

  // Driving ---------------------------------------------------------------------------------------------------------

  /** Calls the kernel, and drives the simulation until the call is answered. */
  async #ask<T>(call: (open: OpenKernel) => Promise<T>): Promise<T> {
    const { ended } = this.#running ?? {};
    let isAnswered = false;
    const settled = () => {
      isAnswered = true;
    };
    const answer = call(this.#open);
    answer.then(settled, settled);
    const result = Promise.race([answer, (ended as PromiseWithResolvers<never>).promise]);
    result.then(settled, settled);
    // Several calls may wait: the first drives for all of them.
    await this.#drive(async () => {
      if (!isAnswered) await this.host.run(() => result.catch(() => undefined));
    });
    return result;
  }

  #drive<T>(driver: () => Promise<T>): Promise<T> {
    const driven = this.#driven.then(driver);
    this.#driven = driven.catch(() => undefined);
    return driven;
  }
}

function optionsOf(tested: Tested): Pick<KernelOptions, "apps" | "capabilities"> {
  if (isApp(tested)) return { apps: [tested] };
  if (Array.isArray(tested)) return { apps: tested };
  if (typeof tested !== "function" && (typeof tested !== "object" || tested === null))
    throw new TypeError(`testKernel: takes an app, a list of apps or capabilities by name, got ${show(tested)}`);
  return { capabilities: tested as TestedCapabilities };
}

function killed(): Failure {
  return new Failure(503, "the process ended before the answer; whether the command took effect is not known", {
    reason: "NOT_REACHABLE",
  });
}
