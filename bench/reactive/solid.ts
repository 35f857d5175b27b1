/**
 * solid-js 1: the browser's reactive core, since its build for Node has no reactivity. Memos are eager and have owners.
 */
import { registerHooks } from "node:module";
import type { Graph } from "./graph.ts";

/** As far as it is used here. */
interface Solid {
  createSignal<T>(value: T): [() => T, (change: (before: T) => T) => void];
  createMemo<T>(compute: () => T): () => T;
  createEffect(run: () => void): void;
  createRoot<T>(make: () => T): T;
  batch(writes: () => void): void;
  mapArray<T, R>(list: () => readonly T[], map: (item: T) => R): () => R[];
}

interface SolidStore {
  createStore<T extends object>(value: T): [T, SetStore<T>];
  reconcile<T>(value: T): (before: T) => T;
}

interface SetStore<T> {
  (key: string, value: unknown): void;
  (change: (before: T) => T): void;
}

export async function open(): Promise<Graph> {
  useBrowserBuild();
  const core = "solid-js";
  const store = "solid-js/store";
  const { createSignal, createMemo, createEffect, createRoot, batch, mapArray } = (await import(core)) as Solid;
  const { createStore, reconcile } = (await import(store)) as SolidStore;
  const graph: Graph = {
    build: (make) => createRoot(make),
    source(value) {
      const [get, change] = createSignal(value);
      return { get, set: (next) => change(() => next) };
    },
    computed: createMemo,
    register: createMemo,
    effect: (run) => createEffect(() => run()),
    batch,
    settle() {},
    document(fields) {
      const [state, change] = createStore({ ...fields } as Record<string, number>);
      return {
        reader: (key, run) => graph.effect(() => run(state[key]!)),
        set: (key, value) => change(key, value),
        replace: (next) => change(reconcile(next as Record<string, number>)),
      };
    },
    mapped(items, each) {
      const list = graph.source(items);
      const results = createMemo(mapArray(list.get, each));
      return { results, insert: (index, item) => list.set(list.get().toSpliced(index, 0, item)) };
    },
  };
  return graph;
}

const BUILDS: Readonly<Record<string, string>> = {
  "solid-js": "solid-js/dist/solid.js",
  "solid-js/store": "solid-js/store/dist/store.js",
};
let hooked = false;

function useBrowserBuild(): void {
  if (hooked) return;
  hooked = true;
  registerHooks({ resolve: (specifier, context, next) => next(BUILDS[specifier] ?? specifier, context) });
}
