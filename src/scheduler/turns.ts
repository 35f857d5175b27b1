/**
 * The ambient turn of each space, and the commit of units. All plain writes up to the end of the current task are one
 * commit: readers are told when the pass begins, and the replica gets the commit in a microtask.
 */
import type { Host } from "../host/host.ts";
import type { Commit } from "../store/commit.ts";
import { NOTHING_ELSE } from "../store/commit-request.ts";
import type { OpenTurn } from "../store/document-table.ts";
import { whenOver } from "../store/pending-commit.ts";
import type { Replica } from "../store/replica.ts";
import type { Waker } from "./agenda.ts";
import type { Invalidation } from "./invalidation.ts";
import type { NodeAddress, SchedulerNode } from "./node.ts";
import type { TraceLog } from "./trace.ts";
import { type WriteTeller, WriteUnit } from "./write-unit.ts";

class AmbientTurn implements OpenTurn {
  readonly replica: Replica;
  unit: WriteUnit | undefined;
  readonly #seal: () => void;

  constructor(replica: Replica, seal: () => void) {
    this.replica = replica;
    this.#seal = seal;
  }

  seal(): void {
    this.#seal();
  }
}

/** Reports ambient commits that were rolled back, because no caller awaits them. */
export interface LostWrites {
  lostWrite(space: string, message: string): void;
}

export class WriteTurns implements WriteTeller {
  readonly #host: Host;
  readonly #invalidation: Invalidation;
  readonly #lostWrites: LostWrites;
  readonly #trace: TraceLog;
  readonly #turns = new Map<Replica, AmbientTurn>();
  /** The last used turn, which is usually the next one too. */
  #latest: AmbientTurn | undefined;
  /** The unit of the last write while it is open. */
  #ready: WriteUnit | undefined;
  #waker: Waker | undefined;
  /**
   * Units of plain code with writes not yet reported to readers, latest first. Linked, because there is usually one.
   */
  #untold: WriteUnit | null = null;

  constructor(host: Host, invalidation: Invalidation, lostWrites: LostWrites, trace: TraceLog) {
    this.#host = host;
    this.#invalidation = invalidation;
    this.#lostWrites = lostWrites;
    this.#trace = trace;
  }

  set waker(waker: Waker) {
    this.#waker = waker;
  }

  /** The unit of plain writes in this space now. */
  ambient(replica: Replica): WriteUnit {
    const ready = this.#ready;
    return ready !== undefined && ready.replica === replica ? ready : this.#makeReady(replica);
  }

  /** A plain write to a place that was just written; false if it is not one. */
  writeAgain(address: NodeAddress, value: unknown): boolean {
    return this.#ready?.setAgain(address, value) ?? false;
  }

  #makeReady(replica: Replica): WriteUnit {
    const turn = this.#latest?.replica === replica ? this.#latest : this.#turn(replica);
    this.#ready = turn.unit ?? this.#open(turn);
    return this.#ready;
  }

  #open(turn: AmbientTurn): WriteUnit {
    const unit = new WriteUnit(turn.replica, this);
    turn.unit = unit;
    this.#host.microtask(() => turn.seal());
    this.#waker?.wake();
    return unit;
  }

  #turn(replica: Replica): AmbientTurn {
    let turn = this.#turns.get(replica);
    if (!turn) {
      turn = new AmbientTurn(replica, () => this.seal(replica));
      this.#turns.set(replica, turn);
      replica.turn = turn;
    }
    this.#latest = turn;
    return turn;
  }

  /** The space has closed. */
  forget(replica: Replica): void {
    this.#turns.delete(replica);
    if (this.#latest?.replica === replica) this.#latest = undefined;
  }

  get hasUntold(): boolean {
    return this.#untold !== null;
  }

  /** A unit of plain code has writes that readers do not know. */
  hasToTell(unit: WriteUnit): void {
    if (unit.isListed) return;
    unit.isListed = true;
    unit.nextUntold = this.#untold;
    this.#untold = unit;
  }

  /** Tells readers of the plain writes so far. */
  publish(): void {
    for (let unit = this.#untold; unit !== null; unit = this.#untold) {
      this.#untold = unit.nextUntold;
      unit.nextUntold = null;
      unit.isListed = false;
      unit.publish(this.#invalidation);
    }
  }

  /** Tells readers of the plain writes so far, and commits them. */
  settle(replica: Replica): void {
    this.publish();
    this.seal(replica);
  }

  /** Commits the plain writes so far. */
  seal(replica: Replica): void {
    const turn = this.#turns.get(replica);
    const unit = turn?.unit;
    if (turn === undefined || unit === undefined) return;
    turn.unit = undefined;
    this.#ready = undefined;
    const commit = this.commit(unit);
    if (commit === undefined) return;
    whenOver(commit, (outcome) => {
      if (outcome.kind === "rejected") this.#lostWrites.lostWrite(replica.space, outcome.message);
    });
  }

  /** Tells readers of a unit's writes and gives them to the replica; undefined if there are none. */
  commit(unit: WriteUnit, source?: SchedulerNode, changeGroup?: string): Commit | undefined {
    unit.publish(this.#invalidation, source, changeGroup);
    const sealed = unit.seal();
    if (sealed.shares.size === 0 && unit.labels.length === 0) return undefined;
    const commit = unit.replica.adopt(sealed.shares, {
      reads: sealed.reads,
      ...(unit.labels.length === 0 ? {} : { extras: { ...NOTHING_ELSE, labels: [...unit.labels] } }),
      except: this.#invalidation.listener(unit.replica),
      ...(source === undefined ? {} : { source }),
      ...(changeGroup === undefined ? {} : { changeGroup }),
    });
    if (this.#trace.on) this.#note(commit, source?.id ?? unit.replica.space);
    return commit;
  }

  #note({ session, localSequence }: Commit, node: string): void {
    const because = [`${session} ${localSequence}`];
    this.#trace.note({ node, kind: "committed", because, detail: "commit" });
  }
}
