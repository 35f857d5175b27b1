/**
 * Slow work. Nothing of it is kept until it is finished, and then its result and its receipt are one commit: killed in the middle it
 * is as if it had not begun, and the same request, sent again, does it once.
 */
import { type Host, type Space, transactional } from "millrace";
import { type Shaped, shape } from "./shape.ts";

const WORK = { title: "text", seconds: "number" } as const;
const SECONDS_MAX = 3_600;

export function worker(space: Space, host: Host) {
  const finished = space.cell<Readonly<Record<string, string>>>("worker/finished");
  // Loaded ahead: a handler that looks at a document before it is here is run again, and this one takes its time.
  void finished.pull();
  return transactional({
    space,
    description: "takes its time",
    emits: { "Work.Finished": shape({ title: "text" }) },
    commands: {
      "Slow.Work": {
        input: shape(WORK),
        handle: async ({ title, seconds }: Shaped<typeof WORK>, tx, { metadata }) => {
          console.log(`working on ${title}, ${seconds} s`);
          await pause(host, Math.min(Math.max(0, seconds), SECONDS_MAX) * 1_000);
          if (tx.get(finished) === undefined) tx.set(finished, {});
          tx.set(finished.key(metadata.id), title);
          tx.emit("Work.Finished", { title });
          return { finished: title };
        },
      },
    },
    queries: {
      "Slow.Finished": { handle: async () => ({ finished: Object.values((await finished.pull()) ?? {}) }) },
    },
  });
}

function pause(host: Host, ms: number): Promise<void> {
  return new Promise((resolve) => {
    host.timer(ms, resolve);
  });
}
