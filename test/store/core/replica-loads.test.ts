import { describe, expect, test } from "#test";
import type { DocumentRef } from "../../../src/store/document.ts";
import { rejected } from "../../../src/store/rejection.ts";
import { pullStored } from "../../../src/store/stored-value.ts";
import { DOC, fate, OTHER, quiet, setup } from "./replica-setup.ts";

const STALE = "stale read-moved";

function doc(i: number): DocumentRef {
  return { scope: "space", id: `d${i}` };
}

describe("documents that are not loaded", () => {
  test("[S60] a document that is not loaded reads as absent, starts to load, and arrives as a change", async () => {
    const { here, there } = await setup();
    await there.put(DOC, [], { a: 1 });
    const transaction = here.replica.transaction();
    expect(transaction.read(DOC)).toBe(undefined);
    expect(transaction.read(DOC, ["a"])).toBe(undefined);
    transaction.abort();
    expect(here.told()).toEqual([]);
    await here.replica.loadsSettled();
    expect(here.told()).toEqual([["pull", "doc", undefined, { a: 1 }]]);
    expect(here.replica.peek(DOC)).toEqual({ a: 1 });
  });

  test("[S60] a document that does not exist arrives without a change and is listed as unchanged", async () => {
    const { here } = await setup();
    expect(here.replica.peek(DOC)).toBe(undefined);
    await here.replica.loadsSettled();
    expect(here.notifications).toMatchObject([{ kind: "pull", changes: [], unchanged: [DOC] }]);
    expect(here.replica.place(DOC).state).toBe("loaded");
  });

  test("[S210] foreign commits during a load are neither lost nor applied twice", async () => {
    for (const held of ["arrives", "answered"] as const) {
      const { here, there } = await setup();
      await there.put(DOC, [], []);
      const loads = here.hold("load", held);
      here.replica.peek(DOC);
      await quiet();
      const transaction = there.replica.transaction();
      transaction.splice(DOC, [], 0, 0, ["x"]);
      await transaction.commit().outcome;
      await here.replica.catchUp();
      expect(here.replica.position).toBe(2);
      loads.open();
      await here.replica.loadsSettled();
      expect(here.replica.peek(DOC)).toEqual(["x"]);
      here.replica.checkInvariants();
    }
  });

  test("[S61] a commit that read an unloaded document as absent is stale if it exists, and valid if it does not", async () => {
    const { here, there } = await setup();
    await there.put(DOC, [], { a: 1 });
    const create = (ref: DocumentRef) => {
      const transaction = here.replica.transaction();
      if (transaction.read(ref) === undefined) transaction.write(ref, [], { made: true });
      return transaction.commit();
    };
    const wrong = create(DOC);
    const right = create(OTHER);
    expect(here.replica.peek(DOC)).toEqual({ made: true });
    expect(fate(await wrong.outcome)).toBe(STALE);
    expect(fate(await right.outcome)).toBe("committed");
    await quiet();
    expect(here.replica.peek(DOC)).toEqual({ a: 1 });
    // One that is still open when it arrives does not even reach the backend.
    const third: DocumentRef = { scope: "space", id: "third" };
    await there.put(third, [], 1);
    const open = here.replica.transaction();
    open.read(third);
    open.write(OTHER, [], 2);
    await here.replica.loadsSettled();
    const arrived = here.arrived.length;
    expect(fate(await open.commit().outcome)).toBe(STALE);
    expect(here.arrived.length).toBe(arrived);
  });

  test("[S61] a document loaded ahead of the feed is read as of its load", async () => {
    const { here, there } = await setup();
    const feed = here.hold("changesSince", "arrives");
    await there.put(DOC, [], { n: 1 });
    await here.replica.load([DOC]);
    expect(here.replica.position).toBe(0);
    const transaction = here.replica.transaction();
    transaction.write(DOC, ["n"], (transaction.read(DOC, ["n"]) as number) + 1);
    const commit = transaction.commit();
    await quiet();
    feed.open();
    expect(fate(await commit.outcome)).toBe("committed");
    expect(here.replica.peek(DOC)).toEqual({ n: 2 });
  });

  test("[S62] a document that is replaced whole needs no load, before or after", async () => {
    const { here, there } = await setup();
    await there.put(DOC, [], { old: true });
    expect(fate(await here.write(DOC, [], { n: 0 }).outcome)).toBe("committed");
    const transaction = here.replica.transaction();
    transaction.write(DOC, ["n"], 1);
    expect(fate(await transaction.commit().outcome)).toBe("committed");
    expect(here.replica.loadGeneration).toBe(0);
    expect(here.arrived[0]?.reads).toEqual([]);
    expect(here.replica.peek(DOC)).toEqual({ n: 1 });
    await there.put(DOC, ["n"], 2);
    expect(here.replica.peek(DOC)).toEqual({ n: 2 });
  });

  test("[S62] a commit that depends on a pending whole replacement is confirmed with it", async () => {
    const { here, there } = await setup();
    await there.put(DOC, [], { old: true });
    await quiet();
    const loads = here.hold("load");
    const commits = here.hold("commit", "arrives");
    const first = here.write(DOC, [], { n: 0 });
    const second = here.write(DOC, ["n"], 1);
    commits.open();
    expect(fate(await first.outcome)).toBe("committed");
    expect(fate(await second.outcome)).toBe("committed");
    loads.open();
    await here.replica.loadsSettled();
    here.replica.checkInvariants();
    expect(here.replica.peek(DOC)).toEqual({ n: 1 });
  });

  test("[S62] if a whole replacement is rejected, the load brings the stored value", async () => {
    const { here, there } = await setup();
    await there.put(DOC, [], { old: true });
    here.next("commit", { instead: rejected("failed", "store-full", "planted") });
    const commit = here.write(DOC, [], { n: 0 });
    here.replica.peek(DOC);
    expect(fate(await commit.outcome)).toBe("failed store-full");
    await here.replica.loadsSettled();
    expect(here.replica.peek(DOC)).toEqual({ old: true });
    const told = here.told();
    expect(told.at(0)).toEqual(["commit", "doc", undefined, { n: 0 }]);
    expect(told.at(-1)?.[3]).toEqual({ old: true });
  });

  test("[S63] reads of one turn are one load, and a caller can detect that one began", async () => {
    const { here } = await setup();
    let loads = 0;
    here.line.plan = ({ method }) => {
      if (method === "load") loads++;
      return {};
    };
    const generation = here.replica.loadGeneration;
    for (let i = 0; i < 5; i++) here.replica.peek(doc(i));
    here.replica.peek(doc(0));
    expect(here.replica.loadGeneration).toBe(generation + 5);
    await here.replica.loadsSettled();
    expect(loads).toBe(1);
    here.replica.peek(doc(0));
    expect(here.replica.loadGeneration).toBe(generation + 5);
    await here.replica.loadsSettled();
  });

  test("[S211] loadsSettled waits for the loads that a load leads to", async () => {
    const { here, there } = await setup();
    await there.put(DOC, [], { next: OTHER.id });
    await there.put(OTHER, [], { end: true });
    here.replica.subscribe(({ kind, changes }) => {
      if (kind === "pull" && changes[0]?.id === DOC.id) here.replica.peek(OTHER);
    });
    here.replica.peek(DOC);
    await here.replica.loadsSettled();
    expect(here.replica.peek(OTHER)).toEqual({ end: true });
  });

  test("[S64] a failed load rejects for its waiter and is retried by the next read", async () => {
    const { here, there } = await setup();
    await there.put(DOC, [], 1);
    here.next("load", { instead: new Error("the line is dead") });
    await expect(here.replica.load([DOC, OTHER])).rejects.toThrow("the line is dead");
    expect(here.replica.place(DOC).loadError).toMatchObject({ message: "the line is dead" });
    await here.replica.load([DOC]);
    expect(here.replica.peek(DOC)).toBe(1);
    expect(here.replica.place(DOC).loadError).toBe(undefined);
  });

  test("[S65] a load that includes a commit which still waits for the feed does not apply it twice", async () => {
    const { here, there } = await setup();
    await there.put(OTHER, [], 1);
    await quiet();
    const feed = here.hold("changesSince", "arrives");
    await there.put(OTHER, [], 2);
    // Written and read before it is confirmed: its answer arrives before the change feed does.
    const made = here.write(DOC, [], ["mine"]);
    here.write(DOC, ["1"], "mine too");
    await quiet();
    await there.replica.load([DOC]);
    await there.put(DOC, ["0"], "theirs");
    const late = here.write(DOC, ["2"], "late");
    await here.replica.loadsSettled();
    here.replica.checkInvariants();
    feed.open();
    await here.replica.catchUp();
    await there.replica.catchUp();
    expect(fate(await made.outcome)).toBe("committed");
    await late.outcome;
    await quiet();
    here.replica.checkInvariants();
    expect(here.replica.peek(DOC)).toEqual(there.replica.peek(DOC));
  });
});

