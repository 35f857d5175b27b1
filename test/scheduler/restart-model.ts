/**
 * Restart equivalence (I7): a random program is run in two worlds that do the same, one of which is restarted, killed
 * and changed behind its back on the way. Observers must see the same values at every rest, and what runs in the
 * restarted world runs in the other too: "the same set of future runs as a process that had stayed alive (modulo
 * durable-dirty markers accrued while down)", Scheduler v2 §11, I7. When it runs may differ, so runs are booked for
 * each node: one that was made in one world only is owed by the other, and what is owed is not excused twice.
 */
import type { Cell } from "../../src/cells/cell.ts";
import { SeededRandom } from "../../src/host/seeded-random.ts";
import { type SimulatedHost, simulatedHost } from "../../src/host/simulated-host.ts";
import { equal } from "../../src/message/equality.ts";
import type { Json } from "../../src/message/json.ts";
import { linkTo, SHARED_SCOPE } from "../../src/store/document.ts";
import type { Store } from "../../src/store/store.ts";
import { DOCUMENTS, evaluate, type Formula, NODES, type Place, ProgramMaker } from "./oracle-program.ts";
import { Life } from "./restart-setup.ts";

export interface World {
  readonly host: SimulatedHost;
  open(): Promise<Store>;
}

/** Actions, in both worlds alike. */
type Step =
  | { readonly kind: "write"; readonly id: string; readonly path: readonly string[]; readonly value: Json }
  | { readonly kind: "foreign"; readonly id: string; readonly path: readonly string[]; readonly value: Json }
  | { readonly kind: "observe"; readonly place: Place }
  | { readonly kind: "leave" }
  | { readonly kind: "replace"; readonly id: string; readonly formula: Formula };

const CHANGES = ["a", "a", "b", "list", "link", "whole"] as const;
const LOSSES = ["whole", "less", "less"] as const;

export interface Restarts {
  restarts: number;
  kills: number;
  runs: number;
  /** Nodes that were taken up again and did not run. */
  spared: number;
}

/** One of the two worlds. */
class Side {
  readonly world: World;
  life!: Life;
  /** How sources came to be here in the present life. */
  loads: "before" | "after" | "as-read" = "before";
  readonly formulas = new Map<string, Formula>();
  readonly observers: { place: Place; last: Json | undefined; cancel: () => void }[] = [];
  #runs = new Map<string, number>();
  /** Entries of the present life's trace that are counted. */
  #counted = 0;

  constructor(world: World) {
    this.world = world;
  }

  /**
   * Sources are all here in the process that stays; in one that begins, before nodes are resumed, or after, or as they
   * are read.
   */
  async begin(loads: Side["loads"]): Promise<void> {
    const { host } = this.world;
    this.loads = loads;
    this.life = await host.run(async () => Life.begin(host, await this.world.open()));
    const { space } = this.life;
    space.scheduler.setTraceEnabled("run", true);
    this.#counted = 0;
    const load = () => host.run(() => Promise.all(DOCUMENTS.map((id) => space.cell(id).pull())));
    if (loads === "before") await load();
    await host.run(() =>
      space.restore(() => {
        for (const [id, formula] of this.formulas) this.#compute(id, formula);
      }),
    );
    if (loads === "after") await load();
    for (const observer of this.observers) this.#attach(observer);
  }

  async do(step: Step): Promise<void> {
    const { space, scheduler } = { space: this.life.space, scheduler: this.life.space.scheduler };
    switch (step.kind) {
      case "write": {
        if (step.path.length > 0) await this.world.host.run(() => space.cell(step.id).pull());
        const cell = step.path.reduce<Cell<never>>((at, key) => at.key(key as never), space.cell(step.id) as never);
        (cell as Cell<Json>).set(step.value);
        return;
      }
      case "foreign":
        return this.foreign(step);
      case "observe": {
        const observer = { place: step.place, last: undefined, cancel: () => undefined };
        this.observers.push(observer);
        return this.#attach(observer);
      }
      case "leave":
        return this.observers.splice(0, 1)[0]?.cancel();
      case "replace":
        for (const { id } of scheduler.getGraphSnapshot()) {
          const node = id === step.id || id.startsWith(`${step.id}/`) ? scheduler.find(id) : undefined;
          if (node) scheduler.remove(node);
        }
        this.formulas.set(step.id, step.formula);
        this.#compute(step.id, step.formula);
    }
  }

