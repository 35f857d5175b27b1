/**
 * The apps of a kernel: a space for each, on the kernel's scheduler, with its event handlers and its schedules. SPEC: A1, A4, A20-A22.
 *
 * ```
 *   open spaces ──> build ──> load cells ──> subscribe ──> schedules start
 * ```
 */
import { type App, isApp } from "../app/app.ts";
import type { BuiltApp, Wiring } from "../app/built-app.ts";
import { BUILT_IN_COMMANDS } from "../app/built-in.ts";
import { Space } from "../cells/space.ts";
import { type Log, loggerFor, logToStderr } from "../extensions/logger.ts";
import { APP_OWNER, ScheduleTable } from "../extensions/schedule-table.ts";
import type { Host } from "../host/host.ts";
import { LEASE_MS } from "../limits.ts";
import type { Capability } from "../loop/capability.ts";
import { findHandles } from "../loop/handles.ts";
import type { Watcher } from "../loop/live-queries.ts";
import { BootError } from "../loop/routing-table.ts";
import { contentId } from "../message/content-id.ts";
import { type ErrorData, Failure, failureFrom } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
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
}

export class Apps {
  readonly #parts: AppsParts;
  readonly #apps: readonly App[];
  readonly #spaces: readonly Space[];
  readonly #schedules: ScheduleTable;
  readonly #openedAtMs: number;
  #built: readonly BuiltApp[] = [];
  /** Live queries so far. */
  #watches = 0;

  static async open(apps: readonly App[], parts: AppsParts): Promise<Apps> {
    const names = apps.map((app) => (isApp(app) ? app.name : undefined));
    const twice = names.find((name, index) => names.indexOf(name) !== index);
    if (names.includes(undefined)) throw new BootError(["apps: takes values of app(name, …), one or a list of them"]);
    if (twice !== undefined) throw new BootError([`two apps are called ${twice}; rename one`]);
    const { host, store, kernel, space } = parts;
    const spaces: Space[] = [];
    for (const { name } of apps)
      spaces.push(await Space.open({ store, host, name, scheduler: kernel.scheduler, observe: "confirmed", ...space }));
    return new Apps(apps, parts, spaces);
  }

  private constructor(apps: readonly App[], parts: AppsParts, spaces: readonly Space[]) {
    const { host, store, leaseMs = LEASE_MS, alone = false, log = logToStderr() } = parts;
    this.#apps = apps;
    this.#parts = parts;
    this.#spaces = spaces;
    this.#openedAtMs = host.now();
    this.#schedules = new ScheduleTable({ host, due: store, logger: loggerFor("schedules", log), leaseMs, alone });
  }

  /** Calls the functions of the apps. */
  build(): void {
    const { host } = this.#parts;
    this.#built = this.#apps.map((app, index) => app.build({ host, space: this.#spaces[index] as Space }));
  }

  /** A capability for each app, under its name. Its handlers may send commands to all of them, and to the others. */
  capabilities(others: Readonly<Record<string, Capability>> = {}): Record<string, Capability> {
    const own = this.#built.flatMap(({ commands }) => Object.entries(commands));
    const names = new Map<unknown, string | undefined>();
    for (const [type, command] of own) names.set(command, names.has(command) ? undefined : type);
    const theirs = Object.values(others).flatMap(({ inbound }) => findHandles(inbound).handles);
    const commands = theirs.filter(({ kind }) => kind === "command").map(({ type }) => type);
    const known = { names, types: [...own.map(([type]) => type), ...commands, ...BUILT_IN_COMMANDS] };
    return Object.fromEntries(this.#built.map((app) => [app.name, app.capability(known)]));
  }

  /** Loads the declared state: before any handler, query or effect runs. */
  async load(): Promise<void> {
    await Promise.all(this.#built.map((app) => app.load()));
  }

  subscribe(wiring: Wiring): void {
    for (const app of this.#built) app.subscribe(wiring);
  }

  /** Adds the schedules, and removes those that the apps have no more. */
  async start({ request }: Pick<Wiring, "request">): Promise<void> {
    const { host } = this.#parts;
    for (const { name, schedules } of this.#built)
      for (const { key, pattern, timezone, type, missed } of schedules)
        await this.#schedules.add({
          ...{ extensionId: `${APP_OWNER}${name}`, name: key, cron: pattern, timezone, does: `sends ${type}` },
          run: async ({ slotMs, attempt }) => {
            const isMissed = slotMs < this.#openedAtMs && attempt === 1;
            if (isMissed && missed !== "once") return;
            const metadata = { id: contentId(["slot", name, key, slotMs]), timestamp: host.now() };
            const answer = await request({ kind: "command", type, data: { at: slotMs }, metadata });
            if (answer.kind === "error") throw failureFrom(answer.data as ErrorData);
          },
        });
    const own = new Set(this.#built.map(({ name }) => `${APP_OWNER}${name}`));
    if (own.size > 0) await this.#schedules.settle((owner) => !own.has(owner));
  }

  /** Tells of the answers of a query: of confirmed state, and only when they differ. */
  watch(type: string, data: Json, watcher: Watcher): () => void {
    for (const [index, app] of this.#built.entries()) {
      const read = app.query(type, data);
      if (read === undefined) continue;
      const space = this.#spaces[index] as Space;
      const id = `live ${type} ${++this.#watches}`;
      const unlisten = space.scheduler.onError((error, node) => node?.id === id && watcher.failed(error));
      const stop = space.effect(read, (value) => watcher.answer(value), { id, confirmed: true });
      return () => {
        unlisten();
        stop();
      };
    }
    throw new Failure(404, `no app of this kernel has the query ${type}`);
  }

  get spaces(): readonly Space[] {
    return this.#spaces;
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
    await Promise.all(this.#spaces.map((space) => space.close({ graceMs })));
  }
}
