/** The queue under lanes and mailboxes, against an array. */
import fc from "fast-check";
import { describe, expect, test } from "#test";
import { Fifo } from "../../src/loop/fifo.ts";

describe("the queue of a lane", () => {
  test("[L2] it gives what it was given in that order, however it grows, runs empty and is cleared", () => {
    const step = fc.oneof(
      fc.nat(40).map((count) => ({ push: count })),
      fc.nat(60).map((count) => ({ shift: count })),
      fc.constantFrom({ push: 1_500 }, { shift: 3_000 }, { clear: true }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const fifo = new Fifo<number>();
        const model: number[] = [];
        let next = 0;
        for (const one of steps) {
          if ("push" in one) {
            for (let i = 0; i < one.push; i++) {
              fifo.push(next);
              model.push(next++);
            }
          } else if ("shift" in one) {
            const taken = Array.from({ length: one.shift }, () => fifo.shift());
            const expected = model.splice(0, one.shift);
            expect(taken.filter((item) => item !== undefined)).toEqual(expected);
          } else {
            fifo.clear();
            model.length = 0;
          }
          expect(fifo.length).toBe(model.length);
        }
      }),
    );
  });
});
