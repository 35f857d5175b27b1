import { describe, expect, test } from "#test";
import type { Cell } from "../../src/cells/cell.ts";
import { ADDRESSES_UNREAD_MAX, CLOSED_STREAMS_MAX } from "../../src/limits.ts";
import type { NodeAddress } from "../../src/scheduler/node.ts";
import { SHARED_SCOPE } from "../../src/store/document.ts";
import { rejected } from "../../src/store/rejection.ts";
import { isLongRun, type LongPart, rounds, timeoutMs } from "../portable/long-run.ts";
import { Calls, type Site, setup } from "../scheduler/scheduler-setup.ts";
import { Gate } from "../store/faulty-store.ts";
import { CountingProgram } from "./counting-program.ts";

const IDS = isLongRun ? 200_000 : 5_000;
const RANDOM: LongPart = { name: "documents dropped at random", short: 60, long: 2_000, minutes: 1 };
const MAX = 50;
const ref = (id: string) => ({ scope: SHARED_SCOPE, id });

interface Doc {
  n: number;
  deep: { x: number };
  list: number[];
}
const DOC: Doc = { n: 1, deep: { x: 2 }, list: [3] };

let fillers = 0;

/** Loads other documents until the documents that are not in use are dropped. */
async function push({ space }: Site, { quiet }: { quiet: () => Promise<void> }): Promise<void> {
  for (let i = 0; i < 12; i++) {
    void space.cell(`filler ${++fillers}`).pull();
    await quiet();
  }
}

/** A space that keeps four documents, a cell that is used, and its document dropped after that. */
async function dropped() {
  const all = await setup({ residentDocumentsMax: 4 });
  const doc = all.space.cell<Doc>("doc");
  const x = doc.key("deep").key("x");
  doc.set(DOC);
  await all.quiet();
  const drop = async () => {
    await push(all, all);
    expect(all.space.replica("s").find(ref("doc"))).toBe(undefined);
  };
  await drop();
  const stored = async () => {
    await all.quiet();
    const other = await all.open();
    const value = other.space.cell<Doc>("doc").pull();
    await all.quiet();
    return await value;
  };
  return { ...all, doc, x, drop, stored };
}

function addressesOf({ home }: NodeAddress): number {
  let count = 0;
  const open = [home.root];
  for (const { children } of open) {
    count++;
    for (const child of children?.values() ?? []) open.push(child);
  }
  return count;
}

