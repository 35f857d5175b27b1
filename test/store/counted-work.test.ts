/**
 * The cost of a write as counts of statements, bytes and commits, never seconds. The counts are the same on every
 * machine, so a change that makes the store do more work fails here first (`docs/decisions/0004-benchmarks.md`).
 */
import { describe, expect, test } from "vitest";
import type { Store, StoreStats } from "../../src/store/store.ts";
import {
  append,
  claimedIds,
  claimUnderNewLease,
  commitBy,
  committed,
  entries,
  entry,
  read,
  ref,
  rowOf,
  SPACE,
  set,
  settlement,
  write,
} from "./conformance/requests.ts";
import { StoreFile } from "./sqlite/store-file.ts";

const DONE = { kind: "done" } as const;
const EVENTS = ["event"] as const;
/** Statements of every batch: begin, head, commit, and checks of the log and of other processes. */
const PER_BATCH_MAX = 10;

/** A store whose batches end only with the queue, so that the batches are the same on a slow machine. */
async function setup() {
  const file = new StoreFile();
  const store = await file.open({ tuning: { batchMs: 600_000, batchJobsMax: 100_000 } });
  return { file, store, [Symbol.asyncDispose]: () => file[Symbol.asyncDispose]() };
}

/** The work that was done meanwhile. */
async function countedBy(store: Store, run: () => Promise<unknown>): Promise<StoreStats> {
  const before = store.stats();
  await run();
  const after = store.stats();
  return {
    batches: after.batches - before.batches,
    jobs: after.jobs - before.jobs,
    statements: after.statements - before.statements,
    bytesWritten: after.bytesWritten - before.bytesWritten,
    upkeepBytesMax: after.upkeepBytesMax,
  };
}

describe("statements", () => {
  test("[S99] a thousand events in one call take one statement each", async () => {
    await using at = await setup();
    const { statements, batches } = await countedBy(at.store, () => append(at.store, ...entries(1000)));
    expect(batches).toBe(1);
    expect(statements).toBeGreaterThanOrEqual(1000);
    expect(statements).toBeLessThanOrEqual(1000 + PER_BATCH_MAX);
  });

  test("[S99] claiming and settling a thousand neighbours takes a handful of statements", async () => {
    await using at = await setup();
    await append(at.store, ...entries(1000));
    const { lease } = await at.store.openLease(60_000);
    const claiming = await countedBy(at.store, async () => {
      expect(await at.store.claim({ lease, limit: 1000, kinds: EVENTS })).toHaveLength(1000);
    });
    expect(claiming.statements).toBeLessThanOrEqual(PER_BATCH_MAX);
    const settling = await countedBy(at.store, async () => {
      const all = Array.from({ length: 1000 }, (_, index) => ({ id: index + 1, lease, attempt: 1, outcome: DONE }));
      expect(await at.store.settle(all)).toEqual(all.map(() => "settled"));
    });
    expect(settling.statements).toBeLessThanOrEqual(PER_BATCH_MAX);
    expect(await at.store.count()).toEqual({ pending: 0, processing: 0, done: 1000, failed: 0 });
  });

  test("[S198] ten commits of one batch that change one key take one statement", async () => {
    await using at = await setup();
    await write(at.store, set("wide", [], keys(10_000)));
    committed(await at.store.commit(commitBy("editor", 0, { patches: [set("wide", ["key-0"], "first")] })));
    const numbers = Array.from({ length: 100 }, (_, index) => index + 1);
    const { statements, batches } = await countedBy(at.store, () =>
      Promise.all(
        numbers.map(async (number) => {
          const patches = [set("wide", [`key-${number}`], "changed!")];
          committed(await at.store.commit(commitBy("editor", number, { patches })));
        }),
      ),
    );
    expect(batches).toBe(1);
    expect(statements).toBeLessThanOrEqual(numbers.length / 10 + PER_BATCH_MAX);
  });

  test("[S198] commits of one session that read only its own writes take no additional statement", async () => {
    await using at = await setup();
    await write(at.store, set("counter", [], { n: 0 }));
    committed(await at.store.commit(commitBy("editor", 0, { patches: [set("counter", ["n"], 0)] })));
    const { sequence } = await at.store.load(SPACE, []);
    const numbers = Array.from({ length: 100 }, (_, index) => index + 1);
    const { statements } = await countedBy(at.store, () =>
      Promise.all(
        numbers.map(async (number) => {
          const parts = { patches: [set("counter", ["n"], number)], reads: [read("counter", ["n"], sequence)] };
          committed(await at.store.commit(commitBy("editor", number, parts)));
        }),
      ),
    );
    expect(statements).toBeLessThanOrEqual(numbers.length / 10 + PER_BATCH_MAX);
    const late = commitBy("other", 1, { reads: [read("counter", ["n"], sequence)] });
    expect(await at.store.commit(late)).toMatchObject({ reason: "read-moved" });
  });

  test("[S198] a handling with document, receipt and settled event takes little more than one statement", async () => {
    await using at = await setup();
    const { lease } = await at.store.openLease(60_000);
    const ids = await append(at.store, ...Array.from({ length: 100 }, () => entry({}, { status: "claimed", lease })));
    await write(at.store, set("book", [], {}));
    const { statements, batches } = await countedBy(at.store, () =>
      Promise.all(
        ids.map(async (id) => {
          const patches = [set("book", [`entry-${id}`], id), set(`receipt-${id}`, [], { handled: true })];
          const preconditions = [{ kind: "absent", ...ref(`receipt-${id}`) } as const];
          const settlements = [{ id, lease, attempt: 1, outcome: DONE }];
          const parts = { digest: `handling ${id}`, patches, preconditions, settlements };
          committed(await at.store.commit(commitBy("handler", id, parts)));
        }),
      ),
    );
    expect(batches).toBe(1);
    expect(statements).toBeLessThanOrEqual(1.1 * ids.length + PER_BATCH_MAX);
  });
});

