import { describe, expect, test } from "#test";
import type { Cell } from "../../src/cells/cell.ts";
import type { RunHandle } from "../../src/scheduler/node.ts";
import { isWithin, join, LabelError, labelOf, PUBLIC } from "../../src/store/label.ts";
import { rejected } from "../../src/store/rejection.ts";
import { Calls, setup } from "../scheduler/scheduler-setup.ts";

/** The code of the error that `act` throws, or its result. */
function codeOf(act: () => unknown): unknown {
  try {
    return act();
  } catch (error) {
    return error instanceof LabelError ? error.code : error;
  }
}

async function withSecret() {
  const { open: process, ...site } = await setup();
  const { space, quiet, scheduler } = site;
  const secret = space.cell<number>("secret", undefined, { label: ["s"] });
  const open = space.cell<number>("open");
  secret.set(1);
  open.set(1);
  await quiet();
  const errors = new Calls<unknown>();
  scheduler.onError((error) => errors.note((error as { code?: string }).code ?? String(error)));
  return { ...site, process, secret, open, errors };
}

describe("labels", () => {
  test("[F8] are sets of names, joined by union, ordered by inclusion", () => {
    expect(labelOf(["b", "a", "b"])).toEqual(["a", "b"]);
    expect(join(labelOf(["a"]), labelOf(["b"]))).toEqual(["a", "b"]);
    const both = labelOf(["a", "b"]);
    expect(join(both, labelOf(["a"]))).toBe(both);
    expect([isWithin(PUBLIC, PUBLIC), isWithin(both, labelOf(["b"])), isWithin(labelOf(["b"]), both)]).toEqual([
      true,
      false,
      true,
    ]);
    expect(codeOf(() => labelOf([""]))).toBe("LABEL_MISUSE");
  });

  test("[F20] labels belong to places: at, above and below the place that is read", async () => {
    const { space, quiet } = await setup();
    const doc = space.cell<{ a: { b: number; c: number }; "a/b": number }>("doc");
    doc.set({ a: { b: 1, c: 2 }, "a/b": 3 });
    await doc.key("a").key("b").label(["s"]);
    await quiet();
    const clearance: string[] = [];
    const seen = (read: () => unknown) => space.scheduler.pullOnce(read, clearance).catch((error) => error.code);
    expect(await seen(() => doc.key("a").key("b").get())).toBe("LABEL_REFUSED");
    expect(await seen(() => doc.key("a").key("c").get())).toBe(2);
    expect(await seen(() => doc.key("a/b").get())).toBe(3);
    expect(await seen(() => doc.get())).toBe("LABEL_REFUSED");
    expect(await seen(() => Object.keys(space.scheduler.parts.runner.read(doc.address, true) as object))).toEqual([
      "a",
      "a/b",
    ]);
    // A shallow read shows which keys there are.
    expect(await seen(() => space.scheduler.parts.runner.read(doc.key("a").address, true))).toBe("LABEL_REFUSED");
    expect(space.labelsOf(doc.key("a"))).toEqual(["s"]);
    expect(space.labelsOf(doc.key("a").key("c"))).toEqual([]);
  });
});

