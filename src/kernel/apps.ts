/**
 * The apps of a kernel: a space for each, on the kernel's scheduler, with its event handlers and its schedules. SPEC:
 * A1, A4, A20-A22.
 *
 * ```
 *   open spaces ──> build ──> load cells ──> subscribe ──> schedules start
 * ```
 */
import { type App, isApp } from "../app/app.ts";
import type { BuiltApp, KnownCommands, Wiring } from "../app/built-app.ts";
import { BUILT_IN_COMMANDS } from "../app/built-in.ts";
import type { EventBus } from "../bus/event-bus.ts";
import { Space } from "../cells/space.ts";
import type { AddedApp } from "../extensions/extension-app.ts";
import { type Log, loggerFor, logToStderr } from "../extensions/logger.ts";
import { APP_OWNER, type ExtensionSchedule, ScheduleTable } from "../extensions/schedule-table.ts";
import type { Host } from "../host/host.ts";
import { LEASE_MS } from "../limits.ts";
import type { Capability, CapabilityActor } from "../loop/capability.ts";
import { BootError } from "../loop/routing-table.ts";
import { findHandledTypes } from "../loop/schema-types.ts";
import type { WatchedQuery, Watcher } from "../loop/shared-query.ts";
import { contentId } from "../message/content-id.ts";
import { type ErrorData, Failure, failureFrom, fromError } from "../message/error-data.ts";
import { START_OVER } from "../scheduler/run-reads.ts";
import { isRefusal } from "../store/label.ts";
import type { Store } from "../store/store.ts";

export interface AppsParts {
  readonly host: Host;
  readonly store: Store;
  /** The kernel's own space: the others share its scheduler. */
  readonly kernel: Space;
  readonly space: { readonly residentDocumentsMax?: number; readonly persist?: { readonly version: string } };
  readonly leaseMs: number | undefined;
  readonly alone: boolean | undefined;
  readonly log: Log | undefined;
  /** Called with each space that is opened. */
  readonly onSpace: (space: Space) => void;
  readonly bus: EventBus;
  topicOf(type: string): string;
  /** Starts a thread that serves the commands of its file. */
  startWorker(url: URL): CapabilityActor;
}

/** An app in its space. Built once the function of the app has been called. */
interface Member {
  readonly app: App;
  readonly space: Space;
  built: BuiltApp | undefined;
  /** Whether it belongs to an extension, which decides about its life. */
  readonly ofExtension: boolean;
}

export class Apps {
  readonly #parts: AppsParts;
  #members: readonly Member[] = [];
  readonly #schedules: ScheduleTable;
  readonly #openedAtMs: number;
  #known: KnownCommands = { names: new Map(), types: [] };
  /** Live queries so far. */
  #watches = 0;

  static async open(apps: readonly App[], parts: AppsParts): Promise<Apps> {
    const names = apps.map((app) => (isApp(app) ? app.name : undefined));
    const twice = names.find((name, index) => names.indexOf(name) !== index);
    if (names.includes(undefined)) throw new BootError(["apps: takes values of app(name, …), one or a list of them"]);
    if (twice !== undefined) throw new BootError([`two apps are called ${twice}; rename one`]);
    const opened = new Apps(parts);
    for (const app of apps) await opened.#open(app, false);
    return opened;
  }

  private constructor(parts: AppsParts) {
    const { host, store, leaseMs = LEASE_MS, alone = false, log = logToStderr() } = parts;
    this.#parts = parts;
    this.#openedAtMs = host.now();
    this.#schedules = new ScheduleTable({ host, due: store, logger: loggerFor("schedules", log), leaseMs, alone });
  }

