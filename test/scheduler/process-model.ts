/**
 * Several processes on one store, all of which persist the same computations (I12). They write, observe, pause, resume,
 * are killed and start again in random order. At every rest all of them run, and each of their observers must show the
 * value that the oracle computes from the stored documents. Each process has an effect that writes the value of a
 * computation into a document of its own. With gates, computations and the effect are debounced or throttled; with few
 * resident documents, replicas evict; asynchronous computations are killed and paused while they wait.
 */
import type { Cell } from "../../src/cells/cell.ts";
import type { Host } from "../../src/host/host.ts";
import { SeededRandom } from "../../src/host/seeded-random.ts";
import { type SimulatedHost, simulatedHost } from "../../src/host/simulated-host.ts";
import { type SimulatedProcess, simulatedProcess } from "../../src/host/simulated-process.ts";
import { equal } from "../../src/message/equality.ts";
import type { Json } from "../../src/message/json.ts";
import type { RunHandle } from "../../src/scheduler/node.ts";
import { linkTo, SHARED_SCOPE } from "../../src/store/document.ts";
import type { Store } from "../../src/store/store.ts";
import { Oracle } from "./oracle.ts";
import { asNumber, DOCUMENTS, evaluate, type Formula, NODES, type Place, ProgramMaker } from "./oracle-program.ts";
import { Life } from "./restart-setup.ts";

const MIRROR = "mirror";

export interface ProcessSightings {
  compared: number;
  pauses: number;
  kills: number;
  /** Computations that were resumed and did not run in their process. */
  spared: number;
  /** Documents that effects have written, compared with the oracle. */
  mirrored: number;
}

interface Observer {
  readonly place: Place;
  last: Json | undefined;
  cancel: () => void;
}

/** One process at a time under one name; after a kill or a restart another one. */
class Member {
  host!: SimulatedProcess;
  life!: Life;
  observers: Observer[] = [];
}

export interface ProcessOptions {
  readonly processes?: number;
  readonly gates?: boolean;
  /** Some computations read before an await, after it, or both, and take some time. */
  readonly asynchronous?: boolean;
  /** Documents that each replica keeps in memory. */
  readonly residentDocumentsMax?: number;
}

export class ProcessTrial {
  readonly met: ProcessSightings = { compared: 0, pauses: 0, kills: 0, spared: 0, mirrored: 0 };
  readonly #seed: number;
  readonly #host: SimulatedHost;
  readonly #open: (host: Host) => Promise<Store>;
  readonly #make: ProgramMaker;
  readonly #formulas = new Map<string, Formula>();
  readonly #members: readonly Member[];
  /** The value that each document has at first, and again whenever it is written whole. */
  readonly #first = new Map<string, Json>();
  readonly #log: string[] = [];

  readonly #options: ProcessOptions;
  /** Options of each computation and of the effect. */
  readonly #gates = new Map<string, { debounceMs?: number; throttleMs?: number }>();
  /** The asynchronous computations: the same in every process. */
  readonly #waits = new Map<string, { readonly reads: "before" | "after" | "both"; readonly delayMs: number }>();
  #mirrored!: Place;

  constructor(
    seed: number,
    openOn: (host: SimulatedHost) => (host: Host) => Promise<Store>,
    options: ProcessOptions = {},
  ) {
    const { processes = 2 } = options;
    this.#options = options;
    this.#seed = seed;
    this.#host = simulatedHost(seed);
    this.#open = openOn(this.#host);
    this.#make = new ProgramMaker(new SeededRandom(seed, 23), false);
    this.#members = Array.from({ length: processes }, () => new Member());
  }

