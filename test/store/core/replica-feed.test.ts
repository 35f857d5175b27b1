import { describe, expect, test } from "#test";
import { whenOver } from "../../../src/store/pending-commit.ts";
import { rejected } from "../../../src/store/rejection.ts";
import type { Share } from "../../../src/store/replica.ts";
import type { ReplicaDocument } from "../../../src/store/replica-document.ts";
import { DOC, fate, OTHER, quiet, type Site, setup } from "./replica-setup.ts";

describe("foreign commits", () => {
  test("[S67] a foreign commit arrives without a request as its net change, with its session", async () => {
    const { here, there } = await setup();
    await here.put(DOC, [], { a: 1, list: [1] });
    here.told();
    await there.replica.load([DOC]);
    const transaction = there.replica.transaction({ source: {}, changeGroup: "g" });
    transaction.write(DOC, ["a"], 2);
    transaction.splice(DOC, ["list"], 0, 1, []);
    transaction.remove(DOC, ["a"]);
    transaction.write({ scope: "space", id: "not here" }, [], 1);
    const { session, localSequence } = transaction.commit();
    await quiet();
    expect(here.notifications.map(({ commit, source, changeGroup }) => ({ commit, source, changeGroup }))).toEqual([
      { commit: { session, localSequence }, source: undefined, changeGroup: undefined },
    ]);
    expect(here.told()).toEqual([
      ["integrate", "doc/a", 1, undefined],
      ["integrate", "doc/list", [1], []],
    ]);
    expect(here.replica.position).toBe(2);
  });

  test("[S67] a foreign commit is visible at once beside pending writes, and not under them", async () => {
    const { here, there } = await setup();
    await here.put(DOC, [], { a: 0, b: 0, c: { x: 0 } });
    await there.replica.load([DOC]);
    const commits = here.hold("commit", "arrives");
    here.write(DOC, ["a"], "mine");
    const replaced = here.write(DOC, ["c"], { mine: true });
    here.told();
    await there.put(DOC, ["b"], "theirs");
    await there.put(DOC, ["a"], "theirs");
    await there.put(DOC, ["c", "x"], 1);
    here.replica.checkInvariants();
    expect(here.told()).toEqual([["integrate", "doc/b", 0, "theirs"]]);
    expect(here.replica.peek(DOC)).toEqual({ a: "mine", b: "theirs", c: { mine: true } });
    commits.open();
    expect(fate(await replaced.outcome)).toBe("committed");
    await quiet();
    expect(there.replica.peek(DOC)).toEqual({ a: "mine", b: "theirs", c: { mine: true } });
  });

  test("[S217] a held document that is not loaded is loaded when another session writes it; an unheld one is not", async () => {
    const { here, there } = await setup();
    await there.put(DOC, [], { a: 1 });
    await there.put(OTHER, [], { a: 1 });
    here.replica.place(DOC).observers++;
    here.replica.place(OTHER);
    here.told();
    await there.put(DOC, ["a"], 2);
    await there.put(OTHER, ["a"], 2);
    expect(here.told()).toEqual([["pull", "doc", undefined, { a: 2 }]]);
    expect(here.replica.place(OTHER).state).toBe("absent");
    here.replica.checkInvariants();
  });

  test("[S216] a pending write that no longer fits has no effect, and is rejected", async () => {
    const { here, there } = await setup();
    await here.put(DOC, [], { a: { x: 0 }, b: 0 });
    await there.replica.load([DOC]);
    const commits = here.hold("commit", "arrives");
    const doomed = here.write(DOC, ["a", "x"], 1);
    here.told();
    await there.put(DOC, ["a"], 5);
    here.replica.checkInvariants();
    expect(here.replica.peek(DOC)).toEqual({ a: 5, b: 0 });
    expect(here.told()).toEqual([["integrate", "doc/a", { x: 1 }, 5]]);
    commits.open();
    expect(fate(await doomed.outcome)).toBe("stale read-moved");
    expect(here.told()).toEqual([]);
  });

  test("[S52] an own commit whose answer overtakes foreign commits waits for them", async () => {
    const { here, there } = await setup();
    await here.put(DOC, [], { a: 0, b: 0 });
    await there.replica.load([DOC]);
    const feed = here.hold("changesSince", "arrives");
    await there.put(DOC, ["a"], 1);
    await there.put(DOC, ["a"], 2);
    here.told();
    const commit = here.write(DOC, ["b"], 1);
    let isKnown = false;
    void commit.outcome.then(() => {
      isKnown = true;
    });
    await quiet();
    expect([isKnown, here.replica.pendingCommits, here.replica.position]).toEqual([false, 1, 1]);
    here.replica.checkInvariants();
    feed.open();
    expect(await commit.outcome).toMatchObject({ kind: "committed", sequence: 4 });
    expect(here.replica.position).toBe(4);
    expect(here.told()).toEqual([
      ["commit", "doc/b", 0, 1],
      ["integrate", "doc/a", 0, 1],
      ["integrate", "doc/a", 1, 2],
    ]);
  });

  test("[S52] an unreadable feed does not delay the answer of a durable commit", async () => {
    const { here, there } = await setup();
    await here.put(DOC, [], { a: 0, b: 0 });
    await there.replica.load([DOC]);
    here.line.plan = ({ method }) => (method === "changesSince" ? { instead: new Error("the line is dead") } : {});
    await there.put(DOC, ["a"], 1);
    expect(fate(await here.write(DOC, ["b"], 1).outcome)).toBe("committed");
    await expect(here.replica.catchUp()).rejects.toThrow("the line is dead");
    here.line.plan = () => ({});
    await here.replica.catchUp();
    here.replica.checkInvariants();
    expect(here.replica.peek(DOC)).toEqual({ a: 1, b: 1 });
    expect(here.replica.pendingCommits).toBe(0);
  });

  test("[S68] a replica behind the feed's horizon reloads its documents and continues", async () => {
    const { here, there } = await setup({ changesKept: 3 });
    await here.put(DOC, [], { n: 0 });
    await here.put(OTHER, [], 0);
    await there.replica.load([DOC]);
    const feed = here.hold("changesSince", "arrives");
    for (let n = 1; n <= 10; n++) await there.put(DOC, ["n"], n);
    const commit = here.write(OTHER, [], "mine");
    await quiet();
    here.told();
    feed.open();
    expect(fate(await commit.outcome)).toBe("committed");
    here.replica.checkInvariants();
    expect(here.told()).toEqual([["integrate", "doc", { n: 0 }, { n: 10 }]]);
    expect(here.replica.peek(OTHER)).toBe("mine");
    await there.put(OTHER, [], 1);
    expect(here.replica.peek(OTHER)).toBe(1);
  });

  test("[S68] behind the feed's horizon a held document that is not loaded is loaded too", async () => {
    const { here, there } = await setup({ changesKept: 3 });
    await there.put(DOC, [], { n: 0 });
    here.replica.place(DOC).observers++;
    const feed = here.hold("changesSince", "arrives");
    for (let n = 1; n <= 10; n++) await there.put(DOC, ["n"], n);
    here.told();
    feed.open();
    await quiet();
    expect(here.told()).toEqual([["pull", "doc", undefined, { n: 10 }]]);
    here.replica.checkInvariants();
  });

  test("[S218] a load overtaken by a reload is repeated", async () => {
    const { here, there } = await setup({ changesKept: 3 });
    await here.put(OTHER, [], 0);
    await there.put(DOC, [], { n: 0 });
    await quiet();
    const loads = here.hold("load");
    here.replica.peek(DOC);
    await quiet();
    here.line.plan = () => ({});
    const feed = here.hold("changesSince", "arrives");
    for (let n = 1; n <= 10; n++) await there.put(DOC, ["n"], n);
    feed.open();
    await here.replica.catchUp();
    loads.open();
    await here.replica.loadsSettled();
    expect(here.replica.peek(DOC)).toEqual({ n: 10 });
  });

  test("[S218] a document that arrives during a reload and is older is loaded again", async () => {
    const { here, there } = await setup({ changesKept: 3 });
    await here.put(OTHER, [], 0);
    await there.put(DOC, [], { n: 0 });
    await quiet();
    const first = here.hold("load");
    here.replica.peek(DOC);
    await quiet();
    here.line.plan = () => ({});
    const reload = here.hold("load");
    const feed = here.hold("changesSince", "arrives");
    for (let n = 1; n <= 10; n++) await there.put(DOC, ["n"], n);
    const caughtUp = here.replica.catchUp();
    feed.open();
    await quiet();
    first.open();
    await quiet();
    expect(here.replica.peek(DOC)).toEqual({ n: 0 });
    reload.open();
    await caughtUp;
    expect(here.replica.peek(DOC)).toEqual({ n: 10 });
    here.replica.checkInvariants();
  });

  test("[S68] a gap that own commits have closed meanwhile causes no reload", async () => {
    const { here } = await setup({ changesKept: 2 });
    await here.put(DOC, [], { n: 0 });
    const feed = here.hold("changesSince", "arrives");
    const loads = here.hold("load");
    const caughtUp = here.replica.catchUp();
    for (let n = 1; n <= 4; n++) await here.write(DOC, ["n"], n).outcome;
    feed.open();
    await quiet();
    await here.write(DOC, ["n"], 5).outcome;
    loads.open();
    await caughtUp;
    expect(here.replica.peek(DOC)).toEqual({ n: 5 });
    here.replica.checkInvariants();
  });

  test("[S69] a reader in one replica gets the write of another without a request", async () => {
    const { here, there } = await setup();
    await here.put(DOC, [], { n: 0 });
    const seen: unknown[] = [];
    here.replica.subscribe(({ changes }) => seen.push(...changes.map(({ after }) => after)));
    for (let n = 1; n <= 3; n++) await there.put(DOC, ["n"], n);
    expect(seen).toEqual([1, 2, 3]);
    expect(there.replica.pendingCommits).toBe(0);
  });

  test("[S220] an own commit answered while the feed was unreadable is announced once", async () => {
    const { here, there } = await setup();
    const { plan } = here.line;
    here.line.plan = (call) =>
      call.method === "changesSince" ? { instead: new Error("the line is dead") } : plan(call);
    await there.put(OTHER, [], 1);
    const told: string[] = [];
    whenOver(here.write(DOC, [], 1), (outcome) => void told.push(fate(outcome)));
    await quiet();
    expect([told, here.replica.pendingCommits]).toEqual([["committed"], 1]);
    here.line.plan = plan;
    await here.replica.catchUp();
    await quiet();
    expect([told, here.replica.pendingCommits]).toEqual([["committed"], 0]);
  });
});

