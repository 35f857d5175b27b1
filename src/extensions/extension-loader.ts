/**
 * The life of all extensions: found, ordered, made, initialized, wired, started, watched, stopped. If a step of one
 * extension fails, it is put into ERROR with the reason, together with its dependents, and the others go on. SPEC:
 * X10-X19.
 *
 *     const loader = await ExtensionLoader.open({ sources: "./extensions", … });
 *     await loader.load();              // modules; capabilities() is known from here
 *     await loader.initialize(actors);  // contexts, subscriptions, providers: before the bus delivers events
 *     await loader.start();             // start(), services, schedules, health
 *     await loader.stop(graceMs);       // in reverse
 */

import type { EventBus } from "../bus/event-bus.ts";
import type { Space } from "../cells/space.ts";
import { guarded } from "../host/hook.ts";
import type { Host, Timer } from "../host/host.ts";
import { EXTENSION_STEP_MS, HANDLER_TIMEOUT_MS, HEALTH_INTERVAL_MS, LEASE_MS } from "../limits.ts";
import type { Capability } from "../loop/capability.ts";
import { Activity } from "./activity.ts";
import type { AgentLimits } from "./agent-slot.ts";
import { bringCapabilities, bringsCapabilities, CAPABILITIES_NEED_BOOT } from "./brought-capabilities.ts";
import { Cause } from "./cause.ts";
import { isDefinedExtension } from "./define-extension.ts";
import { discover, type ExtensionSources, type Found } from "./discovery.ts";
import { loadEntrypoint } from "./entrypoint.ts";
import type { Extension } from "./extension.ts";
import { type OpenApp, openDefined } from "./extension-app.ts";
import { type ContextParts, ExtensionContext, type Requests } from "./extension-context.ts";
import { ExtensionError, extensionReason } from "./extension-error.ts";
import { ExtensionRecord, type ExtensionStatus, recordsToRestart } from "./extension-record.ts";
import { loadOrder } from "./load-order.ts";
import { type Log, type Logger, loggerFor, logToStderr } from "./logger.ts";
import { DeclaredTopics } from "./manifest.ts";
import { MessageRouter } from "./message-router.ts";
import { type OwnedWork, Ownership, type OwnershipParts } from "./ownership.ts";
import { schedulesOf, wireProviders } from "./provider-wiring.ts";
import { asProvider, providerKinds, type ServiceProvider } from "./providers.ts";
import type { ScheduleDueTable } from "./schedule-row.ts";
import { APP_OWNER, ScheduleTable } from "./schedule-table.ts";
import { wireSystemTopics } from "./system-topics.ts";
import { withinTime } from "./time-limit.ts";

export interface ExtensionLoaderOptions {
  readonly host: Host;
  readonly bus: EventBus;
  readonly due: ScheduleDueTable;
  readonly requests: Requests;
  /** The kernel's space. */
  readonly space: Space;
  /** Runs the app of a defined extension. */
  readonly openApp: OpenApp;
  readonly sources: ExtensionSources;
  /** Where data folders are made. */
  readonly dataDir: string;
  readonly log?: Log | undefined;
  /** The extension whose agent answers if several provide one; the first one's unless given. */
  readonly agent?: string | undefined;
  readonly agentLimits?: AgentLimits | undefined;
  /** How long a slot of a schedule is held without a sign of life. */
  readonly leaseMs?: number | undefined;
  /** A task of a schedule that runs longer has failed. */
  readonly handlerTimeoutMs?: number | undefined;
  /** No other process has the store open. */
  readonly alone?: boolean | undefined;
}

/** The kernel's actors, as far as they end with the extension that brought them. */
export type Actors = ReadonlyMap<string, { stop(): Promise<void> }>;

export class ExtensionLoader {
  readonly router: MessageRouter;
  /** The topics of all manifests; complete when the loader is made. */
  readonly topics = new DeclaredTopics();
  readonly #host: Host;
  readonly #bus: EventBus;
  readonly #logger: Logger;
  readonly #schedules: ScheduleTable;
  readonly #owners: OwnershipParts;
  readonly #activity = new Activity();
  readonly #parts: ContextParts & { readonly openApp: OpenApp };
  /** All that were found. */
  #records: readonly ExtensionRecord[];
  /** Those that can be loaded, dependencies first. */
  #order: readonly ExtensionRecord[];
  /** Restarts follow each other. */
  #restarting: Promise<unknown> = Promise.resolve();
  #actors: Actors = new Map();
  #health: Timer | undefined;
  #stopping = false;

  /**
   * Finds and orders them. Of their code, only modules that are extensions in one file are read. Throws for wrong
   * sources.
   */
  static async open(options: ExtensionLoaderOptions): Promise<ExtensionLoader> {
    return new ExtensionLoader(options, await discover(options.sources, options.host));
  }

