/** @vue/reactivity: effects are queued, as Vue's renderer does it, and run when the queue is worked off. */
import { type Graph, mappedOf } from "./graph.ts";

interface Runner {
  (): void;
  readonly effect: { readonly dirty: boolean };
}

/** As far as it is used here. */
interface Vue {
  shallowRef<T>(value: T): { value: T };
  reactive<T extends object>(value: T): T;
  computed<T>(compute: () => T): { readonly value: T };
  effect(run: () => void, options: { scheduler: () => void }): Runner;
}

export async function open(): Promise<Graph> {
  const name = "@vue/reactivity";
  const { shallowRef, reactive, computed, effect } = (await import(name)) as Vue;
  const queue: { runner: Runner | undefined; queued: boolean }[] = [];
  const graph: Graph = {
    build: (make) => make(),
    source(value) {
      const one = shallowRef(value);
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
    effect(run) {
      const job: (typeof queue)[number] = { runner: undefined, queued: false };
      const scheduler = () => {
        if (!job.queued) queue.push(job);
        job.queued = true;
      };
      job.runner = effect(() => run(), { scheduler });
    },
    batch: (writes) => writes(),
    settle() {
      for (let i = 0; i < queue.length; i++) {
        const job = queue[i]!;
        job.queued = false;
        if (job.runner?.effect.dirty) job.runner();
      }
      queue.length = 0;
    },
    document(fields) {
      const state = reactive({ document: { ...fields } as Record<string, number> });
      return {
        reader: (key, run) => graph.effect(() => run(state.document[key]!)),
        set: (key, value) => {
          state.document[key] = value;
        },
        replace: (next) => {
          state.document = next as Record<string, number>;
        },
      };
    },
    mapped: (items, each) => mappedOf(graph, items, each),
  };
  return graph;
}
