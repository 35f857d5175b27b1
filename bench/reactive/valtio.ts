/**
 * valtio: proxies of objects and callbacks on keys. It has no derived values, so it does the document workloads alone.
 */
import type { DocumentGraph } from "./graph.ts";

/** As far as it is used here. */
interface Valtio {
  proxy<T extends object>(value: T): T;
  subscribeKey<T extends object>(state: T, key: keyof T, callback: (value: never) => void, sync: true): () => void;
}

export async function open(): Promise<DocumentGraph> {
  const core = "valtio/vanilla";
  const helpers = "valtio/vanilla/utils";
  const { proxy } = (await import(core)) as Valtio;
  const { subscribeKey } = (await import(helpers)) as Valtio;
  return {
    build: (make) => make(),
    settle() {},
    document(fields) {
      const state = proxy({ ...fields } as Record<string, number>);
      return {
        // Callbacks do not run when they are made, so the first run is ours.
        reader(key, run) {
          run(state[key]!);
          subscribeKey(state, key, run, true);
        },
        set: (key, value) => {
          state[key] = value;
        },
        replace: (next) => {
          Object.assign(state, next);
        },
      };
    },
  };
}
