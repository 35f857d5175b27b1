/**
 * Slow work. The handler runs outside of any transaction; its result is recorded in one, under the id of the request. The command is
 * durable before its handler is called. After a crash it runs again, because the worker is `idempotent`: it looks for its result first.
 */
import { capability, type Host, transactional } from "millrace/loop";
import type { Space } from "millrace/signals";
import { type Shaped, shape } from "./shape.ts";

const WORK = { title: "text", seconds: "number" } as const;
const RESULT = { workId: "text", title: "text" } as const;
const WHICH = { workId: "text" } as const;
const SECONDS_MAX = 3_600;

export function worker(space: Space, host: Host) {
  const finished = space.cell<Readonly<Record<string, string>>>("worker/finished", {});
  return {
    worker: capability({
      description: "takes its time",
      idempotent: true,
      sends: { "Work.Find": "query", "Work.Record": "command" },
      commands: {
        "Slow.Work": {
          input: shape(WORK),
          handle: async ({ title, seconds }: Shaped<typeof WORK>, { command, query }, { metadata: { id: workId } }) => {
            const known = (await query("Work.Find", { workId })) as { found: boolean };
            if (!known.found) {
              console.log(`working on ${title}, ${seconds} s`);
              await pause(host, Math.min(Math.max(0, seconds), SECONDS_MAX) * 1_000);
              await command("Work.Record", { workId, title });
            }
            return { finished: title };
          },
        },
      },
    }),
    results: transactional({
      space,
      description: "what came of slow work",
      emits: { "Work.Finished": shape(RESULT) },
      commands: {
        "Work.Record": {
          input: shape(RESULT),
          handle: ({ workId, title }: Shaped<typeof RESULT>, tx) => {
            if (tx.get(finished.key(workId)) !== undefined) return { recorded: false };
            tx.set(finished.key(workId), title);
            tx.emit("Work.Finished", { workId, title });
            return { recorded: true };
          },
        },
      },
      queries: {
        "Work.Find": {
          input: shape(WHICH),
          handle: async ({ workId }: Shaped<typeof WHICH>) => ({
            found: (await finished.key(workId).pull()) !== undefined,
          }),
        },
        "Work.List": { handle: async () => ({ finished: Object.values((await finished.pull()) ?? {}) }) },
      },
    }),
  };
}

function pause(host: Host, ms: number): Promise<void> {
  return new Promise((resolve) => {
    host.timer(ms, resolve);
  });
}
