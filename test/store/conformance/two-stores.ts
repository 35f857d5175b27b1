/**
 * Two store objects on the same data that look like one: every write goes through one of them at random, every read through
 * the other. It finds what one store object hides: a cache that does not notice the other, or a number that it keeps to itself.
 *
 * Calls that are made while others are under way go through the same store object, because the order of calls and answers is
 * promised for each store object alone. The seed is in the name of the suite.
 */
import type { SeededRandom } from "../../../src/host/seeded-random.ts";
import type { Store } from "../../../src/store/store.ts";
import type { OpenStore, StoreUnderTest } from "./store-under-test.ts";

const READS = new Set([
  ...["load", "list", "changesSince", "basis", "query", "count", "follow", "journalEnd", "hasCommits", "consumers"],
  ...["dueRows", "dueRow", "earliestDue", "verify"],
]);
/** Answered at once by the first store object: counts of its own work, and its end. */
const OWN = new Set(["stats", "watch", "close", "now"]);

export function twoStores(open: OpenStore, random: SeededRandom): OpenStore {
  return async (options) => {
    const at = await open(options);
    const one = await paired(at, at.store, random);
    return {
      ...at,
      store: one,
      reopen: async () => paired(at, await at.reopen(), random),
      [Symbol.asyncDispose]: () => at[Symbol.asyncDispose](),
    };
  };
}

async function paired(at: StoreUnderTest, first: Store, random: SeededRandom): Promise<Store> {
  const stores = [first, await at.second()] as const;
  let underWay = 0;
  /** The store object of the calls that are under way, or of the last write. */
  let current = 0;
  const choose = (name: string): Store => {
    if (underWay === 0) current = READS.has(name) ? 1 - current : random.uint32() % 2;
    return stores[current]!;
  };
  return new Proxy(first, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      if (name === "close")
        return async () => {
          for (const store of stores) await store.close();
        };
      if (OWN.has(String(name)) || typeof name === "symbol") return value.bind(target);
      return (...given: unknown[]) => {
        const store = choose(name);
        const method = Reflect.get(store, name) as (...given: unknown[]) => Promise<unknown> | undefined;
        underWay++;
        const answer = method.apply(store, given);
        const over = () => void underWay--;
        if (answer === undefined) over();
        else answer.then(over, over);
        return answer;
      };
    },
  });
}