  async run(steps: number): Promise<ProcessSightings> {
    for (const id of NODES) this.#formulas.set(id, this.#make.formula(id));
    this.#mirrored = this.#make.place(NODES.at(-1) as string);
    if (this.#options.gates)
      for (const id of [...NODES, MIRROR])
        this.#gates.set(id, this.#make.pick([{}, { debounceMs: 30 }, { throttleMs: 40 }]));
    if (this.#options.asynchronous)
      for (const id of NODES)
        if (this.#make.chance(2))
          this.#waits.set(id, {
            reads: this.#make.pick(["before", "after", "both"] as const),
            delayMs: this.#make.pick([0, 1, 7, 30]),
          });
    for (const member of this.#members) await this.#begin(member);
    for (const id of DOCUMENTS) {
      const link = this.#link();
      this.#first.set(id, { a: 1, b: { c: 1 }, list: [1], link });
      this.#space(this.#members[0] as Member)
        .cell<Json>(id)
        .set(this.#first.get(id) as Json);
    }
    await this.#rest();
    for (let step = 0; step < steps; step++) {
      await this.#step();
      await this.#host.advance(this.#make.pick([0, 0, 1, 10, 26, 60]));
      if (this.#make.chance(20)) await this.#rest();
    }
    await this.#rest();
    for (const { life } of this.#members) life.kill();
    return this.met;
  }

  async #begin(member: Member): Promise<void> {
    member.host = simulatedProcess(this.#host);
    member.observers = [];
    await this.#host.run(async () => {
      const { residentDocumentsMax } = this.#options;
      const limits = residentDocumentsMax === undefined ? {} : { residentDocumentsMax };
      member.life = await Life.begin(member.host, await this.#open(member.host), "1", limits);
      await member.life.space.restore(() => {
        for (const [id, formula] of this.#formulas) this.#compute(member, id, formula);
        this.#mirror(member);
      });
    });
  }

  /** An effect that writes: a process that dies leaves the document to its next life. */
  #mirror(member: Member): void {
    const { space } = member.life;
    const mirror = space.cell<number>(this.#mirrorOf(member));
    const gate = this.#gates.get(MIRROR) ?? {};
    space.effect(() => mirror.set(asNumber(this.#cell(member, this.#mirrored).get())), { id: MIRROR, ...gate });
  }

  #mirrorOf(member: Member): string {
    return `${MIRROR} ${this.#members.indexOf(member)}`;
  }

  async #step(): Promise<void> {
    const member = this.#make.pick(this.#members);
    const kind = this.#make.pick(["write", "write", "observe", "leave", "leave", "pause", "resume", "kill"]);
    this.#log.push(`${kind} in process ${this.#members.indexOf(member)}`);
    switch (kind) {
      case "write":
        return this.#write(member);
      case "observe":
        return this.#observe(member);
      case "leave":
        return member.observers.shift()?.cancel();
      case "pause":
        this.met.pauses++;
        return member.host.pause();
      case "resume":
        return member.host.resume();
      case "kill":
        this.met.kills++;
        return this.#restart(member);
    }
  }

  async #restart(member: Member): Promise<void> {
    // Half of them end gracefully, with all values stored.
    if (this.#make.chance(2)) {
      member.host.resume();
      await this.#host.run(() => member.life.space.close());
    }
    member.host.kill();
    member.life.kill();
    await this.#begin(member);
  }

  /** A paused process executes no code, so it writes later. There are few values: inputs return to earlier ones. */
  #write(member: Member): void {
    const id = this.#make.pick(DOCUMENTS.slice(0, 2));
    const path = this.#make.pick([["a"], ["a"], ["a"], ["b", "c"], []]);
    const value = path.length === 0 ? (this.#first.get(id) as Json) : this.#make.pick([1, 2]);
    this.#log.push(`  ${id}/${path.join("/")} = ${JSON.stringify(value)}`);
    member.host.task(() => {
      const space = this.#space(member);
      void space.transact(() => this.#cell(member, { id, path }).set(value)).catch(() => undefined);
    });
  }

  #observe(member: Member): void {
    const place: Place = { id: this.#make.pick(NODES), path: this.#make.pick<string[]>([[], [], ["a"]]) };
    this.#log.push(`  ${place.id}/${place.path.join("/")}`);
    member.host.task(() => {
      const observer: Observer = { place, last: undefined, cancel: () => undefined };
      observer.cancel = this.#cell(member, place).sink((value) => {
        observer.last = value;
      });
      member.observers.push(observer);
    });
  }

  /** Every process runs, gets all changes and comes to rest. */
  async #rest(): Promise<void> {
    this.#log.push("rest");
    for (const { host } of this.#members) host.resume();
    await this.#host.advance(20_000);
    for (const member of this.#members) await this.#host.run(() => this.#replica(member).catchUp());
    await this.#host.advance(1_000);
    const [oracle, mirrors] = await this.#oracle();
    for (const [i, mirror] of mirrors.entries()) this.#compareMirror(`process ${i}`, mirror, oracle);
    for (const [i, member] of this.#members.entries()) {
      const { scheduler } = this.#space(member);
      scheduler.checkInvariants();
      for (const { place, last } of member.observers) this.#compare(`process ${i}`, place, last, oracle);
      for (const { id } of scheduler.getActionStats()) {
        const node = scheduler.find(id);
        if (node?.status === "clean" && node.runs === 0) this.met.spared++;
      }
    }
  }

  #compare(who: string, place: Place, last: Json | undefined, oracle: Oracle): void {
    const expected = oracle.seen(place);
    this.met.compared++;
    if (expected.kind === "circular" || equal(expected.value, last)) return;
    const [is, should] = [JSON.stringify(last), JSON.stringify(expected.value)];
    const problem = `${place.id}/${place.path.join("/")} in ${who} is ${is}, and the oracle says ${should}`;
    throw new Error(`seed ${this.#seed}: ${problem}\n${this.#log.slice(-30).join("\n")}`);
  }

  #compareMirror(who: string, mirror: Json | undefined, oracle: Oracle): void {
    const expected = oracle.seen(this.#mirrored);
    if (expected.kind === "circular") return;
    this.met.mirrored++;
    const should = asNumber(expected.value);
    if (mirror === should) return;
    const problem = `the effect in ${who} has written ${JSON.stringify(mirror)}, and the oracle says ${should}`;
    throw new Error(`seed ${this.#seed}: ${problem}\n${this.#log.slice(-30).join("\n")}`);
  }

  /** From the store itself, past every process; with the documents of the effects. */
  async #oracle(): Promise<[Oracle, (Json | undefined)[]]> {
    const store = await this.#host.run(() => this.#open(this.#host));
    const mirrors = this.#members.map((member) => this.#mirrorOf(member));
    const refs = [...DOCUMENTS, ...mirrors].map((id) => ({ scope: SHARED_SCOPE, id }));
    const { documents } = await this.#host.run(() => store.load("s", refs));
    await this.#host.run(() => store.close());
    const values = new Map(documents.map(({ id, value }) => [id, value]));
    return [new Oracle(this.#formulas, (id) => values.get(id)), mirrors.map((id) => values.get(id))];
  }

  #compute(member: Member, id: string, formula: Formula): Cell<Json> {
    const space = this.#space(member);
    const childId = `${id}/child`;
    const compute = () =>
      evaluate(formula, (place) => this.#cell(member, place).get(), {
        keep: (inner) => this.#compute(member, childId, inner).get(),
        letGo: () => {
          for (const child of [`${childId}/child`, childId]) {
            const node = space.scheduler.find(child);
            if (node) space.scheduler.parts.lifecycle.discard(node);
          }
        },
      });
    const options = { fingerprint: JSON.stringify(formula), ...this.#gates.get(id) };
    const wait = this.#waits.get(id);
    if (wait === undefined) return space.computed<Json>(id, compute, options);
    const asynchronous = async (run: RunHandle) => {
      const early = wait.reads === "after" ? undefined : compute();
      await new Promise<void>((resolve) => {
        member.host.timer(wait.delayMs, resolve);
      });
      return wait.reads === "before" ? (early as Json) : run.within(compute);
    };
    return space.computed<Json>(id, asynchronous, options);
  }

  #cell(member: Member, { id, path }: Place): Cell<Json> {
    let cell = this.#space(member).cell(id) as Cell<Json>;
    for (const step of path) cell = cell.key(step as never) as Cell<Json>;
    return cell;
  }

  #space({ life }: Member) {
    return life.space;
  }

  #replica(member: Member) {
    return this.#space(member).replica("s");
  }

  #link(): Json {
    const target = this.#make.target();
    return target === undefined ? 1 : linkTo({ scope: SHARED_SCOPE, id: target.id, path: target.path });
  }
}
