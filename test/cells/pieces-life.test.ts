/** Starts, stops and launches of pieces that race each other, other processes, and faults. */
import { describe, expect, test } from "#test";
import type { Cell } from "../../src/cells/cell.ts";
import { pattern } from "../../src/cells/pattern.ts";
import type { Pattern, Piece } from "../../src/cells/piece.ts";
import { PieceIndex } from "../../src/cells/piece-index.ts";
import { rejected } from "../../src/store/rejection.ts";
import { Calls, setup } from "../scheduler/scheduler-setup.ts";
import { Gate } from "../store/faulty-store.ts";

interface Job {
  readonly name: string;
}

async function office() {
  const site = await setup();
  const ran = new Calls<string | undefined>();
  const job = pattern("job", (inputs: Cell<Job>, piece) => {
    piece.effect(() => ran.note(inputs.key("name").get()));
    return { name: inputs.key("name") };
  });
  const desk = pattern("desk", (_: Cell<object>, piece) => {
    const jobs = piece.stream<Job & { readonly id?: string }>("jobs");
    jobs.handle(({ id, ...inputs }) => void piece.launch(job, inputs, id === undefined ? {} : { id }));
    return { jobs };
  });
  /** Returns the promise's result; time passes only for the pauses between attempts. */
  const done = async <T>(promise: Promise<T>): Promise<T> => {
    void promise.catch(() => {});
    await site.host.advance(1_000);
    return promise;
  };
  const nodes = () => site.scheduler.getStats().nodes;
  const index = (space = site.space) => done(new PieceIndex(space).pull());
  return { ...site, ran, job, desk, done, nodes, index };
}

const refuseCommits = { instead: rejected("refused", "too-large", "not this one") };

