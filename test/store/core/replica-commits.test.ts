import fc from "fast-check";
import { describe, expect, test } from "#test";
import { Grace } from "../../../src/host/grace.ts";
import { simulatedHost } from "../../../src/host/simulated-host.ts";
import { LAST_ANSWERS_MS } from "../../../src/limits.ts";
import type { Json } from "../../../src/message/json.ts";
import { getAt } from "../../../src/message/path.ts";
import type { Notification } from "../../../src/store/change.ts";
import type { Commit } from "../../../src/store/commit.ts";
import { MemoryDisk } from "../../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../../src/store/memory/memory-store.ts";
import { overlap } from "../../../src/store/path-operation.ts";
import { type RejectionClass, type RejectionReason, rejected } from "../../../src/store/rejection.ts";
import { Replica } from "../../../src/store/replica.ts";
import { StoreError } from "../../../src/store/store.ts";
import { ControlledHost } from "../controlled-host.ts";
import { Gate } from "../faulty-store.ts";
import { DOC, fate, OTHER, quiet, SPACE, setup } from "./replica-setup.ts";

describe("committing", () => {
  test("[S47] [S202] a commit is applied and announced at once, path by path, with the values before and after", async () => {
    const { here } = await setup();
    await here.put(DOC, [], { a: 1, list: [1], gone: true });
    here.told();
    const source = {};
    const transaction = here.replica.transaction({ source, changeGroup: "g" });
    transaction.write(DOC, ["a"], 2);
    transaction.write(OTHER, [], { x: 1 });
    transaction.splice(DOC, ["list"], 0, 0, [0]);
    transaction.remove(DOC, ["gone"]);
    const commit = transaction.commit();
    const [notification] = here.notifications as [Notification];
    expect(notification.source).toBe(source);
    expect(notification.changeGroup).toBe("g");
    expect(notification.commit).toEqual({ session: commit.session, localSequence: commit.localSequence });
    expect(here.told()).toEqual([
      ["commit", "doc/a", 1, 2],
      ["commit", "doc/list", [1], [0, 1]],
      ["commit", "doc/gone", true, undefined],
      ["commit", "other", undefined, { x: 1 }],
    ]);
    expect(here.replica.peek(DOC)).toEqual({ a: 2, list: [0, 1] });
    expect(await commit.outcome).toMatchObject({ kind: "committed", sequence: 2 });
    expect(here.told()).toEqual([]);
  });

  test("[S224] writes of a transaction at nested paths are announced as one net change", async () => {
    const { here } = await setup();
    await here.put(DOC, [], { name: "ada", age: 1, list: [1] });
    here.told();
    const transaction = here.replica.transaction();
    transaction.write(DOC, ["name"], "draft");
    transaction.splice(DOC, ["list"], 0, 0, [0]);
    transaction.write(DOC, ["list", "2"], 2);
    transaction.write(DOC, ["name"], "ada");
    transaction.commit();
    expect(here.told()).toEqual([["commit", "doc/list", [1], [0, 1, 2]]]);
    const whole = here.replica.transaction();
    whole.write(DOC, ["name"], "draft");
    whole.write(DOC, [], { name: "ada", age: 2, list: [0, 1, 2] });
    whole.commit();
    const [before, after] = [1, 2].map((age) => ({ name: "ada", age, list: [0, 1, 2] }));
    expect(here.told()).toEqual([["commit", "doc", before, after]]);
  });

  test("[S48] a commit of a listener is applied at once and announced after the current change", async () => {
    const { here } = await setup();
    await here.put(DOC, [], { a: 0, b: 0, c: 0 });
    const heard: string[] = [];
    here.replica.subscribe(({ changes: [change] }) => {
      if (change?.path[0] === "a") {
        here.write(DOC, ["b"], 1);
        expect(here.replica.peek(DOC, ["b"])).toBe(1);
        here.replica.subscribe((later) => heard.push(`late ${later.changes[0]?.path}`));
      }
      if (change?.path[0] === "b") here.write(DOC, ["c"], 1);
    });
    here.replica.subscribe((notification) => heard.push(`${notification.changes[0]?.path}`));
    here.write(DOC, ["a"], 1);
    // A listener that subscribes during a notification gets neither that one nor those queued before.
    expect(heard).toEqual(["a", "b", "c", "late c"]);
  });

  test("[S203] [H20] errors and rejections of a listener go to the host; other listeners are called, and no call fails", async () => {
    const host = new ControlledHost();
    const disk = new MemoryDisk();
    const replica = await Replica.open({ store: memoryStore({ host, disk }), space: SPACE, host });
    const other = await Replica.open({ store: memoryStore({ host, disk }), space: SPACE, host });
    const [thrown, refused] = [new Error("thrown"), new Error("rejected")];
    replica.subscribe(() => {
      throw thrown;
    });
    replica.subscribe(async () => Promise.reject(refused));
    const heard: string[] = [];
    replica.subscribe(({ kind }) => void heard.push(kind));
    await replica.load([DOC]);
    const write = (at: Replica, value: number) => {
      const transaction = at.transaction();
      transaction.write(DOC, [], value);
      return transaction.commit().outcome;
    };
    expect(fate(await write(replica, 1))).toBe("committed");
    expect(fate(await write(other, 2))).toBe("committed");
    await replica.catchUp();
    expect(replica.peek(DOC)).toBe(2);
    expect(heard).toEqual(["pull", "commit", "integrate"]);
    await quiet();
    expect(host.reported.filter((error) => error === thrown).length).toBe(3);
    expect(host.reported.filter((error) => error === refused).length).toBe(3);
    replica.checkInvariants();
  });

  test("[S49] commits stack without waiting, each on the results of earlier ones", async () => {
    const { here, there } = await setup();
    await here.put(DOC, [], { n: 0, m: 0 });
    const answers = here.hold("commit");
    const commits = Array.from({ length: 5 }, (_, i) => {
      const transaction = here.replica.transaction();
      transaction.write(DOC, ["n"], (transaction.read(DOC, ["n"]) as number) + 1);
      if (i === 3) transaction.write(DOC, ["m"], 1);
      return transaction.commit();
    });
    here.replica.checkInvariants();
    expect(here.replica.pendingCommits).toBe(5);
    expect(here.replica.peek(DOC)).toEqual({ n: 5, m: 1 });
    await quiet();
    // Each names the one beneath it, and only that: it stands on the rest by itself.
    expect(here.arrived.slice(1).map(({ dependsOn }) => dependsOn)).toEqual([[], [2], [3], [4], [5]]);
    answers.open();
    const outcomes = await Promise.all(commits.map((commit) => commit.outcome));
    expect(outcomes.map(fate)).toEqual(Array(5).fill("committed"));
    expect(here.replica.pendingCommits).toBe(0);
    await there.replica.load([DOC]);
    expect(there.replica.peek(DOC)).toEqual({ n: 5, m: 1 });
  });

  test("[S50] a rejected commit is rolled back with the commits that depend on it, and no others", async () => {
    const classes: [RejectionClass, RejectionReason][] = [
      ["stale", "read-moved"],
      ["permanent", "document-exists"],
      ["refused", "too-large"],
      ["failed", "store-full"],
      ["unknown", "no-answer"],
    ];
    for (const [name, reason] of classes) {
      const { here } = await setup();
      await here.put(DOC, [], { a: 0, b: 0, c: 0, d: [] });
      const commits = here.hold("commit", "arrives");
      here.next("commit", { instead: rejected(name, reason, "planted") });
      const first = here.write(DOC, ["a"], 1);
      const independent = here.write(DOC, ["b"], 1);
      const reader = here.replica.transaction();
      reader.write(DOC, ["c"], reader.read(DOC, ["a"]));
      const dependent = reader.commit();
      const over = here.write(DOC, ["a"], 2);
      const onDependent = here.replica.transaction();
      onDependent.write(DOC, ["d", "0"], onDependent.read(DOC, ["c"]));
      const further = onDependent.commit();
      const readOnly = here.replica.transaction();
      readOnly.read(DOC, ["a"]);
      const looked = readOnly.commit();
      here.told();
      here.replica.checkInvariants();
      commits.open();
      expect(fate(await first.outcome)).toBe(`${name} ${reason}`);
      for (const fallen of [dependent, over, further, looked]) {
        expect(fate(await fallen.outcome)).toBe(`${name} fell-with`);
      }
      expect(fate(await independent.outcome)).toBe("committed");
      here.replica.checkInvariants();
      expect(here.replica.peek(DOC)).toEqual({ a: 0, b: 1, c: 0, d: [] });
      expect(here.told()).toEqual([
        ["revert", "doc/d/0", 1, undefined],
        ["revert", "doc/a", 2, 0],
        ["revert", "doc/c", 1, 0],
      ]);
    }
  });

  test("[S50] among many pending commits exactly the dependants of the rejected one are rolled back", async () => {
    const paths = [[], ["a"], ["b"], ["c"], ["a", "x"], ["a", "y"], ["b", "x"], ["b", "y", "z"]];
    const whole = (n: number): Json => ({ a: { x: n, y: { z: n } }, b: { x: n, y: { z: n } }, c: n });
    const valueAt = (path: string[], n: number) => getAt(whole(n), path) as Json;
    const steps = fc.array(fc.nat(paths.length - 1), { minLength: 10, maxLength: 30 });
    await fc.assert(
      fc.asyncProperty(steps, fc.nat(29), async (written, target) => {
        const { here } = await setup();
        await here.put(DOC, [], valueAt([], -1));
        const gate = here.hold("commit", "arrives");
        const rejectedIndex = target % written.length;
        const { plan } = here.line;
        here.line.plan = (call) => ({
          ...plan(call),
          ...(call.request?.localSequence === rejectedIndex + 2
            ? { instead: rejected("stale", "read-moved", "planted") }
            : {}),
        });
        const commits = written.map((index, n) =>
          here.write(DOC, paths[index] as string[], valueAt(paths[index] as string[], n)),
        );
        here.replica.checkInvariants();
        const fallen = new Set([rejectedIndex]);
        written.forEach((index, n) => {
          const path = paths[index] as string[];
          const isOver = [...fallen].some((m) => m < n && overlap(path, paths[written[m] as number] as string[]));
          if (isOver) fallen.add(n);
        });
        gate.open();
        const fates = await Promise.all(commits.map(async ({ outcome }) => fate(await outcome)));
        expect(fates.map((one) => one !== "committed")).toEqual(written.map((_, n) => fallen.has(n)));
        here.replica.checkInvariants();
      }),
      { numRuns: 60 },
    );
  });

  test("[S49] a commit among many pending ones does not name those that are confirmed", async () => {
    const { here } = await setup();
    await here.put(DOC, [], { a: 0, b: 0 });
    const gates: Gate[] = [];
    here.line.plan = ({ method, request }) => {
      if (method !== "commit") return {};
      const gate = new Gate();
      gates.push(gate);
      const isPlanted = request?.patches[0]?.operations[0]?.path[0] === "b";
      return { answered: gate.opened, ...(isPlanted ? { instead: rejected("stale", "read-moved", "planted") } : {}) };
    };
    const fallen = here.write(DOC, ["b"], 1);
    const commits = Array.from({ length: 15 }, (_, n) => here.write(DOC, ["a"], n + 1));
    const next = async () => {
      const last = here.write(DOC, ["a"], -1 - here.replica.pendingCommits);
      await quiet();
      return here.arrived.at(-1)?.dependsOn.map((local) => local - last.localSequence);
    };
    expect(await next()).toEqual([-1]);
    (gates.shift() as Gate).open();
    await fallen.outcome;
    const over = here.write(DOC, ["b"], 2);
    expect(await next()).toEqual([-2]);
    for (let n = 0; n < 5; n++) (gates.shift() as Gate).open();
    await (commits[4] as Commit).outcome;
    const reader = here.replica.transaction();
    reader.write(OTHER, [], reader.read(DOC));
    const read = reader.commit();
    for (const gate of gates) gate.open();
    here.line.plan = () => ({});
    expect(fate(await over.outcome)).toBe("stale read-moved");
    expect(fate(await read.outcome)).toBe("stale fell-with");
    expect(await next()).toEqual([]);
  });

  test("[S49] a read of values that many commits wrote depends on those still pending", async () => {
    const { here } = await setup();
    await here.put(DOC, [], { a: {} });
    const gates: Gate[] = [];
    here.line.plan = ({ method }) => {
      const gate = new Gate();
      if (method === "commit") gates.push(gate);
      return method === "commit" ? { answered: gate.opened } : {};
    };
    const commits = Array.from({ length: 20 }, (_, n) => here.write(DOC, ["a", `k${n}`], n));
    const read = (name: string) => {
      const transaction = here.replica.transaction();
      transaction.write(OTHER, [], [name, transaction.read(DOC, ["a"])]);
      return transaction.commit();
    };
    const first = read("first");
    for (const gate of gates.slice(0, 5)) gate.open();
    await (commits[4] as Commit).outcome;
    const second = read("second");
    for (const gate of gates) gate.open();
    expect(fate(await first.outcome)).toBe("committed");
    expect(fate(await second.outcome)).toBe("committed");
    const names = commits.map(({ localSequence }) => localSequence);
    expect(here.arrived.slice(-2).map(({ dependsOn }) => dependsOn)).toEqual([
      names,
      [...names.slice(5), first.localSequence],
    ]);
  });

  test("[S50] a revert announces the net change beneath the remaining commits, with the identity of the rejected one", async () => {
    const { here } = await setup();
    await here.put(DOC, [], { a: { x: 0, y: 0 } });
    const commits = here.hold("commit", "arrives");
    here.next("commit", { instead: rejected("stale", "read-moved", "planted") });
    const first = here.write(DOC, ["a", "x"], 1);
    here.write(DOC, ["a", "y"], 2);
    here.write(OTHER, [], 1);
    here.told();
    commits.open();
    await first.outcome;
    expect(here.notifications.map(({ commit }) => commit)).toEqual([
      { session: first.session, localSequence: first.localSequence },
    ]);
    expect(here.told()).toEqual([["revert", "doc/a/x", 1, 0]]);
    expect(here.replica.peek(DOC)).toEqual({ a: { x: 0, y: 2 } });
  });

  test("[S205] an open transaction that read rolled-back values is stale", async () => {
    const { here } = await setup();
    await here.put(DOC, [], { a: 0, b: 0 });
    here.next("commit", { instead: rejected("stale", "read-moved", "planted") });
    const first = here.write(DOC, ["a"], 1);
    const open = here.replica.transaction();
    open.write(DOC, ["b"], open.read(DOC, ["a"]));
    await first.outcome;
    expect(fate(await open.commit().outcome)).toBe("stale read-moved");
    expect(here.replica.peek(DOC)).toEqual({ a: 0, b: 0 });
  });

  test("[S51] an error of the store becomes a rejection of the right class", async () => {
    const thrown: [Error, string][] = [
      [new StoreError("STORE_MISUSE", "names"), "refused protocol"],
      [new StoreError("STORE_STOPPED", "disk"), "failed store-stopped"],
      [new StoreError("STORE_CLOSED", "closed"), "failed store-stopped"],
      [new Error("socket hang up"), "unknown no-answer"],
    ];
    for (const [instead, expected] of thrown) {
      const { here } = await setup();
      here.next("commit", { instead });
      expect(fate(await here.write(DOC, [], 1).outcome)).toBe(expected);
      expect(here.replica.peek(DOC)).toBe(undefined);
    }
  });

  test("[S204] a commit that landed without an answer is not overwritten unseen", async () => {
    const { here } = await setup();
    await here.put(DOC, [], { n: 1 });
    const feed = here.hold("changesSince", "arrives");
    here.next("commit", { loseAnswer: true });
    const { session } = here.replica;
    const lost = here.write(DOC, ["n"], 2);
    expect(fate(await lost.outcome)).toBe("unknown no-answer");
    expect(here.replica.session).not.toBe(session);
    // The commit was rolled back here and landed in the store: an increment of the local value would lose it.
    const again = here.replica.transaction();
    again.write(DOC, ["n"], (again.read(DOC, ["n"]) as number) + 1);
    expect(fate(await again.commit().outcome)).toBe("stale read-moved");
    here.told();
    feed.open();
    await here.replica.catchUp();
    expect(here.told()).toEqual([["integrate", "doc/n", 1, 2]]);
    const last = here.replica.transaction();
    last.write(DOC, ["n"], (last.read(DOC, ["n"]) as number) + 1);
    expect(fate(await last.commit().outcome)).toBe("committed");
    expect(here.replica.peek(DOC)).toEqual({ n: 3 });
  });

  test("[S204] a commit that depends on a pending commit of the old session is rolled back", async () => {
    const { here } = await setup();
    await here.put(DOC, [], { a: 0, b: 0 });
    here.next("commit", { loseAnswer: true });
    const lost = here.write(DOC, ["a"], 1);
    const answers = here.hold("commit");
    const survivor = here.write(DOC, ["b"], 1);
    await lost.outcome;
    const stacked = here.write(DOC, ["b"], 2);
    const free = here.write(OTHER, [], 1);
    expect(fate(await stacked.outcome)).toBe("stale read-moved");
    expect(here.replica.peek(DOC, ["b"])).toBe(1);
    here.replica.checkInvariants();
    answers.open();
    expect(fate(await survivor.outcome)).toBe("committed");
    expect(fate(await free.outcome)).toBe("committed");
  });

  test("[S53] a commit that is sent twice lands once and gets the first answer", async () => {
    const { here } = await setup();
    await here.put(DOC, [], []);
    here.next("commit", { sendTwice: true });
    const transaction = here.replica.transaction();
    transaction.splice(DOC, [], 0, 0, ["x"]);
    transaction.basisRemoved.push("node");
    expect(await transaction.commit().outcome).toMatchObject({ kind: "committed", sequence: 2, replayed: true });
    await quiet();
    expect(here.replica.peek(DOC)).toEqual(["x"]);
  });

  test("[S53] different payloads have different digests", async () => {
    const payloads: unknown[] = [1, "1", [1], { a: 1 }, { a: "" }, { b: 1 }, "", [], {}, null, false, [[]], [[], []]];
    payloads.push([""], ["a", "b"], ["ab"], 1.5, 2 ** 40, [1, 2], [12]);
    const digests = new Set<string>();
    for (const payload of payloads) {
      const { here } = await setup();
      await here.write(DOC, [], payload).outcome;
      await here.write(DOC, [], "x").outcome;
      digests.add(here.arrived[0]?.digest ?? "none");
    }
    expect(digests.size).toBe(payloads.length);
  });
});

