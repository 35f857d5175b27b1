import { describe, expect, test } from "#test";
import { Calls, setup } from "./scheduler-setup.ts";

describe("a send whose handler reads where a materializer may write", () => {
  test("[I4] [R14] a send with a handler that reads inside an envelope waits for that materializer's gate, and for no other", async () => {
    const { space, scheduler, host, quiet } = await setup();
    const [a, board, other] = [space.cell<number>("a"), space.cell<number>("board"), space.cell<number>("other")];
    a.set(1);
    for (const [id, place, debounceMs] of [
      ["painter", board, 100],
      ["elsewhere", other, 10_000],
    ] as const) {
      const run = () => place.set((a.get() ?? 0) * 100);
      scheduler.register({ kind: "computation", id, envelope: [place.address], debounceMs, run });
    }
    await quiet();
    const stream = space.stream<number>("stream");
    const seen = new Calls();
    stream.handle(() => seen.note(board.get()));
    a.set(2);
    await quiet();
    stream.send(0);
    await host.advance(99);
    expect(seen.take()).toEqual([]);
    await host.advance(1);
    expect(seen.take()).toEqual([200]);
  });
});