describe("the life of pieces", () => {
  test("[P6] [P4] a piece that is started twice at once is one piece, with the inputs that came last", async () => {
    const { space, job, ran, done, nodes } = await office();
    const before = nodes();
    const [one, two] = await done(
      Promise.all([space.run(job, { name: "a" }, { id: "j" }), space.run(job, { name: "b" }, { id: "j" })]),
    );
    expect([one.state, two.state, space.pieces.size, nodes() - before]).toEqual(["running", "running", 1, 1]);
    expect(ran.seen.at(-1)).toBe("b");
  });

  test("[P6] a second start that does not last leaves the piece running as it was", async () => {
    const { space, job, line, ran, done } = await office();
    const piece = await done(space.run(job, { name: "a" }, { id: "j" }));
    line.plan = ({ method }) => (method === "commit" ? refuseCommits : {});
    await expect(done(space.run(job, { name: "b" }, { id: "j" }))).rejects.toMatchObject({
      code: "TRANSACTION_REJECTED",
    });
    expect([piece.state, space.pieces.get("j")?.state, ran.seen.at(-1)]).toEqual(["running", "running", "a"]);
  });

  test("[P3] [P6] new code under an old name takes the piece over; code that fails to build leaves the old", async () => {
    const { space, job, ran, done, nodes } = await office();
    await done(space.run(job, { name: "a" }, { id: "j" }));
    const count = nodes();
    const broken = pattern("job", (): Record<string, never> => {
      throw new Error("half written");
    });
    await expect(done(space.run(broken, {}, { id: "j" }))).rejects.toMatchObject({ code: "PATTERN_FAILED" });
    expect([space.pieces.get("j")?.state, nodes()]).toEqual(["running", count]);
    const heard = new Calls<string | undefined>();
    const newer = pattern("job", (inputs: Cell<Job>, piece) => {
      piece.effect(() => heard.note(inputs.key("name").get()));
      return { title: inputs.key("name") };
    });
    ran.take();
    await done(space.run(newer, { name: "b" }, { id: "j" }));
    expect([heard.seen, ran.count, nodes()]).toEqual([["b"], 0, count]);
    const { title, ...rest } = space.cell<Record<string, unknown>>("j").get() ?? {};
    expect([title, rest]).toEqual([space.cell<{ inputs: Job }>("j/piece").key("inputs").key("name").asLink(), {}]);
  });

  test("[P4] [P21] a stop that is asked for while the piece starts comes after the start", async () => {
    const { space, job, open, done, nodes, index } = await office();
    const before = nodes();
    const starting = space.run(job, { name: "a" }, { id: "j" });
    const stopping = space.stop("j");
    const [piece] = await done(Promise.all([starting, stopping]));
    expect([piece.state, space.pieces.size, nodes(), await index()]).toEqual(["stopped", 0, before, {}]);
    const other = await open();
    const { pieces, left } = await done(other.space.resume([job]));
    expect([pieces.length, left]).toEqual([0, []]);
  });

  test("[P4] [P7] a launched piece that is stopped before its commit is confirmed does not start afterwards", async () => {
    const { space, job, line, ran, done, quiet, index } = await office();
    await index();
    const gate = new Gate();
    line.plan = ({ method }) => (method === "commit" ? { answered: gate.opened } : {});
    const launching = space.transact(() => space.launch(job, { name: "a" }, { id: "j", start: "after-commit" }));
    await quiet();
    const stopping = space.stop("j");
    await quiet();
    line.plan = () => ({});
    gate.open();
    await done(Promise.all([launching, stopping]));
    expect([space.pieces.size, ran.count, await index()]).toEqual([0, 0, {}]);
  });

  test("[P4] a piece that another process stops ends here too", async () => {
    const { space, job, open, done, nodes } = await office();
    const before = nodes();
    const piece = await done(space.run(job, { name: "a" }, { id: "j" }));
    const stays = await done(space.run(job, { name: "b" }, { id: "k" }));
    const other = await open();
    await done(other.space.resume([job]));
    await done(other.space.stop("j"));
    expect([piece.state, stays.state, nodes() - before]).toEqual(["stopped", "running", 1]);
  });

  test("[P4] a stop in a process that has not yet heard of the piece stops it", async () => {
    const { space, job, open, done, quiet, index } = await office();
    await done(space.run(job, { name: "a" }, { id: "j" }));
    const other = await open();
    await index(other.space);
    const gate = new Gate();
    other.line.plan = ({ method }) => (method === "changesSince" ? { arrives: gate.opened } : {});
    const piece = await done(space.run(job, { name: "b" }, { id: "k" }));
    const stopping = other.space.stop("k");
    await quiet();
    gate.open();
    await done(stopping);
    expect([piece.state, Object.keys(await index())]).toEqual(["stopped", ["j"]]);
  });

  test("[P6] two resumes at once build each piece once, and one that is stopped meanwhile is not built", async () => {
    const { space, job, open, done } = await office();
    await done(space.run(job, { name: "a" }, { id: "j" }));
    await done(space.run(job, { name: "b" }, { id: "k" }));
    const other = await open();
    const errors: unknown[] = [];
    other.scheduler.onError((error) => errors.push(error));
    const [one, two] = await done(
      Promise.all([other.space.resume([job]), other.space.resume([job]), other.space.stop("k")]),
    );
    expect([...other.space.pieces.keys()]).toEqual(["j"]);
    expect([errors, one.left, two.left]).toEqual([[], [], []]);
  });

  test("[P6] resuming unchanged pieces commits no write", async () => {
    const { space, job, open, done } = await office();
    const nest = pattern("nest", (inputs: Cell<Job>, piece) => ({
      inner: piece.run("inner", job, { name: inputs.key("name") }),
    }));
    for (const id of ["x", "y", "z"]) await done(space.run(nest, { name: id }, { id }));
    const other = await open();
    const { pieces } = await done(other.space.resume([nest]));
    expect([pieces.length, other.line.arrived.length]).toEqual([3, 0]);
  });

  test("[P6] a pattern that throws when it is resumed is left and named, and the others run", async () => {
    const { space, job, open, done } = await office();
    await done(space.run(job, { name: "a" }, { id: "j" }));
    const fine = pattern("fine", () => ({}));
    await done(space.run(fine, {}, { id: "f" }));
    const other = await open();
    const before = other.scheduler.getStats().nodes;
    const broken = pattern("job", (_: Cell<Job>, piece) => {
      piece.effect(() => {});
      throw new Error("not any more");
    });
    other.scheduler.onError(() => {});
    const { pieces, left } = await done(other.space.resume([broken, fine]));
    expect([pieces.map(({ id }) => id), left]).toEqual([
      ["f"],
      [{ id: "j", pattern: "job", reason: expect.stringContaining("not any more") }],
    ]);
    expect(other.scheduler.getStats().nodes).toBe(before);
  });
});

