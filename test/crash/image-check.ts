/**
 * The checker: opens the store in a directory that a crash may have left, lets it recover, and compares its data with
 * the acknowledged operations of the history. Rules: J1 (acknowledged is durable), J3 (handled once), S4 (a commit is
 * made as a whole).
 *
 * It reads through the `Store` interface only, so that it cannot share a mistake with the backend about its tables.
 */
import type { JsonObject } from "../../src/message/json.ts";
import type { Store } from "../../src/store/store.ts";
import {
  Author,
  counterOf,
  countIn,
  effectIdOf,
  entryOf,
  firedIdOf,
  firedOf,
  handle,
  LANES,
  ledgerOf,
  receiptOf,
  textOf,
} from "./handling.ts";
import type { History, KnownEvent, LedgerKey } from "./history.ts";
import { ImageFacts } from "./image-facts.ts";
import { laterHost, openStore, type StoreSetting } from "./store-setting.ts";

export type Fault =
  /** Acknowledged, and not there or not as it was. */
  | "lost"
  /** Part of a commit without the rest. */
  | "partial"
  /** An effect without the receipt that keeps it from happening again, or the other way round. */
  | "double"
  /** `verify` fails, or ids are out of order. */
  | "corrupt"
  /** It does not open, or does no work. */
  | "unusable";

export interface Finding {
  readonly fault: Fault;
  readonly text: string;
}

/** Later than any lease that a crashed process may have held. */
const LATER_MS = 100 * 365 * 86_400_000;
const LEASE_MS = 3_600_000;

export async function checkImage(setting: StoreSetting, history: History): Promise<Finding[]> {
  const check = new ImageCheck(history);
  try {
    const store = await openStore(setting, laterHost(LATER_MS));
    try {
      await check.run(store);
    } finally {
      await store.close();
    }
  } catch (error) {
    check.found("unusable", error instanceof Error ? (error.stack ?? error.message) : String(error));
  }
  return check.findings;
}

class ImageCheck {
  readonly findings: Finding[] = [];
  readonly #history: History;

  constructor(history: History) {
    this.#history = history;
  }

  found(fault: Fault, text: string): void {
    this.findings.push({ fault, text });
  }

  async run(store: Store): Promise<void> {
    await store.recover();
    const report = await store.verify();
    if (!report.ok) this.found("corrupt", report.problems.join("; "));
    const facts = await ImageFacts.read(store, this.#history);
    this.#checkIds(facts);
    for (const event of this.#history.events.values()) this.#checkEvent(event, facts);
    this.#checkCounters(facts);
    for (const [key, known] of this.#history.ledger) this.#checkLedger(key, known, facts);
    await this.#checkUsable(store, facts);
  }

  /**
   * Ids are contiguous: one that is missing below the last is of an event that was handed out, and that retention
   * removed.
   */
  #checkIds(facts: ImageFacts): void {
    const removable = this.#history.retained ? this.#history.attempts : new Map();
    let expected = 1;
    const names = new Set<string>();
    for (const row of facts.rows) {
      for (; expected < row.id; expected++) {
        if (!removable.has(expected)) this.found("corrupt", `journal id ${expected} is missing`);
      }
      expected = row.id + 1;
      const name = row.message?.metadata.id;
      if (name === undefined) this.found("corrupt", `journal row ${row.id} is unreadable: ${row.unreadable}`);
      else if (names.has(name)) this.found("double", `message ${name} is in the journal twice`);
      else names.add(name);
    }
  }

  #checkEvent(event: KnownEvent, facts: ImageFacts): void {
    const row = facts.row(event.id);
    const isHandled = facts.document(receiptOf(event.id)) !== undefined;
    if (row) {
      if (textOf(row) !== event.text) this.found("lost", `${event.id} has other bytes than were published`);
      if (event.journalId !== undefined && row.id !== event.journalId)
        this.found("lost", `${event.id} was acknowledged as row ${event.journalId} and is row ${row.id}`);
      if (row.status === "processing") this.found("lost", `${event.id} is still processing after recovery`);
      const attempts = this.#history.attempts.get(row.id) ?? 0;
      if (row.attempts < attempts) this.found("lost", `${event.id} was claimed ${attempts} times, not ${row.attempts}`);
    } else if (!this.#mayBeRetained(event, isHandled)) {
      if (event.publish === "acknowledged")
        this.found("lost", `${event.id} was acknowledged and is not in the journal`);
      for (const sibling of this.#history.events.values()) {
        if (sibling.deed === event.deed && facts.row(sibling.id))
          this.found("partial", `${sibling.id} is there without ${event.id}, which was published with it`);
      }
    }
    if (event.topic === "work") this.#checkHandling(event, isHandled, facts);
    else this.#checkSettlement(event, facts);
  }

  /** Settled rows may be gone once a removal has begun. */
  #mayBeRetained(event: KnownEvent, isHandled: boolean): boolean {
    return this.#history.retained && (isHandled || event.settle !== undefined || event.fail !== undefined);
  }