describe("commits without writes", () => {
  test("[S59] a commit with only a precondition reaches the backend", async () => {
    const { here } = await setup();
    await here.put(DOC, [], 1);
    const absent = async (id: string) => {
      const transaction = here.replica.transaction();
      transaction.preconditions.push({ kind: "absent", scope: "space", id });
      return fate(await transaction.commit().outcome);
    };
    expect(await absent("nobody")).toBe("committed");
    expect(await absent("doc")).toBe("permanent document-exists");
    expect(here.arrived.length).toBe(3);
  });

  test("[S59] originCommitted holds only if the origin's commit was made", async () => {
    const { here } = await setup();
    const launch = async (origin: { session: string; localSequence: number }) => {
      const transaction = here.replica.transaction();
      const { session, localSequence } = origin;
      transaction.preconditions.push({ kind: "originCommitted", session, localSequence });
      transaction.write({ scope: "space", id: "launched" }, [], localSequence);
      return fate(await transaction.commit().outcome);
    };
    const made = here.write(DOC, [], 1);
    here.next("commit", { instead: rejected("stale", "read-moved", "planted") });
    const failed = here.write(OTHER, [], 1);
    expect(await launch(made)).toBe("committed");
    expect(fate(await failed.outcome)).toBe("stale read-moved");
    expect(await launch(failed)).toBe("permanent origin-not-committed");
    expect(here.replica.peek({ scope: "space", id: "launched" })).toBe(made.localSequence);
  });

  test("[S59] a commit with only labels is confirmed at its place in the feed", async () => {
    const { here, there } = await setup();
    const label = () => {
      const transaction = here.replica.transaction();
      transaction.labels.push({ ...DOC, path: [], labels: ["secret"] });
      return transaction.commit();
    };
    expect(await label().outcome).toMatchObject({ kind: "committed", sequence: 1 });
    expect(here.replica.position).toBe(1);
    await there.put(OTHER, [], 1);
    expect(await label().outcome).toMatchObject({ kind: "committed", sequence: 3 });
    expect(here.replica.position).toBe(3);
  });

  test("[S207] the outcome of a read-only transaction is that of the commits it read from", async () => {
    const { here } = await setup();
    await here.put(DOC, [], { a: 0 });
    const arrived = here.arrived.length;
    const free = here.replica.transaction();
    free.read(DOC);
    expect(fate(await free.commit().outcome)).toBe("committed");
    const answers = here.hold("commit");
    here.write(DOC, ["a"], 1);
    const standing = here.replica.transaction();
    standing.read(DOC, ["a"]);
    let isKnown = false;
    const outcome = standing.commit().outcome.then((value) => {
      isKnown = true;
      return value;
    });
    await quiet();
    expect(isKnown).toBe(false);
    answers.open();
    expect(fate(await outcome)).toBe("committed");
    expect(here.arrived.length).toBe(arrived + 1);
  });
});