describe("documents that only cells lead to", () => {
  test("[R44] are bounded, however many ids there are; each is found again with its value", async () => {
    const { space, quiet, scheduler } = await setup({ residentDocumentsMax: MAX });
    const replica = space.replica("s");
    const cells: Cell<number | undefined>[] = [];
    let most = 0;
    for (let i = 0; i < IDS; i++) {
      const cell = space.cell<number>(`id ${i}`);
      if (i % 100 === 0) cells.push(cell);
      cell.get();
      cell.set(i);
      if (i % 10 === 9) await quiet();
      most = Math.max(most, replica.residentDocuments);
    }
    // Pending documents, and those loaded since the last sweep, come on top.
    expect(most).toBeLessThanOrEqual(MAX + 20);
    expect(scheduler.getStats().nodes).toBe(0);
    for (const [at, cell] of cells.entries()) {
      const value = cell.pull();
      await quiet();
      expect(await value).toBe(at * 100);
    }
    expect(replica.residentDocuments).toBeLessThanOrEqual(MAX + 20);
    scheduler.checkInvariants();
    replica.checkInvariants();
  }, 600_000);

  test("[R45] addresses without a reader are bounded in one document; addresses with a reader stay", async () => {
    const { space, quiet } = await setup();
    const doc = space.cell<Record<string, number>>("doc");
    doc.set({});
    const seen = new Calls();
    doc.key("watched").sink(seen.note);
    const early = doc.key("k 0");
    const before = early.address;
    let most = 0;
    for (let i = 0; i < 3 * ADDRESSES_UNREAD_MAX; i++) {
      doc.key(`k ${i}`).set(i);
      if (i > 0) doc.key(`k ${i - 1}`).delete();
      if (i % 100 === 0) await quiet();
      most = Math.max(most, addressesOf(doc.address));
    }
    expect(most).toBeLessThan(ADDRESSES_UNREAD_MAX + 300);
    expect([before.gone, early.address.gone]).toEqual([true, false]);
    early.set(7);
    doc.key("watched").set(8);
    await quiet();
    expect([doc.key("k 0").get(), seen.take()]).toEqual([7, [undefined, 8]]);
    early.sink(seen.note);
    await quiet();
    doc.key("k 0").set(9);
    await quiet();
    expect(seen.take()).toEqual([7, 9]);
  });

  test("[R44] are held by streams that have a handler, and by so many that were closed", async () => {
    const { space, scheduler, quiet } = await setup({ residentDocumentsMax: MAX });
    const replica = space.replica("s");
    space.stream("handled").handle(() => null);
    for (let i = 0; i < CLOSED_STREAMS_MAX + 500; i++) {
      scheduler.parts.events.closeStream(space.stream(`s ${i}`).address, "it is over");
      if (i % 100 === 0) await quiet();
    }
    await quiet();
    expect(replica.residentDocuments).toBeLessThanOrEqual(CLOSED_STREAMS_MAX + MAX);
    const sent = [space.stream("handled"), space.stream(`s ${CLOSED_STREAMS_MAX}`)].map((stream) => stream.send(1));
    await quiet();
    expect((await Promise.all(sent.map(({ outcome }) => outcome))).map(({ kind }) => kind)).toEqual([
      "handled",
      "dropped",
    ]);
  });

  test("[R44] documents with a reader, a writer or an open transaction stay in memory", async () => {
    const { space, quiet, ...site } = await setup({ residentDocumentsMax: 4 });
    const replica = space.replica("s");
    const source = space.cell<number>("source");
    source.set(1);
    const cancel = space.cell<number>("sunk").sink(() => undefined);
    const twice = space.computed("twice", () => (source.get() ?? 0) * 2);
    const first = twice.pull();
    const open = space.begin();
    open.get(space.cell("open"));
    await quiet();
    expect(await first).toBe(2);
    await push({ space, ...site }, { quiet });
    // A dormant computation needs its source in memory, to check whether its value is current.
    for (const id of ["sunk", "source", "twice", "open"]) expect(replica.find(ref(id))?.id).toBe(id);
    cancel();
    twice.dispose();
    open.abort();
    await push({ space, ...site }, { quiet });
    for (const id of ["sunk", "source", "twice", "open"]) expect(replica.find(ref(id))).toBe(undefined);
  });
});

describe("a cell made before its document was dropped", () => {
  test("[R44] reads as one of a document that is not loaded, and as it is when it has arrived", async () => {
    const { doc, x, quiet } = await dropped();
    expect([doc.get(), x.get()]).toEqual([undefined, undefined]);
    await quiet();
    expect([doc.get(), x.get()]).toEqual([DOC, 2]);
  });

  test("[R44] a cell made before its document was dropped and a cell made after are the same place", async () => {
    const { space, doc, x, quiet } = await dropped();
    const seen = new Calls();
    x.sink(seen.note);
    await quiet();
    const again = space.cell<Doc>("doc");
    expect(again.address).toBe(doc.address);
    again.key("deep").key("x").set(5);
    await quiet();
    doc.set({ ...DOC, deep: { x: 6 } });
    await quiet();
    expect([seen.take(), again.key("deep").key("x").get()]).toEqual([[2, 5, 6], 6]);
  });

  test("[R44] replaces the document whole at once, and writes below it after a pull", async () => {
    const { doc, x, drop, stored, quiet } = await dropped();
    doc.set({ ...DOC, n: 9 });
    expect(doc.get()).toEqual({ ...DOC, n: 9 });
    await quiet();
    await drop();
    expect(() => x.set(3)).toThrow("pull it, or write its parent first");
    // The refused write has started a load.
    await quiet();
    x.set(3);
    expect(await stored()).toEqual({ ...DOC, n: 9, deep: { x: 3 } });
  });

  test("[R53] updates the document that is there once it is loaded, and a push that does not fit it is reported", async () => {
    const { space, scheduler, doc, drop, stored, host } = await dropped();
    const errors = new Calls();
    scheduler.onError(errors.note);
    doc.update((value) => ({ ...(value ?? DOC), n: 7 }));
    await host.run(() => space.settled());
    expect([errors.count, doc.get()]).toEqual([0, { ...DOC, n: 7 }]);
    await drop();
    space.cell<number[]>("doc").push(1);
    await host.run(() => space.settled());
    expect([await stored(), errors.take().map(String)]).toEqual([
      { ...DOC, n: 7 },
      [expect.stringContaining("there is no array")],
    ]);
    space.cell<number>("new").update((n = 0) => n + 1);
    await host.run(() => space.settled());
    expect([space.cell("new").get(), errors.count]).toEqual([1, 0]);
  });

  test("[R44] can be linked to, labelled and deleted", async () => {
    const { space, doc, x, drop, stored, quiet } = await dropped();
    space.cell<unknown>("link").set(x.asLink());
    const through = space.cell<number>("link").pull();
    await quiet();
    expect(await through).toBe(2);
    await drop();
    const labelled = x.label(["secret"]);
    await quiet();
    await labelled;
    await drop();
    expect(space.labelsOf(x)).toEqual([]);
    void x.pull();
    await quiet();
    expect(space.labelsOf(x)).toEqual(["secret"]);
    await drop();
    void doc.pull();
    await quiet();
    doc.delete();
    expect(await stored()).toBe(undefined);
  });

  test("[R44] a cell whose label the program gives is labelled at once after a drop", async () => {
    const { space, quiet, ...site } = await setup({ residentDocumentsMax: 4 });
    const secret = space.cell<number>("secret", undefined, { label: ["s"] });
    secret.set(1);
    await quiet();
    await push({ space, ...site }, { quiet });
    expect(space.replica("s").find(ref("secret"))).toBe(undefined);
    expect(space.labelsOf(secret)).toEqual(["s"]);
  });
});

