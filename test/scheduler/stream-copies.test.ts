/** A stream's handler may change its value and emissions: the next attempt and the journal have the originals. */
import { describe, expect, test } from "#test";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { setup } from "./scheduler-setup.ts";

describe("the value and the emissions of a stream's handler", () => {
  test("[I11] a handler's value is the same in every attempt: a frozen copy of the sender's", async () => {
    const { space } = await setup();
    const stream = space.stream<{ list: number[] }>("stream");
    stream.handle((value) => void value.list.push(4));
    const sent = { list: [1] };
    expect(await stream.send(sent).outcome).toMatchObject({ kind: "failed", reason: "threw" });
    sent.list.push(2);
    expect(sent).toEqual({ list: [1, 2] });
  });

  test("[I10] an emission is copied at that moment, and independent of the handler's object", async () => {
    const { space, disk, host } = await setup();
    const stream = space.stream<number>("stream");
    stream.handle((_value, { emit }) => {
      const state = { count: 1 };
      emit("counted", state);
      state.count = 2;
      emit("counted", state);
      state.count = 3;
    });
    expect(await stream.send(0).outcome).toMatchObject({ kind: "handled" });
    const rows = await memoryStore({ disk, host }).query({ topic: "counted", limit: 9 });
    expect(rows.map(({ message }) => message?.data)).toEqual([{ count: 1 }, { count: 2 }]);
  });

  test("[I10] [M6] a handler is told at once that its emission is not JSON, and has no effect", async () => {
    const { space } = await setup();
    const touched = space.cell<boolean>("touched");
    const stream = space.stream<number>("stream");
    stream.handle((_value, { emit }) => {
      touched.set(true);
      emit("counted", Number.NaN);
    });
    expect(await stream.send(0).outcome).toMatchObject({
      kind: "failed",
      reason: "threw",
      message: expect.stringContaining("does not emit this: data: must be a finite number, got NaN"),
    });
    expect(touched.get()).toBeUndefined();
  });
});