describe("owners", () => {
  test("[P6] [P7] a restarted owner keeps the pieces that it owns", async () => {
    const { space, desk, done } = await office();
    const { parts } = await done(space.run(desk, {}, { id: "d" }));
    parts.jobs.send({ name: "tea", id: "t" });
    await done(space.run(desk, {}, { id: "d" }));
    expect([...space.pieces.keys()].toSorted()).toEqual(["d", "t"]);
  });

  test("[P4] [P22] pieces launched by a nested piece belong to the outermost piece and stop with it", async () => {
    const { space, desk, job, open, done, index } = await office();
    const house = pattern("house", (_: Cell<object>, piece) => ({ desk: piece.run("desk", desk, {}) }));
    const { parts } = await done(space.run(house, {}, { id: "h" }));
    parts.desk.parts.jobs.send({ name: "tea", id: "t" });
    await done(space.settled());
    const other = await open();
    const resumed = await done(other.space.resume([house, job]));
    expect(resumed.pieces.map(({ id }) => id).toSorted()).toEqual(["h", "t"]);
    await done(other.space.stop("h"));
    expect([other.space.pieces.size, space.pieces.size, await index()]).toEqual([0, 0, {}]);
  });

  test("[P7] a launch under the id of a running piece gives it the new inputs, and not another owner", async () => {
    const { space, desk, ran, done, index } = await office();
    const [one, two] = await done(
      Promise.all([space.run(desk, {}, { id: "one" }), space.run(desk, {}, { id: "two" })]),
    );
    one.parts.jobs.send({ name: "tea", id: "t" });
    await done(space.settled());
    two.parts.jobs.send({ name: "milk", id: "t" });
    await done(space.settled());
    expect([space.pieces.size, ran.seen]).toEqual([3, ["tea", "milk"]]);
    await done(space.stop("two"));
    expect([[...space.pieces.keys()].toSorted(), Object.keys(await index()).toSorted()]).toEqual([
      ["one", "t"],
      ["one", "t"],
    ]);
    await done(space.stop("one"));
    expect([space.pieces.size, await index()]).toEqual([0, {}]);
  });

  test("[P4] [P7] a handler that still runs when its piece is stopped launches no more pieces", async () => {
    const { space, job, done, quiet, index } = await office();
    const gate = new Gate();
    const slow = pattern("slow", (_: Cell<object>, piece) => {
      const jobs = piece.stream<Job>("jobs");
      jobs.handle(async (value, { within }) => {
        await gate.opened;
        within(() => void piece.launch(job, value));
      });
      return { jobs };
    });
    const { parts } = await done(space.run(slow, {}, { id: "s" }));
    const sent = parts.jobs.send({ name: "tea" });
    await quiet();
    await done(space.stop("s"));
    gate.open();
    await done(space.settled());
    expect([space.pieces.size, await index(), (await sent.outcome).kind]).toEqual([0, {}, "failed"]);
  });

  test("[P4] [P7] a launch in one process and the stop of its owner in another leave no piece without an owner", async () => {
    const { space, desk, job, open, done, index } = await office();
    const { parts } = await done(space.run(desk, {}, { id: "d" }));
    const other = await open();
    await done(other.space.resume([desk, job]));
    const stopping = other.space.stop("d");
    parts.jobs.send({ name: "tea" });
    await done(Promise.all([stopping, space.settled()]));
    expect([space.pieces.size, other.space.pieces.size, await index()]).toEqual([0, 0, {}]);
  });

  test("[P7] a refused launch starts no piece, even if the handler goes on", async () => {
    const { space, job, ran, open, done, index } = await office();
    await done(
      space.run(
        pattern("other", () => ({})),
        {},
        { id: "j" },
      ),
    );
    const there = await open();
    await index(there.space);
    await done(
      there.space.transact(() => {
        expect(() => there.space.launch(job, { name: "a" }, { id: "j" })).toThrow(/is a piece of pattern "other"/);
        there.space.cell("note").set("went on");
      }),
    );
    expect([there.space.pieces.size, ran.count]).toEqual([0, 0]);
  });

  test("[P7] [P3] the rollback of a launch removes the nested pieces too", async () => {
    const { space, job, line, done } = await office();
    const nest = pattern("nest", (_: Cell<object>, piece) => ({ inner: piece.run("inner", job, { name: "a" }) }));
    const inner = space.cell("n/inner/piece");
    await done(inner.pull());
    line.plan = ({ method }) => (method === "commit" ? refuseCommits : {});
    await expect(done(space.transact(() => void space.launch(nest, {}, { id: "n" })))).rejects.toThrow(/not this one/);
    line.plan = () => ({});
    await done(space.settled());
    expect([inner.get(), space.cell("n/inner").get(), space.pieces.size]).toEqual([undefined, undefined, 0]);
  });
});

