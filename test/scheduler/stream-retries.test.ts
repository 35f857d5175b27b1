/**
 * Failing handlers of streams: sends that wait for the next attempt, and the transaction of `onFailed`. The options
 * themselves: `test/work/`.
 */
import { describe, expect, test } from "#test";
import type { SendOutcome } from "../../src/scheduler/send.ts";
import { Calls, setup } from "./scheduler-setup.ts";

const RETRY = { attempts: 2, backoff: { startMs: 1_000, factor: 1 } };

describe("retries of streams", () => {
  test("[I47] a send that waits for its next attempt blocks no other, and then goes before later ones", async () => {
    const { space, host } = await setup();
    const stream = space.stream<string>("stream");
    const seen = new Calls<string>();
    stream.handle(
      async (value, { attempt }) => {
        seen.note(`${value} ${attempt}`);
        if (value === "slow") await new Promise<void>((resolve) => void host.timer(5_000, resolve));
        if (value === "a" && attempt === 1) throw new Error("once more");
      },
      { retry: RETRY },
    );
    for (const value of ["a", "slow", "c"]) stream.send(value);
    await host.advance(10_000);
    // The handler that runs is not disturbed by the send that is due.
    expect(seen.seen).toEqual(["a 1", "slow 1", "a 2", "c 1"]);
  });

  test("[I47] a send that waits for its next attempt is dropped when the space closes", async () => {
    const { space, host } = await setup();
    const stream = space.stream<number>("stream");
    stream.handle(
      () => {
        throw new Error("no");
      },
      { retry: RETRY },
    );
    const outcomes: SendOutcome["kind"][] = [];
    stream.send(1, { onOutcome: ({ kind }) => outcomes.push(kind) });
    await host.advance(10);
    expect([outcomes, space.scheduler.getQueues()[0]?.waiting]).toEqual([[], 1]);
    await space.close();
    expect(outcomes).toEqual(["dropped"]);
  });

  test("[I48] the effect of onFailed is there before the outcome, and stays in its space", async () => {
    const { space, host } = await setup();
    const count = space.cell<number>("count");
    const stream = space.stream<number>("stream");
    const boom = () => {
      throw new Error("no");
    };
    stream.handle(boom, { onFailed: (_failure, tx, value) => tx.set(count, value) });
    const seen = new Calls<unknown>();
    stream.send(7, { onOutcome: (outcome) => seen.note([outcome.kind, count.get()]) });
    await host.advance(100);
    expect(seen.seen).toEqual([["failed", 7]]);
  });

  test("[I48] a send that another process handles meanwhile has that result, and onFailed takes no effect", async () => {
    const { space, host, open } = await setup();
    const { space: there } = await open();
    const failures = space.cell<number>("failures");
    const stream = space.stream<number>("stream");
    const boom = () => {
      throw new Error("no");
    };
    const elsewhere = there.stream<number>("stream");
    elsewhere.handle(() => "there");
    stream.handle(boom, {
      onFailed: async (_failure, tx) => {
        tx.set(failures, 1);
        await elsewhere.send(1, { eventId: "e" }).outcome;
      },
    });
    const { outcome } = stream.send(1, { eventId: "e" });
    await host.advance(1_000);
    expect([await outcome, failures.get()]).toEqual([{ kind: "already", id: "e", result: "there" }, undefined]);
  });

  test("[U100] an option that a stream does not have is refused by its name", async () => {
    const { space } = await setup();
    const options = { name: "one", concurrency: 2 };
    expect(() => space.stream("stream").handle(() => undefined, options)).toThrow(/concurrency/);
    expect(() => space.stream("stream").handle(() => undefined, { retry: 0 })).toThrow(/retry/);
  });
});