  private constructor(options: ExtensionLoaderOptions, all: readonly Found[]) {
    const { host, bus, due, requests, space, dataDir, leaseMs = LEASE_MS, alone = false } = options;
    const log = guarded(host, options.log ?? logToStderr());
    this.#host = host;
    this.#bus = bus;
    const { handlerTimeoutMs = HANDLER_TIMEOUT_MS, agentLimits = {} } = options;
    this.#logger = loggerFor("extensions", log);
    const activity = this.#activity;
    this.router = new MessageRouter({ host, logger: this.#logger, activity, agent: options.agent, agentLimits });
    this.#schedules = new ScheduleTable({ host, due, logger: this.#logger, leaseMs, alone });
    this.#owners = { host, due, leaseMs, alone, holder: host.id() };
    const extension = (id: string) => this.#records.find((one) => one.id === id && !one.closed)?.extension;
    const cause = new Cause();
    this.#parts = {
      host,
      bus,
      router: this.router,
      activity,
      cause,
      requests,
      space,
      log,
      dataDir,
      extension,
      handlerTimeoutMs,
      openApp: options.openApp,
    };
    this.#records = all.map((found) => new ExtensionRecord(found));
    this.#order = this.#ordered();
    for (const record of this.#order) this.#declare(record);
  }

  #declare(record: ExtensionRecord): void {
    try {
      if (record.usable) this.topics.add(record.manifest!);
    } catch (thrown) {
      this.#condemn(record, extensionReason(thrown));
    }
  }

  /**
   * Declares the subscriptions of a manifest before events are delivered, so that they wait for an extension that
   * fails. Those of a defined extension are declared by its app, under names of their own.
   */
  #declareConsumers(record: ExtensionRecord): void {
    if (!record.enabled || record.computed !== undefined) return;
    try {
      for (const { topic } of record.manifest?.subscribes ?? []) this.#bus.declare(topic, record.id);
    } catch (thrown) {
      this.#condemn(record, extensionReason(thrown));
    }
  }

  #ordered(): ExtensionRecord[] {
    const usable = new Map(this.#records.filter(({ manifest }) => manifest).map((one) => [one.id, one]));
    const { order, failures } = loadOrder(
      [...usable.values()].map(({ id, manifest, enabled }) => {
        return {
          id,
          dependsOn: enabled ? (manifest?.dependsOn ?? []) : [],
          unusable: enabled ? undefined : "it is disabled",
        };
      }),
    );
    for (const [id, reason] of failures) if (usable.get(id)?.enabled) usable.get(id)?.fail(reason);
    for (const { id, state, reason } of this.#records)
      if (state === "ERROR") this.#logger.error(`${id} is not loaded: ${reason}`);
    return order.map((id) => usable.get(id)!);
  }

  // Status ----------------------------------------------------------------------------------------------------------

  get statuses(): readonly ExtensionStatus[] {
    return this.#records.map((record) => record.status(this.#schedules.statuses(record.id)));
  }

  get busy(): boolean {
    return this.#activity.busy || this.#schedules.busy;
  }

  /** Resolves when no extension has open work. */
  async idle(): Promise<void> {
    while (this.busy) {
      await this.#activity.idle();
      await this.#schedules.idle();
    }
  }

  // Boot ------------------------------------------------------------------------------------------------------------

  /** Imports and makes them. */
  async load(): Promise<void> {
    for (const record of this.#order) await this.#load(record);
    for (const record of this.#records) this.#declareConsumers(record);
  }

  #load(record: ExtensionRecord): Promise<void> {
    return this.#step(record, "loading", async () => {
      record.extension = await makeExtension(record, this.#parts);
      record.providers = providerKinds(record.extension);
      record.progress = "made";
    });
  }

  /** The capabilities of extensions beside those that are there; one that does not fit is an error of its extension. */
  capabilities(parts: object, given: Readonly<Record<string, Capability>>): Readonly<Record<string, Capability>> {
    return bringCapabilities(this.#order, {
      parts,
      given,
      fail: (record, reason) => void this.#condemn(record, reason),
    });
  }