describe("memory", () => {
  test("[S66] beyond the limit unheld documents are dropped, and load again when read", async () => {
    const { here, there } = await setup({ residentDocumentsMax: 20 });
    for (let i = 0; i < 60; i++) await there.put(doc(i), [], i);
    const release = here.replica.observe(doc(0));
    for (let i = 0; i < 60; i++) {
      const transaction = here.replica.transaction();
      transaction.read(doc(i));
      transaction.commit();
      await here.replica.loadsSettled();
      expect(here.replica.residentDocuments).toBeLessThanOrEqual(20);
    }
    expect(here.replica.find(doc(0))?.value).toBe(0);
    expect(here.replica.find(doc(1))).toBe(undefined);
    release();
    release();
    for (let i = 1; i < 60; i++) await here.replica.load([doc(i)]);
    expect(here.replica.find(doc(0))).toBe(undefined);
    await here.replica.load([doc(0)]);
    expect(here.replica.peek(doc(0))).toBe(0);
  });

  test("[S214] pending, loading and used documents are not dropped", async () => {
    const { here, there } = await setup({ residentDocumentsMax: 5 });
    for (let i = 0; i < 40; i++) await there.put(doc(i), [], i);
    const commits = here.hold("commit", "arrives");
    here.write(doc(0), [], "pending");
    const open = here.replica.transaction();
    open.read(doc(1));
    await here.replica.loadsSettled();
    const held = [here.replica.find(doc(0)), here.replica.find(doc(1))];
    for (let i = 2; i < 40; i++) await here.replica.load([doc(i)]);
    expect([here.replica.find(doc(0)), here.replica.find(doc(1))]).toEqual(held);
    expect(here.replica.find(doc(0))).toBe(held[0]);
    expect(here.replica.find(doc(1))).toBe(held[1]);
    expect(here.replica.residentDocuments).toBeLessThanOrEqual(6);
    open.abort();
    commits.open();
    await here.replica.settled();
    for (let i = 2; i < 40; i++) await here.replica.load([doc(i)]);
    expect(here.replica.find(doc(0))).toBe(undefined);
    expect(here.replica.find(doc(1))).toBe(undefined);
  });

  test("[S66] a load of more documents than fit in memory returns each with its value", async () => {
    const { here, there } = await setup({ residentDocumentsMax: 2 });
    const refs = Array.from({ length: 12 }, (_, i) => doc(i));
    for (const [i, ref] of refs.entries()) await there.put(ref, [], i);
    await here.replica.load(refs);
    expect(await Promise.all(refs.map((ref) => pullStored(here.replica, ref)))).toEqual(refs.map((_, i) => i));
    // They are let go of, and dropped when others come.
    for (let i = 12; i < 16; i++) await pullStored(here.replica, doc(i));
    expect(here.replica.residentDocuments).toBeLessThanOrEqual(3);
  });

  test("[S215] a dropped document that was written here does not count as absent", async () => {
    const { here } = await setup({ residentDocumentsMax: 4 });
    await here.put(DOC, [], { n: 1 });
    for (let i = 0; i < 20; i++) await here.replica.load([doc(i)]);
    expect(here.replica.find(DOC)).toBe(undefined);
    const transaction = here.replica.transaction();
    if (transaction.read(DOC) === undefined) transaction.write(DOC, [], { n: 0 });
    expect(fate(await transaction.commit().outcome)).toBe(STALE);
    await here.replica.loadsSettled();
    expect(here.replica.peek(DOC)).toEqual({ n: 1 });
  });
});
