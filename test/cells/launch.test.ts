/** Pieces that handlers and transactions launch: they live if that commit does. */
import { describe, expect, test } from "#test";
import type { Cell } from "../../src/cells/cell.ts";
import { pattern } from "../../src/cells/pattern.ts";
import { rejected } from "../../src/store/rejection.ts";
import { Calls, setup } from "../scheduler/scheduler-setup.ts";
import { Gate } from "../store/faulty-store.ts";

interface Job {
  readonly name: string;
}

/** A job with an effect that notes each run. */
function jobPattern(ran: Calls<string | undefined>) {
  return pattern("job", (inputs: Cell<Job>, piece) => {
    piece.effect(() => ran.note(inputs.key("name").get()));
    return { name: inputs.key("name") };
  });
}

async function office() {
  const site = await setup();
  const ran = new Calls<string | undefined>();
  const job = jobPattern(ran);
  const inbox = site.space.stream<Job>("inbox");
  const nodes = () => site.scheduler.getStats().nodes;
  return { ...site, ran, job, inbox, nodes };
}

describe("launched pieces", () => {
  test("[P7] [I10] a handler's piece runs from its commit on, under an id that follows from the event; the answer can point to it", async () => {
    const { space, ran, job, inbox, quiet } = await office();
    inbox.handle((value) => space.launch(job, value).asLink());
    const sent = inbox.send({ name: "tea" });
    await quiet();
    expect(await sent.outcome).toMatchObject({ kind: "handled" });
    expect([ran.seen, [...space.pieces.keys()]]).toEqual([["tea"], [`${sent.id}#1`]]);
    expect(space.cell<Job>(`${sent.id}#1`).key("name").get()).toBe("tea");
  });

  test("[P7] [I10] a stale attempt's piece is taken back, the next attempt's stays: one piece, one set of nodes", async () => {
    const { host, space, ran, job, inbox, quiet, line, nodes } = await office();
    inbox.handle((value) => void space.launch(job, value));
    await quiet();
    const before = nodes();
    let refused = 0;
    line.plan = ({ method }) =>
      method === "commit" && refused++ === 0 ? { instead: rejected("stale", "read-moved", "it moved") } : {};
    const sent = inbox.send({ name: "tea" });
    // It pauses before it tries again.
    await host.advance(1_000);
    expect(await sent.outcome).toMatchObject({ kind: "handled" });
    expect([refused > 1, space.pieces.size, nodes() - before]).toEqual([true, 1, 1]);
    expect(ran.seen.at(-1)).toBe("tea");
  });

  test("[P7] [I10] a launch with a refused commit is stopped and removed", async () => {
    const { space, job, inbox, quiet, line, nodes } = await office();
    inbox.handle((value) => void space.launch(job, value));
    await quiet();
    const before = nodes();
    line.plan = ({ method }) =>
      method === "commit" ? { instead: rejected("refused", "too-large", "not this one") } : {};
    const sent = inbox.send({ name: "tea" });
    await quiet();
    expect(await sent.outcome).toMatchObject({ kind: "failed", reason: "rejected" });
    expect([space.pieces.size, nodes(), space.cell(`${sent.id}#1`).get()]).toEqual([0, before, undefined]);
  });

  test("[P7] [I11] an event that comes twice makes one piece, which stays", async () => {
    const { space, ran, job, inbox, quiet } = await office();
    inbox.handle((value) => void space.launch(job, value));
    const first = inbox.send({ name: "tea" });
    await quiet();
    const again = inbox.send({ name: "tea" }, { eventId: first.id });
    await quiet();
    expect([(await first.outcome).kind, (await again.outcome).kind]).toEqual(["handled", "already"]);
    expect([space.pieces.size, ran.seen]).toEqual([1, ["tea"]]);
  });

  test("[P7] [I11] two processes that handle one event make one piece; the loser's is taken back", async () => {
    const here = await office();
    const there = await here.open();
    const elsewhere = new Calls<string | undefined>();
    here.inbox.handle((value) => void here.space.launch(here.job, value));
    const inbox = there.space.stream<Job>("inbox");
    inbox.handle((value) => void there.space.launch(jobPattern(elsewhere), value));
    const sent = [here.inbox.send({ name: "tea" }, { eventId: "e" }), inbox.send({ name: "tea" }, { eventId: "e" })];
    await here.quiet();
    expect((await Promise.all(sent.map(({ outcome }) => outcome))).map(({ kind }) => kind).toSorted()).toEqual([
      "already",
      "handled",
    ]);
    expect(here.space.pieces.size + there.space.pieces.size).toBe(1);
  });

  test("[P7] with `after-commit` a piece waits until its commit is durable", async () => {
    const { space, ran, job, inbox, quiet, line } = await office();
    inbox.handle((value) => void space.launch(job, value, { start: "after-commit" }));
    await quiet();
    const gate = new Gate();
    line.plan = ({ method }) => (method === "commit" ? { answered: gate.opened } : {});
    inbox.send({ name: "tea" });
    await quiet();
    expect([space.pieces.size, ran.count]).toEqual([0, 0]);
    line.plan = () => ({});
    gate.open();
    await quiet();
    expect([space.pieces.size, ran.seen]).toEqual([1, ["tea"]]);
  });

  test("[P7] [I10] a transaction launches a piece; a transaction that throws launches none", async () => {
    const { space, ran, job, quiet } = await office();
    const done = space.transact(() => space.launch(job, { name: "tea" }, { id: "j" }));
    await quiet();
    expect([(await done).id, ran.seen]).toEqual(["j", ["tea"]]);
    const failing = () => {
      space.launch(job, { name: "milk" }, { id: "k" });
      throw new Error("no milk");
    };
    await expect(space.transact(failing)).rejects.toThrow("no milk");
    await quiet();
    expect([[...space.pieces.keys()], space.cell("k/piece").get()]).toEqual([["j"], undefined]);
    expect(() => space.launch(job, { name: "x" })).toThrow(/start it with `run`/);
  });

  test("[P4] [P7] a piece owns the pieces that its handlers launch: they stop with it, and are not resumed without it", async () => {
    const { space, ran, job, quiet, open, nodes, line } = await office();
    const desk = pattern("desk", (_: Cell<object>, piece) => {
      const jobs = piece.stream<Job>("jobs");
      jobs.handle((value) => void piece.launch(job, value, { start: "after-commit" }));
      return { jobs };
    });
    const before = nodes();
    const starting = space.run(desk, {}, { id: "d" });
    await quiet();
    const { parts } = await starting;
    parts.jobs.send({ name: "first" });
    await quiet();
    expect([ran.seen, space.pieces.size]).toEqual([["first"], 2]);
    const gate = new Gate();
    line.plan = ({ method }) => (method === "commit" ? { answered: gate.opened } : {});
    parts.jobs.send({ name: "second" });
    await quiet();
    const stopping = space.stop("d");
    line.plan = () => ({});
    gate.open();
    await quiet();
    await stopping;
    expect([ran.seen, space.pieces.size, nodes()]).toEqual([["first"], 0, before]);
    const other = await open();
    const resuming = other.space.resume([desk, job]);
    await quiet();
    expect(await resuming).toEqual({ pieces: [], left: [] });
  });

  test("[P6] [P7] a launched piece is resumed with its owner, and stops with it then too", async () => {
    const { space, job, quiet, open } = await office();
    const desk = pattern("desk", (_: Cell<object>, piece) => {
      const jobs = piece.stream<Job>("jobs");
      jobs.handle((value) => void piece.launch(job, value));
      return { jobs };
    });
    const starting = space.run(desk, {}, { id: "z" });
    await quiet();
    (await starting).parts.jobs.send({ name: "tea" });
    await quiet();
    const other = await open();
    const resuming = other.space.resume([desk, job]);
    await quiet();
    expect((await resuming).pieces.map(({ pattern: name }) => name).toSorted()).toEqual(["desk", "job"]);
    const stopping = other.space.stop("z");
    await quiet();
    await stopping;
    expect(other.space.pieces.size).toBe(0);
  });
});
