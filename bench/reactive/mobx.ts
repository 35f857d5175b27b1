/** mobx: boxes by reference, documents as deep observables. */
import { type Graph, mappedOf } from "./graph.ts";

/** As far as it is used here. */
interface Mobx {
  configure(options: { enforceActions: "never" }): void;
  observable: {
    <T extends object>(value: T): T;
    box<T>(value: T, options: { deep: false }): { get(): T; set(value: T): void };
  };
  computed<T>(compute: () => T): { get(): T };
  autorun(run: () => void): () => void;
  runInAction(writes: () => void): void;
}

export async function open(): Promise<Graph> {
  const name = "mobx";
  const { configure, observable, computed, autorun, runInAction } = (await import(name)) as Mobx;
  configure({ enforceActions: "never" });
  const graph: Graph = {
    build: (make) => make(),
    source(value) {
      const one = observable.box(value, { deep: false });
      return { get: () => one.get(), set: (next) => one.set(next) };
    },
    computed(compute) {
      const one = computed(compute);
      return () => one.get();
    },
    register: computed,
    effect: (run) => {
      autorun(() => run());
    },
    batch: runInAction,
    settle() {},
    document(fields) {
      const state = observable({ document: { ...fields } as Record<string, number> });
      return {
        reader: (key, run) => autorun(() => run(state.document[key]!)),
        set: (key, value) => {
          state.document[key] = value;
        },
        replace: (next) => runInAction(() => Object.assign(state, { document: next })),
      };
    },
    mapped: (items, each) => mappedOf(graph, items, each),
  };
  return graph;
}
