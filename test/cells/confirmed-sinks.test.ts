import { describe, expect, test } from "#test";
import { Space } from "../../src/cells/space.ts";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { rejected } from "../../src/store/rejection.ts";
import { Calls } from "../scheduler/scheduler-setup.ts";
import { FaultyLine, Gate } from "../store/faulty-store.ts";

/** A space that observes confirmed state; commits are answered when the gate opens, and may be refused. */
async function confirmedSpace() {
  const host = simulatedHost(1);
  const line = new FaultyLine(memoryStore({ host }));
  const errors = new Calls<unknown>();
  const space = await host.run(() =>
    Space.open({ store: line.store, host, name: "s", observe: "confirmed", onError: errors.note }),
  );
  const a = space.cell<number>("a");
  a.set(1);
  await host.run(() => space.settled());
  let gate = new Gate();
  let isRefused = false;
  line.plan = ({ method }) => {
    if (method !== "commit") return {};
    const refusal = isRefused ? { instead: rejected("refused", "protocol", "no") } : {};
    return { ...refusal, answered: gate.opened };
  };
  const answer = async () => {
    gate.open();
    await host.advance(0);
    gate = new Gate();
    isRefused = false;
  };
  const refuseNext = () => {
    isRefused = true;
  };
  return { host, space, a, errors, answer, refuseNext, quiet: () => host.advance(0) };
}

describe("confirmed observers", () => {
  test("[R58] are called when the store has the state, in the order of the changes", async () => {
    const { a, answer, quiet } = await confirmedSpace();
    const seen = new Calls();
    a.sink(seen.note);
    await quiet();
    expect(seen.take()).toEqual([1]);
    a.set(2);
    await quiet();
    a.set(3);
    await quiet();
    expect(seen.take()).toEqual([]);
    await answer();
    await quiet();
    expect(seen.take()).toEqual([2, 3]);
  });

  test("[R58] are not called after their end with a value that waited for the store", async () => {
    const { a, answer, quiet } = await confirmedSpace();
    const seen = new Calls();
    const stop = a.sink(seen.note);
    await quiet();
    seen.take();
    a.set(2);
    await quiet();
    stop();
    await answer();
    await quiet();
    expect(seen.take()).toEqual([]);
  });

  test("[R58] see no state that is rolled back, and not the old one again", async () => {
    const { space, a, answer, refuseNext, quiet } = await confirmedSpace();
    const double = space.computed("double", () => (a.get() ?? 0) * 2);
    const seen = new Calls();
    double.sink(seen.note);
    await quiet();
    refuseNext();
    a.set(2);
    await quiet();
    await answer();
    await quiet();
    expect([seen.take(), double.get()]).toEqual([[2], 2]);
  });

  test("[R59] a two-step effect acts on confirmed values, and its act is no part of the run", async () => {
    const { space, a, answer, quiet } = await confirmedSpace();
    const [other, acted] = [space.cell<number>("other"), new Calls<unknown>()];
    other.set(0);
    await answer();
    const stop = space.effect(
      () => (a.get() ?? 0) * 10,
      (value) => acted.note([value, other.get()]),
    );
    await quiet();
    a.set(2);
    await quiet();
    expect(acted.take()).toEqual([[10, 0]]);
    await answer();
    other.set(5);
    await answer();
    expect(acted.take()).toEqual([[20, 0]]);
    stop();
    a.set(3);
    await answer();
    expect(acted.take()).toEqual([]);
  });

  test("[R59] an effect of one function cannot be confirmed, and says how to write it", async () => {
    const { space } = await confirmedSpace();
    expect(() => space.effect(() => undefined, { confirmed: true })).toThrow("effect(read, act, { confirmed: true })");
  });

  test("[R60] settled waits for their calls, and idle does not", async () => {
    const { host, space, a, answer } = await confirmedSpace();
    const seen = new Calls();
    a.sink(seen.note);
    await host.run(() => space.settled());
    a.set(2);
    await host.run(() => space.idle());
    expect(seen.take()).toEqual([1]);
    const settled = space.settled();
    await answer();
    await host.run(() => settled);
    expect(seen.take()).toEqual([2]);
  });

  test("[R61] an error of a callback is reported, and the next value is called with", async () => {
    const { a, answer, errors, quiet } = await confirmedSpace();
    const seen = new Calls();
    a.sink((value) => {
      seen.note(value);
      throw new Error(`broken at ${value}`);
    });
    await quiet();
    a.set(2);
    await answer();
    expect([seen.take(), errors.take().map(String)]).toEqual([
      [1, 2],
      ["Error: broken at 1", "Error: broken at 2"],
    ]);
  });
});