  #checkHandling(event: KnownEvent, isHandled: boolean, facts: ImageFacts): void {
    const row = facts.row(event.id);
    if (event.handle === "acknowledged" && !isHandled) this.found("lost", `the receipt of ${event.id} is missing`);
    if (isHandled && event.handle === undefined) this.found("double", `${event.id} has a receipt that nobody wrote`);
    if (isHandled !== (facts.row(effectIdOf(event.id)) !== undefined))
      this.found("double", `the receipt of ${event.id} is ${isHandled ? "" : "not "}there, its effect is otherwise`);
    if (row && isHandled !== (row.status === "done"))
      this.found("double", `the receipt of ${event.id} is ${isHandled ? "" : "not "}there, the row is ${row.status}`);
    this.#checkFiring(event, isHandled, facts);
  }

  /** The due row is there from handling until firing; firing leaves a document and a journal row instead. */
  #checkFiring(event: KnownEvent, isHandled: boolean, facts: ImageFacts): void {
    const isFired = facts.document(firedOf(event.id)) !== undefined;
    if (event.fire === "acknowledged" && !isFired) this.found("lost", `the firing of ${event.id} is missing`);
    if (isFired !== (facts.row(firedIdOf(event.id)) !== undefined))
      this.found("partial", `the firing of ${event.id} has only one of document and journal row`);
    if (facts.isDue(event.id) !== (isHandled && !isFired))
      this.found("partial", `the due row of ${event.id} does not fit: handled ${isHandled}, fired ${isFired}`);
  }

  #checkSettlement(event: KnownEvent, facts: ImageFacts): void {
    const row = facts.row(event.id);
    if (!row) return;
    if (event.settle === "acknowledged" && row.status !== "done")
      this.found("lost", `${event.id} was settled and is ${row.status}`);
    if (event.fail === "acknowledged" && (row.status !== "failed" || row.error !== event.error))
      this.found("lost", `${event.id} had failed and is ${row.status}, error ${row.error}`);
    const isUntouched = event.settle === undefined && event.fail === undefined;
    if (isUntouched && row.status !== "pending") this.found("double", `${event.id} is ${row.status}, by nobody`);
  }

  #checkCounters(facts: ImageFacts): void {
    for (let lane = 0; lane < LANES; lane++) {
      const count = countIn(facts.document(counterOf(lane)));
      let receipts = 0;
      for (const event of this.#history.events.values()) {
        if (event.lane === lane && facts.document(receiptOf(event.id)) !== undefined) receipts += 1;
      }
      if (count !== receipts) this.found("double", `counter ${lane} says ${count}, there are ${receipts} receipts`);
    }
  }

  #checkLedger(key: string, known: LedgerKey, facts: ImageFacts): void {
    const [a, b] = (["a", "b"] as const).map((half) => {
      const value = (facts.document(ledgerOf(half)) as JsonObject | undefined)?.[key];
      return value === undefined ? { n: 0, text: undefined } : (value as { n: number; text: string });
    });
    if (a?.n !== b?.n) this.found("partial", `${key} is of deed ${a?.n} in one ledger and of ${b?.n} in the other`);
    const n = a?.n ?? 0;
    if (n < known.acknowledged)
      this.found("lost", `${key} is of deed ${n}, deed ${known.acknowledged} was acknowledged`);
    if (n !== 0 && known.begun.get(n) !== a?.text) this.found("lost", `${key} has other bytes than deed ${n} wrote`);
  }

  /** The store takes new work, gives it the next id, and finishes the work left by the crash, once. */
  async #checkUsable(store: Store, facts: ImageFacts): Promise<void> {
    const fresh = { id: "after-the-crash", topic: "plain", text: "after the crash" } as const;
    const appended = await store.append([entryOf(fresh)]);
    const next = (facts.rows.at(-1)?.id ?? 0) + 1;
    if (appended.kind !== "appended") this.found("unusable", `append: ${appended.message}`);
    // Where retention took the last rows the ids go on after them, which the history cannot tell.
    else if ((appended.ids[0] ?? 0) < next) this.found("corrupt", `the next id is ${appended.ids[0]}, not ${next}`);
    const { lease } = await store.openLease(LEASE_MS);
    const author = new Author("after-the-crash");
    for (const claim of await store.claim({ lease, limit: 4, kinds: ["event"] })) {
      const event = this.#history.events.get(claim.row.message?.metadata.id ?? "");
      if (event?.topic !== "work") continue;
      const outcome = await handle(store, author, claim, event, LANES);
      if (outcome.kind !== "committed")
        this.found("double", `${event.id} was handed out again after it had been handled: ${outcome.message}`);
    }
  }
}
