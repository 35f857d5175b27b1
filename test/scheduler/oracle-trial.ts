/**
 * One trial from one seed: a random program is run by a scheduler while documents change, links are turned, observers
 * come and go, computations are replaced, another process commits, commits are refused and time gates close. At every
 * rest the scheduler must agree with the oracle on values and on who is live; where no gate and no circle is in the
 * way, at every single callback too.
 */
import type { Cell } from "../../src/cells/cell.ts";
import { SeededRandom } from "../../src/host/seeded-random.ts";
import type { SimulatedHost } from "../../src/host/simulated-host.ts";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { equal } from "../../src/message/equality.ts";
import type { Json } from "../../src/message/json.ts";
import { linkTo, SHARED_SCOPE } from "../../src/store/document.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { rejected } from "../../src/store/rejection.ts";
import type { Replica } from "../../src/store/replica.ts";
import { Gate } from "../store/faulty-store.ts";
import { Oracle } from "./oracle.ts";
import {
  asNumber,
  DOCUMENTS,
  evaluate,
  type Formula,
  MIRROR,
  MIRROR_SOURCE_BEFORE,
  NODES,
  type Place,
  ProgramMaker,
} from "./oracle-program.ts";
import { openSite, type Site } from "./scheduler-setup.ts";

export interface TrialOptions {
  readonly circles: boolean;
  readonly gates: boolean;
  /** A third of the computations are asynchronous: they read before an await, after it, or both, and take some time. */
  readonly asynchronous?: boolean;
  /** Computations read a document that an effect writes, and an asynchronous effect writes another one. */
  readonly effects?: boolean;
  /** So few that unobserved documents are dropped all the time; then values are compared only at rest. */
  readonly residentDocumentsMax?: number;
  readonly steps: number;
}

/** Situations that the trials reached, so that a test can require rare ones. */
export interface Sightings {
  compared: number;
  callbacks: number;
  circular: number;
  failed: number;
  dormant: number;
  children: number;
  rejections: number;
  foreign: number;
  /** Documents that were not here at a rest. */
  dropped: number;
  /** Reads of plain code that were compared. */
  reads: number;
  /** Documents of the asynchronous effect that were compared. */
  echoed: number;
}

interface Observer {
  readonly place: Place;
  readonly cancel: () => void;
  last: Json | undefined;
  calls: number;
}

/** Written by the asynchronous effect. */
const ECHO = "echo";

export class Trial {
  readonly sightings: Sightings = {
    compared: 0,
    callbacks: 0,
    circular: 0,
    failed: 0,
    dormant: 0,
    children: 0,
    rejections: 0,
    foreign: 0,
    dropped: 0,
    reads: 0,
    echoed: 0,
  };
  readonly #seed: number;
  readonly #options: TrialOptions;
  readonly #host: SimulatedHost;
  readonly #make: ProgramMaker;
  readonly #formulas = new Map<string, Formula>();
  readonly #observers: Observer[] = [];
  readonly #cells = new Map<string, Cell<Json>>();
  /** Transactions and holds of the line that are under way. */
  readonly #underWay: Promise<unknown>[] = [];
  readonly #gates: Gate[] = [];
  #echoed: readonly Place[] = [];
  #mirrored: Place = { id: "d0", path: ["a"] };
  #here!: Site;
  #there!: Site;
  #failure: Error | undefined;
  #rejectNext: "refused" | "stale" | "failed" | undefined;

  constructor(seed: number, options: TrialOptions) {
    this.#seed = seed;
    this.#options = options;
    this.#host = simulatedHost(seed);
    this.#make = new ProgramMaker(new SeededRandom(seed, 7), options.circles, options.effects);
  }

