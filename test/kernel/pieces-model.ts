/**
 * Pieces in a simulated world, from a seed: processes on one disk start pieces, launch them from handlers, send to them
 * and stop them, over failing stores and kills. A model remembers acknowledged operations. Then the faults stop, every
 * process restores the pieces, and pieces, counts and nodes are compared with the model.
 */
import type { Cell } from "../../src/cells/cell.ts";
import { pattern } from "../../src/cells/pattern.ts";
import type { Pattern } from "../../src/cells/piece.ts";
import { type PieceEntries, PieceIndex } from "../../src/cells/piece-index.ts";
import { Space } from "../../src/cells/space.ts";
import type { SimulatedHost } from "../../src/host/simulated-host.ts";
import { type SimulatedProcess, simulatedProcess } from "../../src/host/simulated-process.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { queuedStore } from "../bus/queued-store.ts";

const PROCESSES = 2;
const COUNTERS = ["c0", "c1", "c2"];
const DESKS = ["d0", "d1"];
/** When faults stop, all work has ended after this long: longer than a transaction or a send is tried. */
const REST_MS = 60_000;
/** A counter's computation and effect, and a desk's effect. */
const NODES: Readonly<Record<string, number>> = { counter: 2, desk: 1 };

export interface Sightings {
  starts: number;
  stops: number;
  launches: number;
  sends: number;
  kills: number;
  refusals: number;
  resumed: number;
}

interface Patterns {
  readonly counter: Pattern;
  readonly desk: Pattern;
}

interface Living {
  readonly process: SimulatedProcess;
  /** Undefined while it opens. */
  space: Space | undefined;
  patterns: Patterns | undefined;
  /** How often the effect of each piece ran since it was last looked at. */
  readonly ran: Map<string, number>;
}

type Opened = Living & { readonly space: Space; readonly patterns: Patterns };

/** Knowledge about an id: whether it lives, unless an operation ended without an answer. */
interface Known {
  life: "in" | "out" | "unknown";
  /** Processes that work on it. */
  by: SimulatedProcess | undefined;
  owner?: string;
  /** Sends that were acknowledged as handled, and those with unknown outcome. */
  handled: number;
  unheard: number;
}

export class PiecesModel {
  readonly sightings: Sightings = { starts: 0, stops: 0, launches: 0, sends: 0, kills: 0, refusals: 0, resumed: 0 };
  readonly #world: SimulatedHost;
  readonly #disk = new MemoryDisk();
  readonly #known = new Map<string, Known>();
  #living: Living[] = [];
  #faultsPerMille = 20;
  #launched = 0;

  constructor(world: SimulatedHost) {
    this.#world = world;
  }

  async run(rounds: number): Promise<void> {
    for (let n = 0; n < PROCESSES; n++) this.#spawn();
    for (let round = 0; round < rounds; round++) {
      for (const living of this.#running()) for (let n = this.#below(4); n > 0; n--) this.#act(living);
      await this.#world.advance(this.#below(60));
      if (this.#world.random() < 0.06) this.#kill();
    }
    this.#faultsPerMille = 0;
    await this.#world.advance(REST_MS);
    await this.#check();
  }

  // Processes
  // ----------------------------------------------------------------------------------------------------------

  #spawn(): void {
    const living: Living = {
      process: simulatedProcess(this.#world),
      space: undefined,
      patterns: undefined,
      ran: new Map(),
    };
    this.#living.push(living);
    void this.#open(living);
  }

  async #open(living: Living): Promise<void> {
    const { process: host } = living;
    const inner = memoryStore({ host, disk: this.#disk });
    const store = queuedStore(inner, host, this.#world, { faultsPerMille: () => this.#faultsPerMille });
    const space = await Space.open({ store, host, name: "s" });
    space.scheduler.onError(() => {});
    const patterns = patternsOf(living, space);
    const { pieces } = await space.resume([patterns.counter, patterns.desk]);
    if (host.status === "killed") return;
    this.sightings.resumed += pieces.length;
    living.space = space;
    living.patterns = patterns;
  }

  #kill(): void {
    const chosen = this.#running()[this.#below(PROCESSES)];
    if (chosen === undefined) return;
    this.sightings.kills++;
    chosen.process.kill();
    this.#living = this.#living.filter((living) => living !== chosen);
    this.#spawn();
  }

  #running(): Opened[] {
    return this.#living.filter((living): living is Opened => living.space !== undefined);
  }

  // Operations
  // ---------------------------------------------------------------------------------------------------------

  #act(living: Opened): void {
    const chance = this.#world.random();
    if (chance < 0.2) this.#start(living);
    else if (chance < 0.3) this.#stop(living);
    else if (chance < 0.5) this.#launch(living);
    else this.#send(living);
  }

  #start(living: Opened): void {
    const { process, space } = living;
    const id = this.#one([...COUNTERS, ...DESKS]);
    const known = this.#take(id, process);
    if (known === undefined) return;
    this.sightings.starts++;
    // Sometimes it is other code under the same name.
    const { counter, desk } = this.#world.random() < 0.2 ? patternsOf(living, space) : living.patterns;
    this.#follow(process, known, space.run(COUNTERS.includes(id) ? counter : desk, {}, { id }), "in");
  }