  /** Another process writes. */
  async foreign({ id, path, value }: Step & { kind: "foreign" }): Promise<void> {
    const { host } = this.world;
    await host.run(async () => {
      const store = await this.world.open();
      const other = await Life.begin(host, store);
      await other.space.cell(id).pull();
      const cell = path.reduce<Cell<never>>((at, key) => at.key(key as never), other.space.cell(id) as never);
      (cell as Cell<Json>).set(value);
      await other.space.settled();
      other.kill();
      await store.close();
    });
  }

  async rest(): Promise<void> {
    const { host } = this.world;
    await host.advance(200);
    await host.run(() => this.life.space.settled());
    this.life.space.scheduler.checkInvariants();
  }

  /** How often each computation has run since the last time. */
  takeRuns(): Map<string, number> {
    this.countRuns();
    const runs = this.#runs;
    this.#runs = new Map();
    return runs;
  }

  /** Whether the computation is dormant and would run on demand now. */
  isBehind(id: string): boolean {
    const { scheduler } = this.life.space;
    const why = scheduler.whyNot(id);
    return why.kind === "dormant" && (why.because.length > 0 || scheduler.find(id)?.status === "never-ran");
  }

  /** Whether no source is missing any more that a run could come to. */
  get hasAll(): boolean {
    const replica = this.life.space.replica(this.life.space.name);
    return DOCUMENTS.every((id) => replica.find({ scope: SHARED_SCOPE, id })?.isKnown);
  }

  countRuns(): void {
    const trace = this.life.space.scheduler.getTrace();
    for (const { kind, node } of trace.slice(this.#counted)) {
      if ((kind === "ran" || kind === "failed") && NODES.some((id) => node === id || node.startsWith(`${id}/`))) {
        this.#runs.set(node, (this.#runs.get(node) ?? 0) + 1);
      }
    }
    this.#counted = trace.length;
  }

  #attach(observer: (typeof this.observers)[number]): void {
    observer.cancel = this.#cell(observer.place).sink((value) => {
      observer.last = value as Json | undefined;
    });
  }

  #cell({ id, path }: Place): Cell<Json> {
    return path.reduce<Cell<never>>(
      (at, key) => at.key(key as never),
      this.life.space.cell(id) as never,
    ) as unknown as Cell<Json>;
  }

  #compute(id: string, formula: Formula): Cell<Json> {
    const { space } = this.life;
    const childId = `${id}/child`;
    const compute = () =>
      evaluate(formula, (place) => this.#cell(place).get(), {
        keep: (inner) => this.#compute(childId, inner).get(),
        letGo: () => {
          for (const child of [`${childId}/child`, childId]) {
            const node = space.scheduler.find(child);
            if (node) space.scheduler.parts.lifecycle.discard(node);
          }
        },
      });
    return space.computed<Json>(id, compute, { fingerprint: JSON.stringify(formula) });
  }
}

