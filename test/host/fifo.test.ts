/** The queue under lanes, mailboxes and events in hand, against an array. */
import fc from "fast-check";
import { describe, expect, test } from "#test";
import { Fifo } from "../../src/host/fifo.ts";
import { SeededRandom } from "../../src/host/seeded-random.ts";

describe("the queue of a lane", () => {
  test("[L2] the queue returns elements in order while it grows, runs empty and is cleared", () => {
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

  test("[H19] the queue behaves like an array for any sequence of additions and removals at both ends", () => {
    const random = new SeededRandom(20_261_116, 1);
    const queue = new Fifo<number>();
    let plain: number[] = [];
    for (let step = 0; step < 20_000; step++) {
      const roll = random.uint32() % 100;
      // It grows in some stretches and runs empty in others.
      if (roll < (step % 4_000 < 2_000 ? 70 : 30)) {
        queue.push(step);
        plain.push(step);
      } else if (roll < 90) expect(queue.shift()).toBe(plain.shift());
      else expect(queue.pop()).toBe(plain.pop());
      if (roll === 0 && plain.length > 500) {
        queue.clear();
        plain = [];
      }
      expect([queue.length, queue.peek()]).toEqual([plain.length, plain[0]]);
    }
  });
});