  /** Gives them their contexts and wires them. The bus delivers no event before this is done. */
  async initialize(actors: Actors = new Map()): Promise<void> {
    this.#actors = actors;
    wireSystemTopics(this.#bus, this.router);
    for (const record of this.#order) {
      if (!record.usable) await this.#silence(record);
      await this.#initialize(record);
    }
  }

  #initialize(record: ExtensionRecord): Promise<void> {
    return this.#step(record, "initialize", async () => {
      record.progress = "initialized";
      await record.extension?.initialize?.(new ExtensionContext(record, this.#parts));
      // A step that took too long is over, and is not wired.
      if (!record.usable) return;
      wireProviders(record, this.#parts);
      this.#warnOfSilence(record);
    });
  }

  #warnOfSilence({ id, manifest, subscribed }: ExtensionRecord): void {
    for (const { topic, handler } of manifest?.subscribes ?? []) {
      if (handler === "custom" && !subscribed.has(topic))
        this.#logger.warn(
          `${id} declares ${topic} and has not subscribed to it; call context.subscribeEvent in initialize`,
        );
    }
  }

  async start(): Promise<void> {
    for (const record of this.#order) await this.#start(record);
    const failed = new Set(
      this.#records.filter(({ enabled, state }) => enabled && state === "ERROR").map(({ id }) => id),
    );
    await this.#schedules.settle((id) => failed.has(id) || id.startsWith(APP_OWNER));
    this.#watchHealth();
  }

  #start(record: ExtensionRecord): Promise<void> {
    return this.#step(record, "start", async () => {
      record.progress = "started";
      await record.extension?.start?.();
      if (!record.usable) return;
      record.state = "ACTIVE";
      for (const schedule of schedulesOf(record, this.#parts)) record.wired(await this.#schedules.add(schedule));
      this.#runService(record);
    });
  }

  // Restart ---------------------------------------------------------------------------------------------------------

  /**
   * Starts a failed extension again, from its files as they are now, and after it those that failed because they depend
   * on it. Resolves with their statuses; one that fails again is in ERROR again.
   */
  restart(id: string): Promise<readonly ExtensionStatus[]> {
    const restarted = this.#restarting.then(() => this.#restart(id));
    this.#restarting = restarted.catch(() => undefined);
    return restarted;
  }

  async #restart(id: string): Promise<readonly ExtensionStatus[]> {
    if (this.#stopping) throw new ExtensionError("EXTENSION_STOPPED", "the kernel stops; start it again instead");
    const restarted: string[] = [];
    for (const failed of recordsToRestart(this.#records, id)) {
      await failed.ending;
      const record = await failed.renewed();
      this.#records = this.#records.map((one) => (one === failed ? record : one));
      this.#order = [...this.#order.filter((one) => one !== failed), record];
      this.#declare(record);
      this.#requireDependencies(record);
      await this.#load(record);
      this.#declareConsumers(record);
      if (record.usable && bringsCapabilities(record)) await this.#fail(record, CAPABILITIES_NEED_BOOT);
      await this.#initialize(record);
      await this.#start(record);
      restarted.push(record.id);
    }
    return this.statuses.filter((status) => restarted.includes(status.id));
  }

  #requireDependencies(record: ExtensionRecord): void {
    const isActive = (id: string) => this.#records.some((one) => one.id === id && one.state === "ACTIVE");
    const missing = record.manifest?.dependsOn.filter((id) => !isActive(id)) ?? [];
    if (missing.length > 0) this.#condemn(record, `depends on ${missing.join(", ")}, which does not run`);
  }

  #runService(record: ExtensionRecord): void {
    const service = asProvider("service", record.extension!);
    if (!service) return;
    const { signal } = record.ended;
    if (service.singleton === true) {
      record.service = this.#runSingleton(record, service);
      return;
    }
    record.service = Promise.resolve()
      .then(() => service.runBackground(signal))
      .then(
        () => undefined,
        (thrown: unknown) => {
          if (!signal.aborted) void this.#fail(record, `its service failed: ${extensionReason(thrown)}`);
        },
      );
  }

  /** Its service runs while this process is the owner. Resolves when the extension has ended, and the name is free. */
  #runSingleton(record: ExtensionRecord, service: ServiceProvider): Promise<void> {
    const { signal } = record.ended;
    const run: OwnedWork = async (owned, owner) => {
      this.#logger.info(`${record.id} runs here, as owner number ${owner.term}`);
      await service.runBackground(owned, owner);
    };
    const failed = (thrown: unknown) => void this.#fail(record, `its service failed: ${extensionReason(thrown)}`);
    const owner = new Ownership(this.#owners, record.id, run, failed);
    return new Promise((resolve) => {
      signal.addEventListener("abort", () => resolve(owner.close()), { once: true });
    });
  }

  /** One step of one extension; a failure puts only this extension into ERROR. */
  async #step(record: ExtensionRecord, name: string, work: () => Promise<void>): Promise<void> {
    if (!record.usable) return;
    const limit = { host: this.#host, limitMs: EXTENSION_STEP_MS, what: `${name} of ${record.id}` };
    try {
      await withinTime(limit, work);
    } catch (thrown) {
      await this.#fail(record, `${name}: ${extensionReason(thrown)}`);
    }
  }

  // Failing ---------------------------------------------------------------------------------------------------------

  async #fail(record: ExtensionRecord, reason: string): Promise<void> {
    for (const condemned of this.#condemn(record, reason)) {
      condemned.ending = this.#end(condemned);
      await condemned.ending;
    }
  }

  /**
   * Puts it and its dependents into ERROR and unwires them at once; gives them in the order in which they are to be
   * ended.
   */
  #condemn(record: ExtensionRecord, reason: string): ExtensionRecord[] {
    if (!record.usable) return [];
    record.fail(reason);
    record.unwire();
    this.#suspend(record);
    this.#logger.error(`${record.id} failed: ${reason}`);
    const dependents = this.#order.filter(({ manifest }) => manifest?.dependsOn.includes(record.id)).toReversed();
    const further = `depends on ${record.id}, which failed: ${reason}`;
    return [...dependents.flatMap((dependent) => this.#condemn(dependent, further)), record];
  }

  // The end ---------------------------------------------------------------------------------------------------------

  /**
   * Stops them, dependents first. The bus delivers no new events to them meanwhile, and their events are journaled.
   * Their subscriptions and their way to the kernel stay: an event that arrives now must not count as unheard, nor one
   * in hand as failed.
   */
  async stop(graceMs: number): Promise<void> {
    if (this.#stopping) return;
    this.#stopping = true;
    this.#health?.cancel();
    this.#bus.pause();
    await this.#schedules.close(graceMs);
    await withinTime({ host: this.#host, limitMs: graceMs, what: "work of extensions" }, () =>
      this.#activity.idle(),
    ).catch((thrown: unknown) => this.#logger.warn(extensionReason(thrown)));
    for (const record of this.#order.toReversed()) {
      if (!record.usable) continue;
      await this.#end(record);
      record.state = "INACTIVE";
    }
  }

  async #end(record: ExtensionRecord): Promise<void> {
    const { extension, progress } = record;
    record.ended.abort(new Error(`the extension ${record.id} stops`));
    const began = progress === "started" || progress === "initialized";
    if (record.service) await this.#ending(record, "its service", () => record.service);
    if (progress === "started") await this.#ending(record, "stop", () => extension?.stop?.());
    if (began) await this.#ending(record, "destroy", () => extension?.destroy?.());
    if (record.state === "ERROR") await this.#silence(record);
  }

  /** Its capabilities get no more events, and answer 503. */
  async #silence(record: ExtensionRecord): Promise<void> {
    this.#suspend(record);
    for (const name of Object.keys(record.capabilities))
      await this.#ending(record, name, () => this.#actors.get(name)?.stop());
  }

  /** Events that its capabilities subscribe to wait for it. */
  #suspend({ capabilities }: ExtensionRecord): void {
    for (const [name, { subscribes = [] }] of Object.entries(capabilities))
      for (const type of subscribes) this.#bus.suspend(this.topics.topicOf(type), name);
  }

  async #ending(record: ExtensionRecord, what: string, work: () => unknown): Promise<void> {
    try {
      await withinTime({ host: this.#host, limitMs: EXTENSION_STEP_MS, what: `${what} of ${record.id}` }, work);
    } catch (thrown) {
      this.#logger.error(`${record.id} did not end well: ${extensionReason(thrown)}`);
    }
  }

  // Health ----------------------------------------------------------------------------------------------------------

  #watchHealth(): void {
    if (this.#stopping) return;
    this.#health = this.#host.timer(
      HEALTH_INTERVAL_MS,
      () => void this.checkHealth().finally(() => this.#watchHealth()),
      { keepAlive: false },
    );
  }

  /** Calls `healthCheck` of running extensions; an extension fails if it answers anything but true, or late. */
  async checkHealth(): Promise<void> {
    await Promise.all(
      this.#order
        .filter(({ state, extension }) => state === "ACTIVE" && extension?.healthCheck !== undefined)
        .map((record) =>
          this.#step(record, "health", async () => {
            if ((await record.extension?.healthCheck?.()) === true) return;
            throw new ExtensionError("EXTENSION_UNHEALTHY", "it says that it is not well");
          }),
        ),
    );
  }
}

async function makeExtension(
  record: ExtensionRecord,
  parts: ContextParts & { readonly openApp: OpenApp },
): Promise<Extension> {
  const { found, life } = record;
  if (found.kind === "broken") throw new ExtensionError("EXTENSION_MANIFEST", found.reason);
  const { inCode, folder, manifest } = found;
  const made = inCode ?? (await loadEntrypoint(folder ?? "", manifest.entrypoint, life));
  return isDefinedExtension(made) ? openDefined(record, made, parts) : made;
}
