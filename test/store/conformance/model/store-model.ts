/** The whole store as a model: the answer of each call, and the visible data afterwards. */
import { equal } from "../../../../src/message/equality.ts";
import type { CommitOutcome, CommitRequest } from "../../../../src/store/commit.ts";
import type { DueChange, DueRow } from "../../../../src/store/due.ts";
import type { RejectionClass, RejectionReason } from "../../../../src/store/rejection.ts";
import { START_MS } from "../../controlled-host.ts";
import { SpaceModel } from "./document-model.ts";
import { JournalModel } from "./journal-model.ts";

interface StoredResult {
  readonly digest: string;
  readonly sequence: number;
  readonly journalIds: readonly number[];
}

export class StoreModel {
  nowMs = START_MS;
  readonly journal = new JournalModel();
  /** In the order of setting. */
  due: Omit<DueRow, "order">[] = [];
  readonly #spaces = new Map<string, SpaceModel>();
  /** By session and local sequence. */
  readonly #results = new Map<string, StoredResult>();

  space(name: string): SpaceModel {
    const space = this.#spaces.get(name) ?? new SpaceModel();
    this.#spaces.set(name, space);
    return space;
  }

  changeDue(change: DueChange): boolean {
    const there = this.due.some((row) => isAt(row, change));
    if (change.op === "add" && there) return false;
    if (change.op === "take" && !this.#canTake(change)) return false;
    this.due = this.due.filter((row) => !isAt(row, change));
    if (change.op === "take" || change.op === "cancel") return there;
    const { kind, key, dueAtMs, data } = change;
    this.due.push({ kind, key, dueAtMs, data });
    return true;
  }

  #canTake(change: DueChange & { op: "take" }): boolean {
    const { was } = change;
    return this.due.some((row) => isAt(row, change) && (was === undefined || equal(row.data, was)));
  }

  /** Earliest first; the sort is stable, so equal deadlines stay in the order of setting. */
  dueRows(nowMs: number): Omit<DueRow, "order">[] {
    return this.due.filter((row) => row.dueAtMs <= nowMs).sort((a, b) => a.dueAtMs - b.dueAtMs);
  }

  commit(request: CommitRequest): CommitOutcome {
    const space = this.space(request.space);
    const stored = this.#results.get(`${request.session} ${request.localSequence}`);
    if (stored !== undefined) {
      if (stored.digest !== request.digest) return no("refused", "protocol");
      const { sequence, journalIds } = stored;
      return { kind: "committed", sequence, journalIds, replayed: true };
    }
    for (const localSequence of request.dependsOn) {
      if (!this.#results.has(`${request.session} ${localSequence}`)) return no("stale", "fell-with");
    }
    const failed = this.#failedPrecondition(request, space);
    if (failed !== undefined) return failed;
    for (const { id, path, depth, sequence } of request.reads) {
      if (space.hasMoved(id, path, depth, sequence, request.session)) return no("stale", "read-moved");
    }
    if (request.settlements.some((settlement) => this.journal.isOutdated(settlement))) {
      return no("stale", "consumers-moved");
    }
    if (!request.settlements.every((settlement) => this.journal.isHeld(settlement))) {
      return no("permanent", "lease-lost");
    }
    const appended = this.journal.append(request.entries, this.nowMs);
    if (appended.kind === "rejected") return appended;

    space.apply(request);
    for (const settlement of request.settlements) this.journal.settle(settlement, this.nowMs);
    for (const change of request.due) this.changeDue(change);
    const { digest } = request;
    const result = { digest, sequence: space.sequence, journalIds: appended.ids };
    this.#results.set(`${request.session} ${request.localSequence}`, result);
    return { kind: "committed", sequence: space.sequence, journalIds: appended.ids, replayed: false };
  }

  #failedPrecondition(request: CommitRequest, space: SpaceModel): CommitOutcome | undefined {
    for (const condition of request.preconditions) {
      if (condition.kind === "absent") {
        if (space.sequenceOf(condition.id) > 0) return no("permanent", "document-exists");
      } else if (condition.kind === "members") {
        if (space.membersChanged(condition.prefix, condition.sequence)) return no("stale", "read-moved");
      } else if (!this.#results.has(`${condition.session} ${condition.localSequence}`)) {
        return no("permanent", "origin-not-committed");
      }
    }
    for (const change of request.due) {
      const there = this.due.some((row) => isAt(row, change));
      if (change.op === "take" && !this.#canTake(change)) return no("permanent", "due-row-gone");
      if (change.op === "add" && there) return no("permanent", "due-row-there");
    }
    return undefined;
  }
}

function isAt(row: { kind: string; key: string }, { kind, key }: DueChange): boolean {
  return row.kind === kind && row.key === key;
}

/** Messages for people are not compared. */
function no(rejectionClass: RejectionClass, reason: RejectionReason): CommitOutcome {
  return { kind: "rejected", class: rejectionClass, reason, message: "" };
}
