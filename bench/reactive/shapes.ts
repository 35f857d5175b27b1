/**
 * Small graphs of the shapes in benchmarks of signal libraries, as typical code has them. Each makes its graph and
 * returns one change; the change has settled when it returns. Loaded once for each system.
 */
import type { Sample, Scale } from "../harness/benchmark.ts";
import type { Graph } from "./graph.ts";
import { pace } from "./pace.ts";

/** Makes a graph; gives the change to time, and the value that is right after the nth of them. */
type Shape = (graph: Graph) => {
  change(nth: number): void;
  seen(): number;
  expected(nth: number): number;
};

export const SHAPES: Readonly<Record<string, Shape>> = {
  /** A chain of 50. */
  deep(graph) {
    const head = graph.source(0);
    let last = head.get;
    for (let i = 0; i < 50; i++) last = plus(graph, last, 1);
    const seen = observed(graph, last);
    return { change: (nth) => head.set(nth), seen, expected: (nth) => nth + 50 };
  },

  /** 50 branches of two from one source, each observed. */
  broad(graph) {
    const head = graph.source(0);
    let seen = () => 0;
    for (let i = 0; i < 50; i++) seen = observed(graph, plus(graph, plus(graph, head.get, i), 1));
    return { change: (nth) => head.set(nth), seen, expected: (nth) => nth + 50 };
  },

  /** Five branches that meet. */
  diamond(graph) {
    const head = graph.source(0);
    const branches = Array.from({ length: 5 }, () => plus(graph, head.get, 1));
    const seen = observed(graph, sum(graph, branches));
    return { change: (nth) => head.set(nth), seen, expected: (nth) => (nth + 1) * 5 };
  },

  /** A chain of ten, and a sum of all of it. */
  triangle(graph) {
    const head = graph.source(0);
    const links = [head.get];
    for (let i = 1; i < 10; i++) links.push(plus(graph, links.at(-1)!, 1));
    const seen = observed(graph, sum(graph, links));
    return { change: (nth) => head.set(nth), seen, expected: (nth) => nth * 10 + 45 };
  },

  /** 100 sources put into one value, taken out of it again, each observed: one source is written. */
  mux(graph) {
    const heads = Array.from({ length: 100 }, () => graph.source(0));
    const all = graph.computed(() => heads.map((head) => head.get()));
    const seen = heads.map((_, i) =>
      observed(
        graph,
        plus(
          graph,
          graph.computed(() => all()[i]!),
          1,
        ),
      ),
    );
    let last = 0;
    return {
      change(nth) {
        last = nth % 100;
        heads[last]!.set(nth);
      },
      seen: () => seen[last]!(),
      expected: (nth) => nth + 1,
    };
  },

  /** One node that reads its source 30 times. */
  "repeated reads"(graph) {
    const head = graph.source(0);
    const total = graph.computed(() => {
      let result = 0;
      for (let i = 0; i < 30; i++) result += head.get();
      return result;
    });
    const seen = observed(graph, total);
    return { change: (nth) => head.set(nth), seen, expected: (nth) => nth * 30 };
  },

  /** A node that reads one of two others, by turns. */
  unstable(graph) {
    const head = graph.source(0);
    const double = graph.computed(() => head.get() * 2);
    const inverse = graph.computed(() => -head.get());
    const current = graph.computed(() => {
      let result = 0;
      for (let i = 0; i < 20; i++) result += head.get() % 2 === 1 ? double() : inverse();
      return result;
    });
    const seen = observed(graph, current);
    return { change: (nth) => head.set(nth), seen, expected: (nth) => (nth % 2 === 1 ? nth * 40 : nth * -20) };
  },

  /** A change that the second node swallows, and a costly part behind it that must not run. */
  avoidable(graph) {
    const head = graph.source(0);
    const swallowed = graph.computed(() => head.get() * 0);
    let last = graph.computed(() => busy(100) * 0 + swallowed());
    for (let i = 0; i < 3; i++) last = plus(graph, last, 1);
    const seen = observed(graph, last);
    return { change: (nth) => head.set(nth), seen, expected: () => 3 };
  },

  /** Two sources, objects and arrays between them and three observers, with a little work in the nodes. */
  molecule(graph) {
    const a = graph.source(0);
    const b = graph.source(0);
    const c = graph.computed(() => (a.get() % 2) + (b.get() % 2));
    const d = graph.computed(() => [0, 1, 2, 3, 4].map((i) => ({ x: i + (a.get() % 2) - (b.get() % 2) })));
    const e = graph.computed(() => busy(10) * 0 + c() + a.get() + d()[0]!.x);
    const f = graph.computed(() => busy(10) * 0 + (d()[2]!.x || b.get()));
    const g = graph.computed(() => c() + (c() || e() % 2) + d()[4]!.x + f());
    const seen = observed(graph, g);
    observed(graph, f);
    observed(
      graph,
      graph.computed(() => g() + busy(10) * 0),
    );
    return {
      change: (nth) =>
        graph.batch(() => {
          a.set(nth);
          b.set(nth * 2);
        }),
      seen,
      expected: (nth) => (nth % 2 === 1 ? 1 + 1 + 5 + 3 : 0 + (nth % 2) + 4 + 2),
    };
  },

  /** Ten layers of four nodes, each of which reads two of the layer above. */
  cellx(graph) {
    const first = graph.source(1);
    const others = [2, 3, 4].map((value) => graph.source(value));
    let layer: (() => number)[] = [first.get, ...others.map((source) => source.get)];
    for (let i = 0; i < 10; i++) {
      const [p, q, r, s] = layer as [() => number, () => number, () => number, () => number];
      layer = [
        graph.computed(() => q()),
        graph.computed(() => bounded(p() - r())),
        graph.computed(() => bounded(q() + s())),
        graph.computed(() => r()),
      ];
    }
    const seen = layer.map((node) => observed(graph, node));
    const plain = (nth: number) => {
      let row = [nth, 2, 3, 4];
      for (let i = 0; i < 10; i++) {
        const [p, q, r, s] = row as [number, number, number, number];
        row = [q, bounded(p - r), bounded(q + s), r];
      }
      return row[1]!;
    };
    return { change: (nth) => first.set(nth), seen: () => seen[1]!(), expected: plain };
  },
};

/** Sums of sums stay small. */
function bounded(sum: number): number {
  return sum % 1_000_003;
}

export async function timeShape(name: string, graph: Graph, scale: Scale): Promise<Sample> {
  const { change, seen, expected } = graph.build(() => SHAPES[name]!(graph));
  const settled = (nth: number) => {
    change(nth);
    graph.settle();
  };
  for (const nth of [3, 4, 5]) {
    settled(nth);
    if (seen() !== expected(nth)) throw new Error(`${name} gave ${seen()} where ${expected(nth)} is right`);
  }
  return { us: await pace(scale, (nth) => settled(nth + 5)) };
}

function plus(graph: Graph, value: () => number, more: number): () => number {
  return graph.computed(() => value() + more);
}

function sum(graph: Graph, values: readonly (() => number)[]): () => number {
  return graph.computed(() => {
    let result = 0;
    for (const value of values) result += value();
    return result;
  });
}

/** Observes a value by an effect; returns the last value seen. */
function observed(graph: Graph, value: () => number): () => number {
  let last = 0;
  graph.effect(() => {
    last = value();
  });
  return () => last;
}

/** Some work that the optimiser cannot leave out. */
function busy(rounds: number): number {
  let a = 0;
  for (let i = 0; i < rounds; i++) a = (a * 31 + i) | 0;
  return a;
}
