/**
 * A world from a seed: processes that share a disk, each behind a bad line, handle orders that are delivered at least
 * once, to any process; processes are killed and come back. The reference model applies the orders one after the other,
 * in the order of the book.
 */
import { Space } from "../../src/cells/space.ts";
import type { SimulatedHost } from "../../src/host/simulated-host.ts";
import { type SimulatedProcess, simulatedProcess } from "../../src/host/simulated-process.ts";
import type { SendOutcome } from "../../src/scheduler/send.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { rejected } from "../../src/store/rejection.ts";
import { type Fault, FaultyLine } from "../store/faulty-store.ts";

const ACCOUNTS = 3;

interface Order {
  readonly name: string;
  readonly account: number;
  readonly amount: number;
  readonly kind: "plain" | "slow" | "bad" | "vault";
}

interface BookEntry {
  readonly name: string;
  /** The sum of all accounts as the handler saw it. */
  readonly total: number;
}

/** Rare situations of a run; some seed must reach each. */
export interface Sightings {
  handled: number;
  already: number;
  failed: number;
  retried: number;
  kills: number;
  unanswered: number;
  crossSpace: number;
  lostFollowUps: number;
}

/** One life of one process. */
class Incarnation {
  readonly process: SimulatedProcess;
  readonly space: Space;
  readonly vault: Space;
  /** Orders sent to it, in order; those that were sent before are not looked at again. */
  readonly sent: string[] = [];
  readonly handled = new Set<string>();
  killed = false;

  constructor(process: SimulatedProcess, space: Space, vault: Space) {
    this.process = process;
    this.space = space;
    this.vault = vault;
  }
}

export class StreamSimulation {
  readonly sightings: Sightings = {
    handled: 0,
    already: 0,
    failed: 0,
    retried: 0,
    kills: 0,
    unanswered: 0,
    crossSpace: 0,
    lostFollowUps: 0,
  };
  readonly #host: SimulatedHost;
  readonly #disk = new MemoryDisk();
  readonly #orders: Order[];
  readonly #resolved = new Map<string, SendOutcome["kind"]>();
  readonly #alive: Incarnation[] = [];
  readonly #all: Incarnation[] = [];
  #faults = true;

