import fc from "fast-check";
import { describe, expect, test } from "#test";
import { SeededRandom } from "../../src/host/seeded-random.ts";
import { UuidV7Minter } from "../../src/host/uuid-v7.ts";
import { firstIdAt, periodOf, periodText, SEND_HASH_DIGITS, timeInId } from "../../src/message/id-time.ts";

const times = fc.integer({ min: 0, max: 2 ** 48 - 1 });

function uuidAt(timeMs: number, seed = 1): string {
  return new UuidV7Minter(() => timeMs, new SeededRandom(seed)).mint();
}

function sendAt(timeMs: number, hash = "5".repeat(SEND_HASH_DIGITS)): string {
  return `${periodText(periodOf(timeMs))}${hash}.7`;
}

describe("the time in an id", () => {
  test("[M34] a UUIDv7 carries its milliseconds and a send its period, with any suffix and at any position", () => {
    fc.assert(
      fc.property(times, fc.string(), fc.integer(), (timeMs, rest, seed) => {
        expect(timeInId(uuidAt(timeMs, seed) + rest)).toBe(timeMs);
        expect(timeInId(`receipt/${uuidAt(timeMs, seed)}${rest}`, 8)).toBe(timeMs);
        expect(timeInId(sendAt(timeMs) + rest)).toBe(timeMs - (timeMs % 65_536));
      }),
    );
  });

  test("[M34] ids made before a time sort before the first id of that time, except sends of its period", () => {
    fc.assert(
      fc.property(times, times, (madeMs, timeMs) => {
        expect(uuidAt(madeMs) < firstIdAt(timeMs)).toBe(madeMs < timeMs);
        if (periodOf(madeMs) < periodOf(timeMs)) expect(sendAt(madeMs) < firstIdAt(timeMs)).toBe(true);
        if (periodOf(madeMs) > periodOf(timeMs)) expect(sendAt(madeMs) < firstIdAt(timeMs)).toBe(false);
      }),
    );
  });

  test("[M34] other ids carry no time", () => {
    const uuid = uuidAt(1_767_225_600_000);
    const others = [
      "",
      "order-17",
      uuid.toUpperCase(),
      uuid.slice(0, -1),
      uuid.replace("-7", "-4"),
      uuid.replaceAll("-", ""),
      `x${uuid}`,
      "f".repeat(64),
      `${"f".repeat(32)}.1`,
      `0199a3f2-${"0".repeat(SEND_HASH_DIGITS)}`,
      `0199a3fg-${"0".repeat(SEND_HASH_DIGITS)}.1`,
      "00004711-invoice-of-some-customer.pdf",
    ];
    for (const id of others) expect([id, timeInId(id)]).toEqual([id, undefined]);
  });
});
