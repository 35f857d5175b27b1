/**
 * The parts of a space that need no list, collection or piece: cells, computations, effects and transactions over one
 * replica and one scheduler. `Space` adds the others, which are made of these.
 */
import { Grace } from "../host/grace.ts";
import type { Host } from "../host/host.ts";
import { DRAIN_MS } from "../limits.ts";
import { equal } from "../message/equality.ts";
import { INSPECT } from "../message/inspect.ts";
import { Fingerprints } from "../scheduler/basis-row.ts";
import { ComputedError } from "../scheduler/computed-error.ts";
import type { ErrorListener } from "../scheduler/introspection.ts";
import type { NodeAddress, NodeSpec, RunHandle, SchedulerNode } from "../scheduler/node.ts";
import { Scheduler } from "../scheduler/scheduler.ts";
import { gaveUp } from "../scheduler/unfinished.ts";
import { ambientClearance, withClearance } from "../store/clearance.ts";
import { SHARED_SCOPE } from "../store/document.ts";
import { type Label, labelOf } from "../store/label.ts";
import { ReceiptKeeper, type ReceiptPolicy } from "../store/receipt-keeper.ts";
import type { Replica } from "../store/replica.ts";
import { type Store, StoreError } from "../store/store.ts";
import type { AttemptKind } from "../work/attempt.ts";
import { Outbox, type Requester } from "../work/outbox.ts";
import { Receipts } from "../work/receipts.ts";
import type { Refusal } from "../work/refusal.ts";
import type { Tx } from "../work/tx.ts";
import { Cell, type CellOptions, observeConfirmed, ownDefault, type SinkOptions } from "./cell.ts";
import { type BeginOptions, CellTransaction } from "./cell-transaction.ts";
import { Computed } from "./computed.ts";
import { EffectCleanup } from "./effect-cleanup.ts";
import { type Declassification, declassify } from "./labels.ts";
import { LateWrites } from "./late-writes.ts";
import { LinkedCell } from "./linked-cell.ts";
import type { LinkTargets } from "./links.ts";
import type { Described, StandardSchema } from "./schema.ts";
import { type Migrate, ShapedCell } from "./shaped-cell.ts";
import { Stream } from "./stream.ts";
import { type TransactOptions, type TransactSpace, transact, transactInside } from "./transact.ts";
import type { Frozen, Initial, Stored } from "./value-types.ts";

/** The store of a space, its name and its options. */
export interface SpaceOptions {
  readonly store: Store;
  /** Time and randomness. Default: those of the process. */
  readonly host?: Host;
  readonly name: string;
  /** Shared by spaces that link to each other. Default: a new one. */
  readonly scheduler?: Scheduler;
  /** Other open spaces that links may lead to. */
  readonly neighbours?: ReadonlyMap<string, Replica>;
  /**
   * Keeps computed values over a restart. A value is reused if its code is the same: the text of its function and this
   * version. Change the version with every change of code that the functions call or have captured.
   */
  readonly persist?: { readonly version: string };
  /**
   * Documents kept in memory. Default 100,000. Above it, unobserved documents are dropped. Their cells stay valid: the
   * next read finds a document that is not loaded.
   */
  readonly residentDocumentsMax?: number;
  /** How long receipts of the whole store are kept. Default: for ever. */
  readonly receipts?: ReceiptPolicy | undefined;
  /**
   * Gets errors that no caller gets: a computed value or an effect throws, a write is rolled back. Without it, and
   * without a listener of `scheduler.onError`, they are printed on the console. A shared scheduler reports errors of
   * all its spaces.
   */
  readonly onError?: ErrorListener;
  /**
   * The state that sinks and two-step effects are called with. `speculative`: as soon as it is applied in memory.
   * `confirmed`: when the store has confirmed it. Default `speculative`; a kernel's space observes `confirmed`.
   */
  readonly observe?: "speculative" | "confirmed";
  /**
   * How plain code reads a value that is not loaded. `absent`: as the default or `undefined`, and `isLoaded` tells.
   * `refused`: it gets `NotReady`. Default `absent`; spaces of a kernel refuse.
   */
  readonly unloaded?: "absent" | "refused";
}

/** Options of a cell of a space. */
export interface SpaceCellOptions<T = unknown> extends CellOptions<T> {
  /** The scope of its document. Default: that of the space. */
  readonly scope?: string;
  /** Converts a stored value that the schema rejects. The next write stores the result. */
  readonly migrate?: Migrate<unknown>;
}

/** Options of an effect. */
export interface EffectOptions extends NodeOptions {
  readonly id?: string;
}

