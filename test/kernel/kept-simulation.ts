/**
 * Journaled commands from a seed: up to three kernels on one disk, clients that ask, leave, and ask again elsewhere
 * under the same id, commands without a requester, ids used twice, kernels that are killed, paused, closed and given
 * wrong clocks, a store that fails, for a while at most calls, and an operator who requeues. Then the faults stop, and
 * the outcome of every command is checked from outside.
 */
import type { SimulatedHost } from "../../src/host/simulated-host.ts";
import { type SimulatedProcess, simulatedProcess } from "../../src/host/simulated-process.ts";
import { Kernel } from "../../src/kernel/kernel.ts";
import type { KernelParts } from "../../src/kernel/kernel-options.ts";
import type { Connection } from "../../src/loop/pending-request.ts";
import type { Message } from "../../src/message/envelope.ts";
import type { ErrorData } from "../../src/message/error-data.ts";
import type { Json } from "../../src/message/json.ts";
import { SHARED_SCOPE } from "../../src/store/document.ts";
import type { JournalRow } from "../../src/store/journal.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { queuedStore } from "../bus/queued-store.ts";
import { KeptWorkers, TYPES, type Type } from "./kept-workers.ts";
import { LEASE_MS } from "./mortal-kernel.ts";

const SPACE = "kernel";
/** When faults have stopped, all requests are answered after this long. */
const REST_MS = 20_000;

/** Rare situations of a run; some seed must reach each. */
export interface Sightings {
  answered: number;
  repeated: number;
  unawaited: number;
  kills: number;
  pauses: number;
  closes: number;
  cuts: number;
  /** Failed for a permitted reason. */
  interrupted: number;
  requeued: number;
  /** Done for a client that left, and not again. */
  doneBefore: number;
  /** One id for two things: one of them refused. */
  idsTaken: number;
}

interface Living {
  readonly process: SimulatedProcess;
  /** Undefined while it boots, and from when on it is closing. */
  kernel: Kernel | undefined;
}

/** A command that a client waits for. */
interface Asked {
  readonly message: Message;
  /** Where it waits, if it does. */
  at: { readonly process: SimulatedProcess; readonly kernel: Kernel; readonly connection: Connection } | undefined;
}

export class KeptSimulation {
  readonly sightings: Sightings = {
    ...{ answered: 0, repeated: 0, unawaited: 0, kills: 0, pauses: 0, closes: 0, cuts: 0 },
    ...{ interrupted: 0, requeued: 0, doneBefore: 0, idsTaken: 0 },
  };
  readonly #world: SimulatedHost;
  readonly #disk = new MemoryDisk();
  readonly #open = new Map<string, Asked>();
  /** The data that a reply was about; one for each id, ever. */
  readonly #replied = new Map<string, Json>();
  /** Ids that were also used for another request. */
  readonly #shared = new Set<string>();
  readonly #requeued = new Map<string, number>();
  readonly #types = new Map<string, Type>();
  /** Commands with a waiting client. */
  readonly #awaited = new Set<string>();
  readonly #workers: KeptWorkers;
  #living: Living[] = [];
  #faultsPerMille = 15;
  #fullUntilMs = 0;
  #next = 0;
  /** The first answer that was wrong. */
  #wrong: unknown;

  constructor(world: SimulatedHost) {
    this.#world = world;
    this.#workers = new KeptWorkers(world, (type, cause) => this.#message(type, cause));
  }