describe("readers and writers of a dropped document", () => {
  test("[R46] a transaction is run again when it is here: it has read, written below it, or only looked", async () => {
    const { space, doc, x, drop, stored, quiet } = await dropped();
    const n = space.transact(() => doc.get()?.n);
    await quiet();
    expect(await n).toBe(1);
    await drop();
    const written = space.transact(() => x.update((value = 0) => value + 1));
    await quiet();
    await written;
    await drop();
    const below = space.transact(() => doc.key("list").push(4));
    await quiet();
    await below;
    expect(await stored()).toEqual({ n: 1, deep: { x: 3 }, list: [3, 4] });
  });

  test("[R46] a transaction does not take a document for absent that its own process has written and dropped", async () => {
    const { host, space, quiet } = await dropped();
    const doc = space.cell<Doc>("doc");
    const made = space.transact(() => {
      if (doc.get() === undefined) doc.set({ ...DOC, n: 0 });
    });
    await host.advance(100);
    await made;
    void doc.pull();
    await quiet();
    expect(doc.get()).toEqual(DOC);
  });

  test("[R46] more documents than are kept can be had in one transaction, and by one handler", async () => {
    const { host, space, ...site } = await setup({ residentDocumentsMax: 2 });
    const cells = Array.from({ length: 8 }, (_, i) => space.cell<number>(`c ${i}`));
    for (const [i, cell] of cells.entries()) cell.set(i);
    await host.advance(0);
    await push({ space, ...site }, site);
    const sum = () => cells.reduce((all, cell) => (all < 0 ? all : all + (cell.get() ?? Number.NEGATIVE_INFINITY)), 0);
    const transacted = space.transact(sum);
    await host.advance(1_000);
    expect(await transacted).toBe(28);
    await push({ space, ...site }, site);
    const stream = space.stream("sum");
    stream.handle(() => ({ sum: sum() }));
    const { outcome } = stream.send(null);
    await host.advance(1_000);
    expect(await outcome).toMatchObject({ kind: "handled", result: { sum: 28 } });
  });

  test("[R46] a computation and an effect see it when it has arrived", async () => {
    const { space, x, quiet } = await dropped();
    const next = space.computed("next", () => (x.get() ?? 0) + 1);
    const seen = new Calls();
    next.sink(seen.note);
    await quiet();
    expect(seen.take().at(-1)).toBe(3);
    space.computed("dormant", () => x.get());
  });

  test("[R46] an effect that writes into it without reading it writes when it is here, and once", async () => {
    const { space, scheduler, x, stored } = await dropped();
    const errors = new Calls();
    scheduler.onError(errors.note);
    const trigger = space.cell<number>("trigger");
    trigger.set(10);
    const runs = new Calls();
    space.effect(() => {
      x.set(trigger.get() as number);
      runs.note(trigger.get());
    });
    expect(await stored()).toEqual({ ...DOC, deep: { x: 10 } });
    expect([runs.take(), errors.take()]).toEqual([[10], []]);
    scheduler.checkInvariants();
  });

  test("[R46] a handler reads and writes it, and its stream is found again", async () => {
    const { space, doc, x, drop, stored, quiet } = await dropped();
    const stream = space.stream<number>("orders");
    await drop();
    stream.handle((by) => {
      x.set((x.get() as number) + by);
      return { n: doc.get()?.n as number };
    });
    await drop();
    const { outcome } = space.stream<number>("orders").send(5);
    await quiet();
    expect(await outcome).toMatchObject({ kind: "handled", result: { n: 1 } });
    expect(await stored()).toEqual({ ...DOC, deep: { x: 7 } });
  });
});

