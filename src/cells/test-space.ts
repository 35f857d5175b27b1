/**
 * A space for tests: on the memory store and simulated time. Every computation is checked for idempotency, and every
 * run is recorded with its reasons. No kernel, no disk, no waiting. Works with any test runner: a failed check throws
 * an `Error`.
 *
 *     const test = await testSpace({ build: (space) => shop(space) });
 *     test.app.price.set(3);
 *     await test.settle();
 *     test.expectRan("total").because(test.app.price);
 *
 * A restart closes the space like a graceful shutdown; a crash kills it at once. Then a new process opens the same disk
 * and calls `build` again. SPEC: R40-R43.
 */
import { type SimulatedHost, simulatedHost } from "../host/simulated-host.ts";
import { type SimulatedProcess, simulatedProcess } from "../host/simulated-process.ts";
import type { TraceEntry } from "../scheduler/trace.ts";
import { MemoryDisk } from "../store/memory/memory-disk.ts";
import { memoryStore } from "../store/memory/memory-store.ts";
import { RanExpectation } from "./ran-expectation.ts";
import { Space } from "./space.ts";

/** Options of `testSpace`. */
export interface TestSpaceOptions<App> {
  /** The same seed gives the same run; default 1. */
  readonly seed?: number;
  readonly name?: string;
  /** Makes the tested cells and nodes; called again after every restart. */
  readonly build?: Build<App>;
  /** Keeps computed values over a restart, as with `Space.open`. Default on. */
  readonly persist?: { readonly version: string } | false;
}

/** Makes the cells, computed values, effects and handlers that are tested. */
export type Build<App> = (space: Space) => App;

/** A node: its id, or the result of `space.computed`. */
export type TestedNode = string | { readonly node: { readonly id: string } };

/** Opens a space on simulated time, in memory. */
export async function testSpace<App = undefined>(options: TestSpaceOptions<App> = {}): Promise<TestSpace<App>> {
  const test = new TestSpace<App>(options);
  await test.restart();
  return test;
}

/** A space on simulated time that can crash and restart. */
export class TestSpace<App> {
  /** Time, chance and tasks; `host.now()` is simulated time. */
  readonly host: SimulatedHost;
  readonly #options: TestSpaceOptions<App>;
  readonly #disk = new MemoryDisk();
  #build: Build<App> | undefined;
  #process: SimulatedProcess | undefined;
  #space: Space | undefined;
  #app: { readonly of: App } | undefined;
  /** The last run that was forgotten. */
  #forgotten: TraceEntry | undefined;
  readonly #errors: unknown[] = [];

  constructor(options: TestSpaceOptions<App>) {
    this.#options = options;
    this.#build = options.build;
    this.host = simulatedHost(options.seed ?? 1);
  }

  /** The space of the present process. */
  get space(): Space {
    if (this.#space === undefined) throw new Error("the space is being opened; await restart() before using it");
    return this.#space;
  }

  /** The result of `build` in the present process. */
  get app(): App {
    if (this.#app === undefined) throw new Error("there is no app; pass build to testSpace()");
    return this.#app.of;
  }

  /** Lets simulated time pass, and runs all timers that are due in it. */
  async advance(ms: number): Promise<void> {
    await this.host.advance(ms);
  }

  /** Runs all pending work, the disk's too, without a change of the time. */
  async settle(): Promise<void> {
    await this.host.advance(0);
  }

  /** Closes the process and starts another on the same disk, which calls `build` again, from now on the given one. */
  async restart(build: Build<App> | undefined = this.#build): Promise<void> {
    const space = this.#space;
    if (space !== undefined) await this.host.run(() => space.close());
    await this.#start(build);
  }

  /** Kills the process at once and starts another; changes that were not durable are lost. */
  async crash(build: Build<App> | undefined = this.#build): Promise<void> {
    this.#process?.kill();
    await this.#start(build);
  }

  async #start(build: Build<App> | undefined): Promise<void> {
    const { name = "test", persist = { version: "test" } } = this.#options;
    this.#build = build;
    const host = simulatedProcess(this.host);
    this.#process = host;
    this.#space = undefined;
    this.#app = undefined;
    this.#forgotten = undefined;
    const store = memoryStore({ host, disk: this.#disk });
    const space = await this.host.run(() =>
      Space.open({ store, host, name, ...(persist === false ? {} : { persist }) }),
    );
    const { scheduler } = space;
    scheduler.parts.introspection.checksIdempotency = true;
    scheduler.setTraceEnabled("run", true);
    scheduler.onError((error) => this.#errors.push(error));
    this.#space = space;
    if (build !== undefined) this.#app = { of: await this.host.run(() => space.restore(() => build(space))) };
    await this.settle();
  }

  // Runs
  // ------------------------------------------------------------------------------------------------------------------

  /** The runs since the start of the process, or since `forgetRuns`, in order. */
  get runs(): readonly TraceEntry[] {
    const trace = this.space.scheduler.getTrace();
    const from = this.#forgotten === undefined ? 0 : trace.indexOf(this.#forgotten) + 1;
    return trace.slice(from).filter(({ kind }) => kind === "ran" || kind === "failed");
  }

  /** Limits `runs` and the checks to later runs. */
  forgetRuns(): void {
    this.#forgotten = this.space.scheduler.getTrace().at(-1);
  }

  /** Throws unless the node has run; the message lists the runs and their reasons. */
  expectRan(node: TestedNode): RanExpectation {
    return new RanExpectation(idOf(node), this.runs, this.space.scheduler);
  }

  /** Throws if the node has run; the message has the reason. */
  expectNotRan(node: TestedNode): void {
    RanExpectation.none(idOf(node), this.runs);
  }

  /** Throws if a computation gave another result when it ran again on the same inputs. */
  expectIdempotent(): void {
    const { notIdempotent } = this.space.scheduler;
    if (notIdempotent.length === 0) return;
    const names = notIdempotent.map((id) => `"${id}"`).join(", ");
    throw new Error(
      `${names} gave another result when run again on the same inputs; a computation may run any number of times, so it must not count, draw random numbers or append`,
    );
  }

  /** Errors of nodes and of rolled back writes since the last call. */
  takeErrors(): unknown[] {
    return this.#errors.splice(0);
  }
}

function idOf(node: TestedNode): string {
  return typeof node === "string" ? node : node.node.id;
}
