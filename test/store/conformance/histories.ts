/** The history of the data, identities of commits, positions of another history, and the clock of the horizon. */
import { describe, expect, test } from "#test";
import { cursorOf, JOURNAL_START, positionOf } from "../../../src/store/journal-position.ts";
import { append, commitBy, committed, entries, ref, SPACE, set, write } from "./requests.ts";
import type { OpenStore } from "./store-under-test.ts";

export function historyCases(open: OpenStore): void {
  describe("histories", () => {
    test("[S231] loads, pages of the feed and connections name one history, in every store object and after reopening", async () => {
      await using at = await open();
      await write(at.store, set("a", [], 1));
      const { history } = at.store.connection;
      expect(history).toMatch(/^[\w-]+$/);
      for (const open of [async () => at.store, at.second, at.reopen]) {
        const store = await open();
        expect(store.connection.history).toBe(history);
        expect((await store.load(SPACE, [ref("a")])).history).toBe(history);
        expect((await store.changesSince(SPACE, 0, 10)).history).toBe(history);
      }
    });

    test("[S233] an embedded store, and a server that is reached, is connected and has no parked writes", async () => {
      await using at = await open();
      expect(at.store.connection).toMatchObject({ state: "connected", parked: 0 });
    });

    test("[S234] hasCommits answers for each identity whether its commit was made", async () => {
      await using at = await open();
      committed(await at.store.commit(commitBy("s", 1, { patches: [set("a", [], 1)] })));
      expect(await at.store.commit(commitBy("s", 2, { dependsOn: [9] }))).toMatchObject({ kind: "rejected" });
      const identities = [
        { session: "s", localSequence: 2 },
        { session: "s", localSequence: 1 },
        { session: "t", localSequence: 1 },
      ];
      expect(await at.store.hasCommits(identities)).toEqual([false, true, false]);
      expect(await (await at.reopen()).hasCommits(identities)).toEqual([false, true, false]);
      expect(await (await at.second()).hasCommits([])).toEqual([]);
    });

    test("[S100] the horizon does not pass the store's clock", async () => {
      await using at = await open();
      const { horizonMs } = await at.store.forgetReceipts({ madeBeforeMs: at.host.now() + 3_600_000, limit: 1 });
      expect(horizonMs).toBe(at.host.now());
    });

    test("[J174] a position of another history gets no rows, and an end that no lane of the journal is behind", async () => {
      await using at = await open();
      await append(at.store, ...entries(3));
      const end = await at.store.journalEnd();
      const beyond = { history: "another", lanes: new Map([...end.lanes].map(([lane, id]) => [lane, 2 * id])) };
      expect(await at.store.follow(beyond, 10)).toEqual({ rows: [], end, isFull: true, gone: [] });
      const { history, lanes } = (await at.store.follow({ history: "another", lanes: new Map() }, 10)).end;
      expect([history, lanes.size]).toEqual([end.history, 0]);
      expect((await at.store.follow({ history, lanes }, 10)).rows).toHaveLength(3);
    });

    test("[J175] a position goes through its cursor, and other texts are no cursor", async () => {
      await using at = await open();
      await append(at.store, ...entries(2));
      const end = await at.store.journalEnd();
      expect(positionOf(cursorOf(end))).toEqual(end);
      expect(positionOf("start")).toEqual(JOURNAL_START);
      expect((await at.store.follow(JOURNAL_START, 10)).rows).toHaveLength(2);
      for (const text of ["", "a b", "h.1", "h.1-x", "h.1-99999999999999999", "h.12345-1"])
        expect(positionOf(text), text).toBe(undefined);
    });
  });
}