describe("neighbours", () => {
  test("[J23] rows settled together are answered one by one", async () => {
    await using at = await setup();
    await append(at.store, ...entries(6));
    const mine = await claimUnderNewLease(at.store, 3);
    const others = await claimUnderNewLease(at.store, 1);
    const more = await at.store.claim({ lease: mine[0]!.lease, limit: 2, kinds: EVENTS });
    expect([...claimedIds(mine), ...claimedIds(others), ...claimedIds(more)]).toEqual([1, 2, 3, 4, 5, 6]);
    expect(await at.store.settle([settlement(mine[1]!, DONE)])).toEqual(["settled"]);
    // 2 was settled already, and another lease holds 4.
    const all = [1, 2, 3, 4, 5, 6].map((id) => ({ ...settlement(mine[0]!, DONE), id }));
    const answers = ["settled", "lease-lost", "settled", "lease-lost", "settled", "settled"];
    expect(await at.store.settle(all)).toEqual(answers);
    expect(await rowOf(at.store, 4)).toMatchObject({ status: "processing", lease: others[0]!.lease });
    expect(await at.store.settle(all)).toEqual(all.map(() => "lease-lost"));
  });

  test("[J17] a claim over gaps takes the rows it returns and none between", async () => {
    await using at = await setup();
    const command = entry({ kind: "command" });
    await append(at.store, ...entries(2), command, ...entries(2), entry({}, { status: "done" }), ...entries(1));
    const claims = await claimUnderNewLease(at.store, 10);
    expect(claimedIds(claims)).toEqual([1, 2, 4, 5, 7]);
    for (const { row } of claims) expect(await rowOf(at.store, row.id)).toEqual(row);
    expect(await at.store.count()).toEqual({ pending: 1, processing: 5, done: 1, failed: 0 });
    expect(await rowOf(at.store, 3)).toMatchObject({ status: "pending", attempts: 0 });
  });
});

describe("bytes", () => {
  test("[S91] changing one key writes the same bytes into a document of ten keys and of ten thousand", async () => {
    await using at = await setup();
    await write(at.store, set("narrow", [], keys(10)), set("wide", [], keys(10_000)));
    const narrow = await countedBy(at.store, () => write(at.store, set("narrow", ["key-7"], "changed!")));
    const wide = await countedBy(at.store, () => write(at.store, set("wide", ["key-7"], "changed!")));
    expect(wide.bytesWritten).toBe(narrow.bytesWritten);
    expect(wide.bytesWritten).toBeLessThan(100);
  });

  test("[S91] a thousand one-key changes, snapshots included, write at most twice their own size", async () => {
    await using at = await setup();
    await write(at.store, set("document", [], keys(500)));
    const oneChange = JSON.stringify([{ op: "set", path: ["key-123"], value: "changed!" }]).length;
    const { bytesWritten } = await countedBy(at.store, async () => {
      for (let number = 0; number < 1000; number++) {
        await write(at.store, set("document", [`key-${number % 500}`], "changed!"));
      }
    });
    expect(at.file.database().prepare("SELECT count(*) AS count FROM snapshot").get()).toEqual({ count: 1 });
    expect(bytesWritten).toBeGreaterThan(1000 * (oneChange - 2));
    expect(bytesWritten).toBeLessThanOrEqual(2 * 1000 * oneChange);
  });
});

describe("rows", () => {
  test("[S92] a document that is replaced repeatedly keeps no more patches than the feed needs", async () => {
    await using file = new StoreFile();
    const store = await file.open({ tuning: { feedCommits: 10 } });
    for (let number = 0; number < 500; number++) await write(store, set("document", [], number));
    const { kept } = file.database().prepare("SELECT sum(last - first + 1) AS kept FROM change").get()!;
    // Upkeep takes 200 commits at a time, once as many have piled up.
    expect(kept).toBeLessThanOrEqual(10 + 200 + 1);
  });
});

describe("commits", () => {
  test("[S89] [S189] sixty-four publishers, each waiting for its last event, share one commit per round", async () => {
    await using at = await setup();
    const rounds = 10;
    const publish = async () => {
      for (let round = 0; round < rounds; round++) await append(at.store, entry());
    };
    const work = await countedBy(at.store, () => Promise.all(Array.from({ length: 64 }, publish)));
    expect(work.jobs).toBe(64 * rounds);
    expect(work.batches).toBe(rounds);
    expect(work.statements).toBeLessThanOrEqual(64 * rounds + PER_BATCH_MAX * rounds);
  });
});

function keys(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`key-${index}`, "original"]));
}