describe("labels of computed values", () => {
  test("[F2] a computed value has the labels of its last run's reads, through links and computed values", async () => {
    const { space, secret, open } = await withSecret();
    const flag = space.cell<boolean>("flag");
    const pointer = space.cell<unknown>("pointer");
    pointer.set(secret.asLink());
    const linked = space.computed("linked", () => (pointer as Cell<number>).get());
    const chosen = space.computed("chosen", () => (flag.get() ? linked.get() : open.get()));
    const shown = space.computed("shown", () => `${chosen.get()}`);
    shown.sink(() => undefined);
    space.flush();
    expect([space.labelsOf(linked), space.labelsOf(shown)]).toEqual([[], []]);
    flag.set(true);
    space.flush();
    expect([space.labelsOf(linked), space.labelsOf(chosen), space.labelsOf(shown)]).toEqual([["s"], ["s"], ["s"]]);
    flag.set(false);
    space.flush();
    expect([space.labelsOf(chosen), space.labelsOf(shown)]).toEqual([[], []]);
  });

  test("[F2] a computed value does not have the label of a value that only triggered it", async () => {
    const { space, secret, open, quiet } = await withSecret();
    const labels: unknown[] = [];
    for (const next of [1, 2]) {
      const flag = space.cell<boolean>(`flag ${next}`);
      flag.set(true);
      secret.set(1);
      await quiet();
      const chosen = space.computed(`chosen ${next}`, () => (flag.get() ? secret.get() : open.get()));
      chosen.sink(() => undefined);
      space.flush();
      flag.set(false);
      secret.set(next);
      space.flush();
      labels.push(space.labelsOf(chosen));
    }
    expect(labels).toEqual([[], []]);
  });

  test("[F2] a failed run labels its computed value; a list operation has the labels of its list and elements", async () => {
    const { space, secret, quiet } = await withSecret();
    const failing = space.computed("failing", () => {
      if (secret.get() === 1) throw new Error("one");
      return 0;
    });
    const list = space.cell<number[]>("list", undefined, { label: ["l"] });
    list.set([1, 2]);
    await quiet();
    const doubled = space.map("doubled", list, (element) => (element.get() ?? 0) * 2);
    failing.sink(() => undefined);
    const seen = new Calls();
    doubled.sink(seen.note);
    space.flush();
    expect(seen.take()).toEqual([[2, 4]]);
    expect(space.labelsOf(failing)).toEqual(["s"]);
    expect(space.labelsOf(doubled)).toEqual(["l"]);
    const children = space.scheduler.getGraphSnapshot().filter(({ parent }) => parent === "doubled");
    expect(children.map(({ writes }) => space.labelsOf(space.cell(writes[0] as string)))).toEqual([["l"], ["l"]]);
    expect(codeOf(() => failing.label(["x"]))).toBe("LABEL_MISUSE");
  });
});

describe("an effect", () => {
  test("[F3] an effect has the label of its trigger, and a write of it to a lower place is refused", async () => {
    const { space, secret, open, errors, quiet } = await withSecret();
    const runs = space.cell<number>("runs");
    let count = 0;
    space.effect(() => {
      count++;
      if (count === 1) secret.get();
      open.get();
      if (count > 1) runs.set(count);
    });
    space.flush();
    secret.set(2);
    await quiet();
    open.set(2);
    await quiet();
    expect(count).toBe(3);
    expect(runs.get()).toBe(undefined);
    expect(errors.take()).toEqual(["LABEL_LEAK", "LABEL_LEAK"]);
  });

  test("[F3] is triggered by a place that was labelled since it looked there", async () => {
    const { space, open, errors, quiet } = await withSecret();
    const later = space.cell<number>("later");
    const out = space.cell<number>("out");
    later.set(1);
    const causes = new Calls();
    let isFirst = true;
    space.effect((run: RunHandle) => {
      causes.note(run.causes.map(String));
      if (isFirst) later.get();
      isFirst = false;
      out.set(open.get() as number);
    });
    await quiet();
    expect(out.get()).toBe(1);
    await later.label(["s"]);
    await quiet();
    open.set(5);
    await quiet();
    expect(causes.take()).toEqual([[], ["later"], ["open"]]);
    expect(errors.take()).toEqual(["LABEL_LEAK", "LABEL_LEAK"]);
    expect(out.get()).toBe(1);
  });

  for (const kind of ["stale", "failed"] as const) {
    test(`[F3] [I8] an effect that runs again because its commit was ${kind} keeps its label`, async () => {
      const { space, secret, line, quiet } = await withSecret();
      const out = space.cell<number>("out", undefined, { label: ["s"] });
      const labels = new Calls();
      let runs = 0;
      space.effect((run: RunHandle) => {
        runs++;
        if (runs === 1) secret.get();
        out.set(runs);
        labels.note([...run.label]);
      });
      await quiet();
      let rejections = 1;
      line.plan = ({ method, request }) => {
        const isOwn = request?.patches.some(({ id }) => id === "out");
        if (method !== "commit" || !isOwn || rejections-- <= 0) return {};
        return { instead: rejected(kind, "read-moved", "try again") };
      };
      secret.set(2);
      await quiet();
      expect(labels.take()).toEqual([["s"], ["s"], ["s"]]);
      expect(out.get()).toBe(3);
    });
  }

  test("[F3] nodes that an effect creates have the labels of its reads so far", async () => {
    const { space, secret, open, quiet } = await withSecret();
    space.effect(() => {
      space.computed("before", () => open.get()).get();
      secret.get();
      space.computed("after", () => open.get()).get();
    });
    await quiet();
    expect([space.labelsOf(space.cell("before")), space.labelsOf(space.cell("after"))]).toEqual([[], ["s"]]);
  });
});

