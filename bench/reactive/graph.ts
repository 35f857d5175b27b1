/**
 * The interface of a reactive system for the workloads. Each adapter uses its system's own best means: a signal library
 * keeps a document in one signal and selects from it, a store library makes its keys reactive.
 */

export interface Source<T> {
  get(): T;
  set(value: T): void;
}

/** A flat document; its readers are effects that depend on one key each. */
export interface ReactiveDocument {
  reader(key: string, run: (value: number) => void): void;
  set(key: string, value: number): void;
  /** Puts another document in its place, of the same keys. */
  replace(fields: Fields): void;
}

export type Fields = Readonly<Record<string, number>>;

export interface Item {
  readonly id: number;
}

/** A list, mapped element by element: `each` runs once for an element that stays, wherever it moves. */
export interface MappedList {
  /** All results, in order. */
  results(): readonly number[];
  insert(index: number, item: Item): void;
}

/** The parts that document workloads need. */
export interface DocumentGraph {
  /** All nodes are created inside a call of it; some systems have owners. */
  build<T>(make: () => T): T;
  document(fields: Fields): ReactiveDocument;
  /** Runs all pending effects; empty where effects run at once. */
  settle(): void;
  close?(): Promise<void>;
}

export interface Graph extends DocumentGraph {
  source<T>(value: T): Source<T>;
  computed<T>(compute: () => T): () => T;
  /** Makes a computed value and returns the library's own handle. */
  register(compute: () => number): unknown;
  effect(run: () => void): void;
  /** Several writes as one change for effects; a plain call where that is the default. */
  batch(writes: () => void): void;
  /** The same as one transaction, where the system has any. */
  transaction?(writes: () => void): void;
  mapped(items: readonly Item[], each: (item: Item) => number): MappedList;
}

/** The parts of a system out of which its documents and lists can be made by hand. */
export type Signals = Pick<Graph, "source" | "computed" | "effect">;

/** A document in one source: each reader selects its key in a computed, so that an effect runs only if that differs. */
export function documentOf(graph: Signals, fields: Fields): ReactiveDocument {
  const source = graph.source(fields);
  return {
    reader(key, run) {
      const value = graph.computed(() => source.get()[key]!);
      graph.effect(() => run(value()));
    },
    set: (key, value) => source.set({ ...source.get(), [key]: value }),
    replace: (next) => source.set(next),
  };
}

/** For libraries without a keyed map: a computed value for each element, kept by the element's key. */
export function mappedOf(graph: Signals, items: readonly Item[], each: (item: Item) => number): MappedList {
  const list = graph.source(items);
  let children = new Map<number, () => number>();
  const results = graph.computed(() => {
    const kept = new Map<number, () => number>();
    const values = list.get().map((item) => {
      const child = children.get(item.id) ?? graph.computed(() => each(item));
      kept.set(item.id, child);
      return child();
    });
    children = kept;
    return values;
  });
  return { results, insert: (index, item) => list.set(list.get().toSpliced(index, 0, item)) };
}
