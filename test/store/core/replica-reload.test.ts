import { describe, expect, test } from "#test";
import { simulatedHost } from "../../../src/host/simulated-host.ts";
import { RELOAD_BATCH_DOCUMENTS } from "../../../src/limits.ts";
import type { Json } from "../../../src/message/json.ts";
import type { DocumentRef } from "../../../src/store/document.ts";
import { MemoryDisk } from "../../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../../src/store/memory/memory-store.ts";
import { Replica } from "../../../src/store/replica.ts";
import { StoreError } from "../../../src/store/store.ts";
import { FaultyLine } from "../faulty-store.ts";
import { DOC, fate, OTHER, quiet, SPACE, setup } from "./replica-setup.ts";

const DAMAGE = new StoreError("STORE_CORRUPT", "stored bytes have changed");

/** A replica behind a line on simulated time, and another that writes as fast as the feed forgets. */
async function setupBehind() {
  const host = simulatedHost(1);
  const disk = new MemoryDisk({ changesKept: 3 });
  const line = new FaultyLine(memoryStore({ host, disk }));
  const open = (store: FaultyLine["store"]) => host.run(() => Replica.open({ store, space: SPACE, host }));
  const here = await open(line.store);
  const there = await open(memoryStore({ host, disk }));
  const troubles: unknown[] = [];
  here.onTrouble = (trouble) => void troubles.push(trouble);
  const put = async (ref: DocumentRef, value: Json) => {
    const transaction = there.transaction();
    transaction.write(ref, [], value);
    await host.run(() => transaction.commit().outcome);
  };
  return { host, line, here, there, troubles, put };
}

type Behind = Awaited<ReturnType<typeof setupBehind>>;

/** Others write so much that the feed does not reach back any more, before the replica may look. */
async function fallBehind({ line, host, put }: Behind, writes: () => Promise<void>): Promise<void> {
  const { plan } = line;
  line.plan = (call) => (call.method === "changesSince" ? { instead: new Error("the line is dead") } : plan(call));
  await writes();
  for (let n = 0; n < 5; n++) await put({ scope: "space", id: "noise" }, n);
  await host.advance(0);
  line.plan = plan;
}

