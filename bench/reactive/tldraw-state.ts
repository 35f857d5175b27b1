/** @tldraw/state: atoms, computeds and reactors, all with names. */
import { documentOf, type Graph, mappedOf } from "./graph.ts";

/** As far as it is used here. */
interface Tldraw {
  atom<T>(name: string, value: T): { get(): T; set(value: T): void };
  computed<T>(name: string, compute: () => T): { get(): T };
  react(name: string, run: () => void): () => void;
  transact(writes: () => void): void;
}

export async function open(): Promise<Graph> {
  const name = "@tldraw/state";
  const { atom, computed, react, transact } = (await import(name)) as Tldraw;
  let names = 0;
  const graph: Graph = {
    build: (make) => make(),
    source(value) {
      const one = atom(`source ${++names}`, value);
      return { get: () => one.get(), set: (next) => one.set(next) };
    },
    computed(compute) {
      const one = computed(`computed ${++names}`, compute);
      return () => one.get();
    },
    register: (compute) => computed(`c${++names}`, compute),
    effect: (run) => {
      react(`effect ${++names}`, () => run());
    },
    batch: transact,
    settle() {},
    document: (fields) => documentOf(graph, fields),
    mapped: (items, each) => mappedOf(graph, items, each),
  };
  return graph;
}
