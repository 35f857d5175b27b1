/** Consumers: declared, running, removed; and events that wait for them. */
import { describe, expect, test } from "#test";
import { CONSUMERS_MAX } from "../../../src/limits.ts";
import { consumerKey } from "../../../src/store/consumer.ts";
import type { Store } from "../../../src/store/store.ts";
import { START_MS } from "../controlled-host.ts";
import { append, claimedIds, claimUnderNewLease, commitBy, entries, entry, rowOf, settlement } from "./requests.ts";
import type { OpenStore } from "./store-under-test.ts";

const EVENTS = ["event"] as const;
const LEASE_MS = 10_000;
const AGENT = { name: "agent", pattern: "mail.*" };
const INDEX = { name: "index", pattern: "mail.received" };

/** Appends events, claims them, and has them wait for a consumer. */
async function parked(store: Store, count: number, consumer = AGENT): Promise<readonly number[]> {
  const ids = await append(store, ...entries(count));
  const awaits = consumerKey(consumer);
  const settlements = (await claimUnderNewLease(store, count)).map((claim) => ({
    ...settlement(claim, { kind: "waits", error: "agent is not running" }),
    deliveries: [{ subscriber: "agent", status: "waiting", attempts: 0, awaits } as const],
  }));
  expect(await store.settle(settlements)).toEqual(ids.map(() => "settled"));
  return ids;
}

const UNHEARD = { outcome: "unheard", reason: "no subscriber" } as const;