  async run(rounds: number): Promise<void> {
    for (let n = 1 + this.#below(3); n > 0; n--) this.#spawn();
    for (let round = 0; round < rounds; round++) {
      this.#disturb();
      this.#askAgain();
      await this.#world.advance(this.#below(60));
      for (const { kernel } of this.#running()) kernel.loop.pending.checkInvariants();
      if (this.#wrong !== undefined) throw this.#wrong;
    }
    this.#faultsPerMille = 0;
    this.#fullUntilMs = 0;
    for (const { process } of this.#living) process.resume();
    for (let waited = 0; waited < REST_MS; waited += 500) {
      this.#askAgain();
      await this.#world.advance(500);
    }
    if (this.#wrong !== undefined) throw this.#wrong;
    await this.#check();
  }

  // Kernels
  // ------------------------------------------------------------------------------------------------------------------

  #spawn(): void {
    const living: Living = { process: simulatedProcess(this.#world), kernel: undefined };
    this.#living.push(living);
    void this.#boot(living);
  }

  /** A boot that a faulty store refuses is tried again, as a supervisor would. */
  async #boot(living: Living): Promise<void> {
    const { process } = living;
    const faultsPerMille = () => (this.#world.monotonic() < this.#fullUntilMs ? 400 : this.#faultsPerMille);
    const capabilities = (parts: KernelParts) => this.#workers.capabilities(parts);
    while (process.status !== "killed") {
      const store = queuedStore(memoryStore({ host: process, disk: this.#disk }), process, this.#world, {
        faultsPerMille,
      });
      try {
        const observe = () => undefined;
        living.kernel = await Kernel.open({ host: process, store, capabilities, leaseMs: LEASE_MS, observe });
        return;
      } catch {
        await new Promise<void>((resolve) => process.timer(50, resolve));
      }
    }
  }

  // Disturbing
  // ---------------------------------------------------------------------------------------------------------------

  #disturb(): void {
    const what = this.#below(100);
    const chosen = this.#living[this.#below(this.#living.length)] as Living;
    const { process, kernel } = chosen;
    if (what < 40) for (let n = this.#below(3); n >= 0; n--) this.#ask();
    else if (what < 44) this.#shareId();
    else if (what < 60) this.#enqueue();
    else if (what < 70) this.#setTimer();
    else if (what < 78) this.#cut();
    else if (what < 82) this.#kill(chosen);
    else if (what < 87) {
      this.sightings.pauses++;
      process.pause();
      this.#world.timer(this.#below(2 * LEASE_MS), () => process.resume());
    } else if (what < 90) process.stepClock(this.#below(400) - 200);
    else if (what < 93 && kernel && process.status === "running") this.#close(chosen, kernel);
    else if (what < 95) this.#fullUntilMs = this.#world.monotonic() + this.#below(1_000);
    else if (what < 97) void this.#requeue();
  }

  #kill(living: Living): void {
    this.sightings.kills++;
    living.process.kill();
    this.#replace(living);
  }

  #close(living: Living, kernel: Kernel): void {
    this.sightings.closes++;
    living.kernel = undefined;
    const end = () => living.process.kill();
    kernel.close({ graceMs: this.#below(400) }).then(end, end);
    this.#replace(living);
  }

  #replace(living: Living): void {
    this.#living = this.#living.filter((other) => other !== living);
    this.#spawn();
  }

  #running(): { readonly process: SimulatedProcess; readonly kernel: Kernel }[] {
    return this.#living.flatMap(({ process, kernel }) =>
      kernel !== undefined && process.status === "running" ? [{ process, kernel }] : [],
    );
  }

  // Asking
  // -------------------------------------------------------------------------------------------------------------------

  /** A command; of a cause, always the same one of a type. */
  #message(type: Type, cause?: Message): Message {
    const id = cause === undefined ? `m${++this.#next}` : `${type} of ${cause.metadata.id}`;
    const lineage = cause === undefined ? {} : { causation: cause.metadata.id };
    this.#types.set(id, type);
    return { kind: "command", type, data: `for ${id}`, metadata: { ...lineage, id, timestamp: 1 } };
  }

  #type(): Type {
    return TYPES[this.#below(TYPES.length)] as Type;
  }

  #ask(): void {
    const message = this.#message(this.#type());
    this.#open.set(message.metadata.id, { message, at: undefined });
  }

  /** Another request under an id that is or was in use. */
  #shareId(): void {
    const once = [...this.#types].filter(([id, type]) => type !== "Bell.Ring" && !this.#shared.has(id));
    const [id, type] = once[this.#below(once.length)] ?? [];
    if (id === undefined || type === undefined) return;
    this.#shared.add(id);
    const message: Message = { kind: "command", type, data: "something else", metadata: { id, timestamp: 2 } };
    this.#open.set(`${id}, something else`, { message, at: undefined });
  }

  /** An operator has failed commands handled again. */
  async #requeue(): Promise<void> {
    const store = memoryStore({ host: this.#world, disk: this.#disk });
    const failed = await store.query({ kind: "command", status: "failed", limit: 10 });
    const requeued = new Set(await store.requeue(failed.map(({ id }) => id)));
    for (const { id, message } of failed) {
      if (!message || !requeued.has(id)) continue;
      this.#requeued.set(message.metadata.id, (this.#requeued.get(message.metadata.id) ?? 0) + 1);
      this.sightings.requeued++;
    }
  }

  /** No client waits: it is done if the journal takes it. */
  #enqueue(): void {
    const running = this.#running();
    const message = this.#message(this.#type());
    running[this.#below(running.length)]?.kernel.loop.enqueue(message);
    // A client may ask for it later.
    if (this.#below(3) === 0) this.#open.set(message.metadata.id, { message, at: undefined });
    this.sightings.unawaited++;
  }

  #setTimer(): void {
    const id = `t${++this.#next}`;
    const message = { kind: "command", type: this.#type(), data: `for the timer ${id}` };
    const data = { delayMs: this.#below(500), message };
    const request: Message = { kind: "command", type: "Timer.Set", data, metadata: { id, timestamp: 1 } };
    this.#open.set(id, { message: request, at: undefined });
  }

  /** A client's connection is lost; it asks again, here or elsewhere. */
  #cut(): void {
    const waiting = [...this.#open.values()].filter(({ at }) => at?.process.status === "running");
    const asked = waiting[this.#below(waiting.length)];
    if (!asked?.at) return;
    this.sightings.cuts++;
    asked.at.kernel.loop.disconnect(asked.at.connection);
    asked.at = undefined;
  }

  /** Asks for requests without a client: new ones, and those that their kernel did not answer. */
  #askAgain(): void {
    const running = this.#running();
    if (running.length === 0) return;
    for (const asked of this.#open.values()) {
      if (asked.at !== undefined && asked.at.process.status !== "killed") continue;
      const { process, kernel } = running[this.#below(running.length)]!;
      const connection: Connection = {
        ...{ id: `c${++this.#next}`, adapter: "simulation", hasRoom: true },
        deliver: (answer) => this.#deliver(asked, connection, answer),
        stream: () => undefined,
        whenRoom: () => Promise.resolve(),
      };
      asked.at = { process, kernel, connection };
      this.#awaited.add(asked.message.metadata.id);
      kernel.loop.receive(asked.message, connection);
    }
  }

  /** The loop bears connections that throw. */
  #deliver(asked: Asked, connection: Connection, answer: Message): void {
    try {
      this.#answered(asked, connection, answer);
    } catch (error) {
      this.#wrong ??= error;
    }
  }

  #answered(asked: Asked, connection: Connection, answer: Message): void {
    const { data, metadata } = asked.message;
    const { id } = metadata;
    if (answer.metadata.causation !== id) throw new Error(`${id} was answered with ${JSON.stringify(answer)}`);
    if (asked.at?.connection !== connection) {
      if (answer.kind === "reply") throw new Error(`${connection.id} is gone and was answered about ${id}`);
      return;
    }
    asked.at = undefined;
    if (answer.kind === "error" && !this.#isOver(id, answer.data as never as ErrorData))
      return void this.sightings.repeated++;
    for (const [key, one] of this.#open) if (one === asked) this.#open.delete(key);
    if (answer.kind === "error" || !this.#types.has(id)) return;
    if (answer.data !== data) throw new Error(`${id} got another's answer: ${JSON.stringify(answer)}`);
    if (this.#replied.has(id) && this.#replied.get(id) !== data) throw new Error(`${id} was done for two things`);
    this.#replied.set(id, data);
    this.sightings.answered++;
  }

  /**
   * Whether a repetition is useless. 503: not done, or unknown. A command that must not be done twice is not repeated,
   * or may have been done in part.
   */
  #isOver(id: string, { code, message }: ErrorData): boolean {
    const isTaken = code === 409 || code === 422;
    if (isTaken && this.#shared.has(id)) return ++this.sightings.idsTaken > 0;
    // In use: for a client that is gone and not yet known to be.
    if (code === 503 || code === 409) return false;
    if (code === 500 && /its process died 5 times/.test(message)) return true;
    if (this.#types.get(id) === "Siren.Ring") {
      if (code === 410) return ++this.sightings.doneBefore > 0;
      // A command without time for its handler has failed, with that reason, for every repetition.
      if (code === 500 && /interrupted|no time/.test(message)) return true;
    }
    throw new Error(`${id} (${this.#types.get(id)}) failed: ${code} ${message}`);
  }

  // Checking
  // -----------------------------------------------------------------------------------------------------------------

  async #check(): Promise<void> {
    for (const [id, { message, at }] of this.#open)
      throw new Error(`${this.#open.size} never answered, first ${id} ${message.type}, ${at ? "waiting" : "nowhere"}`);
    for (const { kernel } of this.#running()) {
      if (!kernel.quiescent) throw new Error(`a kernel is not at rest: ${JSON.stringify(kernel.loop.liveness)}`);
      if (kernel.loop.pending.kept !== 0) throw new Error(`${kernel.loop.pending.kept} commands are counted as kept`);
    }
    const store = memoryStore({ host: this.#world, disk: this.#disk });
    const rows = new Map<string, JournalRow>();
    for (const row of await store.query({ kind: "command", limit: 100_000 })) {
      const id = row.message?.metadata.id ?? "";
      if (rows.has(id)) throw new Error(`${id} is in the journal twice`);
      rows.set(id, row);
      await this.#checkRow(id, row);
    }
    for (const id of this.#replied.keys()) if (!rows.has(id)) throw new Error(`${id} was answered without a row`);
    for (const [id, times] of this.#workers.begun) {
      const most = 1 + (this.#requeued.get(id) ?? 0);
      if (rows.get(id)?.topic === "Siren.Ring" && times > most) throw new Error(`${id} was begun ${times} times`);
    }
    const report = await store.verify();
    if (!report.ok) throw new Error(report.problems.join("; "));
  }

  async #checkRow(id: string, { status, topic, error = "" }: JournalRow): Promise<void> {
    const isCommit = topic === "Ledger.Add" || topic === "Note.Add";
    const times = isCommit ? await this.#applied(id) : (this.#workers.ended.get(id) ?? 0);
    if (isCommit && times > 1) throw new Error(`${id} was applied ${times} times`);
    switch (status) {
      case "pending":
      case "processing":
        throw new Error(`${id} ${topic} is not settled`);
      case "done":
        if (times === 0 && topic !== "Timer.Set") throw new Error(`${id} ${topic} is done, and was not`);
        return;
      case "failed":
        this.sightings.interrupted++;
        // A waiting client was told that it was not done, or that this is unknown, and has asked again since; the
        // journal has the first answer.
        if (this.#awaited.has(id) && /no time|not known whether|not committed/.test(error)) return;
        if (/its process died 5 times/.test(error)) return;
        // Another request under its id came first.
        if (this.#shared.has(id) && /was used before/.test(error)) return;
        if (topic !== "Siren.Ring" || !/interrupted/.test(error))
          throw new Error(`${id} ${topic} has failed: ${error}`);
    }
  }

  async #applied(id: string): Promise<number> {
    const store = memoryStore({ host: this.#world, disk: this.#disk });
    const { documents } = await store.load(SPACE, [{ scope: SHARED_SCOPE, id: `applied/${id}` }]);
    return (documents[0]?.value as number | undefined) ?? 0;
  }

  #below(bound: number): number {
    return Math.floor(this.#world.random() * bound);
  }
}
