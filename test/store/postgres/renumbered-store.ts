/**
 * A store whose journal ids are counted from 1 in the order in which they are first answered. The cases of the
 * conformance suite name ids; those of a store with lanes have gaps. Stores on the same data share a `Numbers`.
 */
import type { CommitOutcome } from "../../../src/store/commit.ts";
import type { JournalRow, Settlement } from "../../../src/store/journal.ts";
import type { CommitListener, Store } from "../../../src/store/store.ts";

/** No writer of a test has this lane, so no row has such an id. */
const NO_LANE = 4_095;

export class Numbers {
  readonly #ofStore = new Map<number, number>();
  readonly #ids: number[] = [0];

  /** The number of a store's id. */
  out(id: number): number {
    if (id === 0) return 0;
    const known = this.#ofStore.get(id);
    if (known !== undefined) return known;
    this.#ofStore.set(id, this.#ids.length);
    this.#ids.push(id);
    return this.#ids.length - 1;
  }

  /** The store's id of a number. */
  in(number: number): number {
    return this.#ids[number] ?? number * 4_096 + NO_LANE;
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
    async lastId() {
      return numbers.out(await store.lastId());
    },
  };
  return new Proxy(store, {
    get(target, name) {
      if (Object.hasOwn(calls, name)) return calls[name as keyof Store];
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
}