export function consumerCases(open: OpenStore): void {
  describe("consumers", () => {
    test("[S150] a consumer is declared once, and stays when the store is opened again", async () => {
      await using at = await open();
      const first = await at.store.declareConsumers({ consumers: [INDEX, AGENT, AGENT] });
      expect(first.consumers.map(({ name }) => name)).toEqual(["agent", "index"]);
      const again = await (await at.second()).declareConsumers({ consumers: [AGENT] });
      expect(again.version).toBe(first.version);
      const { consumers } = await (await at.reopen()).consumers();
      expect(consumers).toEqual([
        { ...AGENT, declaredAtMs: START_MS, leases: [], waiting: 0 },
        { ...INDEX, declaredAtMs: START_MS, leases: [], waiting: 0 },
      ]);
    });

    test("[S150] a consumer runs under the live leases that name it", async () => {
      await using at = await open();
      const { lease } = await at.store.openLease(LEASE_MS, [consumerKey(AGENT)]);
      const other = await at.store.openLease(2 * LEASE_MS);
      const running = { lease: other.lease, keys: [consumerKey(AGENT)] };
      const { consumers } = await at.store.declareConsumers({ consumers: [AGENT], running });
      expect(consumers[0]?.leases).toEqual([lease, other.lease]);
      at.host.stepClock(LEASE_MS);
      expect((await at.store.consumers()).consumers[0]?.leases).toEqual([other.lease]);
      await at.store.closeLease(other.lease);
      expect((await at.store.consumers()).consumers[0]?.leases).toEqual([]);
    });

    test("[S151] a settlement decided by an old version of the table is refused, and its claim is kept", async () => {
      await using at = await open();
      await append(at.store, ...entries(3));
      const [first, second, third] = await claimUnderNewLease(at.store, 3);
      const { version } = await at.store.consumers();
      await (await at.second()).declareConsumers({ consumers: [AGENT] });
      const done = { ...settlement(first!, { kind: "done" }), consumers: version };
      const lost = { ...done, attempt: 9 };
      const unsaid = settlement(second!, { kind: "done" });
      expect(await at.store.settle([done, lost, unsaid])).toEqual(["consumers-moved", "lease-lost", "settled"]);
      const commit = commitBy("handler", 1, { settlements: [{ ...done, id: third!.row.id }] });
      expect(await at.store.commit(commit)).toMatchObject({ class: "stale", reason: "consumers-moved" });
      expect(await rowOf(at.store, first!.row.id)).toMatchObject({ status: "processing" });
      expect(await at.store.settle([{ ...done, consumers: version + 1 }])).toEqual(["settled"]);
    });

    test("[S151] an event appended as done by an old version of the table is pending", async () => {
      await using at = await open();
      await (await at.second()).declareConsumers({ consumers: [AGENT] });
      const { version } = await at.store.consumers();
      const as = (consumers: number) => ({ status: "done", ending: UNHEARD, consumers }) as const;
      const [old, current] = await append(at.store, entry({}, as(version - 1)), entry({}, as(version)));
      expect(await rowOf(at.store, old!)).toMatchObject({ status: "pending" });
      expect(await rowOf(at.store, current!)).toMatchObject({ status: "done", ...UNHEARD });
    });

    test("[S152] a waiting row is handed out only to a claim that names its consumer, in order with others", async () => {
      await using at = await open();
      await at.store.declareConsumers({ consumers: [AGENT] });
      const [first, second] = await parked(at.store, 2);
      const [third] = await append(at.store, entry());
      expect((await at.store.consumers()).consumers[0]?.waiting).toBe(2);
      expect(await at.store.releaseRetries(START_MS * 2)).toEqual({ released: 0, nextAtMs: undefined });
      const { lease } = await at.store.openLease(LEASE_MS);
      const claim = (limit: number, consumers: readonly string[]) =>
        at.store.claim({ lease, limit, kinds: EVENTS, consumers });
      expect(claimedIds(await claim(9, [consumerKey(INDEX)]))).toEqual([third]);
      const [one] = await claim(1, [consumerKey(AGENT), consumerKey(INDEX)]);
      expect(one?.row).toMatchObject({ id: first, deliveries: [{ subscriber: "agent", status: "waiting" }] });
      expect((await at.store.consumers()).consumers[0]?.waiting).toBe(1);
      expect(claimedIds(await claim(9, [consumerKey(AGENT)]))).toEqual([second]);
    });

    test("[S152] a waiting row shows its reason and keeps its deaths", async () => {
      await using at = await open();
      await append(at.store, entry());
      await claimUnderNewLease(at.store, 1);
      at.host.stepClock(2_000_000);
      await at.store.recover();
      const [claim] = await claimUnderNewLease(at.store, 1);
      const waits = { kind: "waits", atMs: START_MS + 3_000_000, error: "agent is not running" } as const;
      await at.store.settle([settlement(claim!, waits)]);
      const row = await rowOf(at.store, 1);
      expect(row).toMatchObject({ status: "pending", error: waits.error, deaths: 1, nextAttemptAtMs: waits.atMs });
    });

    test("[S153] a consumer that a live lease runs is not removed", async () => {
      await using at = await open();
      const { lease } = await at.store.openLease(LEASE_MS, [consumerKey(AGENT)]);
      await at.store.declareConsumers({ consumers: [AGENT] });
      expect(await at.store.removeConsumer({ ...AGENT, limit: 9 })).toBe("running");
      expect(await at.store.removeConsumer({ ...AGENT, limit: 9, exceptLease: lease })).toBe("removed");
      expect(await at.store.removeConsumer({ ...AGENT, limit: 9 })).toBe("unknown");
    });

    test("[S153] removing a consumer makes its rows claimable, in steps, and raises the version at the end", async () => {
      await using at = await open();
      const { version } = await at.store.declareConsumers({ consumers: [AGENT] });
      const ids = await parked(at.store, 3);
      const remove = () => at.store.removeConsumer({ ...AGENT, limit: 2 });
      expect(await remove()).toBe("partly");
      expect((await at.store.consumers()).version).toBe(version);
      expect(await remove()).toBe("removed");
      expect(await at.store.consumers()).toEqual({ version: version + 1, consumers: [] });
      const claims = await claimUnderNewLease(at.store, 9);
      expect(claimedIds(claims)).toEqual(ids);
      for (const { row } of claims) expect(row.deliveries[0]).toMatchObject({ status: "removing" });
    });

    test("[S154] a done row goes back for one consumer, and the deliveries of all others count as done", async () => {
      await using at = await open();
      const [plain, noted] = await append(
        at.store,
        entry({}, { status: "done" }),
        entry({}, { status: "done", ending: UNHEARD }),
      );
      expect(await at.store.requeue([plain!, noted!])).toEqual([noted]);
      const onlyFor = { subscribers: ["agent"], others: ["index"] };
      expect(await at.store.requeue([plain!, 99], onlyFor)).toEqual([plain]);
      expect(await rowOf(at.store, plain!)).toMatchObject({
        status: "pending",
        deliveries: [{ subscriber: "index", status: "done", attempts: 0 }],
      });
    });

    test("[S150] a store refuses more consumers than its limit, and names with blanks", async () => {
      await using at = await open();
      const many = Array.from({ length: CONSUMERS_MAX + 1 }, (_, n) => ({ name: `c${n}`, pattern: "tick" }));
      const remedy = { code: "STORE_MISUSE", message: expect.stringContaining("millrace consumers remove") };
      await expect(at.store.declareConsumers({ consumers: many })).rejects.toMatchObject(remedy);
      expect((await at.store.consumers()).consumers).toEqual([]);
      const blank = at.store.declareConsumers({ consumers: [{ name: "a b", pattern: "tick" }] });
      await expect(blank).rejects.toMatchObject({ code: "STORE_MISUSE" });
    });
  });
}