describe("writes", () => {
  test("[F4] a write needs a place with at least the label of its run, including reads after the write", async () => {
    const { space, secret, open, errors, quiet } = await withSecret();
    const [low, high] = [space.cell<number>("low"), space.cell<number>("high", undefined, { label: ["s", "t"] })];
    await quiet();
    space.effect(() => high.set(secret.get() as number));
    space.effect(() => {
      low.set(1);
      if (secret.get() === 7) throw new Error("seven");
    });
    space.effect(async (run: RunHandle) => {
      open.get();
      await undefined;
      run.within(() => low.set(secret.get() as number));
    });
    await quiet();
    expect([high.get(), low.get()]).toEqual([1, undefined]);
    expect(errors.take()).toEqual(["LABEL_LEAK", "LABEL_LEAK"]);
  });

  test("[F4] a transaction with a write below its label commits none of its writes", async () => {
    const { space, secret, open, quiet } = await withSecret();
    const [low, high] = [space.cell<number>("low"), space.cell<number>("high", undefined, { label: ["s"] })];
    low.set(0);
    await quiet();
    await space.transact(() => high.set((secret.get() as number) + 1));
    expect(high.get()).toBe(2);
    const leak = space.transact(() => {
      low.set(open.get() as number);
      high.set(9);
      secret.get();
    });
    await expect(leak).rejects.toMatchObject({ code: "LABEL_LEAK" });
    expect([low.get(), high.get()]).toEqual([0, 2]);
    using transaction = space.begin();
    transaction.set(low, transaction.get(secret) as number);
    expect(codeOf(() => transaction.commit())).toBe("LABEL_LEAK");
    using another = space.begin({ clearance: ["t"] });
    expect(codeOf(() => another.get(secret))).toBe("LABEL_REFUSED");
    another.set(low, another.get(open) as number);
    await another.commit();
    expect(low.get()).toBe(1);
  });

  test("[F4] the declared places of a materializer get its label, also if it does not write there", async () => {
    const { space, secret, scheduler, quiet, open: opened } = await withSecret();
    const board = space.cell<{ [key: string]: number }>("board");
    board.set({});
    await quiet();
    scheduler.register({
      kind: "computation",
      id: "materializer",
      envelope: [board.address.child("scores")],
      run: () => {
        if ((secret.get() ?? 0) > 5) board.key("scores").set(1);
        if (opened.get() === 3) throw new Error("three");
      },
    });
    await quiet();
    expect([board.get(), space.labelsOf(board)]).toEqual([{}, ["s"]]);
    secret.set(6);
    await quiet();
    expect([board.get(), space.labelsOf(board)]).toEqual([{ scores: 1 }, ["s"]]);
    expect(space.labelsOf(board.key("other"))).toEqual([]);
  });
});

describe("a handler", () => {
  test("[F4] a handler writes only at or above the label of its reads and its sender; its receipt has the label", async () => {
    const { space, secret, open, quiet } = await withSecret();
    const [low, high] = [space.cell<number>("low"), space.cell<number>("high", undefined, { label: ["s"] })];
    const stream = space.stream<{ to: string; read: boolean }>("stream");
    stream.handle(({ to, read }) => {
      (to === "low" ? low : high).set(open.get() as number);
      return read ? secret.get() : 0;
    });
    await quiet();
    const sent = [
      stream.send({ to: "high", read: true }),
      stream.send({ to: "low", read: true }),
      stream.send({ to: "low", read: false }),
    ];
    await quiet();
    const outcomes = await Promise.all(sent.map(({ outcome }) => outcome));
    expect(outcomes.map((outcome) => ("error" in outcome ? (outcome.error as LabelError).code : outcome.kind))).toEqual(
      ["handled", "LABEL_LEAK", "handled"],
    );
    expect([low.get(), high.get()]).toEqual([1, 1]);
    const receipts = [sent[0], sent[2]].map((send) => space.cell(`receipt:stream:${send?.id}`));
    expect(receipts.map((receipt) => space.labelsOf(receipt))).toEqual([["s"], []]);
  });

  test("[F4] the outcome of a handler is told within the sender's clearance; a read above a handler's clearance is refused", async () => {
    const { space, secret, open, quiet } = await withSecret();
    const low = space.cell<number>("low");
    const outcomes = new Calls();
    const stream = space.stream<number>("stream");
    stream.handle((value) => low.set(value));
    const curious = space.stream<number>("curious");
    curious.handle(() => secret.get(), { clearance: [] });
    const onOutcome = (outcome: { kind: string; error?: unknown }) =>
      outcomes.note((outcome.error as LabelError | undefined)?.code ?? outcome.kind);
    space.effect(() => void stream.send(secret.get() as number, { onOutcome }));
    space.effect(() => void stream.send(open.get() as number, { onOutcome }));
    curious.send(1, { onOutcome });
    await quiet();
    expect(outcomes.take().sort()).toEqual(["LABEL_LEAK", "LABEL_REFUSED", "handled"]);
    expect(low.get()).toBe(1);
  });
});

