/**
 * The workloads (a) to (i): each builds its graph, checks that one write gives the right value, counts the runs, and
 * times further writes. This module is loaded once for each system (`systems.ts`), so that calls of one system do not
 * slow down another. The chains need a large stack in most systems (`deep-stack.ts`).
 */
import type { Sample, Scale } from "../harness/benchmark.ts";
import type { DocumentGraph, Graph } from "./graph.ts";
import { letGo, pace } from "./pace.ts";

export type GraphWorkload = (graph: Graph, scale: Scale) => Promise<Sample>;
export type DocumentWorkload = (graph: DocumentGraph, scale: Scale) => Promise<Sample>;

const WIDE = 10_000;
const HEAP_NOISE_BYTES = 50_000;

/** (a) One source, 10,000 computeds, one observed: one write. */
export async function oneOfManyObserved(graph: Graph, scale: Scale): Promise<Sample> {
  const counted = new Counter();
  let seen = 0;
  const source = graph.build(() => {
    const source = graph.source(0);
    const computeds = Array.from({ length: WIDE }, (_, i) => graph.computed(() => counted.ran(source.get() + i)));
    graph.effect(() => {
      seen = computeds[0]!();
    });
    return source;
  });
  const runs = write(graph, counted, () => source.set(1));
  requireEqual(seen, 1);
  return { runs, us: await pace(scale, (nth) => settled(graph, () => source.set(nth + 1))) };
}

/** (b) Registering unread computed values: in batches, of which the fastest counts, as in `pace.ts`. */
export async function dormant(graph: Graph, _scale: Scale): Promise<Sample> {
  const [batches, size] = [100, 1000];
  const counted = new Counter();
  const source = graph.build(() => graph.source(0));
  const kept: unknown[] = new Array(batches * size).fill(undefined);
  let count = 0;
  const registerBatch = () => {
    for (let i = 0; i < size; i++) kept[count++] = graph.register(() => counted.ran(source.get()));
  };
  let fastest = Number.POSITIVE_INFINITY;
  const before = await heapUsed();
  for (let batch = 0; batch < batches; batch++) {
    const start = performance.now();
    graph.build(registerBatch);
    fastest = Math.min(fastest, performance.now() - start);
  }
  const bytes = ((await heapUsed()) - before) / count;
  const runs = write(graph, counted, () => source.set(1));
  requireEqual(kept.length, count);
  return { runs, us: (fastest * 1000) / size, bytes };
}

/** (c) A chain of 1,000 nodes, the last of them an effect. */
export async function chain(graph: Graph, scale: Scale): Promise<Sample> {
  const length = 1000;
  const counted = new Counter();
  let seen = 0;
  const source = graph.build(() => {
    const source = graph.source(0);
    let last = source.get;
    for (let i = 1; i < length; i++) {
      const before = last;
      last = graph.computed(() => counted.ran(before() + 1));
    }
    graph.effect(() => {
      seen = counted.ran(last());
    });
    return source;
  });
  const runs = write(graph, counted, () => source.set(1));
  requireEqual(seen, length);
  const us = await pace(scale, (nth) => settled(graph, () => source.set(nth + 1)));
  return { runs, "ns per node": (us * 1000) / length };
}

/** (d) A grid 99 deep and 5 wide in which every node reads two of the row above, and one effect. */
export async function diamonds(graph: Graph, scale: Scale): Promise<Sample> {
  const [rows, width] = [99, 5];
  const counted = new Counter();
  let seen = 0;
  const source = graph.build(() => {
    const source = graph.source(1);
    let above: (() => number)[] = Array.from({ length: width }, () => source.get);
    for (let row = 0; row < rows; row++) {
      const upper = above;
      above = upper.map((left, i) => {
        const right = upper[(i + 1) % width]!;
        return graph.computed(() => counted.ran((left() + right()) % 1_000_003));
      });
    }
    graph.effect(() => {
      seen = counted.ran(above.reduce((sum, node) => sum + node(), 0));
    });
    return source;
  });
  const before = seen;
  const runs = write(graph, counted, () => source.set(2));
  requireEqual(seen % 1_000_003, (before * 2) % 1_000_003);
  const us = await pace(scale, (nth) => settled(graph, () => source.set(nth + 2)));
  return { runs, "ns per node": (us * 1000) / (rows * width) };
}

