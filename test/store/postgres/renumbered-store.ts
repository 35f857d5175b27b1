/**
 * A store whose journal ids in lane 0 are counted from 1. The cases of the conformance suite name ids; those of a store
 * with lanes have gaps.
 */
import { JOURNAL_LANES_MAX } from "../../../src/limits.ts";
import type { CommitOutcome } from "../../../src/store/commit.ts";
import type { JournalRow, Settlement } from "../../../src/store/journal.ts";
import type { JournalPosition } from "../../../src/store/journal-position.ts";
import type { CommitListener, Store } from "../../../src/store/store.ts";

/** More rows than a test appends to one lane. */
const LANE_ROWS = 1_000_000;

/** Rows of lane 0 are numbered from 1, those of other lanes beyond all of them. */
export class Numbers {
  /** The number of a store's id. */
  out(id: number): number {
    return Math.floor(id / JOURNAL_LANES_MAX) + (id % JOURNAL_LANES_MAX) * LANE_ROWS;
  }

  /** The store's id of a number. */
  in(number: number): number {
    return (number % LANE_ROWS) * JOURNAL_LANES_MAX + Math.floor(number / LANE_ROWS);
  }

  position({ history, lanes }: JournalPosition): JournalPosition {
    return { history, lanes: new Map([...lanes].map(([lane, id]) => [lane, this.out(id)])) };
  }

  row(row: JournalRow): JournalRow {
    return { ...row, id: this.out(row.id) };
  }
}

export function renumbered(store: Store, numbers: Numbers): Store {
  const settlements = (list: readonly Settlement[]) => list.map((one) => ({ ...one, id: numbers.in(one.id) }));
  const outcome = (given: CommitOutcome): CommitOutcome =>
    given.kind === "committed" ? { ...given, journalIds: given.journalIds.map((id) => numbers.out(id)) } : given;
  const calls: Partial<Store> = {
    commit(request, listener?: CommitListener) {
      const own = Array.isArray(request.settlements)
        ? { ...request, settlements: settlements(request.settlements) }
        : request;
      if (listener === undefined) return store.commit(own).then(outcome);
      const heard: CommitListener = (answer) => listener(answer instanceof Error ? answer : outcome(answer));
      return store.commit(own, heard)?.then(outcome) as Promise<CommitOutcome>;
    },
    async append(entries, leaveOut) {
      const given = await store.append(entries, leaveOut);
      return given.kind === "appended" ? { ...given, ids: given.ids.map((id) => numbers.out(id)) } : given;
    },
    async claim(request) {
      return (await store.claim(request)).map((claim) => ({ ...claim, row: numbers.row(claim.row) }));
    },
    settle: (list, urgency) => store.settle(settlements(list), urgency),
    async requeue(ids, onlyFor) {
      return (
        await store.requeue(
          ids.map((id) => numbers.in(id)),
          onlyFor,
        )
      ).map((id) => numbers.out(id));
    },
    async conclude(ids, conclusion) {
      return (
        await store.conclude(
          ids.map((id) => numbers.in(id)),
          conclusion,
        )
      ).map((id) => numbers.out(id));
    },
    async query(query) {
      const { id, cursor } = query;
      const own = {
        ...query,
        ...(id === undefined ? {} : { id: numbers.in(id) }),
        ...(cursor === undefined ? {} : { cursor: numbers.in(cursor) }),
      };
      return (await store.query(own)).map((row) => numbers.row(row));
    },
    async follow(after, limit, topic) {
      const page = await store.follow(
        { ...after, lanes: new Map([...after.lanes].map(([lane, id]) => [lane, numbers.in(id)])) },
        limit,
        topic,
      );
      return {
        ...page,
        rows: page.rows.map((row) => numbers.row(row)),
        end: numbers.position(page.end),
        gone: page.gone.map((one) => ({ ...one, through: numbers.out(one.through) })),
      };
    },
    async journalEnd() {
      return numbers.position(await store.journalEnd());
    },
  };
  return withCalls(store, calls);
}

function withCalls(store: Store, calls: Partial<Store>): Store {
  return new Proxy(store, {
    get(target, name) {
      if (Object.hasOwn(calls, name)) return calls[name as keyof Store];
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
}
