import { describe, expect, test } from "#test";
import type { Path } from "../../../src/message/path.ts";
import { labelOfRead } from "../../../src/store/label.ts";
import { rejected } from "../../../src/store/rejection.ts";
import { DOC, fate, OTHER, quiet, type Site, setup } from "./replica-setup.ts";

function label(site: Site, path: Path, labels: readonly string[], ref = DOC) {
  const transaction = site.replica.transaction();
  transaction.labels.push({ ...ref, path, labels });
  return transaction.commit();
}

function labelHere(site: Site, path: Path = [], ref = DOC): readonly string[] {
  return labelOfRead(site.replica.find(ref)?.labels?.places ?? [], path, false);
}

/** The label notifications since the last call. */
function toldLabels(site: Site) {
  return site.notifications
    .splice(0)
    .flatMap(({ kind, labels = [] }) => labels.map(({ id, before, after }) => [kind, id, before, after] as const));
}

describe("labels of a replica's documents", () => {
  test("[S76] an own label write holds at once, is announced, and stays when it is confirmed", async () => {
    const { here } = await setup();
    await here.put(DOC, [], { a: 1 });
    here.told();
    const commit = label(here, ["a"], ["secret"]);
    expect(labelHere(here)).toEqual(["secret"]);
    expect(toldLabels(here)).toEqual([["commit", "doc", [], [{ path: ["a"], label: ["secret"] }]]]);
    expect(fate(await commit.outcome)).toBe("committed");
    expect(labelHere(here)).toEqual(["secret"]);
    expect(toldLabels(here)).toEqual([]);
  });

  test("[S76] a rejected label write is undone, alone or with the commit it depends on", async () => {
    const { here } = await setup();
    await here.put(DOC, [], 1);
    await label(here, [], ["kept"]).outcome;
    here.notifications.splice(0);
    here.next("commit", { instead: rejected("stale", "read-moved", "planted") });
    const below = here.write(DOC, [], 2);
    const transaction = here.replica.transaction();
    transaction.read(DOC, []);
    transaction.labels.push({ ...DOC, path: [], labels: ["more"] });
    const stacked = transaction.commit();
    expect(labelHere(here)).toEqual(["more"]);
    expect([fate(await below.outcome), fate(await stacked.outcome)]).toEqual(["stale read-moved", "stale fell-with"]);
    expect(labelHere(here)).toEqual(["kept"]);
    const [, reverted] = toldLabels(here);
    expect(reverted?.[0]).toBe("revert");
  });

  test("[S76] foreign label writes arrive through the feed, beneath the pending ones", async () => {
    const { here, there } = await setup();
    await here.put(DOC, [], { a: 1, b: 1 });
    await there.replica.load([DOC]);
    here.told();
    const commits = here.hold("commit", "arrives");
    const mine = label(here, ["a"], ["mine"]);
    here.told();
    await label(there, ["a"], ["theirs"]).outcome;
    await label(there, ["b"], ["theirs"]).outcome;
    await quiet();
    expect(labelHere(here, ["a"])).toEqual(["mine"]);
    expect(labelHere(here, ["b"])).toEqual(["theirs"]);
    expect(toldLabels(here).map(([kind]) => kind)).toEqual(["integrate"]);
    commits.open();
    await mine.outcome;
    await quiet();
    expect([labelHere(here, ["a"]), labelHere(there, ["a"])]).toEqual([["mine"], ["mine"]]);
  });

  test("[S221] labels arrive with a load, including those written meanwhile", async () => {
    const { here, there } = await setup();
    await here.put(DOC, [], 1);
    await label(here, [], ["old"]).outcome;
    await label(here, [], ["never read"], OTHER).outcome;
    const loads = there.hold("load");
    there.replica.touch(DOC);
    await quiet();
    await label(here, [], ["new"]).outcome;
    await quiet();
    loads.open();
    await there.replica.loadsSettled();
    expect(labelHere(there)).toEqual(["new"]);
    await there.replica.load([OTHER]);
    expect(labelHere(there, [], OTHER)).toEqual(["never read"]);
    expect(toldLabels(there).map(([kind, id]) => [kind, id])).toEqual([
      ["pull", "doc"],
      ["pull", "other"],
    ]);
  });

  test("[S221] behind the feed's horizon labels are loaded again", async () => {
    const { here, there } = await setup({ changesKept: 3 });
    await here.put(DOC, [], 1);
    await there.replica.load([DOC]);
    const feed = there.hold("changesSince", "arrives");
    await label(here, [], ["secret"]).outcome;
    for (let n = 0; n < 10; n++) await here.put(OTHER, [], n);
    there.told();
    feed.open();
    await there.replica.catchUp();
    expect(labelHere(there)).toEqual(["secret"]);
    expect(toldLabels(there).map(([kind]) => kind)).toEqual(["integrate"]);
  });

  test("[S221] a label stored while an older load is under way stays when that load arrives", async () => {
    const { here, there } = await setup();
    await there.put(DOC, [], { a: 1 });
    const loads = here.hold("load");
    here.replica.touch(DOC);
    await quiet();
    await label(here, ["a"], ["mine"]).outcome;
    await label(there, [], ["theirs"]).outcome;
    await quiet();
    loads.open();
    await here.replica.loadsSettled();
    expect([labelHere(here, ["a"]), here.replica.peek(DOC)]).toEqual([["mine", "theirs"], { a: 1 }]);
  });

  test("[S221] a document written during an older load gets the labels of the load and the later ones", async () => {
    const { here, there } = await setup();
    await there.put(DOC, [], { a: 1, b: 1 });
    await label(there, ["b"], ["old"]).outcome;
    await label(there, ["a"], ["removed"]).outcome;
    const loads = here.hold("load");
    here.replica.touch(DOC);
    await quiet();
    await label(there, [], ["before"]).outcome;
    await quiet();
    await here.write(DOC, [], { a: 2, b: 2 }).outcome;
    await label(there, ["a"], []).outcome;
    await label(here, ["c"], ["mine"]).outcome;
    await quiet();
    loads.open();
    await here.replica.loadsSettled();
    expect(labelHere(here)).toEqual(["before", "mine", "old"]);
    expect(labelHere(here, ["a"])).toEqual(["before"]);
    expect(here.replica.peek(DOC)).toEqual({ a: 2, b: 2 });
    here.replica.checkInvariants();
  });

  test("[S222] foreign writes to a document created unread are announced after its labels", async () => {
    const { here, there, open } = await setup();
    await there.put(DOC, [], { a: 1 });
    await label(there, [], ["secret"]).outcome;
    for (const site of [here, await open()]) {
      await site.put(DOC, [], { a: 2 });
      await quiet();
      site.notifications.splice(0);
      const loads = site.hold("load");
      await there.put(DOC, ["a"], 3);
      expect([site.replica.peek(DOC), site.notifications]).toEqual([{ a: 2 }, []]);
      loads.open();
      await site.replica.catchUp();
      expect([site.replica.peek(DOC), labelHere(site)]).toEqual([{ a: 3 }, ["secret"]]);
      expect(site.notifications.map(({ kind }) => kind)).toEqual(["pull", "integrate"]);
    }
  });

  test("[S62] [S222] in a store without labels a document created unread is never loaded", async () => {
    const { here, there } = await setup();
    const loads: unknown[] = [];
    const { plan } = here.line;
    here.line.plan = (call) => {
      if (call.method === "load") loads.push(call);
      return plan(call);
    };
    await here.put(DOC, [], { a: 1 });
    await there.put(DOC, ["a"], 2);
    await here.replica.catchUp();
    expect([here.replica.peek(DOC), loads]).toEqual([{ a: 2 }, []]);
  });
});