/** (e) A chain of 10,000 with a first node that returns the same value as before. */
export async function unchangedFirst(graph: Graph, scale: Scale): Promise<Sample> {
  const counted = new Counter();
  let seen = -1;
  const source = graph.build(() => {
    const source = graph.source(0);
    let last = graph.computed(() => counted.ran(source.get() % 2));
    for (let i = 1; i < WIDE; i++) {
      const before = last;
      last = graph.computed(() => counted.ran(before() + 1));
    }
    graph.effect(() => {
      seen = last();
    });
    return source;
  });
  const runs = write(graph, counted, () => source.set(2));
  requireEqual(seen, WIDE - 1);
  return { runs, us: await pace(scale, (nth) => settled(graph, () => source.set((nth + 1) * 2))) };
}

/** (f) One document of 10,000 keys with a reader each: one key is written. */
export async function oneKey(graph: DocumentGraph, scale: Scale): Promise<Sample> {
  const counted = new Counter();
  const seen = new Map<string, number>();
  const document = documentWithReaders(graph, counted, seen);
  const keys = Object.keys(fields());
  const runs = write(graph, counted, () => document.set("k7", -1));
  requireEqual(seen.get("k7"), -1);
  return { runs, us: await pace(scale, (nth) => settled(graph, () => document.set(keys[nth % WIDE]!, -1 - nth))) };
}

/**
 * (f2) The whole document is replaced by one that differs in one key and is made for it, as one that came from
 * elsewhere is.
 */
export async function replaced(graph: DocumentGraph, scale: Scale): Promise<Sample> {
  const counted = new Counter();
  const seen = new Map<string, number>();
  const document = documentWithReaders(graph, counted, seen);
  const base = fields();
  const runs = write(graph, counted, () => document.replace({ ...base, k7: -1 }));
  requireEqual(seen.get("k7"), -1);
  const us = await pace(scale, (nth) => settled(graph, () => document.replace({ ...base, k7: nth })));
  const [one, other] = [
    { ...base, k7: -1 },
    { ...base, k7: -2 },
  ];
  const made = await pace(scale, (nth) => settled(graph, () => document.replace(nth % 2 === 0 ? one : other)));
  return { runs, us, "us without making it": made };
}

/** (l) Plain reads of a computed that is up to date, observed and not, beside the same reads of a cell. */
export async function cleanRead(graph: Graph, scale: Scale): Promise<Sample> {
  const reads = 1000;
  const counted = new Counter();
  let seen = 0;
  const { source, observed, unobserved } = graph.build(() => {
    const source = graph.source(0);
    const observed = graph.computed(() => counted.ran(source.get() + 1));
    const unobserved = graph.computed(() => counted.ran(source.get() + 2));
    graph.effect(() => {
      seen = observed();
    });
    return { source, observed, unobserved };
  });
  settled(graph, () => source.set(1));
  requireEqual([observed(), unobserved(), seen].join(), "2,3,2");
  counted.count = 0;
  const ns = async (read: () => number) => {
    let sum = 0;
    const readMany = () => {
      for (let i = 0; i < reads; i++) sum += read();
    };
    const us = await pace(scale, readMany);
    requireEqual(sum > 0, true);
    return (us * 1000) / reads;
  };
  const cell = await ns(() => source.get());
  const [live, dormant] = [await ns(observed), await ns(unobserved)];
  return { runs: counted.count, "cell ns": cell, "observed / cell": live / cell, "unobserved / cell": dormant / cell };
}

/** (g) 100 effects that each read 100 of one set of sources, or 100 of another. */
export async function switching(graph: Graph, scale: Scale): Promise<Sample> {
  const [readers, reads] = [100, 100];
  const counted = new Counter();
  let seen = 0;
  const selector = graph.build(() => {
    const selector = graph.source(0);
    const sets = [0, 1].map((set) => Array.from({ length: reads }, () => graph.source(set)));
    for (let reader = 0; reader < readers; reader++) {
      graph.effect(() => {
        let sum = 0;
        for (const source of sets[selector.get()]!) sum += source.get();
        seen = counted.ran(sum);
      });
    }
    return selector;
  });
  const runs = write(graph, counted, () => selector.set(1));
  requireEqual(seen, reads);
  const us = await pace(scale, (nth) => settled(graph, () => selector.set((nth + 1) % 2)));
  return { runs, "ns per edge": (us * 1000) / (readers * reads) };
}

