/**
 * Two store objects on the same data behind one interface: each write goes through one of them at random, each read
 * through the other. This finds a cache that misses writes of another process, and a number that is kept in one
 * process.
 *
 * Calls that are made while others are unanswered go through the same store object, because the order of calls and
 * answers is promised for each store object alone. The choices follow from the seed.
 */
import { SeededRandom } from "../../../src/host/seeded-random.ts";
import type { CommitListener, Store } from "../../../src/store/store.ts";
import type { OpenStore, StoreUnderTest } from "./store-under-test.ts";

const READS: ReadonlySet<string> = new Set([
  ...["load", "list", "changesSince", "basis", "query", "count", "follow", "journalEnd", "hasCommits"],
  ...["consumers", "dueRows", "dueRow", "earliestDue", "verify"],
]);
/** Answered by the first store object: its own counts and notices. */
const OWN: ReadonlySet<string> = new Set(["stats", "watch", "now"]);

export function twoStores(open: OpenStore, seed: number): OpenStore {
  return async (options) => {
    const random = new SeededRandom(seed);
    const at = await open(options);
    return {
      ...at,
      store: await paired(at, at.store, random),
      reopen: async () => paired(at, await at.reopen(), random),
      [Symbol.asyncDispose]: () => at[Symbol.asyncDispose](),
    };
  };
}

async function paired(at: StoreUnderTest, first: Store, random: SeededRandom): Promise<Store> {
  const stores = [first, await at.second()] as const;
  let unanswered = 0;
  /** The store object of the unanswered calls. */
  let current = 0;
  let lastWriter = 0;
  const choose = (name: string): Store => {
    if (unanswered === 0) current = READS.has(name) ? 1 - lastWriter : random.below(2);
    if (!READS.has(name)) lastWriter = current;
    return stores[current]!;
  };
  const closeBoth = async () => {
    for (const store of stores) await store.close();
  };
  return new Proxy(first, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      if (name === "close" || name === Symbol.asyncDispose) return closeBoth;
      if (typeof name === "symbol" || OWN.has(name)) return value.bind(target);
      return (...given: unknown[]) => {
        const store = choose(name);
        const method = Reflect.get(store, name) as (...given: unknown[]) => Promise<unknown> | undefined;
        unanswered++;
        const over = once(() => unanswered--);
        const listener = given[1] as CommitListener;
        const heard: CommitListener = (outcome) => {
          over();
          listener(outcome);
        };
        const own = name === "commit" && given.length > 1 ? [given[0], heard] : given;
        const answer = method.apply(store, own);
        // Without a promise the listener is called later.
        answer?.then(over, over);
        return answer;
      };
    },
  });
}

function once(run: () => void): () => void {
  let isOver = false;
  return () => {
    if (!isOver) run();
    isOver = true;
  };
}
