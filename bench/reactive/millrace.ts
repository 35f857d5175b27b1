/** Ours: one space on the memory store, settled with `flush()`. Its commits go to the store after the turn. */
import { type Cell, Space, systemHost } from "millrace/signals";
import { memoryStore } from "millrace/store";
import type { Fields, Graph, Item } from "./graph.ts";

export async function open(): Promise<Graph> {
  const host = systemHost();
  const store = memoryStore({ host });
  const space = await Space.open({ store, host, name: "bench" });
  let names = 0;
  return {
    build(make) {
      const made = make();
      space.flush();
      return made;
    },
    source<T>(value: T) {
      const cell = space.cell(`source ${++names}`) as Cell<T>;
      cell.set(value);
      return { get: () => cell.get(), set: (next: T) => cell.set(next) };
    },
    computed<T>(compute: () => T) {
      const one = space.computed<T>(`computed ${++names}`, compute);
      return () => one.get() as T;
    },
    register: (compute) => space.computed(`c${++names}`, compute),
    effect: (run) => {
      space.effect(run);
    },
    // Writes before the flush are one turn.
    batch: (writes) => writes(),
    transaction: (writes) => void space.transact(writes),
    settle: () => space.flush(),
    document(fields) {
      const cell = space.cell<Record<string, number>>(`document ${++names}`);
      cell.set(fields);
      const keys = new Map(Object.keys(fields).map((key) => [key, cell.key(key)]));
      return {
        reader(key, run) {
          const one = keys.get(key)!;
          space.effect(() => run(one.get()!));
        },
        set: (key, value) => keys.get(key)!.set(value),
        replace: (next: Fields) => cell.set(next),
      };
    },
    mapped(items, each) {
      const list = space.cell<readonly Item[]>(`list ${++names}`);
      list.set(items);
      const results = space.map<Item, number>(`map ${++names}`, list, (item) => each(item.get()!), {
        key: (item) => item.id,
      });
      return {
        results: () => results.get() ?? [],
        insert: (index, item) => list.splice(index, 0, item),
      };
    },
    async close() {
      await space.close();
      space.scheduler.dispose();
      await store.close();
    },
  };
}
