import { describe, expect, test } from "#test";
import { Space } from "../../src/cells/space.ts";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { RECEIPT_SWEEP_MS_MAX, RECEIPT_SWEEP_MS_MIN, RECEIPTS_KEEP_MS_MIN, RECEIPTS_STEP } from "../../src/limits.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { receiptOf } from "../../src/store/receipt-name.ts";
import type { ForgetRequest, Store } from "../../src/store/store.ts";

const DAY_MS = 86_400_000;

/** A space whose stream counts its sends, on a store with a short feed. */
async function setup(keepMs: number | undefined, faults = 0) {
  const host = simulatedHost(1);
  const disk = new MemoryDisk({ changesKept: 10 });
  const inner = memoryStore({ host, disk });
  const asked: ForgetRequest[] = [];
  let faultsLeft = faults;
  const forgetReceipts: Store["forgetReceipts"] = async (request) => {
    asked.push(request);
    if (faultsLeft-- > 0) throw new Error("the disk is away");
    return inner.forgetReceipts(request);
  };
  const store = new Proxy(inner, {
    get: (target, key) => {
      const member: unknown = key === "forgetReceipts" ? forgetReceipts : Reflect.get(target, key);
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
  const told: string[] = [];
  const onError = (error: unknown) => void told.push(String(error));
  const receipts = keepMs === undefined ? undefined : { keepMs };
  const open = () => host.run(() => Space.open({ store, host, name: "home", receipts, onError }));
  const space = await open();
  const count = space.cell<number>("count");
  const stream = space.stream<null>("stream");
  stream.handle(() => count.update((value = 0) => value + 1));
  const send = async (times: number) => {
    const sent = Array.from({ length: times }, () => stream.send(null));
    await host.run(() => space.settled());
    return sent.map(({ id }) => id);
  };
  const kept = async (ids: readonly string[]) => {
    const { documents } = await host.run(() =>
      inner.load(
        "home",
        ids.map((id) => receiptOf({ kind: "send", id })),
      ),
    );
    return documents.filter(({ value }) => value !== undefined).length;
  };
  return { host, space, stream, count, send, kept, asked, told, store: inner };
}

describe("the keeper of receipts", () => {
  test("[S106] keeps the horizon behind the clock: a send within the time is known, one before it is too old", async () => {
    const { host, space, stream, count, send, kept } = await setup(DAY_MS);
    const old = await send(3);
    await host.advance(DAY_MS / 2);
    const young = await send(20);
    await host.advance(DAY_MS / 2 + RECEIPT_SWEEP_MS_MAX);
    expect([await kept(old), await kept(young)]).toEqual([0, 20]);
    const again = [stream.send(null, { eventId: old[0]! }), stream.send(null, { eventId: young[0]! })];
    await host.run(() => space.settled());
    expect(await again[0]!.outcome).toMatchObject({
      kind: "failed",
      reason: "rejected",
      rejection: { reason: "too-old" },
      message: expect.stringContaining("new id"),
    });
    expect(await again[1]!.outcome).toMatchObject({ kind: "already" });
    expect(count.get()).toBe(23);
  });

  test("[S106] without a keep time, no receipt is removed and the horizon stays", async () => {
    const { host, send, kept, asked, store } = await setup(undefined);
    const ids = await send(20);
    await host.advance(100 * DAY_MS);
    expect([await kept(ids), asked]).toEqual([20, []]);
    expect(await store.forgetReceipts({ madeBeforeMs: 0, limit: 0 })).toEqual({ removed: 0, horizonMs: 0 });
  });

  test("[S106] many receipts are removed in steps, and the number of kept receipts is bounded", async () => {
    const { host, send, kept, asked } = await setup(RECEIPTS_KEEP_MS_MIN);
    const first = await send(RECEIPTS_STEP * 2 + 100);
    await host.advance(2 * RECEIPTS_KEEP_MS_MIN);
    await send(20);
    const before = asked.length;
    await host.advance(RECEIPT_SWEEP_MS_MIN);
    expect(await kept(first)).toBe(0);
    expect(asked.length - before).toBeLessThanOrEqual(3);
    const all: string[] = [];
    for (let hour = 0; hour < 12; hour++) {
      all.push(...(await send(100)));
      await host.advance(RECEIPTS_KEEP_MS_MIN);
      // Those of this hour and the one before, and of the commits that the feed still shows.
      expect(await kept(all)).toBeLessThanOrEqual(220);
    }
  });

  test("[S106] a failed removal is reported and tried again; a closed space stops removing", async () => {
    const { host, space, send, kept, asked, told } = await setup(RECEIPTS_KEEP_MS_MIN, 1);
    const ids = await send(30);
    await host.advance(2 * RECEIPTS_KEEP_MS_MIN);
    expect(told).toEqual(["Error: the disk is away"]);
    expect(await kept(ids)).toBeLessThanOrEqual(10);
    await host.run(() => space.close());
    const looks = asked.length;
    await host.advance(DAY_MS);
    expect(asked.length).toBe(looks);
  });

  test("[S106] a keep time that is too short is refused before the space opens", async () => {
    for (const keepMs of [0, RECEIPTS_KEEP_MS_MIN - 1, Number.NaN, Number.POSITIVE_INFINITY])
      await expect(setup(keepMs)).rejects.toMatchObject({ code: "STORE_MISUSE", message: /an hour.*for ever/ });
  });
});
