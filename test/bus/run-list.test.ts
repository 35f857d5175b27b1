import fc from "fast-check";
import { describe, expect, test } from "#test";
import { EventRun } from "../../src/bus/event-run.ts";
import { HeldEvents, RunList } from "../../src/bus/held-events.ts";
import { SerialOrder } from "../../src/bus/serial-order.ts";
import { Subscriptions } from "../../src/bus/subscriptions.ts";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";

const CLAIM = { lease: 1, attempt: 1, deliveries: [] };

function runOf(id: number): EventRun {
  const metadata = { id: `message-${id}`, timestamp: 0 };
  return new EventRun(
    { id, topic: "tick", source: "clock", message: { kind: "event", type: "Topic.Tick", data: { id }, metadata } },
    CLAIM,
    { steps: [], missing: [], version: 0 },
  );
}

describe("runs in hand", () => {
  test("[J67] runs are listed in the order of their arrival, also after others have left", () => {
    // A number below the length takes out the run at that place, any other adds one.
    fc.assert(
      fc.property(fc.array(fc.nat(12), { maxLength: 60 }), (places) => {
        const list = new RunList();
        const expected: EventRun[] = [];
        for (const [step, place] of places.entries()) {
          const leaving = expected[place];
          if (leaving === undefined) {
            const run = runOf(step);
            list.add(run);
            expected.push(run);
          } else {
            list.remove(leaving);
            expected.splice(place, 1);
            expect([leaving.before, leaving.after]).toEqual([undefined, undefined]);
          }
          expect([...list].map(({ id }) => id)).toEqual(expected.map(({ id }) => id));
          expect(list.size).toBe(expected.length);
        }
      }),
    );
  });

  test("[J67] from its settle on a run is a number and a claim: the event is let go of", () => {
    const run = runOf(7);
    expect(run.event.payload).toEqual({ id: 7 });
    run.beginSettling();
    expect(run.state).toBe("settling");
    expect([run.id, run.topic, run.lease]).toEqual([7, "tick", 1]);
    expect(() => run.event).toThrow("event 7");
  });

  function heldEvents(): HeldEvents {
    const host = simulatedHost(1);
    const store = memoryStore({ host });
    const serial = new SerialOrder({ host, store, subscriptions: new Subscriptions(), observe: () => undefined });
    return new HeldEvents({ host, serial, concurrency: 4 });
  }

  test("[J67] a run that is given back was held: runs that were lost with their lease are not settled again", () => {
    const held = heldEvents();
    const runs = [1, 2, 3].map(runOf);
    held.receive(runs);
    held.over(runs[1]!, "lost");
    expect(held.takeBackAll().map(({ id }) => id)).toEqual([1, 3]);
  });

  test("[J69] a run that passed a gate without a call of its handler has not begun: it is given back", () => {
    const held = heldEvents();
    const [opened, begun] = [runOf(1), runOf(2)];
    held.receive([opened, begun]);
    for (const run of [held.next("all")!, held.next("all")!]) held.park(run, "at-order");
    begun.note({ kind: "done" });
    for (const run of [opened, begun]) held.resume(run);
    expect(held.takeBackAll()).toEqual([opened]);
    held.checkInvariants();
  });
});
