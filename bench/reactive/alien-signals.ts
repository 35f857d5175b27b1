/** alien-signals: effects run at the end of the outermost batch, or at once. */
import { documentOf, type Graph, mappedOf } from "./graph.ts";

/** As far as it is used here. */
interface Alien {
  signal<T>(value: T): { (): T; (value: T): void };
  computed<T>(compute: () => T): () => T;
  effect(run: () => void): () => void;
  startBatch(): void;
  endBatch(): void;
}

export async function open(): Promise<Graph> {
  const name = "alien-signals";
  const { signal, computed, effect, startBatch, endBatch } = (await import(name)) as Alien;
  const graph: Graph = {
    build: (make) => make(),
    source(value) {
      const one = signal(value);
      return { get: one, set: one };
    },
    computed,
    register: computed,
    // Braces, because the value that an effect returns is its clean-up.
    effect: (run) => {
      effect(() => {
        run();
      });
    },
    batch(writes) {
      startBatch();
      writes();
      endBatch();
    },
    settle() {},
    document: (fields) => documentOf(graph, fields),
    mapped: (items, each) => mappedOf(graph, items, each),
  };
  return graph;
}
