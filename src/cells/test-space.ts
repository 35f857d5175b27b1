/**
 * A space for tests: on the memory store and simulated time, with every computation checked for idempotency and every run
 * noted with its reasons. No kernel, no disk, no waiting. Works with any test runner: what does not hold throws an `Error`.
 *
 *     const test = await testSpace({ build: (space) => shop(space) });
 *     test.app.price.set(3);
 *     await test.settle();
 *     test.expectRan("total").because(test.app.price);
 *
 * A restart closes the space as a process would that ends in order; a crash kills it at once. Either way the same disk is opened by a
 * new process, and what was built is built again. SPEC: R40-R43.
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
  /** The same seed, the same run; default 1. */
  readonly seed?: number;
  readonly name?: string;
  /** Makes what is tested; called again after every restart. */
  readonly build?: Build<App>;
  /** Keeps what is computed over a restart, as with `Space.open`; on unless false. */
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

  /** The space as the present process has it. */
  get space(): Space {
    if (this.#space === undefined) throw new Error("the space is being opened; await restart() before using it");
    return this.#space;
  }

  /** What `build` gave in the present process. */
  get app(): App {
    if (this.#app === undefined) throw new Error("nothing is built; pass build to testSpace()");
    return this.#app.of;
  }

  /** Lets simulated time pass, with all that falls due in it. */
  async advance(ms: number): Promise<void> {
    await this.host.advance(ms);
  }

  /** Everything that can happen now has happened, on the disk too; no time has passed. */
  async settle(): Promise<void> {
    await this.host.advance(0);
  }

  /** Ends the process in order and starts another on the same disk, which builds everything again, or what is given from now on. */
  async restart(build: Build<App> | undefined = this.#build): Promise<void> {
    const space = this.#space;
    if (space !== undefined) await this.host.run(() => space.close());
    await this.#start(build);
  }

  /** Kills the process where it stands and starts another; what was not durable is lost. */
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
    scheduler.idempotencyCheck = true;
    scheduler.setTraceEnabled("run", true);
    scheduler.onError((error) => this.#errors.push(error));
    this.#space = space;
    if (build !== undefined) this.#app = { of: await this.host.run(() => space.restore(() => build(space))) };
    await this.settle();
  }

  // What happened --------------------------------------------------------------------------------------------------------

  /** The runs since the start of the process, or since they were forgotten, in order. */
  get runs(): readonly TraceEntry[] {
    const trace = this.space.scheduler.getTrace();
    const from = this.#forgotten === undefined ? 0 : trace.indexOf(this.#forgotten) + 1;
    return trace.slice(from).filter(({ kind }) => kind === "ran" || kind === "failed");
  }

  /** Looks only at what happens from here on. */
  forgetRuns(): void {
    this.#forgotten = this.space.scheduler.getTrace().at(-1);
  }

  /** Throws unless the node has run, and says what did run and why. */
  expectRan(node: TestedNode): RanExpectation {
    return new RanExpectation(idOf(node), this.runs, this.space.scheduler);
  }

  /** Throws if the node has run, and says why it did. */
  expectNotRan(node: TestedNode): void {
    RanExpectation.none(idOf(node), this.runs);
  }

  /** Throws if a computation gave something else when it ran again on the same inputs. */
  expectIdempotent(): void {
    const { notIdempotent } = this.space.scheduler;
    if (notIdempotent.length === 0) return;
    const names = notIdempotent.map((id) => `"${id}"`).join(", ");
    throw new Error(
      `${names} gave something else when run again on the same inputs; a computation may run any number of times, so it must not count, draw or append`,
    );
  }

  /** Errors of nodes and of writes that were taken back, since they were last taken. */
  takeErrors(): unknown[] {
    return this.#errors.splice(0);
  }
}

function idOf(node: TestedNode): string {
  return typeof node === "string" ? node : node.node.id;
}
