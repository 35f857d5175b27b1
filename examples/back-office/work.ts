/** Slow work: `run` is outside of any transaction and may be called twice, `commit` records its result once. */
import { setTimeout as pause } from "node:timers/promises";
import { type AppParts, command, on } from "millrace";
import { shape } from "./shape.ts";

const SECONDS_MAX = 240;

export function workOf({ cell, event }: AppParts) {
  const results = cell<string[]>("results", []);
  const asked = event("Work.Asked", shape({ title: "text", seconds: "number" }));
  const finished = event("Work.Finished", shape({ title: "text" }));
  return {
    commands: {
      "Work.Start": command(shape({ title: "text", seconds: "number" }), (work, tx) => {
        tx.emit(asked, work);
        return { accepted: work.title };
      }),
    },
    queries: { "Work.List": () => ({ finished: results.get() }) },
    on: {
      worker: on(asked, {
        run: async ({ title, seconds }, { signal }) => {
          console.log(`working on ${title}, ${seconds} s`);
          await pause(Math.min(Math.max(0, seconds), SECONDS_MAX) * 1_000, undefined, { signal });
        },
        commit: (_result, tx, { title }) => {
          tx.push(results, title);
          tx.emit(finished, { title });
        },
        retry: 3,
      }),
    },
    events: { finished },
  };
}