describe("labels of messages", () => {
  /** Two streams: the handler of one writes its values to a place without a label, the other passes them on. */
  async function withStreams() {
    const site = await withSecret();
    const { space, secret } = site;
    const low = space.cell<number>("low");
    const outcomes = new Calls();
    const onOutcome = (outcome: { kind: string; error?: unknown }) =>
      outcomes.note((outcome.error as LabelError | undefined)?.code ?? outcome.kind);
    const telling = space.stream<number>("telling");
    telling.handle((value) => low.set(value));
    const passing = space.stream<boolean>("passing");
    passing.handle((isCurious, context) => {
      context.sendTo(telling, 7, { onOutcome });
      context.emit("passed.on", 7);
      // Whether the send happens depends on this value.
      if (isCurious && secret.get() === 0) throw new Error("nothing to pass on");
    });
    return { ...site, low, telling, passing, outcomes, onOutcome };
  }

  test("[F11] a message sent by a transaction has the label of all its reads, and is not written to a lower place", async () => {
    const { space, secret, low, telling, outcomes, onOutcome, quiet } = await withStreams();
    space.transact(() => {
      telling.send(1, { onOutcome });
      return secret.get();
    });
    await quiet();
    expect([outcomes.take(), low.get()]).toEqual([["LABEL_LEAK"], undefined]);
    space.transact(() => void telling.send(2, { onOutcome }));
    await quiet();
    expect([outcomes.take(), low.get()]).toEqual([["handled"], 2]);
  });

  test("[F11] an event that a handler publishes has the label of all the handler's reads", async () => {
    const { line, low, passing, outcomes, quiet } = await withStreams();
    passing.send(true);
    await quiet();
    expect([outcomes.take(), low.get()]).toEqual([["LABEL_LEAK"], undefined]);
    passing.send(false);
    await quiet();
    expect([outcomes.take(), low.get()]).toEqual([["handled"], 7]);
    const published = await line.store.query({ topic: "passed.on", limit: 10 });
    expect(published.map(({ message }) => message?.metadata.label)).toEqual([["s"], undefined]);
  });

  test("[F25] labelled sends do not show in the ids that other sends and handlers get", async () => {
    const ids = async (secretSends: number) => {
      const { space, secret, quiet } = await withSecret();
      const [high, low] = [space.stream<number>("high"), space.stream<number>("low")];
      const passed = space.stream<number>("passed");
      high.handle((value) => void secret.set(value));
      const seen = new Calls<string>();
      low.handle((_, { newId, sendTo }) => {
        seen.note(newId());
        sendTo(passed, 1);
      });
      passed.handle((_, { id }) => seen.note(String(id)));
      for (let i = 0; i < secretSends; i++) space.transact(() => void high.send(secret.get() as number));
      space.effect(() => {
        for (let i = 0; i < secretSends; i++) if (secret.get() !== undefined) high.send(1);
      });
      await quiet();
      low.send(1);
      space.transact(() => void low.send(2));
      await quiet();
      expect(seen.count).toBe(4);
      return seen.take();
    };
    expect(await ids(3)).toEqual(await ids(0));
  });

  test("[F24] a message above a handler's clearance does not reach it, its `reads` or its `presync`", async () => {
    const { space, secret, outcomes, onOutcome, quiet } = await withStreams();
    const told = new Calls();
    const deaf = space.stream<number>("deaf");
    const reads = (value: number) => {
      told.note(value);
      return [];
    };
    deaf.handle(told.note, { clearance: [], reads, presync: async (value) => told.note(value) });
    space.transact(() => void deaf.send(secret.get() as number, { onOutcome }));
    await quiet();
    expect([outcomes.take(), told.take()]).toEqual([["LABEL_REFUSED"], []]);
    space.transact(() => void deaf.send(5, { onOutcome }));
    await quiet();
    expect([outcomes.take(), new Set(told.take())]).toEqual([["handled"], new Set([5])]);
  });
});

