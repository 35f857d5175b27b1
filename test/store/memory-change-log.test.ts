import { expect, test } from "#test";
import { ChangeLog, type LoggedCommit, LoggedPatch, type WriteTrail } from "../../src/store/memory/change-log.ts";

/** A log with a trail through one document, and how many commits of it were looked at. */
function setup() {
  const log = new ChangeLog(10_000);
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
  };
  return { log, trail, looked, write };
}

test("[S10] a session's own burst is passed over in one step when it is asked what others wrote", () => {
  const { log, trail, looked, write } = setup();
  write("other", "x");
  for (let i = 0; i < 1_000; i++) write("own", "y");
  looked.at = 0;
  expect(log.writtenSince(trail, 0, "own")).toEqual([["x"]]);
  expect(looked.at).toBe(2);
});

test("[S10] what others wrote between two bursts of a session is found, newest first", () => {
  const { log, trail, write } = setup();
  for (const [session, step] of ["own", "b", "own", "own", "c", "b", "own"].map((s, i) => [s, `${s}${i}`] as const))
    write(session, step);
  expect(log.writtenSince(trail, 0, "own")).toEqual([["b5"], ["c4"], ["b1"]]);
  expect(log.writtenSince(trail, 2, "own")).toEqual([["b5"], ["c4"]]);
  expect(log.writtenSince(trail, 4, "b")).toEqual([["own6"], ["c4"]]);
});
