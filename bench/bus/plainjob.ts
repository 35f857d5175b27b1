/** plainjob, the queue on SQLite. Its worker takes job after job without a pause, and sleeps when it finds none. */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as wait } from "node:timers/promises";
import type { Json } from "../../src/message/json.ts";
import type { JournalEntry } from "../../src/store/journal.ts";
import { whyPeerMissing } from "../harness/peers.ts";
import { makeEntries } from "../store/events.ts";
import { Plainjob } from "../store/plainjob.ts";
import type { Peer } from "./peer-queue.ts";

/** The shortest that a timer has; its own default is a second. */
const POLL_MS = 1;
const [ENTRY] = makeEntries(1);

export const plainjob: Peer = {
  name: "plainjob",
  durabilities: ["power", "process"],
  commitsEach: true,
  unavailable: () => whyPeerMissing("plainjob"),
  open: async ({ directory }, durability) => {
    await using opening = new AsyncDisposableStack();
    const queue = opening.use(await Plainjob.open(directory, durability));
    const reader = opening.use(new DatabaseSync(join(directory, "plainjob.db"), { readOnly: true }));
    const unfinished = reader.prepare(`SELECT count(*) AS count FROM plainjob_jobs WHERE status <> ${DONE}`);
    const opened = opening.move();
    return {
      publish: async (payload) => queue.publish(entryOf(payload)),
      publishMany: async (payloads) => queue.publishMany(payloads.map(entryOf)),
      work: async (onHandled) => {
        const stopping = new AbortController();
        const worker = pollUntil(stopping.signal, () => onHandled(queue.handleAll()));
        opened.defer(async () => {
          stopping.abort();
          await worker;
        });
      },
      unfinished: async () => Number(unfinished.get()!["count"]),
      [Symbol.asyncDispose]: () => opened.disposeAsync(),
    };
  },
};

/** The status of a finished job in its table. */
const DONE = 2;

async function pollUntil(signal: AbortSignal, poll: () => void): Promise<void> {
  while (!signal.aborted) {
    poll();
    await wait(POLL_MS);
  }
}

function entryOf(payload: Json): JournalEntry {
  return { ...ENTRY!, message: { ...ENTRY!.message, data: payload } };
}
