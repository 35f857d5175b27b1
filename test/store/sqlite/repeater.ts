/**
 * Handles the same requests and events as another process on the same file, again and again, while both move the
 * horizon and remove receipts and settled rows. Says what it has handled.
 */

import { randomUnit } from "../../../src/host/random-source.ts";
import { SeededRandom } from "../../../src/host/seeded-random.ts";
import type { Settlement } from "../../../src/store/journal.ts";
import { madeAt } from "../../../src/store/receipt-name.ts";
import { openSqliteStore } from "../../../src/store/sqlite/index.ts";
import type { Store } from "../../../src/store/store.ts";
import { commitBy, entry, ref, set, settlement } from "../conformance/requests.ts";
import { START_MS } from "../controlled-host.ts";

export interface Repeated {
  /** Names of the receipts that its commits have left. */
  readonly handled: string[];
  /** Events that the journal took, from it or before. */
  readonly takenIn: string[];
  removed: number;
  tooOld: number;
}

/** Requests are made a second apart; those of the last seconds come again and again. */
const SECOND_MS = 1_000;
const AGE_MAX = 25;
const AT_ONCE = 12;

export class Repeater {
  readonly said: Repeated = { handled: [], takenIn: [], removed: 0, tooOld: 0 };
  readonly #store: Store;
  readonly #session: string;
  readonly #chance: SeededRandom;
  #commits = 0;

  private constructor(store: Store, name: string) {
    this.#store = store;
    this.#session = name;
    this.#chance = new SeededRandom(name.length);
  }

  static async open(path: string, name: string): Promise<Repeater> {
    const store = await openSqliteStore({
      path,
      durability: "process",
      tuning: { feedCommits: 5, lockWaitMs: 600_000 },
    });
    return new Repeater(store, name);
  }

  async run(rounds: number): Promise<Repeated> {
    const { lease } = await this.#store.openLease(3_600_000);
    for (let round = 0; round < rounds; round++) {
      const old = () => Math.max(0, round - this.#below(AGE_MAX));
      await Promise.all(Array.from({ length: AT_ONCE }, () => this.#handle(`receipt/${idOf(old(), "a")}`)));
      for (let n = 0; n < 3; n++) await this.#publish(idOf(old(), "b"));
      await this.#work(lease, 4);
      const madeBeforeMs = START_MS + (round - this.#below(AGE_MAX)) * SECOND_MS;
      if (this.#below(3) === 0)
        this.said.removed += (await this.#store.forgetReceipts({ madeBeforeMs, limit: 50 })).removed;
      if (this.#below(5) === 0) await this.#store.retain({ keepSettled: this.#below(10), limit: 100 });
    }
    while ((await this.#work(lease, 100)) > 0);
    await this.#store.close();
    return this.said;
  }

  #below(bound: number): number {
    return Math.floor(randomUnit(this.#chance) * bound);
  }

  async #handle(name: string, settlements: readonly Settlement[] = []): Promise<boolean> {
    const preconditions = [{ kind: "absent", ...ref(name), madeAtMs: madeAt(name) } as const];
    const patches = [set(name, [], {}), set(`busy ${this.#session}`, [], this.#commits)];
    const request = commitBy(this.#session, ++this.#commits, { preconditions, patches, settlements });
    const outcome = await this.#store.commit(request);
    if (outcome.kind === "committed") this.said.handled.push(name);
    else if (outcome.reason === "too-old") this.said.tooOld++;
    else if (outcome.reason !== "document-exists") throw new Error(outcome.message);
    return outcome.kind === "committed";
  }

  async #publish(id: string): Promise<void> {
    const outcome = await this.#store.append([entry({ id })]);
    if (outcome.kind === "appended") this.said.takenIn.push(id);
    else if (outcome.reason === "too-old") this.said.tooOld++;
    else throw new Error(outcome.message);
  }

  async #work(lease: number, limit: number): Promise<number> {
    const claims = await this.#store.claim({ lease, limit, kinds: ["event"] });
    for (const claim of claims) {
      const id = claim.row.message?.metadata.id ?? "";
      const done = settlement(claim, { kind: "done" });
      if (!(await this.#handle(`receipt:event:${id} worker ${id.length}`, [done]))) await this.#store.settle([done]);
    }
    return claims.length;
  }
}

/** The same in every process. */
function idOf(second: number, kind: string): string {
  const time = (START_MS + second * SECOND_MS).toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${kind.repeat(12)}`;
}
