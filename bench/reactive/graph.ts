/**
 * What the workloads ask of a reactive system. Each adapter answers with its system's own best means: a signal library
 * keeps a document in one signal and selects from it, a store library makes its keys reactive, and so on.
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

/** What the document workloads need. */
export interface DocumentGraph {
  /** Everything is created inside a call of it; some systems have owners. */
  build<T>(make: () => T): T;
  document(fields: Fields): ReactiveDocument;
  /** Afterwards every effect has run that has to; nothing where that is so anyway. */
  settle(): void;
  close?(): Promise<void>;
}

export interface Graph extends DocumentGraph {
  source<T>(value: T): Source<T>;
  computed<T>(compute: () => T): () => T;
  /** Makes a computed and gives what one keeps of it, as the library has it: nothing of the benchmark's. */
  register(compute: () => number): unknown;
  effect(run: () => void): void;
  /** Several writes of which effects see the outcome only; what plain code does where that is so anyway. */
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

/**
 * What one writes by hand where the library has no keyed map: a computed for each element, kept by the element's key.
 */
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
