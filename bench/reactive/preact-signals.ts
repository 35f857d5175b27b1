/** @preact/signals-core: effects run at the end of the outermost batch, or at once. */
import { documentOf, type Graph, mappedOf } from "./graph.ts";

interface Signal<T> {
  value: T;
}

/** As far as it is used here. */
interface Preact {
  signal<T>(value: T): Signal<T>;
  computed<T>(compute: () => T): Signal<T>;
  effect(run: () => void): () => void;
  batch(writes: () => void): void;
}

export async function open(): Promise<Graph> {
  const name = "@preact/signals-core";
  const { signal, computed, effect, batch } = (await import(name)) as Preact;
  const graph: Graph = {
    build: (make) => make(),
    source(value) {
      const one = signal(value);
      return {
        get: () => one.value,
        set: (next) => {
          one.value = next;
        },
      };
    },
    computed(compute) {
      const one = computed(compute);
      return () => one.value;
    },
    register: computed,
    effect: (run) => {
      effect(() => {
        run();
      });
    },
    batch,
    settle() {},
    document: (fields) => documentOf(graph, fields),
    mapped: (items, each) => mappedOf(graph, items, each),
  };
  return graph;
}
