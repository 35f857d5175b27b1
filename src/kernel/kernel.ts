/**
 * The kernel: composes store, space, bus, loop, extensions and adapters. Boot and shutdown are lists of steps; opened
 * parts are closed in the opposite order, also after a failed boot.
 *
 *     open store -> recover -> replica and scheduler -> routing table, actors, subscriptions -> extensions
 *       -> dispatch -> extensions start -> socket -> ready
 *
 * SPEC: K20-K29. All functions of a kernel are in its capabilities.
 */

import { dirname, join } from "node:path";
import { nodeWorkerActor } from "../adapters/node-worker.ts";
import { UnixSocket } from "../adapters/unix-socket.ts";
import { COMMANDS_THREAD } from "../app/worker-commands.ts";
import { EventBus } from "../bus/event-bus.ts";
import type { Handler } from "../bus/handler.ts";
import { HandlingRing } from "../bus/handling-ring.ts";
import type { BusObservation, BusObserver } from "../bus/observation.ts";
import type { PublishOptions } from "../bus/publisher.ts";
import type { SubscribeOptions } from "../bus/subscription.ts";
import type { Resumed } from "../cells/pieces.ts";
import { Space } from "../cells/space.ts";
import { ExtensionLoader } from "../extensions/extension-loader.ts";
import type { ExtensionStatus } from "../extensions/extension-record.ts";
import { SYSTEM_SUBSCRIBER } from "../extensions/system-topics.ts";
import { Grace } from "../host/grace.ts";
import type { Host } from "../host/host.ts";
import { systemHost } from "../host/system-host.ts";
import { DRAIN_MS, HISTORY_KEPT_MS, LAST_ANSWERS_MS } from "../limits.ts";
import type { Capability, SpawnContext } from "../loop/capability.ts";
import type { CommandJournal } from "../loop/command-journal.ts";
import type { EventJournal } from "../loop/event-journal.ts";
import { EventLoop } from "../loop/event-loop.ts";
import { memoryCapability } from "../loop/memory.ts";
import { shutdown, syscall } from "../loop/syscall.ts";
import { timerCapability } from "../loop/timer.ts";
import { whenItStands } from "../message/dropped.ts";
import type { Message } from "../message/envelope.ts";
import { type ErrorData, failureFrom } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import type { Lineage } from "../message/lineage.ts";
import { cursorOf } from "../store/journal-position.ts";
import { labelOf } from "../store/label.ts";
import type { Store } from "../store/store.ts";
import type { Requester } from "../work/outbox.ts";
import { WorkBoard } from "../work/work-board.ts";
import { Apps } from "./apps.ts";
import { commandBus, commandsOver, failuresNoted, journalOver } from "./bus-journal.ts";
import { dataDirectory } from "./data-directory.ts";
import { eraseCapability } from "./erase-capability.ts";
import { faultsToStderr } from "./fault-lines.ts";
import { Faults } from "./faults.ts";
import { makeFolder } from "./folder.ts";
import { healthCapability, inspectCapability } from "./inspect-capability.ts";
import { journalCapability } from "./journal-capability.ts";
import { KernelClosedError, KernelLife, OpenedSteps } from "./kernel-life.ts";
import { type LimitsByPart, limitsByPart } from "./kernel-limits.ts";
import { type KernelHealth, type KernelOptions, type KernelParts, requireKernelOptions } from "./kernel-options.ts";
import { omitUndefined } from "./omit-undefined.ts";
import { requireStore } from "./open-store.ts";
import { operatorCapability } from "./operator-capability.ts";
import { requestStatus } from "./request-status.ts";
import { RunLog } from "./run-log.ts";
import { type TokenRecord, Tokens } from "./tokens.ts";
import { watchView } from "./watched-views.ts";

/** The whole system: store, buses, loop, spaces, extensions, socket. `open` makes one for apps. */
export class Kernel implements AsyncDisposable {
  readonly #host: Host;
  readonly #life: KernelLife;
  readonly #opened = new OpenedSteps();
  #store!: Store;
  #space!: Space;
  #bus!: EventBus;
  /** Delivers the kept commands of the journal. */
  #commands!: EventBus;
  #kept!: CommandJournal;
  #loop!: EventLoop;
  #socket: UnixSocket | undefined;
  #extensions: ExtensionLoader | undefined;
  #apps!: Apps;
  #tokens!: Tokens;
  #runs: RunLog | undefined;
  #handlings: HandlingRing | undefined;
  readonly #board: WorkBoard;
  #recovered = 0;
  #piecesLeft: Resumed["left"] = [];
  #closing: Promise<void> | undefined;

