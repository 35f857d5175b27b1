/**
 * Counts and sums of a collection, kept with each write. A total is a document that holds one number for each slot; a
 * process writes its own slot, so inserts of two processes do not conflict. Commits of one process build on each other.
 * SPEC: R98, R99.
 *
 * ```
 *   { count: { "3": 12 }, sums: { hours: { "3": 40 } } }
 * ```
 */
import { TOTAL_SLOTS } from "../limits.ts";
import type { JsonObject } from "../message/json.ts";
import type { NodeAddress } from "../scheduler/node.ts";
import { type IndexHome, requireLoaded } from "./ordered-index.ts";

/** The change of totals by one element. */
export interface Addition {
  readonly count: number;
  readonly sums: Readonly<Record<string, number>>;
}

export class Totals {
  readonly #home: IndexHome;
  readonly #prefix: string;

  constructor(home: IndexHome, prefix: string) {
    this.#home = home;
    this.#prefix = prefix;
  }

  /** Adds to the total of a group; the empty key is the total of all elements. */
  add(group: string, { count, sums }: Addition): void {
    const total = this.#total(group);
    if (count !== 0) this.#change(total, ["count"], count);
    for (const [name, sum] of Object.entries(sums)) if (sum !== 0) this.#change(total, ["sums", name], sum);
  }

  count(group: string): number {
    return this.#sum(this.#total(group), ["count"]);
  }

  sum(group: string, name: string): number {
    return this.#sum(this.#total(group), ["sums", name]);
  }

  #change(total: NodeAddress, path: readonly string[], by: number): void {
    const { scheduler, replica } = this.#home;
    const slot = slotOf(replica.session);
    const counter = total.at([...path, slot]);
    const before = (scheduler.parts.runner.read(counter) as number | undefined) ?? 0;
    if (before === 0) requireLoaded(scheduler, total);
    this.#makeRoom(total, path);
    if (before + by === 0) scheduler.erase(counter);
    else scheduler.parts.runner.write(counter, before + by);
  }

  /** Writes the objects above a counter that are not there yet. They stay, so later writes only look. */
  #makeRoom(total: NodeAddress, path: readonly string[]): void {
    const { scheduler } = this.#home;
    for (let length = 0; length <= path.length; length++) {
      const place = total.at(path.slice(0, length));
      // The read is a claim: of two processes that create the object, one runs again.
      if (scheduler.parts.runner.glance(place) === undefined && scheduler.parts.runner.read(place, true) === undefined)
        scheduler.parts.runner.write(place, {});
    }
  }

  #sum(total: NodeAddress, path: readonly string[]): number {
    const { scheduler } = this.#home;
    const slots = scheduler.parts.runner.read(total.at(path)) as JsonObject | undefined;
    if (slots === undefined) requireLoaded(scheduler, total);
    return Object.values(slots ?? {}).reduce<number>((sum, value) => sum + (value as number), 0);
  }

  #total(group: string): NodeAddress {
    return this.#home.document(group === "" ? this.#prefix : `${this.#prefix}/${group}`);
  }
}

/** A process keeps its session until it restarts, so it keeps to one slot. */
function slotOf(session: string): string {
  let hash = 0;
  for (let at = 0; at < session.length; at++) hash = (hash * 31 + session.charCodeAt(at)) >>> 0;
  return String(hash % TOTAL_SLOTS);
}