describe("clearance", () => {
  test("[F5] a read above the clearance throws an error with the remedy and without the labels", async () => {
    const { space, secret, open, errors, quiet } = await withSecret();
    const sum = space.computed("sum", () => (secret.get() ?? 0) + (open.get() ?? 0));
    const seen = new Calls();
    sum.sink(seen.note, { clearance: ["t"] });
    sum.sink(seen.note, { clearance: ["t", "s"] });
    await quiet();
    expect(seen.take()).toEqual([2]);
    expect(errors.take()).toEqual(["LABEL_REFUSED"]);
    const refusal = await sum.pull({ clearance: [] }).catch((error) => error);
    expect(refusal).toMatchObject({ code: "LABEL_REFUSED" });
    expect(refusal.message).toMatch(/sum: its label is above the clearance\. Give .* or declassify/);
    expect(refusal.message).not.toMatch(/"s"/);
    expect(await sum.pull({ clearance: ["s"] })).toBe(2);
  });

  test("[F5] the refusal of a computed value has the reader's clearance as its label", async () => {
    const { space, secret, quiet } = await withSecret();
    const top = space.cell<number>("top", undefined, { label: ["t"] });
    top.set(7);
    // Labelled with "t" only where the secret says so.
    const chosen = space.computed("chosen", () => (secret.get() === 1 ? top.get() : 0));
    const look = () => (codeOf(() => chosen.get()) === "LABEL_REFUSED" ? 1 : 0);
    const told = space.computed("told", look, { clearance: ["s"] });
    await told.pull();
    expect(space.labelsOf(told)).toEqual(["s"]);
    // The label has "s" only if a value above the clearance says so.
    const other = space.computed("other", () => (top.get() === 7 ? 0 : secret.get()));
    const toldOther = space.computed("told other", () => codeOf(() => other.get()) as string, { clearance: ["s"] });
    for (const value of [7, 8]) {
      top.set(value);
      await toldOther.pull();
      expect(space.labelsOf(toldOther)).toEqual(["s"]);
    }
    top.set(7);
    const low = space.cell<number>("low");
    const outcomes = new Calls();
    const stream = space.stream<number>("stream");
    stream.handle(() => low.set(look()), { clearance: ["s"] });
    stream.send(1, { onOutcome: (outcome) => outcomes.note(outcome.kind) });
    await quiet();
    using transaction = space.begin({ clearance: ["s"] });
    transaction.set(low, codeOf(() => transaction.get(chosen)) === "LABEL_REFUSED" ? 1 : 0);
    expect(codeOf(() => transaction.commit())).toBe("LABEL_LEAK");
    expect([outcomes.take(), low.get()]).toEqual([["failed"], undefined]);
  });

  test("[F6] a change above the clearance wakes no observer and is no cause; a change of the label does", async () => {
    const { space, secret, open, quiet } = await withSecret();
    const flag = space.cell<boolean>("flag");
    flag.set(false);
    const chosen = space.computed("chosen", () => (flag.get() ? secret.get() : open.get()));
    const seen = new Calls();
    space.effect(
      (run: RunHandle) => {
        const causes = run.causes.map(String);
        seen.note([causes, codeOf(() => chosen.get())]);
      },
      { clearance: [] },
    );
    await quiet();
    expect(seen.take()).toEqual([[[], 1]]);
    flag.set(true);
    await quiet();
    expect(seen.take()).toEqual([[["chosen"], "LABEL_REFUSED"]]);
    secret.set(2);
    await quiet();
    secret.set(3);
    await quiet();
    expect(seen.take()).toEqual([]);
    flag.set(false);
    await quiet();
    expect(seen.take()).toEqual([[["chosen"], 1]]);
    open.set(4);
    await quiet();
    expect(seen.take()).toEqual([[["chosen"], 4]]);
    space.scheduler.checkInvariants();
  });
});

