/** The work board: its states and bounds on simulated time. */
import { describe, expect, test } from "#test";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { HANDLER_TIMEOUT_MS, LEFT_BEHIND_LISTED_MAX, STUCK_MS_MIN } from "../../src/limits.ts";
import { WorkBoard } from "../../src/work/work-board.ts";

const facts = (timeoutMs: number) => ({ entryPoint: "command", handler: "shop", timeoutMs }) as const;
const NONE = { open: 0, oldestMs: 0, stuck: 0, leftBehind: 0 };

describe("the work board", () => {
  test("[U60] [U61] an entry shows handler, message, start and timeout, until its end", async () => {
    const host = simulatedHost(1);
    const board = new WorkBoard(host);
    const startMs = host.now();
    const entry = board.begin(facts(50), "m", "Shop.Order");
    await host.advance(20);
    expect(board.list(10)).toEqual([
      {
        ...{ entryPoint: "command", handler: "shop", id: "m", type: "Shop.Order" },
        ...{ state: "running", sinceMs: startMs, ageMs: 20, timeoutMs: 50 },
      },
    ]);
    expect(board.health()).toEqual({ ...NONE, open: 1, oldestMs: 20 });
    board.end(entry);
    expect([board.list(10), board.health()]).toEqual([[], NONE]);
  });

  test("[U62] a handler is stuck after half its timeout, never before 30 s, and by the default timeout if it has none", async () => {
    const limits = [
      [1, STUCK_MS_MIN],
      [2 * STUCK_MS_MIN + 2_000, STUCK_MS_MIN + 1_000],
      [0, HANDLER_TIMEOUT_MS / 2],
    ] as const;
    for (const [timeoutMs, stuckAfterMs] of limits) {
      const host = simulatedHost(1);
      const board = new WorkBoard(host);
      const entry = board.begin(facts(timeoutMs), "m", "Shop.Order");
      await host.advance(stuckAfterMs);
      expect([board.health().stuck, board.list(1)[0]?.state]).toEqual([0, "running"]);
      await host.advance(1);
      expect([board.health().stuck, board.list(1)[0]?.state]).toEqual([1, "stuck"]);
      board.end(entry);
      expect(board.health()).toEqual(NONE);
    }
  });

  test("[U63] handlers that are left behind are counted until they end, and the last 1,000 are listed", () => {
    const board = new WorkBoard(simulatedHost(1));
    const entries = Array.from({ length: LEFT_BEHIND_LISTED_MAX + 5 }, (_, n) =>
      board.begin(facts(50), `m${n}`, "Shop.Order"),
    );
    for (const entry of entries) board.leaveBehind(entry);
    expect(board.health()).toEqual({ ...NONE, leftBehind: entries.length });
    const listed = board.list(entries.length);
    expect([listed.length, listed[0]?.id, listed[0]?.state]).toEqual([LEFT_BEHIND_LISTED_MAX, "m5", "left-behind"]);
    for (const entry of entries) board.end(entry);
    expect([board.health(), board.list(10)]).toEqual([NONE, []]);
  });

  test("[U113] ten handlers of one actor that are left behind are told once, until there were fewer", () => {
    const board = new WorkBoard(simulatedHost(1));
    const told: string[] = [];
    board.onOverrun = ({ handler }, count) => void told.push(`${handler} ${count}`);
    const other = board.begin({ ...facts(50), handler: "other" }, "o", "Shop.Order");
    board.leaveBehind(other);
    const entries = Array.from({ length: 12 }, (_, n) => board.begin(facts(50), `m${n}`, "Shop.Order"));
    for (const entry of entries.slice(0, 9)) board.leaveBehind(entry);
    expect([told, board.isOverrun]).toEqual([[], false]);
    for (const entry of entries.slice(9)) board.leaveBehind(entry);
    expect([told, board.isOverrun]).toEqual([["shop 10"], true]);
    for (const entry of entries.slice(0, 3)) board.end(entry);
    expect([told, board.isOverrun]).toEqual([["shop 10"], false]);
    board.leaveBehind(board.begin(facts(50), "again", "Shop.Order"));
    expect([told, board.isOverrun]).toEqual([["shop 10", "shop 10"], true]);
  });

  test("[K100] the list is in the order of the calls, and limited", async () => {
    const host = simulatedHost(1);
    const board = new WorkBoard(host);
    const entries = [];
    for (const id of ["a", "b", "c"]) {
      entries.push(board.begin(facts(50), id, "Shop.Order"));
      await host.advance(1);
    }
    board.leaveBehind(entries[1] as (typeof entries)[number]);
    expect(board.list(10).map(({ id, state }) => `${id} ${state}`)).toEqual([
      "a running",
      "b left-behind",
      "c running",
    ]);
    expect(board.list(2).map(({ id }) => id)).toEqual(["a", "b"]);
  });
});