describe("names of pieces", () => {
  test("[P8] any text names a piece, as long as no other document has it", async () => {
    const { space, job, open, done } = await office();
    const ids = ["a/b", "__proto__", "constructor", "toString", "ä €", "x".repeat(10_000)];
    for (const id of ids) await done(space.run(job, { name: id }, { id }));
    const other = await open();
    const { pieces, left } = await done(other.space.resume([job]));
    expect([pieces.map(({ id }) => id).toSorted(), left]).toEqual([ids.toSorted(), []]);
    for (const id of ids) expect(await done(other.space.cell<Job>(id).key("name").pull())).toBe(id);
    for (const id of ids) await done(other.space.stop(id));
    for (const id of ids) await done(other.space.stop(id));
    expect([other.space.pieces.size, space.pieces.size]).toEqual([0, 0]);
  });

  test("[P8] names that are the kernel's own are refused, for pieces and for their parts", async () => {
    const { space, job, done, index } = await office();
    for (const id of ["", "a/piece", "millrace/pieces"]) {
      await expect(done(space.run(job, { name: "a" }, { id }))).rejects.toMatchObject({ code: "PIECE_MISUSE" });
    }
    const parts: ((piece: Piece) => unknown)[] = [
      (piece) => piece.cell("piece"),
      (piece) => piece.cell("inner/piece"),
      (piece) => piece.stream("piece"),
    ];
    for (const part of parts) {
      const bad = pattern("bad", (_: Cell<object>, piece) => ({ part: part(piece) }));
      await expect(done(space.run(bad, {}, { id: "b" }))).rejects.toMatchObject({ code: "PATTERN_FAILED" });
    }
    expect(await index()).toEqual({});
  });
});