/** (h) A list of 10,000 elements mapped by key: one is inserted in the middle. */
export async function insertion(graph: Graph, scale: Scale): Promise<Sample> {
  const counted = new Counter();
  let seen: readonly number[] = [];
  const list = graph.build(() => {
    const items = Array.from({ length: WIDE }, (_, id) => ({ id }));
    const mapped = graph.mapped(items, (item) => counted.ran(item.id * 2));
    graph.effect(() => {
      seen = mapped.results();
    });
    return mapped;
  });
  const runs = write(graph, counted, () => list.insert(WIDE / 2, { id: WIDE }));
  requireEqual(seen.length, WIDE + 1);
  requireEqual(seen[WIDE / 2], WIDE * 2);
  requireEqual(seen[WIDE], (WIDE - 1) * 2);
  return { runs, us: await pace(scale, (nth) => settled(graph, () => list.insert(WIDE / 2, { id: WIDE + nth }))) };
}

/**
 * (i) A million writes to one source in one transaction. That takes longer than a busy machine leaves a thread alone,
 * so it is timed in stretches: the fastest of them for all, and the least that a transaction took besides.
 */
export async function manyWrites(graph: Graph, scale: Scale): Promise<Sample> {
  const [stretches, writes] = [100, 10_000];
  const counted = new Counter();
  let seen = 0;
  const source = graph.build(() => {
    const source = graph.source(0);
    graph.effect(() => {
      seen = counted.ran(source.get());
    });
    return source;
  });
  let last = 0;
  const writeStretch = () => {
    for (let i = 0; i < writes; i++) source.set(++last);
  };
  let fastest = Number.POSITIVE_INFINITY;
  let writing = 0;
  const writeMany = () => {
    writing = 0;
    for (let i = 0; i < stretches; i++) {
      const ms = elapsed(writeStretch);
      fastest = Math.min(fastest, ms);
      writing += ms;
    }
  };
  const writeAll = () => {
    if (graph.transaction) graph.transaction(writeMany);
    else graph.batch(writeMany);
    graph.settle();
  };
  counted.count = 0;
  writeAll();
  requireEqual(seen, last);
  const runs = counted.count;
  let besides = Number.POSITIVE_INFINITY;
  await pace(scale, () => {
    besides = Math.min(besides, elapsed(writeAll) - writing);
  });
  return { runs, ms: fastest * stretches + besides };
}

function elapsed(work: () => void): number {
  const start = performance.now();
  work();
  return performance.now() - start;
}

class Counter {
  count = 0;

  /** Counts a run and gives its value back. */
  ran<T>(value: T): T {
    this.count++;
    return value;
  }
}

function documentWithReaders(graph: DocumentGraph, counted: Counter, seen: Map<string, number>) {
  const values = fields();
  return graph.build(() => {
    const document = graph.document(values);
    for (const key of Object.keys(values)) {
      document.reader(key, (value) => {
        seen.set(key, counted.ran(value));
      });
    }
    return document;
  });
}

function fields(): Record<string, number> {
  return Object.fromEntries(Array.from({ length: WIDE }, (_, i) => [`k${i}`, i]));
}

/** The runs of one write. */
function write(graph: DocumentGraph, counted: Counter, change: () => void): number {
  counted.count = 0;
  settled(graph, change);
  return counted.count;
}

function settled(graph: DocumentGraph, change: () => void): void {
  change();
  graph.settle();
}

function requireEqual(found: unknown, expected: unknown): void {
  if (!Object.is(found, expected)) throw new Error(`computed ${String(found)} where ${String(expected)} is right`);
}

/** Repeated until no more objects are collected: the garbage of earlier rounds goes bit by bit. */
async function heapUsed(): Promise<number> {
  let used = Number.POSITIVE_INFINITY;
  for (;;) {
    await letGo();
    void globalThis.gc?.();
    const now = process.memoryUsage().heapUsed;
    if (now > used - HEAP_NOISE_BYTES) return now;
    used = now;
  }
}