describe("changes made in place", () => {
  const OCCASIONS: readonly [string, (sites: { here: Site; there: Site }) => void | Promise<unknown>, string][] = [
    ["others' commits arrive", ({ there }) => there.put(DOC, ["b"], 9), "integrate"],
    ["a transaction is committed", ({ here }) => void here.write(DOC, ["b"], 9), "commit"],
    ["a document arrives", ({ here }) => here.replica.load([OTHER]), "pull"],
    [
      "a commit is taken back",
      ({ here }) => {
        here.next("commit", { instead: rejected("stale", "read-moved", "planted") });
        return here.write(DOC, ["b"], 9).outcome;
      },
      "revert",
    ],
  ];
  for (const [occasion, happen, kind] of OCCASIONS) {
    test(`[S73] changes made in place become one commit, sealed before ${occasion}`, async () => {
      const { here, there } = await setup();
      await here.put(DOC, [], { a: 0, b: 0 });
      await there.put(OTHER, [], 1);
      await there.replica.load([DOC]);
      const document = here.replica.place(DOC);
      const done = new Map<ReplicaDocument, Share>();
      here.replica.turn = {
        seal: () => {
          if (done.size === 0) return;
          here.replica.adopt(new Map(done), { reads: [], except: () => undefined });
          done.clear();
        },
      };
      // A value can be rolled back only if it was there before.
      if (kind === "revert") void happen({ here, there });
      here.told();
      changeInPlace();
      await (kind === "revert" ? quiet() : happen({ here, there }));
      await quiet();
      expect(here.told().map(([told, where]) => `${told} ${where}`)).toEqual([
        "commit doc/a",
        kind === "pull" ? "pull other" : `${kind} doc/b`,
      ]);
      await quiet();
      expect(there.replica.peek(DOC, ["a"])).toBe(1);

      function changeInPlace(): void {
        const operation = { op: "set", path: ["a"], value: 1 } as const;
        done.set(document, { operations: [operation], inverses: [document.apply(operation).inverse] });
      }
    });
  }

  test("[S73] a commit of changes made in place depends on the values read and written over", async () => {
    const { here } = await setup();
    await here.put(DOC, [], { a: 0, b: 0, c: 0 });
    const answers = here.hold("commit");
    const read = here.write(DOC, ["a"], 1);
    const written = here.write(DOC, ["b"], 1);
    const document = here.replica.place(DOC);
    const { inverse } = document.apply({ op: "set", path: ["b"], value: 2 });
    const share = { operations: [{ op: "set", path: ["b"], value: 2 } as const], inverses: [inverse] };
    const reads = [{ ...DOC, path: ["a"], depth: "deep", sequence: here.replica.position } as const];
    const commit = here.replica.adopt(new Map([[document, share]]), { reads, except: () => undefined });
    here.replica.checkInvariants();
    await quiet();
    expect(here.arrived.at(-1)?.dependsOn).toEqual([read.localSequence, written.localSequence]);
    answers.open();
    expect(fate(await commit.outcome)).toBe("committed");
  });
});
