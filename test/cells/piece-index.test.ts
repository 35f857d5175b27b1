/** The index of pieces: the cost of a start when there are many, and indexes of older versions. */
import { describe, expect, test } from "#test";
import type { Cell } from "../../src/cells/cell.ts";
import { pattern } from "../../src/cells/pattern.ts";
import { PieceIndex } from "../../src/cells/piece-index.ts";
import { setup } from "../scheduler/scheduler-setup.ts";

const PIECES = 10_000;

interface Job {
  readonly name: string;
}

const job = pattern("job", (inputs: Cell<Job>, piece) => ({
  title: piece.computed("title", () => `the ${inputs.get()?.name}`),
}));

async function office() {
  const site = await setup();
  const done = async <T>(promise: Promise<T>): Promise<T> => {
    void promise.catch(() => {});
    await site.host.advance(1_000);
    return promise;
  };
  return { ...site, done };
}

describe("the index of pieces", () => {
  test("[P9] starting a piece sends and copies as much beside ten thousand pieces as beside none", async () => {
    const { space, line, done } = await office();
    const replica = space.replica("s");
    /** Bytes of the commits of one start, and the keys of the documents that they write into. */
    const start = async (id: string) => {
      line.arrived.length = 0;
      await done(space.run(job, { name: "n" }, { id }));
      const patches = line.arrived.flatMap((request) => request.patches);
      const keys = patches.map((ref) => Object.keys(replica.find(ref)?.value ?? {}).length);
      return { bytes: JSON.stringify(line.arrived).length, patches: patches.length, keys: Math.max(...keys) };
    };
    const first = await start("piece number 00001");
    const index = new PieceIndex(space);
    await done(index.ready());
    const enterAll = () => {
      for (let i = 0; i < PIECES; i++) index.enter(`entered ${i}`, "other");
    };
    await done(space.transact(enterAll));
    expect(Object.keys(await done(index.pull())).length).toBe(PIECES + 1);
    const last = await start("piece number 10001");
    expect(last.patches).toBe(first.patches);
    expect(last.bytes).toBeLessThan(first.bytes * 1.5);
    expect(last.keys).toBeLessThan(100);
  });

  test("[P9] all of it is one load, and is taken up in the order of the ids", async () => {
    const { space, done, open } = await office();
    for (const id of ["c", "a", "b"]) await done(space.run(job, { name: id }, { id }));
    const { space: next, line } = await open();
    const loads: string[] = [];
    line.plan = ({ method }) => {
      loads.push(method);
      return {};
    };
    const { pieces } = await done(next.resume([job]));
    expect(pieces.map(({ id }) => id)).toEqual(["a", "b", "c"]);
    // The index, the records, and the results of the pieces.
    expect(loads.filter((method) => method === "load").length).toBe(3);
    expect(loads).not.toContain("commit");
  });

  test("[P9] an index in one document, of an older version, is taken over once, with its owners", async () => {
    const { space, done, open } = await office();
    for (const id of ["owner", "owned", "deep"]) {
      space.cell(`${id}/piece`).set({ pattern: "job", inputs: { name: id } });
    }
    space.cell("millrace/pieces").set({
      owner: { pattern: "job" },
      owned: { pattern: "job", owner: "owner" },
      deep: { pattern: "job", owner: "owned" },
    });
    const { space: next } = await open();
    const { pieces } = await done(next.resume([job]));
    expect(pieces.map(({ id }) => id)).toEqual(["deep", "owned", "owner"]);
    expect(await done(next.cell("millrace/pieces").pull())).toBe(undefined);
    const { space: last } = await open();
    const resumed = await done(last.resume([job]));
    expect(resumed.pieces.length).toBe(3);
    await done(last.stop("owner"));
    expect([last.pieces.size, next.pieces.size]).toEqual([0, 0]);
    expect(await done(new PieceIndex(last).pull())).toEqual({});
  });

  test("[P9] two processes that take it over at once come to the same", async () => {
    const { space, done, open } = await office();
    space.cell("a/piece").set({ pattern: "job", inputs: { name: "a" } });
    space.cell("millrace/pieces").set({ a: { pattern: "job" } });
    const others = [await open(), await open()];
    const resumed = await done(Promise.all(others.map((other) => other.space.resume([job]))));
    expect(resumed.map(({ pieces }) => pieces.length)).toEqual([1, 1]);
    expect(await done(new PieceIndex(space).pull())).toEqual({ a: { pattern: "job", owns: {} } });
  });

  test("[P9] [P4] a stopped piece has no owner any more", async () => {
    const { space, done } = await office();
    const desk = pattern("desk", (_: Cell<object>, piece) => {
      const jobs = piece.stream<string>("jobs");
      jobs.handle((id) => void piece.launch(job, { name: id }, { id }));
      return { jobs };
    });
    const owner = await done(space.run(desk, {}, { id: "desk" }));
    for (const id of ["one", "two"]) await done(owner.parts.jobs.send(id).outcome);
    const index = new PieceIndex(space);
    const owns = async () => (await done(index.pull()))["desk"]?.owns;
    expect(await owns()).toEqual({ one: true, two: true });
    await done(space.stop("one"));
    expect(await owns()).toEqual({ two: true });
    await done(space.stop("desk"));
    expect([space.pieces.size, await done(index.pull())]).toEqual([0, {}]);
  });
});
