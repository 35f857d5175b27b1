import { expect, test } from "#test";
import { ChangeLog, type LoggedCommit, LoggedPatch, type WriteTrail } from "../../src/store/memory/change-log.ts";

/** A log with a trail through one document, and how many commits of it were looked at. */
function setup(keptMax = 10_000) {
  const log = new ChangeLog(keptMax);
  const trail: WriteTrail = { newest: undefined };
  const looked = { at: 0 };
  let head = 0;
  const write = (session: string, step: string) => {
    const operations = [{ op: "set", path: [step], value: 1 }] as const;
    const patch = new LoggedPatch("space", "a", operations);
    const sequence = ++head;
    const commit: LoggedCommit = {
      get sequence() {
        looked.at++;
        return sequence;
      },
      session,
      localSequence: sequence,
      patches: [patch],
      labels: [],
    };
    log.follow(trail, patch, commit);
    log.add(commit);
    return patch;
  };
  return { log, trail, looked, write };
}

test("[S10] a burst of one session is skipped in one step when writes of others are searched", () => {
  const { log, trail, looked, write } = setup();
  write("other", "x");
  for (let i = 0; i < 1_000; i++) write("own", "y");
  looked.at = 0;
  expect(log.writtenSince(trail, 0, "own")).toEqual([["x"]]);
  expect(looked.at).toBe(2);
});

test("[S10] writes of others between two bursts of a session are found, newest first", () => {
  const { log, trail, write } = setup();
  for (const [session, step] of ["own", "b", "own", "own", "c", "b", "own"].map((s, i) => [s, `${s}${i}`] as const))
    write(session, step);
  expect(log.writtenSince(trail, 0, "own")).toEqual([["b5"], ["c4"], ["b1"]]);
  expect(log.writtenSince(trail, 2, "own")).toEqual([["b5"], ["c4"]]);
  expect(log.writtenSince(trail, 4, "b")).toEqual([["own6"], ["c4"]]);
});

test("[S10] [S21] the log returns as many commits as it keeps, and dropped ones hold no references", () => {
  const kept = 100;
  const { log, trail, write } = setup(kept);
  const patches: LoggedPatch[] = [];
  for (let head = 1; head <= 2_000; head++) {
    patches.push(write(`session ${head % 3}`, String(head)));
    const horizon = Math.max(0, head - kept);
    expect(log.start).toBe(horizon);
    expect([log.after(horizon - 1, 1), log.writtenSince(trail, horizon - 1, undefined)]).toEqual([
      undefined,
      undefined,
    ]);
    expect(log.after(horizon, kept)?.map(({ sequence }) => sequence)).toEqual(patches.slice(-kept).map(sequenceOf));
    expect(log.writtenSince(trail, horizon, "nobody")).toHaveLength(head - horizon);
  }
  const led = patches.slice(0, 1_000).filter(({ commit, trail: of, earlier }) => commit ?? of ?? earlier);
  expect(led).toEqual([]);
  expect(log.problems(2_000)).toEqual([]);
});

function sequenceOf({ commit }: LoggedPatch): number | undefined {
  return commit?.sequence;
}
