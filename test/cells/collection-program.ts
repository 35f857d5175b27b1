/**
 * Random histories of a collection beside a plain `Map`: two processes on one store write at the same time, pages are
 * small so that indexes split and become empty often, and processes restart. At every rest both processes show the
 * elements of the map.
 */
import { Collection, index } from "../../src/cells/collection.ts";
import type { Space } from "../../src/cells/space.ts";
import { SeededRandom } from "../../src/host/seeded-random.ts";

export interface Item {
  readonly group: string;
  readonly rank: number;
  readonly note?: string;
}

export const GROUPS = ["a", "a\u0001", "b", ""];
const IDS = 40;
/** Writes that are under way at the same time. */
const TOGETHER = 6;

export function itemsOf(space: Space, pageMax = 4): Collection<Item> {
  const indexes = [
    index<Item>("by_group", (item) => [item.group, item.rank], { totals: 1 }),
    index<Item>("noted", (item) => (item.note === undefined ? undefined : [item.note])),
  ];
  return new Collection<Item>(space, "items", { indexes, sums: { rank: (item) => item.rank } }, pageMax);
}

/** The processes of a history; a restart closes one and opens another on the same store. */
export interface Processes {
  readonly spaces: Space[];
  restart(at: number): Promise<void>;
  /** Runs until the system is at rest and both processes have seen all commits. */
  rest<T>(work: () => Promise<T>): Promise<T>;
}

export async function runHistory(processes: Processes, seed: number, rounds: number): Promise<void> {
  const random = new SeededRandom(seed);
  const model = new Map<string, Item>();
  for (let round = 0; round < rounds; round++) {
    await processes.rest(() => Promise.all(writes(processes.spaces, random, model)));
    if (random.below(5) === 0) await processes.restart(random.below(processes.spaces.length));
    if (random.below(3) === 0 || round === rounds - 1)
      for (const space of processes.spaces) await compare(processes, space, model, `seed ${seed}, round ${round}`);
  }
}

/** Writes to different elements, so that their order does not matter. */
function writes(spaces: readonly Space[], random: SeededRandom, model: Map<string, Item>): Promise<void>[] {
  const ids = new Set(Array.from({ length: TOGETHER }, () => `id ${random.below(IDS)}`));
  // Phases of growth and of decline, so that pages are split and emptied.
  const isGrowing = random.below(3) > 0;
  return [...ids].map((id) => {
    const space = spaces[random.below(spaces.length)] as Space;
    const items = itemsOf(space);
    if (random.below(4) === 0 || (!isGrowing && random.below(3) > 0)) {
      model.delete(id);
      return space.transact(() => items.delete(id));
    }
    const note = random.below(2) === 0 ? { note: `note ${random.below(5)}` } : {};
    const item = { group: GROUPS[random.below(GROUPS.length)] as string, rank: random.below(9) - 4, ...note };
    const before = model.get(id);
    if (before !== undefined && random.below(2) === 0) {
      model.set(id, { ...before, rank: item.rank });
      return space.transact(() =>
        items
          .at(id)
          .key("rank" as never)
          .set(item.rank as never),
      );
    }
    model.set(id, item);
    return space.transact(() => items.set(id, item));
  });
}

async function compare(
  processes: Processes,
  space: Space,
  model: ReadonlyMap<string, Item>,
  when: string,
): Promise<void> {
  const items = itemsOf(space);
  const seen = await processes.rest(() => items.pull(() => summary(items)));
  const expected = modelSummary(model);
  if (JSON.stringify(seen) === JSON.stringify(expected)) return;
  throw new Error(`${when}: seen ${JSON.stringify(seen)}\nexpected ${JSON.stringify(expected)}`);
}

function summary(items: Collection<Item>) {
  const byGroup: string[] = [];
  let after: string | undefined;
  do {
    const page = items.page({ index: "by_group", limit: 3, after });
    byGroup.push(...page.elements.map(({ id }) => id));
    after = page.next;
  } while (after !== undefined);
  return {
    ids: items.ids(),
    byGroup,
    noted: items.page({ index: "noted", limit: 1_000 }).elements.map(({ id }) => id),
    ranks: GROUPS.map((group) => items.page({ index: "by_group", from: [group, 0], to: [group] }).elements.length),
    count: items.count(),
    sum: items.sum("rank"),
    groups: GROUPS.map((key) => [
      items.count({ index: "by_group", key: [key] }),
      items.sum("rank", { index: "by_group", key: [key] }),
    ]),
  };
}

function modelSummary(model: ReadonlyMap<string, Item>) {
  const all = [...model].map(([id, item]) => ({ id, ...item })).sort((x, y) => (x.id < y.id ? -1 : 1));
  const order = (x: string | number, y: string | number) => (x < y ? -1 : x > y ? 1 : 0);
  const sumOf = (of: readonly Item[]) => of.reduce((sum, { rank }) => sum + rank, 0);
  const inGroup = (group: string) => all.filter((item) => item.group === group);
  return {
    ids: all.map(({ id }) => id),
    byGroup: all
      .toSorted((x, y) => order(x.group, y.group) || x.rank - y.rank || order(x.id, y.id))
      .map(({ id }) => id),
    noted: all
      .filter(({ note }) => note !== undefined)
      .toSorted((x, y) => order(x.note as string, y.note as string) || order(x.id, y.id))
      .map(({ id }) => id),
    ranks: GROUPS.map((group) => inGroup(group).filter(({ rank }) => rank >= 0).length),
    count: all.length,
    sum: sumOf(all),
    groups: GROUPS.map((group) => [inGroup(group).length, sumOf(inGroup(group))]),
  };
}