/** Options of a computed value or an effect. */
export interface NodeOptions extends SinkOptions {
  /** Cells that it reads. They are brought up to date before its first run. */
  readonly reads?: readonly Cell<unknown>[];
  /** Cells that a computed value writes besides its result. Their readers demand it like readers of the result. */
  readonly writes?: readonly Cell<unknown>[];
  /** False: computed again after a restart, even if the space keeps computed values. */
  readonly persist?: boolean;
  /** Used instead of the text of the function to decide whether the code is the same. */
  readonly fingerprint?: string;
}

export abstract class BaseSpace implements LinkTargets, AsyncDisposable {
  readonly name: string;
  readonly scheduler: Scheduler;
  readonly late: LateWrites;
  readonly observesConfirmed: boolean;
  readonly refusesUnloaded: boolean;
  /** Sends requests of this space's handlers; a kernel sets it. */
  requester: Requester | undefined;
  readonly #host: Host;
  readonly #replica: Replica;
  readonly #neighbours: ReadonlyMap<string, Replica> | undefined;
  readonly #ownsScheduler: boolean;
  readonly #unlisten: (() => void) | undefined;
  readonly #receipts: ReceiptKeeper | undefined;
  /** Only if computed values are kept. */
  readonly #fingerprints: Fingerprints | undefined;
  /** Effects that end with the space. Not used with an own scheduler, which ends all of them. */
  readonly #observers = new Set<SchedulerNode>();
  #effects = 0;
  /** Of `transact`. */
  readonly #outbox: Outbox;
  /** For plain code without a clearance; made by its first transaction. */
  #transactions: TransactSpace | undefined;
  #closing: Promise<void> | undefined;

  protected constructor(options: SpaceOptions, host: Host, replica: Replica) {
    this.name = options.name;
    this.#host = host;
    this.#replica = replica;
    this.#neighbours = options.neighbours;
    this.#ownsScheduler = options.scheduler === undefined;
    this.#fingerprints = options.persist && new Fingerprints(options.persist.version);
    this.scheduler = options.scheduler ?? new Scheduler({ host });
    this.#outbox = this.outbox(`space ${this.name}`);
    this.late = new LateWrites(host, this.scheduler);
    this.observesConfirmed = options.observe === "confirmed";
    this.refusesUnloaded = options.unloaded === "refused";
    if (this.observesConfirmed) this.scheduler.holdsSends = true;
    this.#unlisten = options.onError && this.scheduler.onError(options.onError);
    const { store, receipts: policy } = options;
    const tell = (trouble: unknown) => this.scheduler.parts.introspection.report(trouble);
    replica.onTrouble = tell;
    this.#receipts = policy && new ReceiptKeeper({ host, store, policy, tell });
    this.#receipts?.start();
  }

  replica(space: string): Replica {
    if (space === this.name) return this.#replica;
    const neighbour = this.#neighbours?.get(space);
    if (neighbour) return neighbour;
    throw new Error(`a link leads to space "${space}", which is not open here; open it and pass it as a neighbour`);
  }

  /** Why acknowledged commits of this process are missing after a restore or failover; undefined if none is. */
  get historyLost(): string | undefined {
    return this.#replica.historyLost;
  }

  outbox(source: string): Outbox {
    return new Outbox({ source, space: this, requester: () => this.requester });
  }

  /** The cell that reads the place and is made of links: a list, the result of a piece. */
  abstract readerOf(address: NodeAddress): Cell<unknown> | undefined;

  /** Called by `close` when commands have ended. */
  protected abstract closePieces(): void;

  // Cells
  // -------------------------------------------------------------------------------------------------------------------