describe("the end", () => {
  test("[S70] close waits for pending commits; afterwards no load begins and no change is announced", async () => {
    const { here, there } = await setup();
    await here.put(DOC, [], { a: 0 });
    const answers = here.hold("commit");
    here.write(DOC, ["a"], 1);
    const open = here.replica.transaction();
    open.write(DOC, ["a"], 2);
    let isClosed = false;
    const closing = here.replica.close().then(() => {
      isClosed = true;
    });
    expect(() => here.replica.transaction()).toThrow("is closed");
    expect(() => open.commit()).toThrow("is closed");
    await quiet();
    expect(isClosed).toBe(false);
    answers.open();
    await closing;
    expect(here.replica.pendingCommits).toBe(0);
    here.told();
    await there.put(DOC, ["a"], 3);
    expect(here.told()).toEqual([]);
    await here.replica.close();
  });

  test("[S223] with a grace, unanswered commits end as unknown, and those that wait only for the feed are committed", async () => {
    const { here, there } = await setup();
    const time = simulatedHost(1);
    await here.put(DOC, [], { a: 0, b: 0 });
    const feed = here.hold("changesSince");
    await there.put(OTHER, [], 1);
    const answered = here.write(DOC, ["a"], 1);
    await quiet();
    const answers = here.hold("commit");
    const unanswered = [here.write(DOC, ["b"], 1), here.write(DOC, ["b"], 2)];
    const closing = here.replica.close(new Grace(time, 10));
    await time.advance(LAST_ANSWERS_MS);
    expect(await closing).toBe(2);
    expect(await answered.outcome).toMatchObject({ kind: "committed" });
    for (const { outcome } of unanswered) expect(await outcome).toMatchObject({ kind: "rejected", class: "unknown" });
    expect(here.replica.peek(DOC)).toEqual({ a: 1, b: 0 });
    // They come back in vain: it is over.
    answers.open();
    feed.open();
    await quiet();
    expect(here.replica.pendingCommits).toBe(0);
  });
});