  async run(): Promise<Sightings> {
    await this.#open();
    for (let step = 0; step < this.#options.steps; step++) {
      await this.#step();
      this.#requireNoFailure();
      if (this.#make.chance(6)) await this.#rest();
    }
    await this.#rest();
    this.#requireNoFailure();
    this.#here.scheduler.dispose();
    return this.sightings;
  }

  async #open(): Promise<void> {
    const disk = new MemoryDisk();
    const { residentDocumentsMax } = this.#options;
    const site = () => openSite(this.#host, disk, residentDocumentsMax === undefined ? {} : { residentDocumentsMax });
    this.#here = await site();
    this.#there = await site();
    for (const id of DOCUMENTS) this.#here.space.cell(id).set(this.#document());
    await this.#host.advance(0);
    for (const id of DOCUMENTS) await this.#there.space.cell(id).pull();
    for (const id of NODES) this.#register(id);
    this.#mirrored = this.#make.place(this.#options.effects ? MIRROR_SOURCE_BEFORE : (NODES.at(-1) as string));
    const mirror = this.#here.space.cell<number>(MIRROR);
    this.#here.space.effect(() => mirror.set(asNumber(this.#cell(this.#mirrored).get())), { id: MIRROR });
    if (this.#options.effects) this.#addEcho();
    this.#here.line.plan = ({ method, request }) => {
      const reason = this.#rejectNext;
      const isOfEffect = request?.patches.some(({ id }) => id === MIRROR || id === ECHO);
      if (method !== "commit" || !reason || (isOfEffect && reason === "refused")) return {};
      this.#rejectNext = undefined;
      this.sightings.rejections++;
      return { instead: rejected(reason, "read-moved", "rejected by the trial") };
    };
  }

  /** Reads before an await and after it, and writes last. */
  #addEcho(): void {
    const { space } = this.#here;
    const echo = space.cell<number>(ECHO);
    const [early, late] = [this.#make.place(NODES.at(-1) as string), this.#make.place(NODES.at(-1) as string)];
    this.#echoed = [early, late];
    const delayMs = this.#make.pick([undefined, 0, 1, 7, 30]);
    space.effect(
      async (run) => {
        const number = asNumber(this.#cell(early).get());
        await this.#delay(delayMs);
        run.within(() => echo.set(number + asNumber(this.#cell(late).get())));
      },
      { id: ECHO },
    );
  }

  // Actions

  async #step(): Promise<void> {
    const { pick, chance } = { pick: this.#make.pick.bind(this.#make), chance: this.#make.chance.bind(this.#make) };
    const { space, scheduler } = this.#here;
    switch (
      pick([
        "write",
        "write",
        "write",
        "foreign",
        "transact",
        "observe",
        "observe",
        "leave",
        "replace",
        "fault",
        "gate",
        "read",
        "read",
      ])
    ) {
      case "write":
        this.#write(this.#here);
        break;
      case "foreign":
        this.sightings.foreign++;
        this.#write(this.#there);
        break;
      case "transact":
        this.#transact();
        break;
      case "observe":
        this.#observe();
        break;
      case "leave":
        if (this.#observers.length > 0) this.#observers.splice(0, 1)[0]?.cancel();
        break;
      case "replace":
        this.#register(pick(NODES));
        break;
      case "fault":
        if (chance(2)) this.#rejectNext = pick(["refused", "stale", "failed"] as const);
        else this.#holdFeed();
        break;
      case "read":
        this.#readOutside();
        break;
      case "gate":
        if (this.#options.gates) {
          const node = scheduler.find(pick(NODES));
          if (node) scheduler.setDebounce(node, pick([0, 0, 10, 100]));
        }
        break;
    }
    const how = pick(["flush", "advance", "none", "idle"]);
    if (how === "flush") this.#flush();
    if (how === "advance") await this.#host.advance(pick([0, 0, 5, 50]));
    if (how === "idle" && this.#gates.length === 0 && !this.#options.gates) await this.#host.run(() => space.idle());
    if (how !== "none") scheduler.checkInvariants();
  }

  /** Plain code reads a computed value, observed or not: it is up to date at once. */
  #readOutside(): void {
    const { circles, gates, asynchronous, residentDocumentsMax } = this.#options;
    const place = this.#make.place(this.#make.pick(NODES));
    let last: Json | undefined;
    try {
      last = this.#cell(place).get();
    } catch (error) {
      // The links of the place go around in a circle.
      if (!(error instanceof RangeError)) throw error;
    }
    if (circles || gates || asynchronous || residentDocumentsMax !== undefined) return;
    this.sightings.reads++;
    this.#compare({ place, last, cancel: () => undefined, calls: 0 }, "a read of plain code");
  }

  #flush(): void {
    for (const observer of this.#observers) observer.calls = 0;
    this.#here.space.flush();
    if (this.#options.circles || this.#options.effects) return;
    for (const { calls, place } of this.#observers) {
      if (calls > 1) this.#fail(`an observer of ${place.id} was called ${calls} times in one flush`);
    }
  }

  #document(): Json {
    const { number } = { number: this.#make.number.bind(this.#make) };
    const base = { a: number(), b: { c: number() }, list: [number(), number()] };
    return { ...base, link: this.#link() };
  }

  #link(): Json {
    const target = this.#make.target();
    if (target === undefined) return this.#make.number();
    return linkTo({ scope: SHARED_SCOPE, id: target.id, path: target.path });
  }

  #write(site: Site): void {
    const doc = site.space.cell<{ a: number; b: Json; link: Json; list: number[] }>(this.#make.pick(DOCUMENTS));
    const number = this.#make.number();
    const isWhole = doc.getRaw() === undefined || this.#make.chance(8);
    if (isWhole) return site.space.cell(String(doc)).set(this.#document());
    switch (this.#make.pick(["a", "a", "b", "link", "link", "push", "splice", "delete"] as const)) {
      case "a":
        return doc.key("a").set(number);
      case "b":
        return doc.key("b").set(this.#make.chance(3) ? number : { c: number });
      case "link":
        return doc.key("link").set(this.#link());
      case "push":
        return doc.key("list").push(number);
      case "splice":
        return doc.key("list").splice(0, 1, number, number + 1);
      case "delete":
        if (this.#make.chance(3)) doc.delete();
    }
  }

  #transact(): void {
    const place = { id: this.#make.pick(DOCUMENTS), path: ["a"] };
    const fails = this.#make.chance(4);
    const number = this.#make.number();
    const done = this.#here.space.transact(() => {
      const cell = this.#cell(place);
      const doc = this.#here.space.cell<{ a: number; b: Json }>(place.id);
      if (doc.getRaw() === undefined) return;
      doc.key("a").set(asNumber(cell.get()) + number);
      doc.key("b").set(number);
      if (fails) throw new Error("given up");
    });
    this.#underWay.push(done.catch(() => undefined));
  }

  #observe(): void {
    const place: Place = { id: this.#make.pick(NODES), path: this.#make.pick<string[]>([[], [], ["a"]]) };
    const observer: Observer = { place, cancel: () => cancel(), last: undefined, calls: 0 };
    const cancel = this.#cell(place).sink((value) => {
      observer.last = value;
      observer.calls++;
      this.sightings.callbacks++;
      const { circles, gates, residentDocumentsMax } = this.#options;
      if (!circles && !gates && residentDocumentsMax === undefined) this.#compare(observer, "a callback");
    });
    this.#observers.push(observer);
  }

  /** Registers a computation, in place of the one of that name. */
  #register(id: string): void {
    const { scheduler } = this.#here;
    for (const { id: known } of scheduler.getGraphSnapshot()) {
      const node = known === id || known.startsWith(`${id}/`) ? scheduler.find(known) : undefined;
      if (node) scheduler.remove(node);
    }
    const formula = this.#make.formula(id);
    this.#formulas.set(id, formula);
    this.#compute(id, formula);
  }

  #compute(id: string, formula: Formula): Cell<Json> {
    const childId = `${id}/child`;
    const { space, scheduler } = this.#here;
    const compute = () =>
      evaluate(formula, (place) => this.#cell(place).get(), {
        keep: (inner) => {
          this.sightings.children++;
          return this.#compute(childId, inner).get();
        },
        letGo: () => {
          for (const child of [`${childId}/child`, childId]) {
            const node = scheduler.find(child);
            if (node) scheduler.remove(node);
          }
        },
      });
    if (!this.#options.asynchronous || !this.#make.chance(3)) return space.computed<Json>(id, compute);
    const when = this.#make.pick(["before", "after", "both"] as const);
    const delayMs = this.#make.pick([undefined, 0, 1, 7, 30]);
    return space.computed<Json>(id, async (run) => {
      const early = when === "after" ? undefined : compute();
      await this.#delay(delayMs);
      return when === "before" ? (early as Json) : run.within(compute);
    });
  }

  /** Without a time, only the promise jobs that are queued run first. */
  async #delay(delayMs: number | undefined): Promise<void> {
    if (delayMs === undefined) return;
    await new Promise<void>((resolve) => {
      this.#host.timer(delayMs, resolve);
    });
  }

  #holdFeed(): void {
    const gate = new Gate();
    this.#gates.push(gate);
    const { plan } = this.#here.line;
    this.#here.line.plan = (call) => ({
      ...plan(call),
      ...(call.method === "changesSince" ? { arrives: gate.opened } : {}),
    });
  }

  #cell({ id, path }: Place): Cell<Json> {
    const name = [id, ...path].join("/");
    let cell = this.#cells.get(name);
    if (!cell) {
      let found = this.#here.space.cell(id) as Cell<Json>;
      for (const step of path) found = found.key(step as never) as Cell<Json>;
      cell = found;
      this.#cells.set(name, cell);
    }
    return cell;
  }

