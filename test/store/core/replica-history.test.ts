/**
 * A replica whose store loses its server, which comes back with the same data or with a history that lacks some of it.
 */
import { describe, expect, test } from "#test";
import { systemHost } from "../../../src/host/system-host.ts";
import { STORE_PARKED_JOBS_MAX } from "../../../src/limits.ts";
import type { CommitOutcome } from "../../../src/store/commit.ts";
import { refusalToPark } from "../../../src/store/parking.ts";
import { Replica } from "../../../src/store/replica.ts";
import { StoreError } from "../../../src/store/store.ts";
import { type Line, Server } from "../served-store.ts";
import { DOC, OTHER, quiet, SPACE } from "./replica-setup.ts";

async function site(line: Line) {
  const replica = await Replica.open({ store: line.store, space: SPACE });
  const troubles: unknown[] = [];
  replica.onTrouble = (trouble) => void troubles.push(trouble);
  const write = (ref: typeof DOC, value: unknown) => {
    const transaction = replica.transaction();
    transaction.write(ref, [], value);
    return transaction.commit();
  };
  const put = async (ref: typeof DOC, value: unknown): Promise<CommitOutcome> => {
    const outcome = await write(ref, value).outcome;
    await quiet();
    return outcome;
  };
  return { replica, troubles, write, put };
}

describe("another history", () => {
  test("[S235] [S236] after a failover that lost commits, the replica shows the new history and reports the lost commits", async () => {
    const server = new Server(systemHost());
    const [one, two] = [await site(server.connect()), await site(server.connect())];
    await one.put(DOC, "kept");
    server.stopCopying();
    await one.put(DOC, "lost");
    await one.put(OTHER, "lost too");
    const before = one.replica.position;
    await two.replica.load([DOC]);
    expect(two.replica.peek(DOC)).toBe("lost");
    server.failOver();
    await quiet();
    await quiet();
    expect([one.replica.peek(DOC), one.replica.peek(OTHER), two.replica.peek(DOC)]).toEqual([
      "kept",
      undefined,
      "kept",
    ]);
    expect(one.replica.position).toBeLessThan(before);
    // The sequences of the lost commits are given again.
    await two.put(DOC, "new");
    await two.put(DOC, "newer");
    await quiet();
    expect(one.replica.peek(DOC)).toBe("newer");
    expect(one.replica.position).toBe(before);
    expect(await one.put(OTHER, "again")).toMatchObject({ kind: "committed", sequence: before + 1 });
    expect(one.troubles).toEqual([expect.objectContaining({ code: "STORE_HISTORY_LOST" })]);
    expect(one.replica.historyLost).toContain("lost 2 acknowledged commits");
    expect([two.troubles, two.replica.historyLost]).toEqual([[], undefined]);
    for (const { replica } of [one, two]) replica.checkInvariants();
  });

  test("[S235] a commit that waits while another history begins ends as unknown, and is not made", async () => {
    const server = new Server(systemHost());
    const line = server.connect();
    const one = await site(line);
    await one.put(DOC, 1);
    line.cut();
    const parked = one.write(DOC, 2);
    expect(one.replica.peek(DOC)).toBe(2);
    server.failOver();
    expect(await parked.outcome).toMatchObject({ kind: "rejected", reason: "history-lost" });
    await quiet();
    expect(one.replica.peek(DOC)).toBe(1);
    expect(one.replica.historyLost).toBe(undefined);
    one.replica.checkInvariants();
  });

  test("[S230] a commit that names another history is stale, unless the store has it already", async () => {
    const { store } = new Server(systemHost()).connect();
    const request = (history: string, localSequence: number) => ({
      ...{ space: SPACE, session: "s", localSequence, digest: "d", history, reads: [], patches: [], preconditions: [] },
      ...{ dependsOn: [], entries: [], settlements: [], due: [], basis: [], basisRemoved: [], labels: [] },
    });
    const { history } = store.connection;
    expect(await store.commit(request(history, 1))).toMatchObject({ kind: "committed" });
    expect(await store.commit(request("other", 1))).toMatchObject({ kind: "committed", replayed: true });
    expect(await store.commit(request("other", 2))).toMatchObject({ class: "stale", reason: "history-lost" });
  });
});

describe("a store that is away", () => {
  test("[S237] [S238] commits stay pending and are confirmed when the store is back; loads are repeated", async () => {
    const server = new Server(systemHost());
    const line = server.connect();
    const one = await site(line);
    await one.put(DOC, 1);
    line.cut();
    const parked = [one.write(DOC, 2), one.write(DOC, 3)];
    expect(one.replica.peek(DOC)).toBe(3);
    await expect(one.replica.load([OTHER])).rejects.toMatchObject({ code: "STORE_AWAY" });
    expect(line.store.connection).toMatchObject({ state: "away", parked: 2 });
    expect(one.replica.pendingCommits).toBe(2);
    line.repair();
    for (const { outcome } of parked) expect(await outcome).toMatchObject({ kind: "committed" });
    await one.replica.load([OTHER]);
    expect(one.troubles).toEqual([]);
    expect(one.replica.position).toBe(3);
  });

  test("[S237] writes beyond the bound are refused as busy, by number and by bytes", () => {
    expect(refusalToPark(STORE_PARKED_JOBS_MAX - 1, 1)).toBe(undefined);
    expect(refusalToPark(STORE_PARKED_JOBS_MAX, 1)).toMatchObject({ class: "failed", reason: "store-busy" });
    expect(refusalToPark(0, 2 ** 40)).toMatchObject({ reason: "store-busy" });
  });

  test("[S238] a store that is away is not a stopped store: the outcome of a commit that it gives up is unknown", async () => {
    const line = new Server(systemHost()).connect();
    const store = new Proxy(line.store, {
      get: (target, name) =>
        name === "commit"
          ? () => Promise.reject(new StoreError("STORE_AWAY", "gave up"))
          : (Reflect.get(target, name) as unknown),
    });
    const replica = await Replica.open({ store, space: SPACE });
    const transaction = replica.transaction();
    transaction.write(DOC, [], 1);
    expect(await transaction.commit().outcome).toMatchObject({ class: "unknown", reason: "no-answer" });
  });
});