  async #open(app: App, ofExtension: boolean): Promise<Member> {
    const { host, store, kernel, space: options, onSpace } = this.#parts;
    const { scheduler } = kernel;
    const space = await Space.open({
      store,
      host,
      name: app.name,
      scheduler,
      observe: "confirmed",
      unloaded: "refused",
      ...options,
    });
    onSpace(space);
    const member: Member = { app, space, ofExtension, built: undefined };
    this.#members = [...this.#members, member];
    return member;
  }

  /** Calls the functions of the apps. */
  build(): void {
    for (const member of this.#members) this.#build(member);
  }

  #build(member: Member): BuiltApp {
    const { app, space } = member;
    member.built = app.build({ host: this.#parts.host, space });
    return member.built;
  }

  get #own(): readonly BuiltApp[] {
    return this.#members.flatMap(({ built, ofExtension }) => (built === undefined || ofExtension ? [] : [built]));
  }

  /** A capability for each app, under its name. Its handlers may send commands to all of them, and to the others. */
  capabilities(others: Readonly<Record<string, Capability>> = {}): Record<string, Capability> {
    const own = this.#members.flatMap(({ built }) => Object.entries(built?.commands ?? {}));
    const names = new Map<unknown, string | undefined>();
    for (const [type, command] of own) names.set(command, names.has(command) ? undefined : type);
    const theirs = Object.values(others).flatMap(({ inbound }) => findHandledTypes(inbound).handles);
    const commands = theirs.filter(({ kind }) => kind === "command").map(({ type }) => type);
    this.#known = { names, types: [...own.map(([type]) => type), ...commands, ...BUILT_IN_COMMANDS] };
    return Object.fromEntries(
      this.#own.flatMap((app) => [[app.name, app.capability(this.#known)] as const, ...this.#workers(app)]),
    );
  }

  #workers(app: BuiltApp): [name: string, Capability][] {
    const all = Object.entries(app.workers(this.#parts.startWorker));
    return all.map(([name, one]) => [`${app.name}.${name}`, one]);
  }

  /** Loads the declared state: before any handler, query or effect runs. */
  async load(): Promise<void> {
    await Promise.all(this.#own.map((app) => app.load()));
  }

  subscribe(request: Wiring["request"]): void {
    const { bus, topicOf } = this.#parts;
    for (const app of this.#own) app.subscribe({ bus, topicOf, request });
  }

  /** Adds the schedules, and removes those that the apps have no more. */
  async start(request: Wiring["request"]): Promise<void> {
    for (const app of this.#own)
      for (const schedule of this.#schedulesOf(app, `${APP_OWNER}${app.name}`, request))
        await this.#schedules.add(schedule);
    const own = new Set(this.#own.map(({ name }) => `${APP_OWNER}${name}`));
    if (own.size > 0) await this.#schedules.settle((owner) => !own.has(owner));
  }

  #schedulesOf({ name, schedules }: BuiltApp, extensionId: string, request: Wiring["request"]): ExtensionSchedule[] {
    const { host } = this.#parts;
    return schedules.map(({ key, pattern, timezone, type, missed }) => ({
      ...{ extensionId, name: key, cron: pattern, timezone, does: `sends ${type}` },
      run: async ({ slotMs, attempt }) => {
        const isMissed = slotMs < this.#openedAtMs && attempt === 1;
        if (isMissed && missed !== "once") return;
        const metadata = { id: contentId(["slot", name, key, slotMs]), timestamp: host.now() };
        const answer = await request({ kind: "command", type, data: { at: slotMs }, metadata });
        if (answer.kind === "error") throw failureFrom(answer.data as ErrorData);
      },
    }));
  }

  // Of extensions ---------------------------------------------------------------------------------------------------

  /** Runs the app of an extension. The extension decides when it subscribes, and when it ends. */
  async add(app: App): Promise<AddedApp> {
    const { kernel, bus, topicOf } = this.#parts;
    const before = this.#members.find(({ app: { name } }) => name === app.name);
    if (before?.ofExtension === false) throw new BootError([`an app is called ${app.name}; rename the extension`]);
    // Its space of an earlier life, when an extension is restarted.
    if (before !== undefined) await this.#remove(before);
    const member = await this.#open(app, true);
    try {
      const built = await kernel.restore(() => this.#build(member));
      await built.load();
      return {
        built,
        capabilities: () => ({ app: built.capability(this.#known), ...built.workers(this.#parts.startWorker) }),
        subscribe: (request, during) => {
          if (!built.hasRequests) built.capability(this.#known);
          built.subscribe({ bus, topicOf, request, during });
          return built.subscriptions.map(({ event, subscriberId }) => {
            return { event, end: () => void bus.suspend(topicOf(event), subscriberId) };
          });
        },
        schedules: (request) => this.#schedulesOf(built, app.name, request),
        remove: () => this.#remove(member),
      };
    } catch (error) {
      await this.#remove(member);
      throw error;
    }
  }

  async #remove(member: Member): Promise<void> {
    this.#members = this.#members.filter((one) => one !== member);
    await member.space.close({ graceMs: 0 });
  }

  /**
   * Tells of the answers of a query and of its failures: of confirmed state, and only when they differ. A failure is a
   * value of the effect, so that it waits for the store too, and so that an answer after it is told. Undefined if no
   * app has the query.
   */
  watch({ type, data, clearance }: WatchedQuery, watcher: Watcher): (() => void) | undefined {
    for (const { built, space } of this.#members) {
      const read = built?.query(type, data);
      if (read === undefined) continue;
      const id = `live ${type} ${++this.#watches}`;
      const within = clearance === undefined ? {} : { clearance };
      const tell = (end: QueryEnd) =>
        "error" in end ? watcher.failed(failureFrom(end.error)) : watcher.answer(end.answer);
      return space.effect(() => endOf(read), tell, { id, confirmed: true, ...within });
    }
    return undefined;
  }

  get spaces(): readonly Space[] {
    return this.#members.map(({ space }) => space);
  }

  get busy(): boolean {
    return this.#schedules.busy;
  }

  async idle(): Promise<void> {
    await this.#schedules.idle();
  }

  async stopSchedules(graceMs: number): Promise<void> {
    await this.#schedules.close(graceMs);
  }

  async close(graceMs: number): Promise<void> {
    await Promise.all(this.spaces.map((space) => space.close({ graceMs })));
  }
}

/** One run of a query. */
type QueryEnd = { readonly answer: unknown } | { readonly error: ErrorData };

/** A failure as a value. */
function endOf(read: () => unknown): QueryEnd {
  try {
    return { answer: read() };
  } catch (error) {
    if (error === START_OVER) throw error;
    // A read above the clearance is an answer to the reader.
    return { error: fromError(isRefusal(error) ? new Failure(403, error.message) : error) };
  }
}
