/**
 * This bus's part in the store's table of consumers: which it declares, which it runs, and a copy of the table. SPEC:
 * J98-J104.
 *
 * ```
 *   declare, subscribe ──> own ──#write──> declared in the store ──> removed: unsubscribe, or an operator
 * ```
 * The copy may be old. Settlements name its version, and the store refuses those of another (`settle-queue.ts`), so a
 * stale copy costs a second decision and never an event. One write is under way at a time; one that failed is tried
 * again.
 *
 * A bus of commands has no consumers: a command has exactly one handler.
 */
import type { Host } from "../host/host.ts";
import { pause } from "../host/pause.ts";
import { SETTLE_RETRY_MS } from "../limits.ts";
import { fromError } from "../message/error-data.ts";
import { type Consumer, type ConsumerTable, consumerKey } from "../store/consumer.ts";
import type { Store } from "../store/store.ts";
import { removeConsumer } from "./consumer-removal.ts";
import type { BusObserver } from "./observation.ts";
import type { Subscriptions } from "./subscriptions.ts";

interface ConsumersParts {
  readonly kind: "event" | "command";
  readonly host: Host;
  readonly store: Store;
  readonly subscriptions: Subscriptions;
  readonly observe: BusObserver;
}

export class Consumers {
  readonly #parts: ConsumersParts;
  /** Declarations of this bus, by key. */
  readonly #own = new Map<string, Consumer>();
  /** Unsubscribed here, and to be removed from the table. */
  readonly #unwanted = new Map<string, Consumer>();
  /** The copy of the table, by key. */
  #declared: ReadonlyMap<string, Consumer> = new Map();
  #version = 0;
  /** Rises with every change of the answers of `missing`. */
  revision = 0;
  /** The lease that the running consumers are named under; undefined while there was none. */
  #lease: number | undefined;
  #state: "idle" | "running" | "stopped" = "idle";
  /** Whether the table has unsent changes. */
  #isDue = false;
  #writing: Promise<void> | undefined;

  constructor(parts: ConsumersParts) {
    this.#parts = parts;
  }

  /** The version of the copy; undefined where there are no consumers. */
  get version(): number | undefined {
    return this.#parts.kind === "command" ? undefined : this.#version;
  }

  /** Keys of the consumers that run here. */
  get running(): readonly string[] {
    return this.#parts.kind === "command" ? [] : this.#parts.subscriptions.consumerKeys;
  }

  /** Declares a consumer; it runs while a subscription of its name and pattern is there. */
  declare(consumer: Consumer): void {
    if (this.#parts.kind === "command") return;
    const key = consumerKey(consumer);
    this.#unwanted.delete(key);
    this.#own.set(key, consumer);
    this.#changed();
  }

  /** Which consumers run here has changed. */
  runningChanged(): void {
    if (this.#parts.kind === "event") this.#changed();
  }

  /** Its code has unsubscribed: it is removed, unless another process runs it. */
  withdraw(consumer: Consumer): void {
    if (this.#parts.kind === "command") return;
    const key = consumerKey(consumer);
    if (!this.#own.delete(key)) return;
    // Before its start this bus has no declarations.
    if (this.#state === "running") this.#unwanted.set(key, consumer);
    this.#changed();
  }

  /** Declared consumers that do not run here, in the order of their keys. */
  missing(): readonly Consumer[] {
    const known = new Map([...this.#declared, ...this.#own]);
    const running = new Set(this.running);
    const isMissing = (key: string) => !running.has(key) && !this.#unwanted.has(key);
    return [...known.keys()]
      .filter(isMissing)
      .sort()
      .map((key) => known.get(key)!);
  }

  isDeclared(key: string): boolean {
    return (this.#declared.has(key) || this.#own.has(key)) && !this.#unwanted.has(key);
  }

  leaseOpened(lease: number): void {
    this.#lease = lease;
  }

  /** Declares all before the first event is taken. Throws if the store does not take them. */
  async start(): Promise<void> {
    if (this.#parts.kind === "command") return;
    this.#isDue = false;
    await this.#declareAll();
    this.#state = "running";
    if (this.#isDue) this.#changed();
  }

  /** The data may have another history, which lacks a declaration. */
  declareAgain(): void {
    if (this.#parts.kind === "event") this.#changed();
  }

  async stop(): Promise<void> {
    this.#state = "stopped";
    await this.#writing;
  }

  /** Reads the table again. */
  async refresh(): Promise<void> {
    this.#take(await this.#parts.store.consumers());
  }

  #changed(): void {
    this.revision++;
    this.#isDue = true;
    if (this.#state === "running") this.#writing ??= this.#write();
  }

  async #write(): Promise<void> {
    try {
      while (this.#isDue && this.#state === "running") {
        this.#isDue = false;
        try {
          const removed = [...this.#unwanted.values()];
          for (const consumer of removed) await removeConsumer(this.#parts, consumer, this.#lease);
          await this.#declareAll();
          // Not before the copy of the table is without them.
          for (const consumer of removed) this.#forgetUnwanted(consumer);
          if (removed.length > 0) this.revision++;
        } catch (error) {
          this.#isDue = true;
          const trouble = fromError(error).message;
          this.#parts.observe({ kind: "store-trouble", doing: "declaring consumers", error: trouble });
          await pause(this.#parts.host, SETTLE_RETRY_MS);
        }
      }
    } finally {
      this.#writing = undefined;
    }
  }

  #forgetUnwanted(consumer: Consumer): void {
    const key = consumerKey(consumer);
    if (this.#unwanted.get(key) === consumer) this.#unwanted.delete(key);
  }

  async #declareAll(): Promise<void> {
    const lease = this.#lease;
    const running = lease === undefined ? {} : { running: { lease, keys: this.running } };
    this.#take(await this.#parts.store.declareConsumers({ consumers: [...this.#own.values()], ...running }));
  }

  #take({ version, consumers }: ConsumerTable): void {
    this.revision++;
    this.#version = version;
    this.#declared = new Map(consumers.map(({ name, pattern }) => [consumerKey({ name, pattern }), { name, pattern }]));
  }
}
