/**
 * Random histories of one document larger than `SNAPSHOT_SLICE_BYTES`: it is replaced, changed and removed, several
 * times at once and through two store objects, while the store makes its snapshots. Its value must be that of a plain
 * model after every step.
 */
import { expect, test } from "#test";
import { SeededRandom } from "../../../src/host/seeded-random.ts";
import { SNAPSHOT_SLICE_BYTES } from "../../../src/limits.ts";
import type { Json } from "../../../src/message/json.ts";
import type { DocumentPatch } from "../../../src/store/commit.ts";
import { applyOperations } from "../../../src/store/patch.ts";
import type { Store } from "../../../src/store/store.ts";
import { currentValue, remove, set, splice, write } from "./requests.ts";
import type { OpenStore } from "./store-under-test.ts";

const STEPS = 12;
const AT_ONCE_MAX = 4;
const KEYS = 8;
const LETTERS = "abcdefgh";

class History {
  readonly #random: SeededRandom;
  value: Json | undefined;
  largest = 0;

  constructor(seed: number) {
    this.#random = new SeededRandom(seed, 5);
  }

  /** The next patch, applied to the model. A missing document is made first. */
  next(): DocumentPatch {
    const patch = this.value === undefined ? this.#replacement() : this.#change();
    this.value = applyOperations(this.value, patch.operations);
    this.largest = Math.max(this.largest, this.value === undefined ? 0 : JSON.stringify(this.value).length);
    return patch;
  }

  #change(): DocumentPatch {
    const { list } = this.value as { list: Json[] };
    switch (this.below(8)) {
      case 0:
      case 1:
        return this.#replacement();
      case 2:
        return set("large", [], { list: [] });
      case 3:
        return remove("large", []);
      case 4:
        return splice("large", ["list"], this.below(list.length + 1), 0, [this.#text(50_000)]);
      case 5: {
        const keys = Object.keys(this.value as object).filter((key) => key !== "list");
        if (keys.length > 0) return remove("large", [keys[this.below(keys.length)] as string]);
        return this.#replacement();
      }
      default:
        return set("large", [`key ${this.below(KEYS)}`], this.#text(this.below(100_000)));
    }
  }

  #replacement(): DocumentPatch {
    const keys = Array.from({ length: KEYS }, (_, n) => [`key ${n}`, this.#text(60_000)] as const);
    return set("large", [], { ...Object.fromEntries(keys), list: [] });
  }

  #text(length: number): string {
    return (LETTERS[this.below(LETTERS.length)] as string).repeat(length);
  }

  below(bound: number): number {
    return this.#random.below(bound);
  }
}

/**
 * One commit after another on one store, or several at once: they are applied in the order in which they were asked
 * for.
 */
async function step(history: History, store: Store): Promise<void> {
  const patches = Array.from({ length: 1 + history.below(AT_ONCE_MAX) }, () => history.next());
  await Promise.all([
    ...patches.map((patch) => write(store, patch)),
    write(store, set("other", [], history.below(100))),
  ]);
}

export function largeHistories(open: OpenStore, seeds: number): void {
  test("[S1] a document larger than a slice that is replaced and changed at once has the value of a plain model", async () => {
    for (let seed = 1; seed <= seeds; seed++) {
      await using at = await open();
      const history = new History(seed);
      let stores = [at.store, await at.second()];
      for (let n = 0; n < STEPS; n++) {
        await step(history, stores[history.below(2)] as Store);
        for (const store of stores)
          expect([seed, n, await currentValue(store, "large")]).toEqual([seed, n, history.value]);
        if (history.below(6) === 0) stores = [await at.reopen(), await at.second()];
      }
      expect(await stores[0]!.verify()).toMatchObject({ ok: true, problems: [] });
      expect(history.largest).toBeGreaterThan(SNAPSHOT_SLICE_BYTES);
    }
  });
}
