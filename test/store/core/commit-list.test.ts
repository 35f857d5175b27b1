import fc from "fast-check";
import { expect, test } from "#test";
import { CommitList } from "../../../src/store/commit-list.ts";

test("[S7] commits are found by number in any order of additions and removals", () => {
  const step = fc.tuple(fc.constantFrom("add", "add next", "delete", "delete first"), fc.integer({ min: 1, max: 60 }));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const list = new CommitList<{ readonly localSequence: number }>();
      const expected = new Map<number, { readonly localSequence: number }>();
      const sequences = () => [...expected.keys()].sort((a, b) => a - b);
      for (const [what, number] of steps) {
        const all = sequences();
        const localSequence =
          what === "add next" ? (all.at(-1) ?? 0) + 1 : what === "delete first" ? (all[0] ?? 1) : number;
        if (what.startsWith("delete")) {
          list.delete(localSequence);
          expected.delete(localSequence);
        } else if (!expected.has(localSequence)) {
          const commit = { localSequence };
          list.add(commit);
          expected.set(localSequence, commit);
        }
        expect(list.size).toBe(expected.size);
        expect(list.get(localSequence)).toBe(expected.get(localSequence));
      }
      expect([...list]).toEqual(sequences().map((localSequence) => ({ localSequence })));
      for (let number = 0; number <= 400; number++) expect(list.get(number)).toBe(expected.get(number));
    }),
  );
});
