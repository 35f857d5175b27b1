import fc from "fast-check";
import { expect, test } from "#test";
import { DocumentMap } from "../../../src/store/document-map.ts";

test("[S2] documents are found by scope and id in any order of additions, removals and lookups", () => {
  const scope = fc.constantFrom("", "space", "user/a");
  const id = fc.constantFrom("", "a", "b", "space");
  const step = fc.tuple(fc.constantFrom("add", "delete", "get", "get"), scope, id);
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const map = new DocumentMap<number>();
      const expected = new Map<string, number>();
      const nameOf = (ref: { scope: string; id: string }) => JSON.stringify([ref.scope, ref.id]);
      steps.forEach(([what, inScope, withId], at) => {
        const ref = { scope: inScope, id: withId };
        const isThere = expected.has(nameOf(ref));
        if (what === "add" && !isThere) {
          map.add(ref, at);
          expected.set(nameOf(ref), at);
        } else if (what === "delete") {
          map.delete(ref);
          expected.delete(nameOf(ref));
        }
        expect(map.get(ref)).toBe(expected.get(nameOf(ref)));
        expect(map.size).toBe(expected.size);
      });
      expect([...map.values()].sort()).toEqual([...expected.values()].sort());
    }),
  );
});
