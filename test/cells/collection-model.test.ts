import { describe, expect, test } from "#test";
import type { Space } from "../../src/cells/space.ts";
import { setup } from "../scheduler/scheduler-setup.ts";
import { runHistory } from "./collection-program.ts";

const SEEDS = 12;
const ROUNDS = 60;

describe("random histories of a collection", () => {
  test("[R94] [R98] two processes that write and restart show the same elements, indexes and totals as a map", async () => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const { host, space, open } = await setup({ seed });
      const spaces: Space[] = [space, (await open()).space];
      const rest = async <T>(work: () => Promise<T>): Promise<T> => {
        const result = await host.run(work);
        await host.advance(200);
        return result;
      };
      const restart = async (at: number) => {
        await rest(() => (spaces[at] as Space).close());
        spaces[at] = (await open()).space;
      };
      await runHistory({ spaces, restart, rest }, seed, ROUNDS);
    }
    expect(SEEDS).toBeGreaterThan(0);
  });
});
