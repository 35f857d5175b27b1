/**
 * Putting events back: failed ones, those that were settled without a consumer, and done ones for one consumer. SPEC:
 * J75, J104.
 */
import { deliveryName, wantsTopic } from "../store/consumer.ts";
import type { JournalQuery } from "../store/journal.ts";
import type { Store } from "../store/store.ts";
import { BusError } from "./bus-error.ts";
import { type JournalReader, journalPages } from "./journal-pages.ts";
import type { Subscriptions } from "./subscriptions.ts";

/** Which events to put back: failed ones. */
export type RequeueQuery = Pick<JournalQuery, "topic" | "correlation" | "createdFromMs" | "createdBeforeMs">;

/** Options of `bus.requeue`. */
export interface RequeueOptions {
  /** The id of a subscriber. Events that are done go back too, and no other subscriber handles them again. */
  readonly consumer?: string | undefined;
}

/** Puts all failed events that a query finds back to pending, page by page. */
export async function requeueWhere(reader: JournalReader, query: RequeueQuery): Promise<number[]> {
  const requeued: number[] = [];
  const { topic: named, ...rest } = query;
  const filter = { ...rest, ...(named === undefined ? {} : { named }), status: "failed", kind: "event" } as const;
  for await (const rows of journalPages(reader, filter)) {
    requeued.push(...(await reader.store.requeue(rows.map((row) => row.id))));
  }
  return requeued;
}

/** Puts events back for one consumer: the deliveries of all others count as done. */
export async function requeueFor(
  { store, subscriptions }: { readonly store: Store; readonly subscriptions?: Subscriptions },
  ids: readonly number[],
  consumer: string,
): Promise<number[]> {
  const requeued: number[] = [];
  const { consumers } = await store.consumers();
  for (const id of ids) {
    const [row] = await store.query({ id, limit: 1 });
    if (row === undefined) continue;
    const { topic } = row;
    const declared = consumers.filter((one) => wantsTopic(one, topic));
    const own = declared.filter(({ name }) => name === consumer).map(deliveryName);
    if (own.length === 0) {
      const problem = `${consumer} is no consumer of ${topic}, the topic of event ${id}`;
      throw new BusError("BUS_MISUSE", `${problem}; "millrace consumers" lists those that are declared`);
    }
    const here = subscriptions?.stepsFor(topic).map(({ subscriber }) => subscriber) ?? [];
    const others = [...new Set([...declared.map(deliveryName), ...here])].filter((share) => !own.includes(share));
    requeued.push(...(await store.requeue([id], { subscribers: own, others })));
  }
  return requeued;
}