describe("removal of stopped pieces", () => {
  test("[P4] a thousand pieces that were started and stopped leave no node, no handler and no listener", async () => {
    const { space, desk, done, nodes, scheduler, index } = await office();
    const round = async (from: number, count: number) => {
      for (let n = from; n < from + count; n++) {
        const { parts } = await done(space.run(desk, {}, { id: `d${n}` }));
        if (n % 10 === 0) {
          parts.jobs.send({ name: "tea" });
          await done(space.settled());
        }
        await done(space.stop(`d${n}`));
      }
    };
    await round(0, 10);
    const before = nodes();
    await round(10, 990);
    expect([space.pieces.size, nodes(), await index()]).toEqual([0, before, {}]);
    expect(scheduler.getQueues().map(({ waiting }) => waiting)).toEqual([0]);
  });

  test("[P4] sends to a stopped piece are dropped, and other pieces go on", async () => {
    const { space, desk, done, quiet } = await office();
    const { parts } = await done(space.run(desk, {}, { id: "d" }));
    const other = await done(space.run(desk, {}, { id: "e" }));
    const waiting = parts.jobs.send({ name: "just before" });
    const stopping = space.stop("d");
    const late = [parts.jobs.send({ name: "late" }), space.stream<Job>("d/jobs").send({ name: "late" })];
    const sent = other.parts.jobs.send({ name: "tea", id: "t" });
    await done(stopping);
    const outcomes: string[] = [];
    for (const one of [waiting, ...late, sent]) void one.outcome.then(({ kind }) => outcomes.push(kind));
    await quiet();
    expect([outcomes, [...space.pieces.keys()]]).toEqual([
      ["dropped", "dropped", "dropped", "handled"],
      ["e", "t"],
    ]);
    const again = await done(space.run(desk, {}, { id: "d" }));
    again.parts.jobs.send({ name: "milk", id: "m" });
    await done(space.settled());
    expect([...space.pieces.keys()]).toEqual(["e", "t", "d", "m"]);
  });

  test("[P6] sends that wait while a piece's code is replaced are handled by the new code", async () => {
    const { space, done, quiet } = await office();
    const gate = new Gate();
    const clerk = (handle: (value: string) => unknown) =>
      pattern("clerk", (_: Cell<object>, piece) => {
        const jobs = piece.stream<string>("jobs");
        jobs.handle(handle);
        return { jobs };
      });
    const { parts } = await done(
      space.run(
        clerk(() => gate.opened),
        {},
        { id: "c" },
      ),
    );
    const sent = [parts.jobs.send("first"), parts.jobs.send("second")];
    await quiet();
    const heard = new Calls<string>();
    await done(space.run(clerk(heard.note), {}, { id: "c" }));
    gate.open();
    await done(space.settled());
    const outcomes = await Promise.all(sent.map(({ outcome }) => outcome));
    expect([outcomes.map(({ kind }) => kind), heard.seen]).toEqual([["handled", "handled"], ["second"]]);
  });

  test("[P4] an owner keeps no record of launched pieces that have stopped", async () => {
    const { space, desk, done } = await office();
    const { parts } = await done(space.run(desk, {}, { id: "d" }));
    for (let n = 0; n < 20; n++) {
      parts.jobs.send({ name: "tea", id: `t${n}` });
      await done(space.settled());
      await done(space.stop(`t${n}`));
    }
    expect([...space.pieces.keys()]).toEqual(["d"]);
  });

  test("[P4] a stopped piece is removed even if its onStop listener throws", async () => {
    const { space, job, done, nodes, scheduler } = await office();
    const before = nodes();
    const errors: unknown[] = [];
    scheduler.onError((error) => errors.push(error));
    const piece = await done(space.run(job, { name: "a" }, { id: "j" }));
    piece.onStop(() => {
      throw new Error("not now");
    });
    await done(space.stop(piece));
    expect([nodes(), space.pieces.size, errors.length]).toEqual([before, 0, 1]);
  });

  test("[P4] a space that closes takes its pieces' nodes from a scheduler that others use", async () => {
    const { space, job, done, nodes, host, disk, scheduler } = await office();
    const { Space } = await import("../../src/cells/space.ts");
    const { memoryStore } = await import("../../src/store/memory/memory-store.ts");
    const before = nodes();
    const guest = await Space.open({ host, scheduler, store: memoryStore({ host, disk }), name: "guest" });
    await done(guest.run(job, { name: "a" }, { id: "j" }));
    await done(guest.close());
    expect([nodes(), space.pieces.size]).toEqual([before, 0]);
  });

  test("[P4] a list of a piece with an effect for each element goes with it", async () => {
    const { space, done, nodes } = await office();
    const ran = new Calls<number | undefined>();
    const rows: Pattern<{ list: readonly number[] }> = pattern("rows", (inputs, piece) => ({
      doubled: piece.map("doubled", inputs.key("list"), (element) => {
        space.effect(() => ran.note(element.get()));
        return (element.get() ?? 0) * 2;
      }),
    }));
    const before = nodes();
    const list = space.cell<readonly number[]>("list");
    list.set([1, 2, 3]);
    const piece = await done(space.run(rows, { list }, { id: "r" }));
    const stopLooking = piece.result.key("doubled").sink(() => {});
    await done(space.settled());
    expect(ran.take().toSorted()).toEqual([1, 2, 3]);
    stopLooking();
    await done(space.stop(piece));
    list.set([4]);
    await done(space.settled());
    expect([nodes(), ran.count]).toEqual([before, 0]);
  });
});