  static async open(options: KernelOptions): Promise<Kernel> {
    requireKernelOptions(options);
    const kernel = new Kernel(options.host ?? systemHost());
    const { signal } = options;
    const giveUp = () => kernel.#life.giveUp(signal?.reason);
    signal?.addEventListener("abort", giveUp, { once: true });
    if (signal?.aborted) giveUp();
    try {
      await kernel.#boot(options);
      return kernel;
    } catch (error) {
      // The error of the boot matters more than errors of the unwinding.
      await kernel.#unwind(new Grace(kernel.#host, 0)).catch((unwinding: AggregateError) => {
        throw new AggregateError([error, ...unwinding.errors], "the kernel did not start, and did not close cleanly");
      });
      throw error;
    } finally {
      signal?.removeEventListener("abort", giveUp);
      if (kernel.#life.state === "booting") kernel.#life.ended();
    }
  }

  private constructor(host: Host) {
    this.#host = host;
    this.#life = new KernelLife(host);
    this.#board = new WorkBoard(host);
  }

  async #boot(options: KernelOptions): Promise<void> {
    const host = this.#host;
    const { store, socketPath, requestTimeoutMs, leaseMs, retention, observe, clearance, version } = options;
    requireStore(store);
    this.#store = store;
    this.#opened.note("store", () => store.close());
    const limits = limitsByPart(options.limits);
    const faults = new Faults();
    if (options.trace) this.#handlings = new HandlingRing(host);
    const handlings = omitUndefined({ handlings: this.#handlings });
    const watched = { observe: (observation: BusObservation) => faults.ofBus(observation) };
    const kept30Days = { maxAgeMs: HISTORY_KEPT_MS, ...retention };
    this.#bus = new EventBus({
      store,
      host,
      ...watched,
      ...handlings,
      board: this.#board,
      ...limits.bus,
      retention: kept30Days,
      ...omitUndefined({ leaseMs }),
    });
    this.#commands = commandBus({ store, host, ...watched, ...omitUndefined({ leaseMs }) });
    this.#recovered = await this.#bus.recover();
    const persist = version === undefined ? {} : { persist: { version } };
    const kept = { receipts: options.receipts ?? { keepMs: HISTORY_KEPT_MS }, ...persist, ...limits.space };
    this.#space = await Space.open({
      store,
      host,
      name: options.space ?? "kernel",
      observe: "confirmed",
      unloaded: "refused",
      ...kept,
    });
    this.#opened.note("space", (graceMs) => this.#space.close({ graceMs }));
    this.#space.scheduler.parts.events.board = this.#board;
    this.#bus.standing = () => this.#space.scheduler.parts.runner.standing();
    this.#space.scheduler.onError((error, node) => faults.ofNode(error, node?.id));
    this.#tokens = new Tokens(host, this.#space);
    this.#life.goOn();
    if (options.trace) this.#runs = new RunLog(this.#space.scheduler);
    this.#addSpace(this.#space);
    const parts: KernelParts = { host, store, bus: this.#bus, space: this.#space };
    this.#apps = await Apps.open(options.apps ?? [], {
      ...{ host, store, kernel: this.#space, space: { ...persist, ...limits.space } },
      ...{ leaseMs, alone: options.alone, log: options.log, bus: this.#bus, topicOf: this.#topicOf },
      onSpace: (space) => this.#addSpace(space),
      startWorker: (url) => nodeWorkerActor(url, COMMANDS_THREAD),
    });
    this.#opened.note("apps", (graceMs) => this.#apps.close(graceMs));
    const others = await this.#space.restore(() => {
      this.#apps.build();
      return typeof options.capabilities === "function" ? options.capabilities(parts) : options.capabilities;
    });
    await this.#apps.load();
    const extensions = await this.#findExtensions(options, limits);
    await extensions?.load();
    const ofApp = { ...others, ...this.#apps.capabilities(others) };
    this.#life.goOn();
    const own = { ...this.#builtIn(clearance), timer: this.#timer(limits.timer), ...ofApp };
    this.#kept = commandsOver(host, this.#commands, this.#noteFailed("kernel", watched.observe));
    this.#loop = await EventLoop.boot({
      ...{ host, capabilities: this.#wired(extensions ? extensions.capabilities(parts, own) : own, watched.observe) },
      ...{
        events: this.#journal(),
        commands: this.#kept,
      },
      ...{ ...limits.loop, ...handlings },
      watchQuery: (watched, watcher) =>
        this.#apps.watch(watched, watcher) ?? watchView({ host, loop: () => this.#loop }, watched, watcher),
      ...omitUndefined({ requestTimeoutMs }),
      ...omitUndefined({
        observe,
        observeFaults: options.observeFaults ?? (observe ? undefined : faultsToStderr(host)),
      }),
    });
    this.#opened.note("loop", (graceMs) => this.#stopLoop(graceMs));
    faults.tellTo(this.#loop);
    this.#board.onOverrun = ({ handler: capability, entryPoint, type }, count) => {
      if (entryPoint === "subscriber" || entryPoint === "stream") return;
      const reason = `${count} handlers have timed out and still run; let them end when their signal is aborted`;
      this.#loop.observations.tell("Sys.ActorFault", { capability, reason, type });
    };
    this.#bus.requester = this.#requester;
    this.#opened.note("bus", (graceMs) => this.#bus.stop({ graceMs }));
    this.#opened.note("commands", (graceMs) => this.#commands.stop({ graceMs }));
    // Extensions end before the bus, so that their last events are journaled.
    this.#opened.note("extensions", async (graceMs) => extensions?.stop(graceMs));
    const request = (message: Message) => this.#loop.request(message);
    this.#apps.subscribe(request);
    await extensions?.initialize(this.#loop.actors);
    this.#life.goOn();
    this.#piecesLeft = (await this.#space.resume(options.patterns ?? [])).left;
    this.#life.goOn();
    await this.#bus.start();
    await this.#commands.start();
    this.#life.goOn();
    this.#opened.note("schedules", (graceMs) => this.#apps.stopSchedules(graceMs));
    await this.#apps.start(request);
    await extensions?.start();
    this.#life.goOn();
    if (socketPath !== undefined) await this.#listen(socketPath, clearance, limits.socket);
    this.#life.booted();
  }

  async #listen(path: string, clearance: readonly string[] | undefined, limits: LimitsByPart["socket"]): Promise<void> {
    makeFolder(dirname(path), { mode: 0o700, advice: "choose another path for the socket" });
    const socket = await UnixSocket.open({
      ...{ host: this.#host, loop: this.#loop, path, ...limits },
      ...(clearance === undefined ? {} : { clearance: labelOf(clearance) }),
    });
    this.#socket = socket;
    this.#opened.note("socket", () => socket.close());
  }

  #addSpace(space: Space): void {
    this.#runs?.add(space);
    space.requester = this.#requester;
  }

  async #findExtensions(
    { extensions: sources, agent, log, ...options }: KernelOptions,
    { bus: { handlerTimeoutMs }, agent: agentLimits }: LimitsByPart,
  ): Promise<ExtensionLoader | undefined> {
    if (sources === undefined) return undefined;
    const dataDir = options.extensionData ?? join(dataDirectory(process.env).path, "extensions");
    this.#extensions = await ExtensionLoader.open({
      ...{ host: this.#host, bus: this.#bus, due: this.#store, requests: this, space: this.#space },
      openApp: (app) => this.#apps.add(app),
      ...{
        sources,
        dataDir,
        agent,
        agentLimits,
        log,
        handlerTimeoutMs,
        leaseMs: options.leaseMs,
        alone: options.alone,
      },
    });
    return this.#extensions;
  }

  /** Maps an event type to the topic that a manifest declares for it. */
  readonly #topicOf = (type: string): string => this.#extensions?.topics.topicOf(type) ?? type;

  /** Adds the kernel's parts to the spawn context of actors. */
  #wired(
    capabilities: Readonly<Record<string, Capability>>,
    observe: BusObserver,
  ): Readonly<Record<string, Capability>> {
    const given: Pick<SpawnContext, "topicOf" | "commitWith" | "board"> = {
      board: this.#board,
      topicOf: this.#topicOf,
      commitWith: (entries, commit) => {
        const sends = entries.some(({ message, as }) => message.kind === "command" && as.status === "pending");
        const make = sends ? () => this.#commands.commitWith(entries, commit) : commit;
        return this.#bus.commitWith(entries, make);
      },
    };
    const wired = (one: Capability): Capability => ({
      ...one,
      spawn: (context) => {
        const actor = one.spawn({ ...context, ...given, noteFailed: this.#noteFailed(context.name, observe) });
        // Whether this is an actor is checked by the loop.
        actor?.watch?.(this.#board, context.name);
        return actor;
      },
    });
    return Object.fromEntries(Object.entries(capabilities).map(([name, one]) => [name, wired(one)]));
  }

  #noteFailed(source: string, observe: BusObserver): NonNullable<SpawnContext["noteFailed"]> {
    return failuresNoted({ store: this.#store, source, observe });
  }

  #timer(limits: LimitsByPart["timer"]): Capability {
    return timerCapability({ store: this.#store, replica: this.#space.replica(this.#space.name), ...limits });
  }

  /** Asks for handlers of the bus and of streams. */
  readonly #requester: Requester = {
    ask: async (request) => {
      const answer = await this.#loop.request(request);
      if (answer.kind === "reply") return answer.data;
      throw failureFrom(answer.data as ErrorData);
    },
  };

  #journal(): EventJournal {
    return journalOver({ bus: this.#bus, topicOf: this.#topicOf });
  }

  #builtIn(clearance: readonly string[] | undefined): Record<string, Capability> {
    return {
      health: healthCapability(() => this.health()),
      syscall: syscall(() => ({
        table: this.#loop.table,
        descriptions: new Map([...this.#loop.actors].map(([name, { capability }]) => [name, capability.description])),
      })),
      // After the answer has been routed and written. `closed()` reports the end.
      shutdown: shutdown(() => this.#shutDown()),
      inspector: inspectCapability({
        ...{ bus: this.#bus, store: this.#store, space: this.#space, runs: this.#runs, topicOf: this.#topicOf },
        ...{ handlings: this.#handlings, board: this.#board, host: this.#host },
        loop: () => this.#loop,
        requestStatus: (id) => this.#requestStatus(id),
      }),
      operator: operatorCapability({
        ...{ host: this.#host, bus: this.#bus, store: this.#store, topicOf: this.#topicOf },
        commands: () => this.#kept,
        handlerOf: (type) => this.#loop.table.route("command", type)?.capability,
        extensions: () => this.#extensions,
        loop: () => this.#loop,
      }),
      eraser: eraseCapability({ host: this.#host, store: this.#store }),
      journal: journalCapability(() => ({
        ...{ bus: this.#bus, topicOf: this.#topicOf, commands: this.#kept },
        handlerOf: (type) => this.#loop.table.route("command", type)?.capability,
      })),
      access: this.#tokens.capability(),
      memory: memoryCapability(this.#space, clearance),
    };
  }

  #requestStatus(id: string) {
    const spaces = [this.#space, ...this.#apps.spaces].map(({ name }) => name);
    return requestStatus({ store: this.#store, commands: this.#commands, loop: this.#loop, spaces }, id);
  }

  // In-process use
  // ---------------------------------------------------------------------------------------------------

  get space(): Space {
    return this.#space;
  }

  /** The apps that it was opened with. */
  get apps(): Apps {
    return this.#apps;
  }

  get bus(): EventBus {
    return this.#bus;
  }

  get loop(): EventLoop {
    return this.#loop;
  }

  get socketPath(): string | undefined {
    return this.#socket?.path;
  }

  /** Sends a whole message and returns its answer. */
  request(message: Message): Promise<Message> {
    const standing = message.kind === "command" ? this.#space.scheduler.parts.runner.standing() : undefined;
    return whenItStands(standing, () => this.#loop.request(message));
  }

  /** The cursor after the newest row of the journal. */
  async endCursor(): Promise<string> {
    return cursorOf(await this.#store.journalEnd());
  }

  /** The record of a token of a client, if it is valid. */
  authenticate(token: string): Promise<TokenRecord | undefined> {
    return this.#tokens.find(token);
  }

  /** Publishes an event; resolves with its journal id once it is durable. */
  publish(topic: string, payload: Json, options: PublishOptions & { readonly source?: string } = {}): Promise<number> {
    const { source = "kernel", ...publishing } = options;
    return this.#bus.publish(this.#topicOf(topic), source, payload, publishing);
  }

  /** Handles events in this process, at least once each. Call the result to unsubscribe. */
  subscribe(topic: string, handler: Handler, options: SubscribeOptions): () => void {
    this.#bus.subscribe(topic, handler, options);
    return () => void this.#bus.unsubscribe(topic, options.subscriberId);
  }

  /** Restarts an extension in ERROR from its current files, with those that failed because of it. */
  async restartExtension(id: string): Promise<readonly ExtensionStatus[]> {
    return (await this.#extensions?.restart(id)) ?? [];
  }

  /** Sends a command and returns the data of its reply; an error answer is thrown as `Failure`. */
  command(type: string, data: Json, lineage?: Lineage): Promise<Json> {
    return whenItStands(this.#space.scheduler.parts.runner.standing(), () => this.#loop.command(type, data, lineage));
  }

  query(type: string, data: Json, lineage?: Lineage): Promise<Json> {
    return this.#loop.query(type, data, lineage);
  }

  health(): KernelHealth {
    const { state } = this.#life;
    const { table, actors } = this.#loop;
    const nodes = this.#space.scheduler.getGraphSnapshot();
    const extensions = this.#extensions?.statuses ?? [];
    const work = this.#board.health();
    const subscriptions = this.#bus.subscriptions().filter(({ subscriberId }) => subscriberId !== SYSTEM_SUBSCRIBER);
    const lost = [this.#space, ...this.#apps.spaces].flatMap(({ historyLost = [] }) => historyLost);
    const store = storeHealth(this.#store, lost.length === 0 ? undefined : lost.join("; "));
    const isUnwell =
      work.stuck > 0 || this.#board.isOverrun || store.away !== undefined || store.historyLost !== undefined;
    return {
      store,
      // During the boot only the kernel's own capabilities can ask, and they run.
      state: state !== "booting" && state !== "running" ? state : isUnwell ? "degraded" : "running",
      work,
      quiescent: this.quiescent,
      recovered: this.#recovered,
      routes: [...table.routes()].length,
      subscriptions: subscriptions.length,
      actors: Object.fromEntries([...actors].map(([name, { state }]) => [name, state])),
      connections: this.#socket?.connections ?? 0,
      extensions,
      pieces: this.#space.pieces.size,
      piecesLeft: this.#piecesLeft,
      nodes: nodes.length,
      liveNodes: nodes.filter(({ live }) => live).length,
    };
  }

  /**
   * Whether no message, event, computation, send or extension work is in progress and clients have read all answers.
   */
  get quiescent(): boolean {
    return !this.#isBusy && this.#space.scheduler.isIdle && (this.#socket?.isIdle ?? true);
  }

  get #isBusy(): boolean {
    return (
      !this.#loop.liveness.quiescent ||
      this.#bus.busy ||
      this.#commands.busy ||
      this.#apps.busy ||
      (this.#extensions?.busy ?? false)
    );
  }

  /** Resolves when lanes, mailboxes, events, work of extensions, computations and commits are finished. */
  async idle(): Promise<void> {
    do {
      await this.#loop.drained();
      await Promise.all([this.#bus.idle(), this.#commands.idle()]);
      await Promise.all([this.#extensions?.idle(), this.#apps.idle()]);
      await this.#space.settled();
    } while (this.#isBusy || !this.#space.scheduler.isIdle);
  }

  // The end ---------------------------------------------------------------------------------------------------------

  /** Graceful stop: no new requests, running work finishes within the grace, then all parts close. Idempotent. */
  close({ graceMs = DRAIN_MS }: { graceMs?: number } = {}): Promise<void> {
    this.#closing ??=
      this.#life.state === "booting" ? this.#closeWhileBooting() : this.#close(new Grace(this.#host, graceMs));
    return this.#closing;
  }

  /** For a request: a boot is aborted at once, a running kernel closes after the answer is sent. */
  #shutDown(): void {
    const close = () => void this.close().catch(() => undefined);
    if (this.#life.state === "booting") close();
    else this.#host.task(close);
  }

  /** The boot ends at its next step and closes the opened parts. */
  #closeWhileBooting(): Promise<void> {
    this.#life.giveUp(new KernelClosedError("the kernel was asked to close while it booted; open it again"));
    return this.#life.end();
  }

  /** Resolves when the kernel has closed; rejects if it did not close cleanly. */
  async closed(): Promise<void> {
    await this.#life.end();
    await this.#closing;
  }

  async #close(grace: Grace): Promise<void> {
    this.#life.stops();
    this.#loop.quiet();
    // Pending events are left to the next kernel: new handlers could not journal their messages.
    this.#bus.pause();
    try {
      await grace.outlasts(this.#loop.drained());
      await this.#unwind(grace);
    } finally {
      this.#life.ended();
    }
  }

  async #stopLoop(graceMs: number): Promise<void> {
    const hasStopped = await new Grace(this.#host, graceMs).outlasts(this.#loop.stop(), LAST_ANSWERS_MS);
    if (hasStopped) return;
    const names = this.#loop.stopping.join(", ");
    throw new Error(`told to terminate and not ended in time: ${names}; their work ends with the process`);
  }

  #unwind(grace: Grace): Promise<void> {
    this.#life.unwinds();
    return this.#opened.close(grace);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

function storeHealth({ backend, trouble, connection }: Store, historyLost: string | undefined): KernelHealth["store"] {
  const { state, sinceMs = 0, reason = "the server of the store cannot be reached", parked } = connection;
  return {
    backend,
    ...(trouble === undefined ? {} : { trouble }),
    ...(state === "connected" ? {} : { away: { sinceMs, reason, parked } }),
    ...(historyLost === undefined ? {} : { historyLost }),
  };
}