describe("a reload behind the feed's horizon", () => {
  test("[S65] [S68] a reload shows own answered commits that wait for the feed once, and pending ones on top", async () => {
    const { here, there } = await setup({ changesKept: 3 });
    await here.put(DOC, [], { n: 0 });
    await here.put(OTHER, [], ["a"]);
    await there.replica.load([DOC]);
    const feed = here.hold("changesSince", "arrives");
    for (let n = 1; n <= 10; n++) await there.put(DOC, ["n"], n);
    const append = (item: string, at: number) => {
      const transaction = here.replica.transaction();
      transaction.splice(OTHER, [], at, 0, [item]);
      return transaction.commit();
    };
    const answered = append("answered", 1);
    await quiet();
    const commits = here.hold("commit", "arrives");
    const sent = append("on its way", 2);
    feed.open();
    expect(fate(await answered.outcome)).toBe("committed");
    await here.replica.catchUp();
    here.replica.checkInvariants();
    expect(here.replica.peek(OTHER)).toEqual(["a", "answered", "on its way"]);
    commits.open();
    // The sequence that it had seen is unknown.
    expect(fate(await sent.outcome)).toBe("stale read-moved");
    expect(here.replica.peek(OTHER)).toEqual(["a", "answered"]);
    await there.replica.load([OTHER]);
    expect(there.replica.peek(OTHER)).toEqual(["a", "answered"]);
  });

  test("[S68] [S62] a reload shows a foreign write over an own answered one that waits for the feed", async () => {
    const { here, there } = await setup({ changesKept: 3 });
    const feed = here.hold("changesSince", "arrives");
    await there.put(OTHER, [], 0);
    const own = here.write(DOC, [], "own");
    await quiet();
    await there.put(DOC, [], "theirs");
    for (let n = 1; n <= 10; n++) await there.put(OTHER, [], n);
    feed.open();
    expect(fate(await own.outcome)).toBe("committed");
    await here.replica.catchUp();
    here.replica.checkInvariants();
    await here.replica.load([DOC]);
    expect(here.replica.peek(DOC)).toBe("theirs");
  });

  test("[S68] a reload requests a bounded number of documents at a time", async () => {
    const setup = await setupBehind();
    const { host, line, here, put } = setup;
    const refs = Array.from({ length: 2 * RELOAD_BATCH_DOCUMENTS + 1 }, (_, n) => ({ scope: "space", id: `${n}` }));
    await host.run(() => here.load(refs));
    const asked: number[] = [];
    line.plan = ({ method, refs: of = [] }) => {
      if (method === "load") asked.push(of.length);
      return {};
    };
    await fallBehind(setup, () => put(refs[7] as DocumentRef, "new"));
    await host.run(() => here.catchUp());
    expect(here.peek(refs[7] as DocumentRef)).toBe("new");
    expect(Math.max(...asked)).toBe(RELOAD_BATCH_DOCUMENTS);
    expect(asked.reduce((sum, count) => sum + count)).toBe(refs.length);
    expect(refs.every((ref) => here.place(ref).loadedAt === here.position)).toBe(true);
  });

  test("[S219] [S212] a reload skips a damaged document, reports it once and retries it with growing delays", async () => {
    const setup = await setupBehind();
    const { host, line, here, put, troubles } = setup;
    await put(DOC, "old");
    await put(OTHER, "old");
    here.observe(DOC);
    here.observe(OTHER);
    await host.run(() => here.loadsSettled());
    const tries: number[] = [];
    let isDamaged = true;
    line.plan = ({ method, refs = [] }) => {
      const isAsked = method === "load" && refs.some(({ id }) => id === DOC.id);
      if (isAsked && refs.length === 1) tries.push(host.monotonic());
      return isAsked && isDamaged ? { instead: DAMAGE } : {};
    };
    const told: unknown[] = [];
    here.subscribe(({ kind, changes }) => void told.push(...changes.map(({ id, after }) => [kind, id, after])));
    await fallBehind(setup, async () => {
      await put(DOC, "new");
      await put(OTHER, "new");
    });
    await host.run(() => here.catchUp());
    expect(told).toContainEqual(["integrate", OTHER.id, "new"]);
    expect(told).toContainEqual(["integrate", DOC.id, undefined]);
    expect(here.place(DOC)).toMatchObject({ state: "absent", value: undefined, loadError: DAMAGE });
    here.checkInvariants();
    await host.advance(100_000);
    await put(OTHER, "later");
    await host.run(() => here.catchUp());
    expect(here.peek(OTHER)).toBe("later");
    expect(troubles).toMatchObject([{ code: "STORE_CORRUPT", message: expect.stringContaining(`space/${DOC.id}`) }]);
    const pauses = tries.slice(1).map((time, i) => Math.round((time - (tries[i] as number)) / 1_000));
    expect(pauses).toEqual([1, 2, 4, 8, 16, 30, 30]);
    isDamaged = false;
    await host.advance(30_000);
    expect(here.peek(DOC)).toBe("new");
    expect(told.at(-1)).toEqual(["pull", DOC.id, "new"]);
  });

  test("[S219] [S61] after a reload no commit passes that read a damaged document as absent", async () => {
    const setup = await setupBehind();
    const { host, line, here, put } = setup;
    await put(DOC, { n: 1 });
    await host.run(() => here.load([DOC]));
    const open = here.transaction();
    expect(open.read(DOC, ["n"])).toBe(1);
    line.plan = ({ refs = [] }) => (refs.some(({ id }) => id === DOC.id) ? { instead: DAMAGE } : {});
    // The document has not changed: it is stale only because it cannot be read.
    await fallBehind(setup, async () => undefined);
    await host.run(() => here.catchUp());
    open.write(OTHER, [], "on what was there");
    expect(fate(await host.run(() => open.commit().outcome))).toBe("stale read-moved");
    const blind = here.transaction();
    expect(blind.read(DOC)).toBe(undefined);
    blind.write(OTHER, [], "on nothing");
    expect(fate(await host.run(() => blind.commit().outcome))).toBe("stale read-moved");
    expect(here.peek(OTHER)).toBe(undefined);
  });

  test("[S219] [S61] pending writes to a damaged document stay and do not count as knowledge of it", async () => {
    const setup = await setupBehind();
    const { host, line, here, put } = setup;
    await put(DOC, { n: 1 });
    await host.run(() => here.load([DOC]));
    const gate = Promise.withResolvers<void>();
    let isDamaged = true;
    line.plan = ({ method, refs = [] }) => {
      if (method === "commit") return { arrives: gate.promise };
      return isDamaged && refs.some(({ id }) => id === DOC.id) ? { instead: DAMAGE } : {};
    };
    const into = here.transaction();
    into.write(DOC, ["own"], true);
    const sent = into.commit();
    await fallBehind(setup, async () => undefined);
    await host.run(() => here.catchUp());
    here.checkInvariants();
    expect(here.place(DOC)).toMatchObject({ state: "absent", value: undefined, loadError: DAMAGE });
    const blind = here.transaction();
    expect(blind.read(DOC)).toBe(undefined);
    blind.write(OTHER, [], "on nothing");
    const onNothing = blind.commit();
    gate.resolve();
    expect(fate(await host.run(() => sent.outcome))).toBe("committed");
    expect(fate(await host.run(() => onNothing.outcome))).toBe("stale read-moved");
    expect(here.place(DOC)).toMatchObject({ value: undefined, loadError: DAMAGE });
    isDamaged = false;
    await host.run(() => here.load([DOC]));
    here.checkInvariants();
    expect(here.peek(DOC)).toEqual({ n: 1, own: true });
  });

  test("[S68] [S60] a reload does not replace a document that was loaded later", async () => {
    const setup = await setupBehind();
    const { host, line, here, put } = setup;
    await put(DOC, "theirs");
    const [arrives, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let asked = 0;
    line.plan = ({ method, refs = [] }) => {
      if (method === "commit") return { arrives: arrives.promise };
      return refs.some(({ id }) => id === DOC.id) && ++asked === 1 ? { answered: answered.promise } : {};
    };
    const own = here.transaction();
    own.write(DOC, [], "own");
    const sent = own.commit();
    await fallBehind(setup, async () => undefined);
    const caughtUp = here.catchUp();
    await host.advance(0);
    arrives.resolve();
    await host.run(() => here.load([DOC]));
    expect([asked, here.peek(DOC)]).toEqual([2, "own"]);
    answered.resolve();
    await host.run(() => caughtUp);
    here.checkInvariants();
    expect(fate(await host.run(() => sent.outcome))).toBe("committed");
    expect(here.peek(DOC)).toBe("own");
  });

  test("[S68] [S210] a load that lacks a pending write to a lost document does not lose that write", async () => {
    const setup = await setupBehind();
    const { host, line, here, put } = setup;
    await put(DOC, { n: 1 });
    await host.run(() => here.load([DOC]));
    const [arrives, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    line.plan = ({ method, refs = [] }) => {
      if (method === "commit") return { arrives: arrives.promise };
      return refs.some(({ id }) => id === DOC.id) ? { instead: DAMAGE } : {};
    };
    const into = here.transaction();
    into.write(DOC, ["own"], true);
    const sent = into.commit();
    await fallBehind(setup, async () => undefined);
    await host.run(() => here.catchUp());
    line.plan = ({ method }) => (method === "load" ? { answered: answered.promise } : {});
    here.observe(DOC);
    await host.advance(0);
    arrives.resolve();
    expect(fate(await host.run(() => sent.outcome))).toBe("committed");
    expect(here.place(DOC)).toMatchObject({ state: "loading", value: undefined });
    answered.resolve();
    await host.run(() => here.loadsSettled());
    here.checkInvariants();
    expect(here.peek(DOC)).toEqual({ n: 1, own: true });
  });
});

describe("a damaged feed", () => {
  test("[S220] a damaged feed is reported once and read with growing delays until it is readable", async () => {
    const { host, line, here, put, troubles } = await setupBehind();
    await put(DOC, "old");
    await host.run(() => here.load([DOC]));
    const looks: number[] = [];
    line.plan = ({ method }) => {
      if (method !== "changesSince") return {};
      looks.push(host.monotonic());
      return { instead: DAMAGE };
    };
    await put(DOC, "new");
    await host.advance(70_000);
    expect(looks.slice(1).map((time, i) => Math.round((time - (looks[i] as number)) / 1_000))).toEqual([
      1, 2, 4, 8, 16, 30,
    ]);
    expect(troubles).toEqual([DAMAGE]);
    line.plan = () => ({});
    await host.advance(30_000);
    expect(here.peek(DOC)).toBe("new");
  });
});
