/** All data of a store that belong to a recorded history, read through the `Store` interface only. */
import type { Json } from "../../src/message/json.ts";
import type { DocumentRef } from "../../src/store/document.ts";
import { documentKey } from "../../src/store/document.ts";
import type { JournalRow } from "../../src/store/journal.ts";
import type { Store } from "../../src/store/store.ts";
import { counterOf, firedOf, LANES, ledgerOf, receiptOf, SPACE } from "./handling.ts";
import type { History } from "./history.ts";

const PAGE = 1_000;

export class ImageFacts {
  /** Ascending by id. */
  readonly rows: readonly JournalRow[];
  readonly #byMessage = new Map<string, JournalRow>();
  readonly #documents: ReadonlyMap<string, Json>;
  readonly #due: ReadonlySet<string>;

  static async read(store: Store, history: History): Promise<ImageFacts> {
    const rows: JournalRow[] = [];
    for (;;) {
      const cursor = rows.at(-1)?.id;
      const page = await store.query({ order: "ascending", limit: PAGE, ...(cursor === undefined ? {} : { cursor }) });
      rows.push(...page);
      if (page.length < PAGE) break;
    }
    const loaded = await store.load(SPACE, refsOf(history));
    const documents = new Map<string, Json>();
    for (const document of loaded.documents) {
      if (document.value !== undefined) documents.set(documentKey(document), document.value);
    }
    const due = await store.dueRows(Number.MAX_SAFE_INTEGER, PAGE);
    return new ImageFacts(rows, documents, new Set(due.map((row) => row.key)));
  }

  private constructor(rows: readonly JournalRow[], documents: ReadonlyMap<string, Json>, due: ReadonlySet<string>) {
    this.rows = rows;
    for (const row of rows) if (row.message) this.#byMessage.set(row.message.metadata.id, row);
    this.#documents = documents;
    this.#due = due;
  }

  row(messageId: string): JournalRow | undefined {
    return this.#byMessage.get(messageId);
  }

  document(ref: DocumentRef): Json | undefined {
    return this.#documents.get(documentKey(ref));
  }

  isDue(key: string): boolean {
    return this.#due.has(key);
  }

  /** One text for all of it: two stores that tell the same have the same. */
  digest(): string {
    const rows = this.rows.map((row) => [row.id, row.topic, row.source, row.message ?? row.unreadable]);
    return JSON.stringify([rows, [...this.#documents]]);
  }
}

function refsOf(history: History): DocumentRef[] {
  const refs = [ledgerOf("a"), ledgerOf("b")];
  for (let lane = 0; lane < LANES; lane++) refs.push(counterOf(lane));
  for (const event of history.events.values()) {
    if (event.handle) refs.push(receiptOf(event.id));
    if (event.fire) refs.push(firedOf(event.id));
  }
  return refs;
}