describe("labelling", () => {
  test("[F7] label() adds names at once, and keeps names that other processes have stored", async () => {
    const { space, secret, process, quiet } = await withSecret();
    secret.label(["t"]);
    expect(space.labelsOf(secret)).toEqual(["s", "t"]);
    const there = await process();
    // It has not loaded the place when it labels it.
    const same = there.space.cell<number>("secret", undefined, { label: ["u"] });
    expect(there.space.labelsOf(same)).toEqual(["u"]);
    await quiet();
    expect([there.space.labelsOf(same), space.labelsOf(secret)]).toEqual([
      ["s", "t", "u"],
      ["s", "t", "u"],
    ]);
  });

  test("[F7] a label refuses the same reads after a restart", async () => {
    const { process, quiet } = await withSecret();
    const again = await process();
    const seen = new Calls();
    again.space.cell("secret").sink(seen.note, { clearance: [] });
    await quiet();
    expect(seen.take()).toEqual([]);
    await expect(again.space.cell("secret").pull({ clearance: [] })).rejects.toMatchObject({ code: "LABEL_REFUSED" });
  });

  test("[F7] a new label reaches other processes and wakes the readers of its place there", async () => {
    const { space, process, quiet } = await withSecret();
    const place = space.cell<number>("place");
    place.set(1);
    await quiet();
    const there = await process();
    const seen = new Calls();
    const same = there.space.cell<number>("place");
    await same.pull();
    there.space.effect(() => seen.note(codeOf(() => same.get())), { clearance: [] });
    await quiet();
    await place.label(["s"]);
    await quiet();
    expect(seen.take()).toEqual([1, "LABEL_REFUSED"]);
  });

  test("[F7] is not for runs and handlers; one that cannot be stored is reported and holds here", async () => {
    const { space, open: place, line, errors, quiet } = await withSecret();
    space.effect(() => place.label(["x"]));
    await quiet();
    expect(errors.take()).toEqual(["LABEL_MISUSE"]);
    line.plan = ({ method }) => (method === "commit" ? { instead: rejected("refused", "protocol", "no") } : {});
    await expect(place.label(["y"])).rejects.toMatchObject({ code: "TRANSACTION_REJECTED" });
    expect(errors.take()).toEqual(["TRANSACTION_REJECTED"]);
    expect(space.labelsOf(place)).toEqual(["y"]);
  });

  test("[F7] declassify copies a value or removes labels, and journals actor, place and reason in the same commit", async () => {
    const { space, secret, line, quiet } = await withSecret();
    const average = space.computed("average", () => (secret.get() ?? 0) / 2);
    const told = space.cell<number>("told");
    await space.declassify(average, { to: told, reason: "an average names nobody" });
    expect([told.get(), space.labelsOf(told)]).toEqual([0.5, []]);
    const seen = new Calls();
    space.effect(() => seen.note(codeOf(() => secret.get())), { clearance: [] });
    await quiet();
    await space.declassify(secret, { remove: ["s"], reason: "published" });
    await quiet();
    expect(seen.take()).toEqual(["LABEL_REFUSED", 1]);
    const rows = await line.store.query({ limit: 10 });
    expect(rows.map(({ topic, message }) => [topic, message?.type, message?.data])).toEqual([
      [
        "label.declassified",
        "Label.Declassified",
        { space: "s", from: "average", to: "told", labels: ["s"], reason: "an average names nobody" },
      ],
      ["label.declassified", "Label.Declassified", { space: "s", from: "secret", labels: ["s"], reason: "published" }],
    ]);
    const removed = space.declassify(secret, { remove: ["s"], reason: "again" });
    await expect(removed).rejects.toMatchObject({ code: "LABEL_MISUSE" });
    const fallen = space.cell<number>("fallen", undefined, { label: ["s"] });
    await quiet();
    line.plan = ({ method }) => (method === "commit" ? { instead: rejected("refused", "protocol", "no") } : {});
    await expect(space.declassify(fallen, { remove: ["s"], reason: "r" })).rejects.toMatchObject({
      code: "TRANSACTION_REJECTED",
    });
    expect(space.labelsOf(fallen)).toEqual(["s"]);
  });

  test("[F5] [F7] a labelled document that a process has set without reading it does not show other processes' writes", async () => {
    const { secret, quiet, process } = await withSecret();
    await quiet();
    const other = await process();
    const there = other.space.cell<number>("secret");
    there.set(5);
    await quiet();
    const seen = new Calls<unknown>();
    there.sink(seen.note, { clearance: [] });
    await quiet();
    secret.set(42);
    await quiet();
    expect([there.get(), seen.take(), other.space.labelsOf(there)]).toEqual([42, [5], ["s"]]);
  });

  test("[F7] a document of which 200,000 places are known is labelled like any other", async () => {
    const { space, quiet } = await setup();
    const wide = space.cell<Record<string, number>>("wide");
    for (let i = 0; i < 200_000; i++) wide.key(`k${i}`);
    const labelled = wide.label(["s"]);
    await quiet();
    await labelled;
    expect(space.labelsOf(wide.key("k7"))).toEqual(["s"]);
  });
});
