/**
 * An app whose handlers count at every entry point: commands, journaled commands, `on`, subscribers, streams, commands
 * of timers, `space.transact`. Each invocation leaves its effect, a sum, an event and a receipt in one commit, so that
 * a lost, doubled or partial one can be found from outside.
 */
import type { Space } from "../../src/cells/space.ts";
import type { Kernel } from "../../src/kernel/kernel.ts";
import type { KernelParts } from "../../src/kernel/kernel-options.ts";
import { transactional } from "../../src/loop/transactional.ts";
import type { Message } from "../../src/message/envelope.ts";
import type { ErrorData } from "../../src/message/error-data.ts";
import type { Json } from "../../src/message/json.ts";
import { SHARED_SCOPE } from "../../src/store/document.ts";
import type { JournalRow } from "../../src/store/journal.ts";
import type { Store } from "../../src/store/store.ts";
import type { Tx } from "../../src/work/tx.ts";

export const ENTRIES = ["command", "journaled", "event", "subscriber", "stream", "timer", "transact"] as const;
export type Entry = (typeof ENTRIES)[number];

/** One invocation; its id is unique in the run. */
export interface Invoked {
  readonly entry: Entry;
  readonly id: string;
}

/** The answer to its sender: the result, or that it will be handled. */
export type Told = { readonly kind: "done"; readonly result: Json } | { readonly kind: "accepted" };

const COUNTED = "Entry.Counted";
const SPACE = "kernel";
const TIMER_MS = 20;

function countIn(space: Space, entry: Entry, id: string, tx: Tx): Json {
  tx.update(space.cell<number>(`effects/${id}`, 0), (times) => times + 1);
  const total = space.cell<number>(`total/${entry}`, 0);
  tx.update(total, (sum) => sum + 1);
  tx.emit(COUNTED, { id });
  return { id, sum: tx.get(total) };
}

export function countingCapabilities({ space, bus }: KernelParts) {
  const count = (entry: Entry, id: string, tx: Tx) => countIn(space, entry, id, tx);
  const handler = (entry: Entry) => ({ handle: (id: Json, tx: Tx) => count(entry, String(id), tx) });
  bus.subscribe("Count.Subscriber", ({ payload }, tx) => count("subscriber", String(payload), tx), {
    ...{ subscriberId: "counter", space },
  });
  space.stream<string>("counts").handle((id, tx) => count("stream", id, tx));
  const shared = { space, emits: { [COUNTED]: true } } as const;
  return {
    counter: transactional({
      ...{ ...shared, description: "counts" },
      commands: { "Count.Command": handler("command"), "Count.Timer": handler("timer") },
      on: { "Count.Event": (id: Json, tx: Tx) => void count("event", String(id), tx) },
    }),
    journal: transactional({
      ...{ ...shared, description: "counts what is journaled first", durable: "before" },
      commands: { "Count.Journaled": handler("journaled") },
    }),
  };
}

/** Sends an invocation; undefined without an acknowledgement, so that it may be sent again. */
export async function invoke(kernel: Kernel, { entry, id }: Invoked): Promise<Told | undefined> {
  const { space, bus } = kernel;
  const message = (kind: "command" | "event", type: string, data: Json): Message => ({
    ...{ kind, type, data, metadata: { id, timestamp: 1 } },
  });
  const answered = async (type: string, data: Json): Promise<Json | undefined> => {
    const answer = await kernel.request(message("command", type, data));
    if (answer.kind === "reply") return answer.data;
    const { code, message: why } = answer.data as ErrorData;
    if (code !== 503 && code !== 504) throw new Error(`${entry} ${id}: ${code} ${why}`);
    return undefined;
  };
  switch (entry) {
    case "command":
    case "journaled": {
      const result = await answered(entry === "command" ? "Count.Command" : "Count.Journaled", id);
      return result === undefined ? undefined : { kind: "done", result };
    }
    case "timer": {
      const data = { delayMs: TIMER_MS, message: { kind: "command", type: "Count.Timer", data: id } };
      return (await answered("Timer.Set", data)) === undefined ? undefined : { kind: "accepted" };
    }
    case "event":
    case "subscriber":
      await bus.publishMessage(message("event", entry === "event" ? "Count.Event" : "Count.Subscriber", id), "test");
      return { kind: "accepted" };
    case "stream": {
      const outcome = await space.stream<string>("counts").send(id, { eventId: id }).outcome;
      const isDone = outcome.kind === "handled" || outcome.kind === "already";
      return isDone ? { kind: "done", result: outcome.result } : undefined;
    }
    case "transact":
      return { kind: "done", result: await space.transact((tx) => countIn(space, entry, id, tx)) };
  }
}

/** Lost, doubled and partial invocations in a store that is at rest; `told` has the answers to their senders. */
export async function findings(store: Store, told: ReadonlyMap<Invoked, Told | undefined>): Promise<string[]> {
  const found: string[] = [];
  const ids = [...told.keys()].map(({ id }) => id);
  const refs = [...ids.map((id) => `effects/${id}`), ...ENTRIES.map((entry) => `total/${entry}`)];
  const { documents } = await store.load(
    SPACE,
    refs.map((id) => ({ scope: SHARED_SCOPE, id })),
  );
  const numbers = new Map(documents.map(({ id, value }) => [id, (value as number | undefined) ?? 0]));
  const events = new Map<string, number>();
  for (const { message } of await allRows(store)) {
    if (message?.type !== COUNTED) continue;
    const { id } = message.data as { id: string };
    events.set(id, (events.get(id) ?? 0) + 1);
  }
  const sums = new Map<Entry, number>();
  for (const [{ entry, id }, answer] of told) {
    const times = numbers.get(`effects/${id}`) ?? 0;
    sums.set(entry, (sums.get(entry) ?? 0) + times);
    if (times > 1) found.push(`double: ${entry} ${id} took effect ${times} times`);
    if (times === 0 && answer !== undefined) found.push(`lost: ${entry} ${id} was ${answer.kind}, and took no effect`);
    if ((events.get(id) ?? 0) !== times) found.push(`partial: ${entry} ${id} has ${events.get(id) ?? 0} events`);
  }
  for (const entry of ENTRIES) {
    const total = numbers.get(`total/${entry}`) ?? 0;
    if (total !== (sums.get(entry) ?? 0)) found.push(`partial: the total of ${entry} is ${total}`);
  }
  return found;
}

/** Whether no message and no timer waits. */
export async function isAtRest(store: Store): Promise<boolean> {
  const { pending, processing } = await store.count();
  return pending + processing === 0 && (await store.dueRows(Number.MAX_SAFE_INTEGER, 1)).length === 0;
}

async function allRows(store: Store): Promise<JournalRow[]> {
  const rows: JournalRow[] = [];
  for (;;) {
    const cursor = rows.at(-1)?.id;
    const page = await store.query({ order: "ascending", limit: 1_000, ...(cursor === undefined ? {} : { cursor }) });
    rows.push(...page);
    if (page.length < 1_000) return rows;
  }
}