export class RestartTrial {
  readonly met: Restarts = { restarts: 0, kills: 0, runs: 0, spared: 0 };
  readonly #seed: number;
  /** Documents are replaced whole, mostly by documents without the parts that were read. */
  readonly #withLosses: boolean;
  readonly #make: ProgramMaker;
  readonly #stays: Side;
  readonly #restarts: Side;
  /**
   * The number of runs that a node may have beyond the other world: one for each time that it was not stored when the
   * process was killed ("on miss [...] degrade that node to `fresh`", §9.2), or that it has to create nodes again.
   */
  readonly #mayRun = new Map<string, number>();
  /**
   * Nodes that ran only in the world that stays, and are not observed in the other: they ran for a state that was gone
   * before the other could see it, or for a reader that has not been created again there. "A node that is never live
   * never runs" (I2), so they run when they are observed: the set of runs is the same.
   */
  readonly #postponed = new Set<string>();
  /**
   * What ran in the restarted world alone, and what the world that stays sleeps over and will run when somebody looks.
   * A node that is taken up has all its reads ("install `reads` [...] directly into the indexes", §9.2), and what a
   * live node has read is live (§5.1), so it runs if it is behind (I1). The world that stays may spare it that: it
   * drops reads of a node which is about to read anew. Until it has run there too, it may not run here once more.
   */
  readonly #ahead = new Set<string>();
  readonly #log: string[] = [];

  constructor(seed: number, worlds: { stays: World; restarts: World }, { withLosses = false } = {}) {
    this.#seed = seed;
    this.#withLosses = withLosses;
    this.#make = new ProgramMaker(new SeededRandom(seed, 11), false);
    this.#stays = new Side(worlds.stays);
    this.#restarts = new Side(worlds.restarts);
  }

