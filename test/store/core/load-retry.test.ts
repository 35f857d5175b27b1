/** Loads that fail while an observer holds the document: the observer does not ask again. */
import { describe, expect, test } from "#test";
import { simulatedHost } from "../../../src/host/simulated-host.ts";
import type { Notification } from "../../../src/store/change.ts";
import { MemoryDisk } from "../../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../../src/store/memory/memory-store.ts";
import { Replica } from "../../../src/store/replica.ts";
import { StoreError } from "../../../src/store/store.ts";
import { pullStored } from "../../../src/store/stored-value.ts";
import { FaultyLine } from "../faulty-store.ts";
import { DOC, OTHER, SPACE } from "./replica-setup.ts";

/** A replica whose loads fail as long as `error` is set; the times of the loads are noted. */
async function setup() {
  const host = simulatedHost(1);
  const disk = new MemoryDisk();
  const line = new FaultyLine(memoryStore({ host, disk }));
  const replica = await host.run(() => Replica.open({ store: line.store, space: SPACE, host }));
  const there = await host.run(() => Replica.open({ store: memoryStore({ host, disk }), space: SPACE, host }));
  const put = async (value: number) => {
    for (const ref of [DOC, OTHER]) {
      const transaction = there.transaction();
      transaction.write(ref, [], value);
      await host.run(() => transaction.commit().outcome);
    }
  };
  const loads: { error: Error | undefined; readonly at: number[] } = { error: undefined, at: [] };
  line.plan = ({ method }) => {
    if (method !== "load") return {};
    loads.at.push(host.monotonic());
    return loads.error === undefined ? {} : { instead: loads.error };
  };
  const told: Notification[] = [];
  replica.subscribe((notification) => void told.push(notification));
  return { host, line, replica, put, loads, told };
}

/** Times from one to the next. */
function gaps(times: readonly number[]): number[] {
  return times.slice(1).map((time, i) => Math.round((time - (times[i] as number)) / 1_000));
}

describe("a failed load", () => {
  test("[S212] a failed load of a held document is retried with growing delays until it succeeds", async () => {
    const { host, replica, put, loads, told } = await setup();
    loads.error = new StoreError("STORE_BUSY", "try later");
    replica.place(DOC).observers++;
    await put(1);
    await host.advance(125_000);
    expect(gaps(loads.at)).toEqual([1, 2, 4, 8, 16, 30, 30, 30]);
    expect(replica.place(DOC)).toMatchObject({ state: "absent", loadError: loads.error });
    loads.error = undefined;
    await host.advance(30_000);
    expect(told).toMatchObject([{ kind: "pull", changes: [{ id: DOC.id, after: 1 }] }]);
    expect(replica.place(DOC)).toMatchObject({ state: "loaded", loadError: undefined });
    const { length } = loads.at;
    await host.advance(100_000);
    expect(loads.at.length).toBe(length);
    replica.checkInvariants();
  });

  test("[S212] the retry delay starts short again after a success", async () => {
    const { host, replica, put, loads } = await setup();
    await put(1);
    loads.error = new Error("the line is dead");
    replica.observe(DOC);
    await host.advance(10_000);
    loads.error = undefined;
    await host.advance(10_000);
    expect(replica.peek(DOC)).toBe(1);
    loads.error = new Error("the line is dead again");
    loads.at.length = 0;
    replica.observe(OTHER);
    await host.advance(3_500);
    expect(gaps(loads.at)).toEqual([1, 2]);
  });

  test("[S64] a failed load of an unheld document waits for the next read", async () => {
    const { host, replica, put, loads } = await setup();
    await put(1);
    loads.error = new Error("the line is dead");
    const letGo = replica.observe(DOC);
    expect(replica.peek(OTHER)).toBe(undefined);
    await host.advance(0);
    letGo();
    await host.advance(100_000);
    expect(loads.at.length).toBe(1);
    loads.error = undefined;
    expect(await host.run(() => pullStored(replica, DOC))).toBe(1);
  });

  test("[S212] [S70] a failed load is not retried after the replica or its store has closed", async () => {
    for (const end of ["replica", "store"] as const) {
      const { host, replica, put, loads } = await setup();
      await put(1);
      loads.error = end === "store" ? new StoreError("STORE_STOPPED", "gone") : new Error("the line is dead");
      replica.observe(DOC);
      await host.advance(0);
      if (end === "replica") await host.run(() => replica.close());
      await host.advance(100_000);
      expect([end, loads.at.length]).toEqual([end, 1]);
    }
  });

  test("[S213] a load with one damaged document returns the others, with few requests", async () => {
    const { host, line, replica, put } = await setup();
    await put(1);
    const damage = new StoreError("STORE_CORRUPT", "stored bytes have changed");
    const many = Array.from({ length: 1_000 }, (_, n) => ({ scope: "space", id: `empty ${n}` }));
    let loads = 0;
    line.plan = ({ method, refs = [] }) => {
      if (method === "load") loads++;
      return refs.some(({ id }) => id === OTHER.id) ? { instead: damage } : {};
    };
    for (const ref of [...many, DOC, OTHER]) replica.observe(ref);
    await host.run(() => replica.loadsSettled());
    expect(replica.peek(DOC)).toBe(1);
    expect(replica.place(OTHER)).toMatchObject({ state: "absent", loadError: damage });
    expect(many.every((ref) => replica.place(ref).state === "loaded")).toBe(true);
    expect(loads).toBeLessThan(25);
    await expect(host.run(() => replica.load([DOC, OTHER]))).rejects.toBe(damage);
    replica.checkInvariants();
    line.plan = () => ({});
    await host.advance(30_000);
    expect(replica.peek(OTHER)).toBe(1);
  });

  test("[S213] a load of only damaged documents makes at most two requests for each", async () => {
    const { host, replica, loads } = await setup();
    loads.error = new StoreError("STORE_CORRUPT", "stored bytes have changed");
    for (let n = 0; n < 100; n++) replica.peek({ scope: "space", id: `${n}` });
    await host.run(() => replica.loadsSettled());
    expect(loads.at.length).toBeLessThan(200);
  });
});