describe("dropping", () => {
  test("[R44] a document with a pending commit is not dropped, and shows the outcome", async () => {
    const { space, line, doc, quiet, ...site } = await dropped();
    const gate = new Gate();
    line.plan = ({ method }) => (method === "commit" ? { arrives: gate.opened } : {});
    doc.set({ ...DOC, n: 4 });
    await push({ space, line, ...site }, { quiet });
    expect(doc.get()).toEqual({ ...DOC, n: 4 });
    gate.open();
    line.plan = () => ({});
    await quiet();
    await push({ space, line, ...site }, { quiet });
    expect(space.replica("s").find(ref("doc"))).toBe(undefined);
    const value = doc.pull();
    await quiet();
    expect(await value).toEqual({ ...DOC, n: 4 });
  });

  test("[R44] documents written in the same turn are not dropped", async () => {
    const { space } = await setup({ residentDocumentsMax: 4 });
    const cells = Array.from({ length: 12 }, (_, i) => space.cell<number>(`c ${i}`));
    for (const [i, cell] of cells.entries()) cell.set(i);
    for (let i = 0; i < 3; i++) await undefined;
    expect(cells.map((cell) => cell.get())).toEqual(cells.map((_, i) => i));
  });

  test("[R44] [S66] a document whose label is not stored is not dropped", async () => {
    const { space, line, x, quiet, ...site } = await dropped();
    line.plan = ({ method }) => (method === "commit" ? { instead: rejected("refused", "protocol", "not now") } : {});
    const labelled = x.label(["secret"]);
    await Promise.all([expect(labelled).rejects.toThrow("not now"), quiet()]);
    await push({ space, line, ...site }, { quiet });
    expect(space.labelsOf(x)).toEqual(["secret"]);
  });

  test("[R44] a cell made before its document was dropped shows a later change by another process", async () => {
    const { doc, x, open, quiet } = await dropped();
    const other = await open();
    const theirs = other.space.cell<Doc>("doc");
    void theirs.pull();
    await quiet();
    theirs.key("deep").key("x").set(77);
    await quiet();
    const value = x.pull();
    await quiet();
    expect(await value).toBe(77);
    theirs.key("n").set(78);
    await quiet();
    expect(doc.get()).toEqual({ ...DOC, n: 78, deep: { x: 77 } });
  });

  test("[R47] the elements that a list passes to its children stay as long as the children", async () => {
    const { space, quiet, ...site } = await setup({ residentDocumentsMax: 4 });
    const list = space.cell<{ id: string; n: number }[]>("list");
    const items = Array.from({ length: 10 }, (_, n) => ({ id: `i ${n}`, n }));
    list.set(items);
    const isOn = space.cell<boolean>("on");
    isOn.set(false);
    const mapped = space.map("mapped", list, (item) => (isOn.get() ? (item.get()?.n ?? -1) : 0), {
      key: ({ id }) => id,
    });
    const seen = new Calls();
    const cancel = mapped.sink(seen.note);
    await quiet();
    await push({ space, ...site }, { quiet });
    // They have not read their elements so far.
    isOn.set(true);
    await quiet();
    expect(seen.take().at(-1)).toEqual(items.map(({ n }) => n));
    cancel();
    const replica = space.replica("s");
    for (let i = 0; i < 50; i++) {
      list.set([{ id: `new ${i}`, n: i }]);
      const value = mapped.pull();
      await quiet();
      expect(await value).toEqual([i]);
    }
    await push({ space, ...site }, { quiet });
    expect(replica.residentDocuments).toBeLessThan(20);
  });

  test(
    "[R44] [R46] random reads, writes and drops by two processes store exactly the writes that were made",
    async () => {
      for (const seed of rounds(RANDOM)) await new CountingProgram(seed).run();
    },
    timeoutMs(RANDOM),
  );
});