  async run(steps: number): Promise<Restarts> {
    for (const id of NODES) {
      const formula = this.#make.formula(id);
      for (const side of this.#sides) side.formulas.set(id, formula);
    }
    for (const side of this.#sides) await side.begin("before");
    for (const id of DOCUMENTS) await this.#both({ kind: "write", id, path: [], value: this.#document() });
    await this.#rest();
    for (let step = 0; step < steps; step++) {
      await this.#both(this.#step());
      if (this.#make.chance(2)) await this.#rest();
      if (this.#make.chance(5)) await this.#restart();
    }
    await this.#rest();
    for (const { life } of this.#sides) life.kill();
    return this.met;
  }

  get #sides(): readonly [Side, Side] {
    return [this.#stays, this.#restarts];
  }

  async #both(step: Step): Promise<void> {
    this.#log.push(JSON.stringify(step));
    for (const side of this.#sides) {
      await side.do(step);
      // Ready work is done first: the two share a task queue, and must not differ by its order.
      await side.world.host.advance(0);
    }
  }

  /** Both come to rest: they show equal values, and the restarted one has no run that the other has not. */
  async #rest(muchHasChanged = false): Promise<void> {
    this.#log.push("rest");
    for (const side of this.#sides) await side.rest();
    for (const [i, { place, last }] of this.#stays.observers.entries()) {
      const there = this.#restarts.observers[i]?.last;
      if (!equal(last, there)) {
        this.#fail(`${place.id}/${place.path.join("/")}: ${JSON.stringify(last)} became ${JSON.stringify(there)}`);
      }
    }
    const [stays, restarts] = [this.#stays.takeRuns(), this.#restarts.takeRuns()];
    for (const [id, runs] of restarts) {
      this.met.runs += runs;
      const more = runs - (stays.get(id) ?? 0) - (this.#postponed.delete(id) ? 1 : 0);
      // Changes that were "accrued while down" (I7) come all at once, and may run what is not needed after all of them.
      // The specification loads a space before its nodes are taken up (§9.2); where sources come as they are read, what
      // misses one runs again when it is there.
      if (more <= 0 || muchHasChanged || this.#restarts.loads === "as-read") continue;
      if (more === 1 && this.#stays.isBehind(id) && !this.#ahead.has(id)) {
        this.#ahead.add(id);
        continue;
      }
      const left = (this.#mayRun.get(id) ?? 0) - more;
      if (left < 0) this.#fail(`${id} ran ${runs} times instead of ${runs - more}`);
      this.#mayRun.set(id, left);
    }
    const { scheduler } = this.#restarts.life.space;
    for (const [id, runs] of stays) {
      if (runs > (restarts.get(id) ?? 0) && !this.#ahead.delete(id)) this.#postponed.add(id);
    }
    if (this.#restarts.loads === "as-read" && this.#restarts.hasAll) this.#restarts.loads = "after";
    // Observed values are up to date: no run is left for them.
    for (const id of this.#postponed) if (scheduler.find(id)?.live) this.#postponed.delete(id);
  }

  async #restart(): Promise<void> {
    const isKill = this.#make.chance(2);
    const side = this.#restarts;
    if (isKill) {
      this.met.kills++;
      // At any moment: some computed values are on their way to the store, some not.
      await side.world.host.advance(this.#make.pick([0, 0, 1, 24, 26, 40]));
    } else {
      this.met.restarts++;
      await this.#rest();
    }
    this.#log.push(isKill ? "kill" : "restart");
    const { scheduler } = side.life.space;
    for (const { id } of scheduler.getActionStats()) {
      const record = scheduler.find(id)?.record;
      if (record?.unwritten || record?.creates) this.#mayRun.set(id, (this.#mayRun.get(id) ?? 0) + 1);
    }
    side.countRuns();
    side.life.kill();
    for (const observer of side.observers) observer.last = undefined;
    // Changes while no process runs.
    const steps = Array.from({ length: this.#make.pick([0, 0, 1, 3]) }, () => this.#foreign());
    await side.world.host.advance(100);
    for (const step of steps) for (const either of this.#sides) await either.foreign(step);
    await side.begin(this.#make.pick(["before", "after", "as-read"]));
    await this.#rest(steps.length > 0);
    // Not from a snapshot of the graph: that enters the reads of those that sleep.
    const { scheduler: begun } = side.life.space;
    const nodes = begun.getActionStats().map(({ id }) => begun.find(id));
    this.met.spared += nodes.filter((node) => node?.status === "clean" && node.runs === 0).length;
  }

  #step(): Step {
    const kind = this.#make.pick([
      "write",
      "write",
      "write",
      "foreign",
      "observe",
      "observe",
      "leave",
      "replace",
    ] as const);
    if (kind === "observe") {
      return { kind, place: { id: this.#make.pick(NODES), path: this.#make.pick<string[]>([[], [], ["a"]]) } };
    }
    if (kind === "leave") return { kind };
    if (kind === "replace") {
      const id = this.#make.pick(NODES);
      return { kind, id, formula: this.#make.formula(id) };
    }
    return kind === "foreign" ? this.#foreign() : { ...this.#foreign(), kind };
  }

  #foreign(): Step & { kind: "foreign" } {
    const id = this.#make.pick(DOCUMENTS);
    const number = this.#make.number();
    switch (this.#make.pick(this.#withLosses ? LOSSES : CHANGES)) {
      case "a":
        return { kind: "foreign", id, path: ["a"], value: number };
      case "b":
        return { kind: "foreign", id, path: ["b"], value: { c: number } };
      case "list":
        return { kind: "foreign", id, path: ["list"], value: [number, number + 1] };
      case "link":
        return { kind: "foreign", id, path: ["link"], value: this.#link() };
      case "whole":
        return { kind: "foreign", id, path: [], value: this.#document() };
      case "less":
        return { kind: "foreign", id, path: [], value: this.#make.pick<Json>([{ a: number }, { list: [] }, number]) };
    }
  }

  #document(): Json {
    const number = () => this.#make.number();
    return { a: number(), b: { c: number() }, list: [number(), number()], link: this.#link() };
  }

  #link(): Json {
    const target = this.#make.target();
    return target === undefined
      ? this.#make.number()
      : linkTo({ scope: SHARED_SCOPE, id: target.id, path: target.path });
  }

  #fail(what: string): never {
    throw new Error(`seed ${this.#seed}: ${what}\n${this.#log.slice(-12).join("\n")}`);
  }
}

/** A world on a given store. */
export function worldOf(seed: number, openOn: (host: SimulatedHost) => () => Promise<Store>): World {
  const host = simulatedHost(seed);
  return { host, open: openOn(host) };
}