  /**
   * A place that keeps one value. With an initial value, a read never gives `undefined`. Without one it does until the
   * first write. The type is inferred from the initial value or the schema, or given.
   */
  cell<T = unknown>(id: string): Cell<Stored<T> | undefined>;
  cell<Schema extends StandardSchema>(
    id: string,
    initial: Described<Schema>,
    options: SpaceCellOptions & { readonly schema: Schema },
  ): Cell<Frozen<Described<Schema>>>;
  cell<Schema extends StandardSchema>(
    id: string,
    initial: undefined,
    options: SpaceCellOptions & { readonly schema: Schema },
  ): Cell<Frozen<Described<Schema>> | undefined>;
  cell<T = unknown>(id: string, initial: undefined, options?: SpaceCellOptions<T>): Cell<Stored<T> | undefined>;
  cell<T>(id: string, initial: Initial<T>, options?: SpaceCellOptions<T>): Cell<Stored<T>>;
  cell<T>(id: string, initial?: T, options?: SpaceCellOptions<T>): Cell<T> {
    // Most cells have no options: none are created for them.
    if (initial === undefined && options === undefined)
      return new Cell<T>(this.scheduler.parts.documents.root(this.#replica, { scope: SHARED_SCOPE, id }), this);
    const { scope = SHARED_SCOPE, migrate, ...given } = options ?? {};
    const ofCell = initial === undefined ? given : { ...given, default: ownDefault(initial, id) };
    const address = this.scheduler.parts.documents.root(this.#replica, { scope, id });
    if (migrate !== undefined && given.schema === undefined)
      throw new StoreError(
        "STORE_MISUSE",
        `cell "${id}" has migrate and no schema; a schema tells which values are old`,
      );
    const cell =
      given.schema === undefined
        ? new Cell<T>(address, this, ofCell)
        : new ShapedCell<T>(address, this, ofCell, migrate as Migrate<T> | undefined);
    // `label` reports labels that cannot be stored.
    if (given.label !== undefined) cell.label(given.label).catch(() => undefined);
    return cell;
  }

  /** A value derived from others. It is recomputed only if it is read or observed and one of its inputs has changed. */
  computed<T>(
    id: string,
    compute: (run: RunHandle) => T | Promise<T>,
    options?: NodeOptions,
  ): Computed<Frozen<Awaited<T>>> {
    const known = this.scheduler.parts.documents.computationOf(this.#replica, id);
    if (known) this.#requireMadeHere(known, id);
    const persisted = options?.persist === false ? undefined : this.#fingerprints?.of(compute, options?.fingerprint);
    if (known) {
      this.scheduler.parts.lifecycle.remake(known, compute, persisted);
      return new Computed<Frozen<Awaited<T>>>(known, this);
    }
    const spec: NodeSpec = {
      kind: "computation",
      id,
      run: compute,
      ...this.#outputsOf(id, options?.writes),
      persisted,
    };
    const node = this.scheduler.register(options === undefined ? spec : specOf(spec, options));
    return new Computed<Frozen<Awaited<T>>>(node, this);
  }

  #outputsOf(id: string, writes: readonly Cell<unknown>[] = []): Pick<NodeSpec, "outputs" | "outputIn"> {
    if (writes.length === 0) return { outputIn: this.#replica };
    const output = this.scheduler.parts.documents.root(this.#replica, { scope: SHARED_SCOPE, id });
    return { outputs: [output, ...writes.map(({ address }) => address)] };
  }

  /**
   * A node that writes into places below the given cells, such as an index; each run decides the places. It runs
   * without a reader, when no other node is left to run, and before a node that reads below those cells. The returned
   * function ends it.
   */
  materialize(
    id: string,
    into: readonly Cell<unknown>[],
    run: (run: RunHandle) => unknown,
    options: NodeOptions = {},
  ): () => void {
    const envelope = into.map(({ address }) => address);
    return this.observe(specOf({ kind: "computation", id, run, envelope }, options));
  }

  /** Options of a computation whose code is given by these parts, not by its function; undefined if none is kept. */
  madeOf(...parts: readonly (string | ((...parameters: never[]) => unknown))[]): NodeOptions | undefined {
    return this.#fingerprints && { fingerprint: parts.map(String).join("\n") };
  }

  /**
   * Registers computations with the values that the last process stored. A computation runs only if its inputs have
   * changed and it is read or observed. Resolves when all stored values are looked up; no node runs before.
   */
  restore<T>(build: () => T): Promise<T> {
    return this.scheduler.resume(build);
  }

  /**
   * A node that runs again creates its children again, so their names may be taken. With any other creator, two
   * computations would write into one place.
   */
  #requireMadeHere(known: SchedulerNode, id: string): void {
    const parent = this.scheduler.running;
    if (parent !== undefined && known.parent === parent) return;
    throw new ComputedError(
      "COMPUTED_TWICE",
      `"${id}" of space "${this.name}" is computed already, and a place has one computation: give this one another id, or dispose() the first`,
    );
  }

  /**
   * Runs when the documents that it reads are loaded, and whenever a value that it read has changed, until cancelled. A
   * function that it returns is called before its next run and when it ends. Effects that it creates end with its next
   * run, the last one first.
   *
   * With two functions, the first one reads and the second one acts on its result. Only this form can be `confirmed`,
   * which is the default of a kernel's space.
   */
  effect(run: (run: RunHandle) => unknown, options?: EffectOptions): () => void;
  effect<T>(read: (run: RunHandle) => T, act: (value: T) => unknown, options?: EffectOptions): () => void;
  effect<T>(
    read: (run: RunHandle) => T,
    second: EffectOptions | ((value: T) => unknown) = {},
    third: EffectOptions = {},
  ): () => void {
    const [act, options] = typeof second === "function" ? [second, third] : [undefined, second];
    const { id = `effect ${++this.#effects}`, confirmed, ...rest } = options;
    if (act === undefined && confirmed) throw cannotConfirm(id);
    const cleanup = new EffectCleanup(this.scheduler);
    const spec = specOf({ kind: "effect", id, run: read }, rest);
    const cancel = act === undefined ? this.#observeOne(spec, cleanup) : this.#observeTwo(spec, read, act, confirmed);
    const stop = () => {
      cancel();
      cleanup.run();
    };
    EffectCleanup.current?.add(stop);
    return stop;
  }

  #observeOne(spec: NodeSpec, cleanup: EffectCleanup): () => void {
    return this.observe({ ...spec, run: (handle) => cleanup.around(() => spec.run(handle)) });
  }

  #observeTwo<T>(
    spec: NodeSpec,
    read: (run: RunHandle) => T,
    act: (value: T) => unknown,
    confirmed = this.observesConfirmed,
  ): () => void {
    if (confirmed) return observeConfirmed(this, spec, (handle, add) => add(read(handle)), act);
    const actOn = (value: T) => this.scheduler.outsideRuns(() => act(value));
    return this.observe({ ...spec, run: (handle) => actOn(read(handle)) });
  }

  /** Runs code whose reads register no dependency of the running computation or effect. */
  untracked<T>(code: () => T): T {
    return this.scheduler.untracked(code);
  }

  /**
   * Runs code and settles computed values and effects once at its end, also if it throws. For one commit use
   * `transact`.
   */
  batch<T>(code: () => T): T {
    return this.scheduler.batch(code);
  }

  observe(spec: NodeSpec): () => void {
    const node = this.scheduler.register(spec);
    // A node that a run has created ends with its creator.
    if (!this.#ownsScheduler && node.parent === undefined) this.#observers.add(node);
    return () => {
      this.#observers.delete(node);
      this.scheduler.remove(node);
    };
  }

  /** An input with one handler; see `stream.ts`. */
  stream<Schema extends StandardSchema>(id: string, schema: Schema): Stream<Described<Schema>>;
  stream<T = unknown>(id: string): Stream<T>;
  stream<T>(id: string, schema?: StandardSchema<T>): Stream<T> {
    return new Stream<T>(this.scheduler.parts.documents.root(this.#replica, { scope: SHARED_SCOPE, id }), this, schema);
  }

  /** The first cell while the condition is truthy, else the second one. The other is not read. */
  ifElse<T>(id: string, condition: Cell<unknown>, then: Cell<T>, otherwise: Cell<T>): Cell<T> {
    const options = this.madeOf("ifElse", ...[condition, then, otherwise].map(String));
    const chosen = this.computed(id, () => (condition.get() ? then : otherwise).asLink(), options);
    return new LinkedCell<T>(chosen.address, this, () => {
      const link = chosen.address.value;
      // Undefined before the first run.
      return link === undefined ? undefined : equal(link, then.asLink()) ? then : otherwise;
    });
  }

  // Transactions
  // -------------------------------------------------------------------------------------------------------------------

  /**
   * Runs synchronous code as one commit. Its writes are visible at once; the promise resolves with its result when the
   * commit is durable. It runs again if another commit changed its reads meanwhile (optimistic concurrency).
   */
  transact<T>(code: (tx: Tx) => T, options: TransactOptions = {}): Promise<Exclude<T, Refusal>> {
    const clearance = ambientClearance();
    // A repeated run happens after the caller has returned.
    const within = clearance === undefined ? code : (tx: Tx) => withClearance(clearance, () => code(tx));
    if (this.scheduler.parts.attempts.isUnderWay) return transactInside(this.scheduler, this.#outbox, within);
    return transact(this.#transactionsWith(clearance), within, options);
  }

  #transactionsWith(clearance: Label | undefined): TransactSpace {
    if (clearance === undefined && this.#transactions !== undefined) return this.#transactions;
    const kind = this.scheduler.attemptsOf("a transaction", clearance);
    const made = { host: this.#host, replica: this.#replica, kind, outbox: this.#outbox };
    if (clearance === undefined) this.#transactions = made;
    return made;
  }

  /**
   * Runs code outside of the calling handler: its writes are commits of their own. For pools, caches and listeners that
   * a handler creates and that outlive it.
   */
  outside<T>(code: () => T): T {
    return this.scheduler.outside(code);
  }

  /** A transaction that lives across awaits; read and write through it, then commit. */
  begin(options: BeginOptions = {}): CellTransaction {
    return new CellTransaction(this.scheduler, this.#replica, options);
  }

  /** For entry points: the receipts of this space. */
  get receipts(): Receipts {
    return Receipts.of(this.#replica, this.#host);
  }

  /** For entry points: the kind of the attempts that a handler makes on this space. */
  attemptsOf(name: string, clearance?: readonly string[]): AttemptKind {
    return this.scheduler.attemptsOf(name, clearance === undefined ? undefined : labelOf(clearance));
  }

  // Labels
  // -------------------------------------------------------------------------------------------------------------------

  /** The labels of the loaded values at a cell. For tools: the labels may reveal information about the values. */
  labelsOf(cell: Cell<unknown>): readonly string[] {
    return this.scheduler.labelAt(cell.address);
  }

  /**
   * Declassifies, for a reason: copies a value to another cell, or removes labels of a cell. Journaled as
   * `Label.Declassified` in the same commit.
   */
  declassify(cell: Cell<unknown>, how: Declassification): Promise<void> {
    return declassify(this.#host, this.scheduler, cell, how);
  }

  // Life
  // -------------------------------------------------------------------------------------------------------------------

  flush(): void {
    this.scheduler.flush();
  }

  idle(): Promise<void> {
    return this.scheduler.idle();
  }

  settled(): Promise<void> {
    return this.scheduler.settled();
  }

  /** A new id. Inside a stream's handler it is derived from the event, so every attempt gets the same one. */
  newId(): string {
    this.refuseInComputation("mint an id");
    return this.scheduler.attempt?.newId() ?? this.#host.id();
  }

  /** The time, for effects and handlers. Refused inside a computation, whose result must not depend on it. */
  now(): number {
    this.refuseInComputation("read the clock");
    return this.#host.now();
  }

  random(): number {
    this.refuseInComputation("draw a random number");
    return this.#host.random();
  }

  protected refuseInComputation(what: string): void {
    const node = this.scheduler.running;
    if (node?.kind !== "computation") return;
    throw new ComputedError(
      "COMPUTED_IMPURE",
      `computation ${node.id} must not ${what}: it may run any number of times and must give the same; pass the value in through a cell`,
    );
  }

  /**
   * Closes the space: work under way may finish within the grace time. Work that is left then is abandoned without
   * effect; its senders and the error listeners are told. Idempotent.
   */
  async close({ graceMs = DRAIN_MS }: { readonly graceMs?: number } = {}): Promise<void> {
    if (this.#closing === undefined) this.scheduler.flush();
    this.#closing ??= this.#close(new Grace(this.#host, graceMs));
    return this.#closing;
  }

  async #close(grace: Grace): Promise<void> {
    const { scheduler } = this;
    this.#receipts?.stop();
    const isSettled = await grace.outlasts(scheduler.settled());
    if (!isSettled) scheduler.tellUnfinished(this.#replica, grace.ms);
    this.closePieces();
    scheduler.parts.events.close(this.#replica);
    if (this.#ownsScheduler) scheduler.abandon();
    else this.#removeNodes();
    const unanswered = await this.#replica.close(grace);
    if (unanswered > 0)
      scheduler.parts.introspection.report(
        gaveUp(`the store had not answered ${unanswered} commits when space "${this.name}" closed`),
      );
    if (!this.#ownsScheduler) scheduler.detach(this.#replica);
    this.#unlisten?.();
  }

  /** Other spaces still use the scheduler. */
  #removeNodes(): void {
    for (const node of this.#observers) this.scheduler.remove(node);
    this.#observers.clear();
    this.scheduler.removeWritersOf(this.#replica);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  [INSPECT](): string {
    return `Space ${this.name}`;
  }
}

function cannotConfirm(id: string): StoreError {
  return new StoreError(
    "STORE_MISUSE",
    `${id} reads and acts in one function, so it cannot wait for the store in between: write effect(read, act, { confirmed: true })`,
  );
}

function specOf(
  basic: NodeSpec,
  { reads, writes, persist, fingerprint, whileLoading, confirmed, ...options }: NodeOptions,
): NodeSpec {
  const spec: NodeSpec = { ...basic, ...options, ...(whileLoading ? { whileLoading: "show" } : {}) };
  return reads === undefined ? spec : { ...spec, declaredReads: reads.map((cell) => cell.address) };
}