  // Checks

  /** Runs all possible work, and compares. */
  async #rest(): Promise<void> {
    for (const gate of this.#gates.splice(0)) gate.open();
    this.#rejectNext = undefined;
    await this.#host.advance(30_000);
    await Promise.all(this.#underWay.splice(0));
    for (const site of [this.#here, this.#there]) await this.#replica(site).catchUp();
    await this.#host.advance(5_000);
    this.#here.scheduler.checkInvariants();
    this.#replica(this.#here).checkInvariants();
    const letGo = this.#bringAll();
    await this.#host.advance(0);
    const oracle = this.#oracle();
    for (const observer of this.#observers) this.#compare(observer, "an observer at rest", oracle);
    this.#compareNodes(oracle);
    this.#compareSites(oracle);
    for (const one of letGo) one();
  }

  /** All compared documents are loaded, in both processes, until they are released. */
  #bringAll(): (() => void)[] {
    const refs = [...DOCUMENTS, MIRROR, ECHO].map((id) => ({ scope: SHARED_SCOPE, id }));
    return [this.#here, this.#there].flatMap((site) =>
      refs.map((ref) => {
        if (this.#replica(site).find(ref) === undefined) this.sightings.dropped++;
        return this.#replica(site).observe(ref);
      }),
    );
  }

  #compare({ place, last }: Observer, who: string, oracle = this.#oracle()): void {
    const expected = oracle.seen(place);
    if (expected.kind === "circular") {
      this.sightings.circular++;
    } else if (!equal(expected.value, last)) {
      const [is, should] = [JSON.stringify(last), JSON.stringify(expected.value)];
      this.#fail(`${who} of ${place.id}/${place.path.join("/")} saw ${is}, and the oracle says ${should}`);
    } else {
      this.sightings.compared++;
    }
  }

  #compareNodes(oracle: Oracle): void {
    const { scheduler, space } = this.#here;
    const demanded = oracle.demanded([...this.#observers.map(({ place }) => place), this.#mirrored, ...this.#echoed]);
    const nodes = NODES.flatMap((id) => scheduler.find(id) ?? []);
    const hasFailed = nodes.some((node) => node.live && node.error !== undefined);
    for (const node of nodes) {
      const expected = oracle.result(node.id);
      const isDemanded = demanded.has(node.id);
      if (node.error !== undefined) this.sightings.failed++;
      if (!node.live) this.sightings.dormant++;
      // Values behind a circle are not compared, and a failed node is still subscribed to its earlier reads.
      const isExact = !this.#options.circles && !hasFailed;
      if (isExact && node.live !== isDemanded) {
        this.#fail(`${node.id} is ${node.live ? "live" : "dormant"}, and the oracle says otherwise`);
      }
      if (!node.live || expected.kind === "circular") continue;
      const value = space.cell(node.id).getRaw();
      if (!equal(value, expected.value)) {
        const [is, should] = [JSON.stringify(value), JSON.stringify(expected.value)];
        this.#fail(`${node.id} is ${is} (${node.status}), and the oracle says ${should}`);
      }
      this.sightings.compared++;
    }
  }

  #compareSites(oracle: Oracle): void {
    const mirrored = oracle.seen(this.#mirrored);
    const [here, there] = [this.#replica(this.#here), this.#replica(this.#there)];
    const mirror = here.peek({ scope: SHARED_SCOPE, id: MIRROR });
    if (mirrored.kind === "value" && mirror !== asNumber(mirrored.value)) {
      this.#fail(`the mirror shows ${mirror}, and the oracle says ${asNumber(mirrored.value)}`);
    }
    this.#compareEcho(oracle, here.peek({ scope: SHARED_SCOPE, id: ECHO }));
    for (const id of DOCUMENTS) {
      const ref = { scope: SHARED_SCOPE, id };
      if (!equal(here.peek(ref), there.peek(ref))) this.#fail(`${id} is not the same in both processes`);
    }
  }

  #compareEcho(oracle: Oracle, echo: Json | undefined): void {
    const read = this.#echoed.map((place) => oracle.seen(place));
    if (read.length === 0 || read.some(({ kind }) => kind === "circular")) return;
    const should = read.reduce((sum, seen) => sum + (seen.kind === "value" ? asNumber(seen.value) : 0), 0);
    if (echo !== should) this.#fail(`the asynchronous effect has written ${echo}, and the oracle says ${should}`);
    this.sightings.echoed++;
  }

  #oracle(): Oracle {
    const replica = this.#replica(this.#here);
    return new Oracle(this.#formulas, (id) => replica.peek({ scope: SHARED_SCOPE, id }));
  }

  #replica({ space }: Site): Replica {
    return space.replica("s");
  }

  /** Also kept: an error that a callback throws goes to the error listeners, and would not fail the trial. */
  #fail(problem: string): never {
    this.#failure ??= new Error(`seed ${this.#seed} with ${JSON.stringify(this.#options)}: ${problem}`);
    throw this.#failure;
  }

  #requireNoFailure(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }
}