  constructor(host: SimulatedHost, orders: number) {
    this.#host = host;
    const kinds = ["plain", "plain", "slow", "bad", "vault"] as const;
    this.#orders = Array.from({ length: orders }, (_, i) => ({
      name: `order ${i}`,
      account: this.#below(ACCOUNTS),
      amount: 1 + this.#below(9),
      kind: kinds[this.#below(kinds.length)] ?? "plain",
    }));
  }

  async run(): Promise<void> {
    for (let i = 0; i < 3; i++) await this.#start();
    for (let round = 0; this.#open().length > 0; round++) {
      if (round > 5_000) throw new Error(`not delivered: ${this.#open().map(({ name }) => name)}`);
      this.#faults = round < 1_500;
      await this.#disturb();
      await this.#host.advance(this.#below(20));
      for (const { space } of this.#alive) space.scheduler.checkInvariants();
    }
    this.#faults = false;
    await this.#host.advance(120_000);
    await this.#check();
  }

  #open(): Order[] {
    return this.#orders.filter(({ name }) => !this.#resolved.has(name));
  }

  async #disturb(): Promise<void> {
    if (this.#faults && this.#below(60) === 0) this.#kill();
    if (this.#alive.length < 2 || (this.#alive.length < 3 && this.#below(10) === 0)) await this.#start();
    // Deliveries come in bunches, to any process, also repeated ones.
    for (let n = this.#below(4); n > 0; n--) {
      const open = this.#open();
      const from = this.#below(4) === 0 || open.length === 0 ? this.#orders : open.slice(0, 12);
      this.#deliver(from[this.#below(from.length)] as Order);
    }
  }

  #deliver(order: Order): void {
    const to = this.#alive[this.#below(this.#alive.length)] as Incarnation;
    if (!to.sent.includes(order.name)) to.sent.push(order.name);
    to.space.stream<Order>("orders").send(order, {
      id: order.name,
      session: "client",
      onOutcome: (outcome) => this.#ended(to, order, outcome),
    });
  }

  #ended(at: Incarnation, { name }: Order, outcome: SendOutcome): void {
    if (at.killed) return;
    if (outcome.kind === "handled") {
      this.sightings.handled++;
      at.handled.add(name);
    } else if (outcome.kind === "already") this.sightings.already++;
    else if (outcome.kind === "failed" && outcome.reason === "threw") this.sightings.failed++;
    else if (outcome.kind === "failed" && outcome.reason === "gave-up") return;
    else throw new Error(`${name}: ${JSON.stringify(outcome)}`);
    this.#resolved.set(name, outcome.kind);
    this.#host.note(`${name} ${outcome.kind}`);
  }

  // Processes
  // ------------------------------------------------------------------------------------------------------------

  async #start(): Promise<void> {
    const process = simulatedProcess(this.#host);
    const open = async (name: string, shared?: Space) => {
      const line = new FaultyLine(memoryStore({ host: process, disk: this.#disk }));
      line.plan = ({ method }) => (method === "commit" ? this.#fault(process) : {});
      const options = { store: line.store, host: process, name };
      return Space.open(shared ? { ...options, scheduler: shared.scheduler } : options);
    };
    const opening = open("shop").then(async (space) => new Incarnation(process, space, await open("vault", space)));
    const incarnation = await this.#during(opening);
    this.#wire(incarnation);
    this.#alive.push(incarnation);
    this.#all.push(incarnation);
  }

  async #during<T>(promise: Promise<T>): Promise<T> {
    await this.#host.advance(0);
    return promise;
  }

  #kill(): void {
    const [victim] = this.#alive.splice(this.#below(this.#alive.length), 1);
    if (victim === undefined) return;
    victim.killed = true;
    victim.process.kill();
    this.sightings.kills++;
  }

  #fault(process: SimulatedProcess): Fault {
    const later = () => new Promise<void>((resolve) => process.timer(this.#below(15), resolve));
    if (!this.#faults) return {};
    const what = this.#below(20);
    if (what === 0) return { instead: rejected("stale", "read-moved", "by chance") };
    if (what === 1) return { instead: rejected("failed", "store-busy", "by chance") };
    if (what === 2) {
      this.sightings.unanswered++;
      return { loseAnswer: true };
    }
    if (what === 3) return { sendTwice: true };
    return what < 8 ? { arrives: later() } : what < 12 ? { answered: later() } : {};
  }

  #wire({ space, vault, process }: Incarnation): void {
    const accounts = Array.from({ length: ACCOUNTS }, (_, i) => space.cell<number>(`account ${i}`));
    const total = space.computed("total", () => accounts.reduce((sum, account) => sum + (account.get() ?? 0), 0));
    const book = space.cell<BookEntry[]>("book");
    const audit = space.cell<string[]>("audit");
    const audits = space.stream<string>("audits");
    const safe = vault.cell<string[]>("safe");
    const placed = new Set<string | undefined>();
    space.stream<Order>("orders").handle((order, context) => {
      const { account, amount, name, kind } = order;
      // An earlier call with a rejected commit.
      if (placed.has(context.id)) this.sightings.retried++;
      const place = () => {
        const entry = { name, total: total.get() ?? 0 };
        accounts[account]?.update((sum = 0) => sum + amount);
        book.push(entry);
        audits.send(name);
        placed.add(context.id);
      };
      if (kind === "slow") return pause(process, this.#below(10)).then(() => context.within(place));
      place();
      if (kind === "bad") throw new Error("a bad order");
      if (kind === "vault") safe.push(name);
      return { name };
    });
    audits.handle((name) => audit.push(name));
  }

  // The model
  // --------------------------------------------------------------------------------------------------------------

  async #check(): Promise<void> {
    const store = memoryStore({ host: this.#host, disk: this.#disk });
    const read = async (space: string, id: string) => {
      const { documents } = await store.load(space, [{ scope: "space", id }]);
      return documents[0]?.value;
    };
    const book = ((await read("shop", "book")) ?? []) as unknown as BookEntry[];
    const good = this.#orders.filter(({ kind }) => kind !== "bad");
    same(book.map(({ name }) => name).sort(), good.map(({ name }) => name).sort(), "every good order once");
    const sums = this.#replay(book);
    for (const [i, sum] of sums.entries()) same((await read("shop", `account ${i}`)) ?? 0, sum, `account ${i}`);
    const vaulted = good.filter(({ kind }) => kind === "vault").map(({ name }) => name);
    this.sightings.crossSpace += vaulted.length;
    same([...(((await read("vault", "safe")) ?? []) as string[])].sort(), vaulted.sort(), "the vault");
    this.#checkAudit(((await read("shop", "audit")) ?? []) as string[]);
    this.#checkOrder(book);
  }

  /** Applies the book's orders one after the other; each handler must have seen the resulting state. */
  #replay(book: readonly BookEntry[]): number[] {
    const sums = Array.from({ length: ACCOUNTS }, () => 0);
    for (const { name, total } of book) {
      same(
        total,
        sums.reduce((sum, one) => sum + one, 0),
        `the total that ${name} saw`,
      );
      const { account, amount } = this.#orders.find((order) => order.name === name) as Order;
      sums[account] = (sums[account] ?? 0) + amount;
    }
    return sums;
  }

  /** A follow-up happens at most once, and exactly once where the process lived on. */
  #checkAudit(audit: readonly string[]): void {
    same(new Set(audit).size, audit.length, "follow-ups are single");
    for (const { handled, killed } of this.#all) {
      for (const name of handled) {
        if (audit.includes(name)) continue;
        if (!killed) throw new Error(`the follow-up of ${name} was lost`);
        this.sightings.lostFollowUps++;
      }
    }
  }

  /** The orders that one process has handled are in the book in the order of delivery. */
  #checkOrder(book: readonly BookEntry[]): void {
    for (const { handled, sent } of this.#all) {
      const booked = book.map(({ name }) => name).filter((name) => handled.has(name));
      same(
        booked,
        sent.filter((name) => handled.has(name) && booked.includes(name)),
        "the order of one process",
      );
    }
  }

  #below(bound: number): number {
    return Math.floor(this.#host.random() * bound);
  }
}

function pause(process: SimulatedProcess, ms: number): Promise<void> {
  return new Promise((resolve) => {
    process.timer(ms, resolve);
  });
}

function same(actual: unknown, expected: unknown, what: string): void {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what}: ${a}, and not ${b}`);
}
