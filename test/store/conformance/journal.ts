/** The journal as a log: appending, reading, counting, retention. */

import { describe, expect, test } from "#test";
import { KINDS } from "../../../src/message/envelope.ts";
import type { JournalQuery } from "../../../src/store/journal.ts";
import { passedIn } from "../../../src/store/journal-position.ts";
import type { Store } from "../../../src/store/store.ts";
import { START_MS } from "../controlled-host.ts";
import {
  append,
  claimUnderNewLease,
  commitBy,
  committed,
  entries,
  entry,
  idsOf,
  rowOf,
  settlement,
} from "./requests.ts";
import type { OpenStore } from "./store-under-test.ts";

async function idsFor(store: Store, query: Partial<JournalQuery>): Promise<number[]> {
  return (await store.query({ limit: 100, ...query })).map((row) => row.id);
}

export function journalCases(open: OpenStore): void {
  describe("journal", () => {
    test("[J10] [J171] ids of one lane start at 1, without gaps, in the order of appending, with calls and commits at once", async () => {
      await using at = await open();
      const [first, second, third] = await Promise.all([
        at.store.append(entries(3)),
        at.store.commit(commitBy("s", 1, { entries: entries(2) })),
        at.store.append(entries(1)),
      ]);
      expect(idsOf(first)).toEqual([1, 2, 3]);
      expect(committed(second).journalIds).toEqual([4, 5]);
      expect(idsOf(third)).toEqual([6]);
      expect(await append(await at.reopen(), entry())).toEqual([7]);
    });

    test("[J10] [J171] an append of no entry succeeds, and a rejected one uses no id", async () => {
      await using at = await open();
      expect(await append(at.store)).toEqual([]);
      const known = entry({ data: 1 });
      await append(at.store, known);
      const other = { ...known, message: { ...known.message, data: 2 } };
      await at.store.append([entry(), other]);
      await at.store.commit(commitBy("s", 1, { entries: entries(2), dependsOn: [9] }));
      expect(await append(at.store, entry())).toEqual([2]);
    });

    test("[J10] ids of removed rows are not reused, also after reopening", async () => {
      await using at = await open();
      await append(at.store, entry({}, { status: "done" }), entry({}, { status: "done" }));
      expect(await at.store.retain({ keepSettled: 0, limit: 10 })).toBe(2);
      expect(await append(await at.reopen(), entry())).toEqual([3]);
    });

    test("[J11] a stored message with the same content gets its id, alone, in a list and in a commit", async () => {
      await using at = await open();
      const known = entry({ data: { a: 1, b: [2] } });
      await append(at.store, entry(), known);
      const reordered = { ...known, message: { ...known.message, data: { b: [2], a: 1 } } };
      expect(await append(at.store, entry(), reordered, entry(), known)).toEqual([3, 2, 4, 2]);
      const twice = entry();
      expect(await append(at.store, twice, twice)).toEqual([5, 5]);
      const outcome = committed(await at.store.commit(commitBy("s", 1, { entries: [entry(), known] })));
      expect(outcome.journalIds).toEqual([6, 2]);
      expect((await at.store.count()).pending).toBe(6);
    });

    test("[J11] an event that is repeated at another time is the same, and the row keeps the first time", async () => {
      await using at = await open();
      const known = entry({ data: 1 });
      await append(at.store, known);
      const { message } = known;
      const later = { ...known, message: { ...message, metadata: { ...message.metadata, timestamp: START_MS + 1 } } };
      expect(await at.store.append([later])).toMatchObject({ ids: [1], repeated: true });
      expect((await rowOf(at.store, 1)).message).toEqual(message);
    });

    test("[J11] a repeated append does not change the row's state", async () => {
      await using at = await open();
      const known = entry();
      await append(at.store, known);
      const [claim] = await claimUnderNewLease(at.store, 1);
      await append(at.store, known);
      expect((await rowOf(at.store, 1)).status).toBe("processing");
      await at.store.settle([settlement(claim!, { kind: "done" })]);
      await append(at.store, known, { ...known, as: { status: "failed", error: "no" } });
      expect((await rowOf(at.store, 1)).status).toBe("done");
    });

    test("[J123] a failed message that is appended as done is done, alone and in a commit; a pending one stays", async () => {
      await using at = await open();
      const [first, second, waiting] = [entry(), entry(), entry()];
      const [failed, done] = [{ status: "failed", error: "no" } as const, { status: "done" } as const];
      await append(at.store, { ...first, as: failed }, { ...second, as: failed }, waiting);
      expect(await at.store.append([{ ...first, as: done }])).toEqual({ kind: "appended", ids: [1], repeated: true });
      committed(await at.store.commit(commitBy("s", 1, { entries: [{ ...second, as: done }] })));
      await append(at.store, { ...waiting, as: done });
      for (const id of [1, 2]) {
        const row = await rowOf(at.store, id);
        expect(row.status).toBe("done");
        expect(row.error).toBeUndefined();
      }
      expect((await rowOf(at.store, 3)).status).toBe("pending");
      expect(await at.store.count()).toMatchObject({ pending: 1, done: 2, failed: 0 });
    });

    test("[J160] a command repeated at another time, by another sender or for another reason is the same; the row keeps the first", async () => {
      await using at = await open();
      const asked = { kind: "command", type: "Shop.Buy", data: { b: 1, a: [2] } } as const;
      const first = { message: { ...asked, metadata: { id: "c", timestamp: 1 } }, topic: "Shop.Buy", source: "shop" };
      const metadata = { id: "c", timestamp: 2, correlation: "x", causation: "y", trace: "z" };
      const again = { ...first, source: "till", message: { ...asked, data: { a: [2], b: 1 }, metadata } };
      const failed = { status: "failed", error: "no" } as const;
      await append(at.store, { ...first, as: failed });
      const done = { status: "done" } as const;
      expect(await at.store.append([{ ...again, as: failed }])).toMatchObject({ ids: [1], repeated: true });
      committed(await at.store.commit(commitBy("s", 1, { entries: [{ ...again, as: done }] })));
      expect(await rowOf(at.store, 1)).toMatchObject({ status: "done", message: first.message });
      const other = { ...again, message: { ...again.message, data: { a: [3], b: 1 } }, as: done };
      expect(await at.store.append([other])).toMatchObject({ reason: "message-exists" });
    });

    test("[J161] a stored message id with other content is permanent, and the call stores no part", async () => {
      await using at = await open();
      const known = entry({ data: 1 });
      await append(at.store, known);
      const exists = { kind: "rejected", class: "permanent", reason: "message-exists" };
      const { message } = known;
      const others = [
        { ...known, message: { ...message, data: 2 } },
        { ...known, message: { ...message, kind: "command" as const } },
        { ...known, message: { ...message, type: "Test.Else" } },
        { ...known, message: { ...message, metadata: { ...message.metadata, trace: "x" } } },
        { ...known, topic: "other.topic" },
        { ...known, source: "somebody else" },
      ];
      for (const other of others) {
        expect(await at.store.append([entry(), other])).toMatchObject(exists);
        expect(await at.store.commit(commitBy("s", 1, { entries: [entry(), other] }))).toMatchObject(exists);
      }
      const contradiction = entry({ id: "twice", data: 1 });
      const against = { ...contradiction, message: { ...contradiction.message, data: 2 } };
      expect(await at.store.append([contradiction, against])).toMatchObject(exists);
      expect((await at.store.count()).pending).toBe(1);
    });

    test("[J13] a row starts as pending, claimed, done (handled, or with another outcome) or failed", async () => {
      await using at = await open();
      const { lease } = await at.store.openLease(1_000);
      const list = [
        entry(),
        entry({}, { status: "claimed", lease }),
        entry({}, { status: "done" }),
        entry({}, { status: "failed", error: "boom" }),
        entry({}, { status: "done", ending: { outcome: "unheard", reason: "no subscriber" } }),
      ];
      await append(at.store, ...list);
      const common = { topic: "test.happened", source: "suite", createdAtMs: START_MS, deliveries: [] };
      expect(await at.store.query({ limit: 10 })).toEqual([
        { ...common, id: 1, message: list[0]!.message, status: "pending", attempts: 0 },
        { ...common, id: 2, message: list[1]!.message, status: "processing", attempts: 1, lease },
        { ...common, id: 3, message: list[2]!.message, status: "done", attempts: 0, processedAtMs: START_MS },
        {
          ...common,
          id: 4,
          message: list[3]!.message,
          status: "failed",
          attempts: 0,
          processedAtMs: START_MS,
          error: "boom",
        },
        {
          ...common,
          id: 5,
          message: list[4]!.message,
          status: "done",
          attempts: 0,
          processedAtMs: START_MS,
          outcome: "unheard",
          reason: "no subscriber",
        },
      ]);
      expect(await at.store.settle([{ id: 2, lease, attempt: 1, outcome: { kind: "done" } }])).toEqual(["settled"]);
    });

    test("[J14] every kind of message is returned unchanged, with unknown metadata", async () => {
      await using at = await open();
      const list = KINDS.map((kind) => {
        const appended = entry({ kind, data: { kind }, correlation: "c", causation: "m" });
        const metadata = { ...appended.message.metadata, trace: { id: [1, null] } };
        return { ...appended, message: { ...appended.message, metadata } };
      });
      await append(at.store, ...list);
      const store = await at.reopen();
      expect((await store.query({ limit: 10 })).map((row) => row.message)).toEqual(list.map((one) => one.message));
      expect((await claimUnderNewLease(store, 10)).map((claim) => claim.row.message)).toEqual([list[2]!.message]);
    });

    test("[J28] count is right after every change", async () => {
      await using at = await open();
      const none = { pending: 0, processing: 0, done: 0, failed: 0 };
      expect(await at.store.count()).toEqual(none);
      await append(at.store, ...entries(4));
      const [first, second, third] = await claimUnderNewLease(at.store, 3);
      expect(await at.store.count()).toEqual({ ...none, pending: 1, processing: 3 });
      await at.store.settle([
        settlement(first!, { kind: "done" }),
        settlement(second!, { kind: "failed", error: "no" }),
        settlement(third!, { kind: "retry", atMs: 1, error: "later" }),
      ]);
      expect(await at.store.count()).toEqual({ pending: 2, processing: 0, done: 1, failed: 1 });
      expect(await (await at.second()).count()).toEqual({ pending: 2, processing: 0, done: 1, failed: 1 });
    });

    test("[J29] rows are found by each field, and by all given fields together", async () => {
      await using at = await open();
      await append(at.store, entry({ id: "one", correlation: "talk" }));
      at.host.stepClock(1_000);
      await append(at.store, entry({ id: "two", causation: "one", correlation: "talk" }, { status: "done" }));
      at.host.stepClock(1_000);
      await append(
        at.store,
        { ...entry({ id: "three", kind: "command" }), topic: "other" },
        entry({ id: "four", kind: "reply", causation: "three" }, { status: "failed", error: "no" }),
      );
      const cases: [Partial<JournalQuery>, number[]][] = [
        [{}, [1, 2, 3, 4]],
        [{ id: 2 }, [2]],
        [{ id: 9 }, []],
        [{ messageId: "three" }, [3]],
        [{ messageId: "none" }, []],
        [{ status: "pending" }, [1, 3]],
        [{ status: "processing" }, []],
        [{ status: "failed" }, [4]],
        [{ topic: "other" }, [3]],
        [{ topic: "test" }, []],
        [{ kind: "event" }, [1, 2]],
        [{ kind: "reply" }, [4]],
        [{ correlation: "talk" }, [1, 2]],
        [{ causation: "one" }, [2]],
        [{ createdFromMs: START_MS + 1_000 }, [2, 3, 4]],
        [{ createdBeforeMs: START_MS + 1_000 }, [1]],
        [{ createdFromMs: START_MS + 1, createdBeforeMs: START_MS + 2_000 }, [2]],
        [{ correlation: "talk", status: "pending" }, [1]],
        [{ kind: "event", status: "failed" }, []],
        [{ id: 1, messageId: "two" }, []],
        [{ messageId: "one", topic: "other" }, []],
      ];
      for (const [query, ids] of cases) expect(await idsFor(at.store, query), JSON.stringify(query)).toEqual(ids);
    });

    test("[J29] pages follow a cursor upwards and downwards", async () => {
      await using at = await open();
      await append(at.store, ...Array.from({ length: 10 }, (_, n) => entry({ kind: n % 2 ? "event" : "command" })));
      expect(await idsFor(at.store, { limit: 4 })).toEqual([1, 2, 3, 4]);
      expect(await idsFor(at.store, { limit: 4, cursor: 4 })).toEqual([5, 6, 7, 8]);
      expect(await idsFor(at.store, { limit: 4, cursor: 8, order: "ascending" })).toEqual([9, 10]);
      expect(await idsFor(at.store, { limit: 4, cursor: 10 })).toEqual([]);
      expect(await idsFor(at.store, { limit: 4, order: "descending" })).toEqual([10, 9, 8, 7]);
      expect(await idsFor(at.store, { limit: 4, order: "descending", cursor: 3 })).toEqual([2, 1]);
      expect(await idsFor(at.store, { limit: 2, cursor: 3, kind: "event" })).toEqual([4, 6]);
      expect(await idsFor(at.store, { limit: 2, cursor: 8, kind: "event", order: "descending" })).toEqual([6, 4]);
      expect(await idsFor(at.store, { id: 3, cursor: 3 })).toEqual([]);
      expect(await idsFor(at.store, { limit: 0 })).toEqual([]);
    });

    test("[J96] the end of the journal is reported even if its row was removed; a refused append has none", async () => {
      await using at = await open();
      expect(passedIn(await at.store.journalEnd(), 0)).toBe(0);
      await append(at.store, ...entries(3).map((one) => ({ ...one, as: { status: "done" } as const })));
      expect(passedIn(await at.store.journalEnd(), 0)).toBe(3);
      expect(await at.store.retain({ keepSettled: 0, limit: 9 })).toBe(3);
      expect(passedIn(await at.store.journalEnd(), 0)).toBe(3);
      const [known, other] = entries(2);
      await append(at.store, known!);
      const conflict = { ...other!, message: { ...other!.message, metadata: known!.message.metadata } };
      expect(await at.store.append([other!, { ...conflict, topic: "other" }])).toMatchObject({ kind: "rejected" });
      expect(await at.store.append([known!])).toMatchObject({ ids: [4] });
      expect(passedIn(await at.store.journalEnd(), 0)).toBe(4);
    });

    test("[J121] retention keeps a dead letter, by age and by number, until it is handled after a requeue, or discarded", async () => {
      await using at = await open();
      const failed = { status: "failed", error: "boom" } as const;
      await append(at.store, entry({}, failed), entry({}, { status: "done" }), entry({}, failed));
      at.host.stepClock(1_000);
      const all = { settledBeforeMs: START_MS + 1_000_000, keepSettled: 0, limit: 10 };
      expect(await at.store.retain(all)).toBe(1);
      expect(await idsFor(at.store, { status: "failed" })).toEqual([1, 3]);
      const ending = { outcome: "discarded", reason: "sent by hand" } as const;
      expect(await at.store.conclude([3, 1, 9], { from: "failed", ending })).toEqual([3, 1]);
      expect(await at.store.conclude([3], { from: "failed", ending })).toEqual([]);
      const store = await at.reopen();
      expect(await rowOf(store, 3)).toMatchObject({ status: "done", error: "boom", ...ending });
      expect(await store.requeue([3])).toEqual([]);
      expect(await store.retain(all)).toBe(2);
    });

    test("[J127] a query by name finds rows of a topic and rows of a message type", async () => {
      await using at = await open();
      const notify = (topic: string) => {
        const one = entry();
        return { ...one, message: { ...one.message, type: "User.Notify" }, topic };
      };
      await append(at.store, notify("user.notify"), notify("User.Notify"), entry());
      expect(await idsFor(at.store, { named: "user.notify" })).toEqual([1]);
      expect(await idsFor(at.store, { named: "User.Notify" })).toEqual([1, 2]);
      expect(await idsFor(at.store, { named: "User.Notify", status: "pending", cursor: 1 })).toEqual([2]);
      expect(await idsFor(at.store, { named: "user" })).toEqual([]);
    });

    test("[J122] a concluded pending row is never claimed, and a held one is unchanged", async () => {
      await using at = await open();
      await append(at.store, ...entries(3));
      const [held] = await claimUnderNewLease(at.store, 1);
      const ending = { outcome: "cancelled", reason: "its timer was cancelled" } as const;
      expect(await at.store.conclude([1, 2, 3], { from: "pending", ending })).toEqual([2, 3]);
      expect(await claimUnderNewLease(at.store, 10)).toEqual([]);
      expect(await rowOf(at.store, 2)).toMatchObject({ status: "done", ...ending });
      expect(await at.store.settle([settlement(held!, { kind: "done" })])).toEqual(["settled"]);
      expect((await rowOf(at.store, 1)).outcome).toBeUndefined();
    });

    test("[J123] a refused command that comes again may succeed, fail or be refused; a refusal does not close a dead letter", async () => {
      await using at = await open();
      const refused = (reason: string) => ({ status: "done", ending: { outcome: "refused", reason } }) as const;
      const one = entry({}, refused("sold out"));
      const state = async () => {
        const { status, error, outcome, reason } = await rowOf(at.store, 1);
        return [status, error, outcome, reason];
      };
      await append(at.store, one);
      await append(at.store, { ...one, as: refused("closed") });
      expect(await state()).toEqual(["done", undefined, "refused", "closed"]);
      await append(at.store, { ...one, as: { status: "failed", error: "boom" } });
      expect(await state()).toEqual(["failed", "boom", undefined, undefined]);
      await append(at.store, { ...one, as: refused("again") });
      expect(await state()).toEqual(["failed", "boom", undefined, undefined]);
      await append(at.store, { ...one, as: { status: "done" } });
      expect(await state()).toEqual(["done", undefined, undefined, undefined]);
    });

    test("[J30] retention by age removes rows that were done before the time, and no unsettled row", async () => {
      await using at = await open();
      await append(at.store, entry(), entry(), ...settledEntries(2));
      await claimUnderNewLease(at.store, 1);
      at.host.stepClock(1_000);
      await append(at.store, ...settledEntries(2));
      expect(await at.store.retain({ settledBeforeMs: START_MS, limit: 10 })).toBe(0);
      expect(await at.store.retain({ settledBeforeMs: START_MS + 1_000, limit: 10 })).toBe(2);
      expect(await idsFor(at.store, {})).toEqual([1, 2, 5, 6]);
      expect(await at.store.retain({ settledBeforeMs: START_MS + 1_000_000, limit: 10 })).toBe(2);
      expect(await at.store.count()).toEqual({ pending: 1, processing: 1, done: 0, failed: 0 });
      expect(await at.store.verify()).toMatchObject({ ok: true, rows: 2 });
    });

    test("[J30] a dead letter stays at any age, and does not count for the number to keep", async () => {
      await using at = await open();
      const dead = { status: "failed", error: "no" } as const;
      await append(at.store, entry({}, dead), ...settledEntries(2), entry({}, dead), ...settledEntries(1));
      at.host.stepClock(1_000);
      expect(await at.store.retain({ keepSettled: 1, limit: 10 })).toBe(2);
      expect(await at.store.retain({ settledBeforeMs: START_MS + 500, limit: 10 })).toBe(1);
      expect(await at.store.count()).toEqual({ pending: 0, processing: 0, done: 0, failed: 2 });
      expect(await at.store.requeue([1, 4])).toEqual([1, 4]);
    });

    test("[J30] retention by number keeps the newest settled rows, in steps of at most the limit", async () => {
      await using at = await open();
      await append(at.store, entry(), ...settledEntries(8));
      expect(await at.store.retain({ keepSettled: 3, limit: 2 })).toBe(2);
      expect(await idsFor(at.store, {})).toEqual([1, 4, 5, 6, 7, 8, 9]);
      expect(await at.store.retain({ keepSettled: 3, limit: 10 })).toBe(3);
      expect(await at.store.retain({ keepSettled: 3, limit: 10 })).toBe(0);
      expect(await idsFor(at.store, {})).toEqual([1, 7, 8, 9]);
    });

    test("[J30] a row over either limit is removed; without a limit none is", async () => {
      await using at = await open();
      at.host.stepClock(1_000);
      await append(at.store, ...settledEntries(2));
      at.host.stepClock(-1_000);
      await append(at.store, ...settledEntries(2));
      expect(await at.store.retain({ limit: 10 })).toBe(0);
      expect(await at.store.retain({ keepSettled: 3, settledBeforeMs: START_MS + 500, limit: 10 })).toBe(3);
      expect(await idsFor(at.store, {})).toEqual([2]);
    });

    test("[J30] a message whose row was removed can be appended again", async () => {
      await using at = await open();
      const again = entry({ data: 1 }, { status: "done" });
      await append(at.store, again);
      await at.store.retain({ keepSettled: 0, limit: 10 });
      const changed = { ...again, message: { ...again.message, data: 2 } };
      expect(await append(at.store, changed)).toEqual([2]);
      expect((await rowOf(at.store, 2)).message?.data).toBe(2);
    });
  });
}

function settledEntries(count: number) {
  const ending = { outcome: "refused", reason: "no" } as const;
  return Array.from({ length: count }, (_, n) => entry({}, n % 2 ? { status: "done", ending } : { status: "done" }));
}
