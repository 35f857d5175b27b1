/**
 * The public test suite for signal libraries (npm `reactive-framework-test-suite`), run over a space through an
 * adapter. A case in `EXCEPTIONS` must fail: when it passes, its line goes.
 */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Cell } from "../../src/cells/cell.ts";
import { Space } from "../../src/cells/space.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";

/**
 * The parts of the suite that are used here. Its sources do not pass our compiler settings, so they are not imported as
 * types.
 */
interface Suite {
  readonly testSuite: readonly {
    readonly section: string;
    readonly cases: Record<string, (framework: object) => void>;
  }[];
  readonly SkipTest: new (reason: string) => Error;
}

const PACKAGE: string = "reactive-framework-test-suite";
const { testSuite, SkipTest } = (await import(PACKAGE)) as Suite;

/** Cases that this product decides otherwise, with the reason. */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  "#193": "a computation on a branch that is about to be left may run once more when two levels change at once",
  "#220": "values are JSON and equality is structural, so there is no object identity; equal values cause fewer runs",
  "#179": "a computation must give the same however often it runs, so it must not increment its own input",
  "#185": "a run is a transaction: its writes are taken back when it throws",
  "#70": "the first run of an effect inside a batch would see half of the batch; it runs at the end",
  "#29": "NaN is not a JSON value and is refused",
  "#167": "NaN is not a JSON value and is refused",
};

let space: Space;
let ids = 0;

const adapter = {
  name: "millrace",
  signal<T>(initial: T) {
    const cell = space.cell(`signal ${++ids}`) as Cell<T>;
    // Written first, so that the document is known and effects do not wait for its load.
    cell.set(null as T);
    cell.set(initial);
    return {
      read: () => cell.get(),
      write: (value: T) => {
        cell.set(value);
        space.flush();
      },
    };
  },
  computed<T>(compute: () => T) {
    const computed = space.computed(`computed ${++ids}`, compute);
    return { read: () => computed.get() };
  },
  effect(run: () => unknown) {
    const stop = space.effect(run);
    space.flush();
    return stop;
  },
  run: (code: () => void) => code(),
  batch: (code: () => void) => space.batch(code),
  untracked: <T>(code: () => T) => space.untracked(code),
};

beforeEach(async () => {
  space = await Space.open({ store: memoryStore(), name: "signals", onError: () => undefined });
});
afterEach(() => space.close());

describe.each(testSuite)("[R80] the signal suite: $section", ({ cases }) => {
  for (const [title, run] of Object.entries(cases)) {
    const reason = EXCEPTIONS[title.split(" ", 1)[0] as string];
    if (reason === undefined) test(title, () => run(adapter));
    else test(`${title}: decided otherwise, because ${reason}`, () => expect(() => run(adapter)).toThrow());
  }
});

describe("[R80] the signal suite", () => {
  test("[R80] skips no case: every optional part of its interface is there", () => {
    expect(SkipTest).toBeTypeOf("function");
    const exceptions = Object.keys(EXCEPTIONS);
    const titles = testSuite.flatMap(({ cases }) => Object.keys(cases));
    expect(titles.length).toBeGreaterThanOrEqual(179);
    expect(exceptions.filter((id) => titles.some((title) => title.startsWith(`${id} `)))).toEqual(exceptions);
  });
});