  #stop({ process, space }: Opened): void {
    const id = this.#one([...this.#known.keys()]);
    // Its parts stop with it: no other process may work on them.
    const owned = [...this.#known].filter(([, { owner }]) => owner === id).map(([, known]) => known);
    if (id === undefined || owned.some(isBusy)) return;
    const known = this.#take(id, process);
    if (known === undefined) return;
    this.sightings.stops++;
    const stopping = space.stop(id);
    this.#follow(process, known, stopping, "out");
    for (const one of owned) {
      one.by = process;
      this.#follow(process, one, stopping, "out");
    }
  }

  #launch({ process, space }: Opened): void {
    const owner = this.#one(DESKS);
    const desk = this.#known.get(owner);
    if (desk === undefined || isBusy(desk) || !space.pieces.has(owner)) return;
    this.sightings.launches++;
    const id = `${owner}-${++this.#launched}`;
    const known = this.#take(id, process)!;
    known.owner = owner;
    const sent = space.stream<string>(`${owner}/hire`).send(id);
    const outcome = sent.outcome.then(({ kind }) => {
      if (kind !== "handled" && kind !== "already") throw new Error(kind);
    });
    this.#follow(process, known, outcome, "in");
  }

  #send({ process, space }: Opened): void {
    const id = this.#one([...this.#known.keys()].filter((one) => !DESKS.includes(one)));
    const known = this.#known.get(id ?? "");
    if (id === undefined || known === undefined || !space.pieces.has(id)) return;
    this.sightings.sends++;
    known.unheard++;
    void space
      .stream<number>(`${id}/add`)
      .send(1)
      .outcome.then(({ kind }) => {
        if (process.status === "killed" || kind === "failed") return;
        known.unheard--;
        if (kind === "handled" || kind === "already") known.handled++;
      });
  }

  /** One operation for an id at a time. */
  #take(id: string, by: SimulatedProcess): Known | undefined {
    let known = this.#known.get(id);
    if (known === undefined) {
      known = { life: "out", by: undefined, handled: 0, unheard: 0 };
      this.#known.set(id, known);
    }
    if (isBusy(known)) return undefined;
    known.by = by;
    return known;
  }

  #follow(process: SimulatedProcess, known: Known, work: Promise<unknown>, life: "in" | "out"): void {
    known.life = "unknown";
    const end = (now: Known["life"]) => {
      // A killed process gives no more answers.
      if (process.status === "killed") return;
      known.life = now;
      known.by = undefined;
    };
    work.then(
      () => end(life),
      () => {
        this.sightings.refusals++;
        end("unknown");
      },
    );
  }

  #one(among: readonly string[]): string {
    return among[this.#below(among.length)]!;
  }

  #below(bound: number): number {
    return Math.floor(this.#world.random() * bound);
  }

  // Checking
  // -----------------------------------------------------------------------------------------------------------

  async #check(): Promise<void> {
    this.#spawn();
    await this.#world.advance(REST_MS);
    const running = this.#running();
    if (running.length !== PROCESSES + 1) throw new Error(`${running.length} processes are open`);
    for (const { space, patterns } of running) void space.resume([patterns.counter, patterns.desk]);
    await this.#world.advance(REST_MS);

    const last = running.at(-1)!;
    const entries = await this.#now(new PieceIndex(last.space).pull());
    for (const [id, { life }] of this.#known) {
      if (life !== "unknown" && Object.hasOwn(entries, id) !== (life === "in"))
        throw new Error(`${id} should be ${life}`);
    }
    for (const [id, { owner }] of Object.entries(entries)) {
      if (owner !== undefined && !Object.hasOwn(entries, owner)) throw new Error(`${id} outlives its owner ${owner}`);
    }
    await this.#checkRunning(running, entries);
    await this.#checkCounts(last.space);
  }

  /** Every process runs the pieces of the index, each once, and has only their nodes. */
  async #checkRunning(running: readonly Opened[], entries: PieceEntries): Promise<void> {
    const wanted = Object.keys(entries).toSorted().join();
    const nodes = Object.values(entries).reduce((sum, { pattern: name }) => sum + NODES[name]!, 0);
    for (const { space, ran } of running) {
      const found = [...space.pieces.keys()].toSorted().join();
      if (found !== wanted) throw new Error(`a process runs ${found}; the index names ${wanted}`);
      const stats = space.scheduler.getStats();
      if (stats.nodes !== nodes) throw new Error(`a process has ${stats.nodes} nodes; its pieces need ${nodes}`);
      if (stats.queued > 0) throw new Error(`${stats.queued} nodes are queued at rest`);
      space.scheduler.checkInvariants();
      ran.clear();
    }
    running[0]!.space.cell<number>("tick").set(1);
    await this.#world.advance(REST_MS);
    for (const { ran } of running) {
      const found = [...ran.keys()].toSorted().join();
      if (found !== wanted) throw new Error(`effects of ${found} ran; the index names ${wanted}`);
      for (const [id, times] of ran) if (times !== 1) throw new Error(`the effect of ${id} ran ${times} times at once`);
    }
  }

  async #checkCounts(space: Space): Promise<void> {
    for (const [id, { handled, unheard }] of this.#known) {
      if (DESKS.includes(id)) continue;
      const count = (await this.#now(space.cell<number>(`${id}/count`).pull())) ?? 0;
      if (count < handled || count > handled + unheard)
        throw new Error(`${id} has counted ${count}; ${handled} sends were acknowledged, and ${unheard} not heard of`);
    }
  }

  async #now<T>(promise: Promise<T>): Promise<T> {
    await this.#world.advance(1_000);
    return promise;
  }
}

/** Work of a killed process is free; its outcome is unknown. */
function isBusy({ by }: Known): boolean {
  return by !== undefined && by.status !== "killed";
}

/** A counter, and a desk with a handler that launches counters. Their effects name their process. */
function patternsOf({ ran }: Living, space: Space): Patterns {
  const tick = space.cell<number>("tick");
  const note = (id: string) => () => {
    tick.get();
    ran.set(id, (ran.get(id) ?? 0) + 1);
  };
  const counter = pattern("counter", (_: Cell<object>, piece) => {
    const count = piece.cell<number>("count");
    const add = piece.stream<number>("add");
    add.handle((amount) => count.set((count.get() ?? 0) + amount));
    piece.effect(note(piece.id));
    return { count, doubled: piece.computed("doubled", () => (count.get() ?? 0) * 2) };
  });
  const desk = pattern("desk", (_: Cell<object>, piece) => {
    const hire = piece.stream<string>("hire");
    hire.handle(
      (id) => void piece.launch(counter, {}, { id, start: id.endsWith("0") ? "after-commit" : "with-commit" }),
    );
    piece.effect(note(piece.id));
    return { hire: hire.asLink() };
  });
  return { counter, desk };
}
