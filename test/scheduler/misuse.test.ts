import { describe, expect, test } from "#test";
import { Calls, setup } from "./scheduler-setup.ts";

describe("misuse by application code", () => {
  test("[R19] a listener that throws ends no pass: other listeners and nodes run, idle resolves, and its error is thrown separately", async () => {
    const { space, scheduler, host } = await setup();
    const [heard, lines, runs] = [new Calls<unknown>(), new Calls<string>(), new Calls<unknown>()];
    scheduler.onError(() => {
      throw new Error("of the listener");
    });
    scheduler.onError(heard.note);
    scheduler.onConsole(() => {
      throw new Error("of the listener");
    });
    scheduler.onConsole(lines.note);
    const stream = space.stream<number>("stream");
    stream.handle(() => {
      throw new Error("of the handler");
    });
    const ends = new Calls<string>();
    space.effect(() => {
      throw new Error("of the node");
    });
    space.effect(() => runs.note(1));
    void space.idle().then(() => ends.note("idle"));
    void stream.send(1).outcome.then(({ kind }) => ends.note(kind));
    // One for each listener and error: every one of them comes out where the process is watched over.
    for (let times = 0; times < 4; times++) await expect(host.advance(0)).rejects.toThrow("of the listener");
    await host.advance(0);
    expect([heard.count, lines.count, runs.count]).toEqual([2, 2, 1]);
    expect(ends.seen.toSorted()).toEqual(["failed", "idle"]);
  });

  test("[R12] [R18] a node that throws undefined has failed as visibly as any other, and recovers", async () => {
    const { space, scheduler, quiet } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    const computed = space.computed("computed", () => {
      if (a.get() === 1) throw undefined;
      return a.get();
    });
    const seen = new Calls<unknown>();
    computed.sink(seen.note);
    await quiet();
    expect(scheduler.runDiagnosis().failed.map(({ id }) => id)).toEqual(["computed"]);
    a.set(2);
    await quiet();
    expect(seen.take()).toEqual([2]);
    expect(scheduler.runDiagnosis().failed).toEqual([]);
  });

  test("[R1] [R2] an invalid gate is refused when the node is registered, and no registration is left", async () => {
    const { space, scheduler } = await setup();
    const a = space.cell<number>("a");
    for (const ms of [-1, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(() => a.sink(() => undefined, { debounceMs: ms })).toThrow("a debounce must be 0 or more milliseconds");
      expect(() => a.sink(() => undefined, { throttleMs: ms })).toThrow("a throttle must be 0 or more milliseconds");
    }
    expect(scheduler.getGraphSnapshot()).toEqual([]);
    scheduler.checkInvariants();
  });

  test("[R7] [I4] a send after dispose is dropped at once, to streams from before and after it", async () => {
    const { space, scheduler, quiet } = await setup();
    const before = space.stream("before");
    before.handle(() => undefined);
    scheduler.dispose();
    const after = space.stream("after");
    const kinds = new Calls<string>();
    for (const stream of [before, after]) void stream.send(1).outcome.then(({ kind }) => kinds.note(kind));
    await quiet();
    expect(kinds.seen).toEqual(["dropped", "dropped"]);
  });

  test("[R28] an asynchronous transaction is refused without effects, and its result is ignored", async () => {
    const { space, host } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    const asynchronous = async () => {
      a.set(2);
      throw new Error("later");
    };
    await expect(host.run(() => space.transact(asynchronous))).rejects.toMatchObject({ code: "STORE_MISUSE" });
    await host.advance(0);
    expect(a.get()).toBe(1);
  });

  test("[R20] [S45] a splice of a range that is none is refused, and leaves the list and its document as they were", async () => {
    const { space, open, quiet } = await setup();
    const list = space.cell<readonly number[]>("list");
    list.set([1, 2, 3]);
    for (const [index, remove] of [
      [0.5, 1],
      [0, 1.5],
      [Number.NaN, 0],
    ] as const) {
      expect(() => list.splice(index, remove, 9), `${index}, ${remove}`).toThrow(
        `cannot splice list at ${index} over ${remove}`,
      );
      expect(list.get()).toEqual([1, 2, 3]);
    }
    list.splice(1, 1, 9);
    await quiet();
    const { space: other } = await open();
    const seen = new Calls<unknown>();
    other.cell("list").sink(seen.note);
    await quiet();
    expect(seen.seen.at(-1)).toEqual([1, 9, 3]);
  });

  test("[S70] neither plain code nor a transaction can write to a closed space", async () => {
    const { space, host, open } = await setup();
    const a = space.cell<number>("a");
    a.set(1);
    await host.run(() => space.close());
    expect(() => a.set(2)).toThrow('space "s" is closed');
    await expect(host.run(() => space.transact(() => a.set(3)))).rejects.toMatchObject({ code: "STORE_CLOSED" });
    const { space: other } = await open();
    expect(await host.run(() => other.cell("a").pull())).toBe(1);
  });
});
