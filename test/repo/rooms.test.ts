/** What the command says of the rooms is true. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ROOMS } from "../../src/kernel/rooms.ts";
import { ROOT } from "./program.ts";

/** They say so themselves, by running. */
const NOT_LISTED = ["cli"];

test("[K14] every room is known, and those called built are there with tests", () => {
  const rooms = readdirSync(join(ROOT, "src"), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
  const known = new Set([...ROOMS.map(({ name }) => name), ...NOT_LISTED]);
  expect(rooms.filter((name) => !known.has(name))).toEqual([]);
  const built = ROOMS.filter((room) => room.built).map(({ name }) => name);
  expect(built.filter((name) => !rooms.includes(name))).toEqual([]);
  expect(built.filter((name) => !existsSync(join(ROOT, "test", name)))).toEqual([]);
});
