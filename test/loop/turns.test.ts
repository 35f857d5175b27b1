/** Lanes and turns: the order of messages, the work between two messages, and time for the host. */
import { describe, expect, test } from "#test";
import type { Host } from "../../src/host/host.ts";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { systemHost } from "../../src/host/system-host.ts";
import { LANE_MAX, MICROTASK_DRAIN_MAX, TURNS_SLICE_MAX, TURNS_SLICE_MS } from "../../src/limits.ts";
import { EventLoop } from "../../src/loop/event-loop.ts";
import { laneOf } from "../../src/loop/inbound.ts";
import { NOBODY } from "../../src/loop/pending-request.ts";
import { Slice } from "../../src/loop/slice.ts";
import { BareActor, bare, command, message, query, setup } from "./loop-setup.ts";

function recorder() {
  const actor = new BareActor();
  return { actor, ids: () => actor.posted.map(({ metadata }) => metadata.id) };
}

describe("lanes", () => {
  test("[L2] a system message goes in the next turn, before the hundred user messages that came earlier", async () => {
    const { actor, ids } = recorder();
    const { loop, client, settle } = await setup({ a: bare(() => actor) });
    const one = client();
    for (let i = 0; i < 100; i++) loop.receive(query("Bare.Ask", `u${i}`), one);
    loop.enqueue(query("Bare.Ask", "urgent"), NOBODY, "system");
    await settle();
    expect(ids()[0]).toBe("urgent");
    expect(ids().slice(1)).toEqual(Array.from({ length: 100 }, (_, i) => `u${i}`));
  });

  test("[L2] user messages wait as long as system messages come, and the lane's length tells", async () => {
    const { actor, ids } = recorder();
    const { loop, client, host, settle } = await setup({ a: bare(() => actor) });
    loop.receive(query("Bare.Ask", "user"), client());
    let left = 600;
    const next = () => {
      if (left-- === 0) return;
      loop.enqueue(query("Bare.Ask", `s${left}`), NOBODY, "system");
      loop.microtask(next);
    };
    next();
    await host.step();
    expect(loop.liveness.userLane).toBe(1);
    await settle();
    expect(ids().indexOf("user")).toBe(600);
  });

  test("[L3] the source decides the lane: a message from outside enters the user lane with any type", async () => {
    const actor = new BareActor();
    const capability = bare(() => actor, {
      takes: [
        ["command", "Sys.Own"],
        ["query", "Bare.Ask"],
      ],
    });
    const { loop, client, settle } = await setup({ a: capability });
    const one = client();
    loop.receive(query("Bare.Ask", "first"), one);
    loop.receive(command("Sys.Own", "second"), one);
    expect(loop.liveness).toMatchObject({ systemLane: 0, userLane: 2 });
    loop.enqueue(command("Sys.Own", "third"));
    loop.enqueue(query("Bare.Ask", "fourth"));
    expect(loop.liveness).toMatchObject({ systemLane: 1, userLane: 3 });
    await settle();
    expect(actor.posted.map(({ metadata }) => metadata.id)).toEqual(["third", "first", "second", "fourth"]);
  });

  test("[L3] Sys.* is the system's, Syscall.* and System.* are not", () => {
    expect(["Sys.X", "Syscall.Ping", "System.X", "SysX.Y"].map(laneOf)).toEqual(["system", "user", "user", "user"]);
  });

  test("[L6] a message that a full lane refuses is answered or observed; an awaited answer is accepted", async () => {
    const { actor } = recorder();
    const { loop, client, settle, faults } = await setup({ a: bare(() => actor, { emits: ["Bare.Told"] }) });
    const one = client();
    loop.receive(query("Bare.Ask", "asked"), one);
    await settle();
    for (let i = 0; i < LANE_MAX; i++)
      loop.enqueue(message("reply", "X.Y", `f${i}`, null, { causation: "none" }), NOBODY, "user");
    loop.receive(query("Bare.Ask", "late"), one);
    actor.say(message("event", "Bare.Told", "e", null, { causation: "asked" }));
    const [asked] = actor.posted;
    if (asked) actor.reply(asked, "in time");
    expect(one.answers).toEqual(["error late 503"]);
    expect(faults()).toEqual(["Sys.Overload", "Sys.Overload"]);
    await settle();
    expect(one.answers).toEqual(["error late 503", 'reply asked "in time"']);
  });

  test("[L6] [N19] after the end a request and a client's event are answered with 503, and observed", async () => {
    const { loop, client, host, faults } = await setup({ a: bare(() => new BareActor()) });
    const one = client();
    await host.run(() => loop.stop());
    loop.receive(query("Bare.Ask", "q"), one);
    loop.receive(message("event", "A.B", "e"), one);
    expect(one.answers).toEqual(["error q 503", "error e 503"]);
    expect(faults()).toEqual(["Sys.Overload", "Sys.Overload"]);
  });

  test("[L2] an adapter that throws at an answer is observed and delays no turn", async () => {
    const { actor } = recorder();
    const { loop, client, settle, faults } = await setup({ a: bare(() => actor) });
    const [broken, one] = [client(), client()];
    broken.deliver = () => {
      throw new Error("broken");
    };
    loop.receive(query("Bare.Ask", "q1"), broken);
    loop.receive(query("Nobody.Knows", "q2"), broken);
    await settle();
    for (const asked of actor.posted) actor.reply(asked, "late");
    loop.receive(query("Bare.Ask", "q3"), one);
    await settle();
    for (const asked of actor.posted.slice(1)) actor.reply(asked, "in time");
    await settle();
    expect(one.answers).toEqual(['reply q3 "in time"']);
    expect(faults().every((type) => type === "Sys.RoutingError")).toBe(true);
    expect(loop.liveness.quiescent).toBe(true);
  });
});

describe("microtasks", () => {
  test("[L4] all microtasks of a turn run before the next message, those they add included", async () => {
    const order: string[] = [];
    const actor = new BareActor();
    actor.postMessage = (given) => {
      order.push(given.metadata.id);
      if (given.metadata.id !== "m1") return;
      for (const name of ["a", "b", "c"]) loop.microtask(() => void order.push(name));
      loop.microtask(() => loop.microtask(() => void order.push("added")));
    };
    const { loop, client, settle } = await setup({ a: bare(() => actor) });
    const one = client();
    for (const id of ["m1", "m2"]) loop.receive(query("Bare.Ask", id), one);
    await settle();
    expect(order).toEqual(["m1", "a", "b", "c", "added", "m2"]);
  });

  test("[L4] a microtask that schedules itself forever is cut at the cap and reported; messages still go through", async () => {
    const actor = new BareActor();
    const { loop, client, host, faults } = await setup({ a: bare(() => actor) });
    let runs = 0;
    const again = () => {
      if (++runs < 20 * MICROTASK_DRAIN_MAX) loop.microtask(again);
    };
    loop.microtask(again);
    loop.receive(query("Bare.Ask", "m"), client());
    await host.step();
    expect(actor.posted).toHaveLength(1);
    await host.advance(0);
    expect(runs).toBe(20 * MICROTASK_DRAIN_MAX);
    expect(faults()).toContain("Sys.MicrotaskOverflow");
  });

  test("[L4] a microtask that throws is reported, and the others run", async () => {
    const { loop, settle, faults } = await setup({});
    const ran: number[] = [];
    loop.microtask(() => void ran.push(1));
    loop.microtask(() => {
      throw new Error("broken");
    });
    loop.microtask(() => void ran.push(2));
    await settle();
    expect(ran).toEqual([1, 2]);
    expect(faults()).toEqual(["Sys.MicrotaskFault"]);
  });
});

describe("the host", () => {
  test("[L5] turns share a macrotask for a bounded number of turns, then a due timer runs", async () => {
    const actor = new BareActor();
    const { loop, client, host } = await setup({ a: bare(() => actor) });
    const one = client();
    for (let i = 0; i < 2_000; i++) loop.receive(query("Bare.Ask", `u${i}`), one);
    expect(actor.posted).toHaveLength(0);
    // The first ones in the task that brought them, the next in one of their own.
    await host.step();
    expect(actor.posted).toHaveLength(2 * TURNS_SLICE_MAX);
    await host.advance(0);
    expect(actor.posted).toHaveLength(2_000);
  });

  test("[L5] turns that begin in tasks of adapters let the host in, too: after so long one begins in a task of its own", async () => {
    const actor = new BareActor();
    const { loop, client, host } = await setup({ a: bare(() => actor) });
    const one = client();
    const posted = async (id: string) => {
      host.task(() => loop.receive(query("Bare.Ask", id), one));
      await host.step();
      return actor.posted.length;
    };
    await host.advance(TURNS_SLICE_MS);
    expect(await posted("u1")).toBe(0);
    await host.advance(0);
    expect(actor.posted).toHaveLength(1);
    await host.advance(TURNS_SLICE_MS - 1);
    expect(await posted("u2")).toBe(2);
    await host.advance(1);
    expect(await posted("u3")).toBe(2);
    await host.advance(0);
    expect(actor.posted).toHaveLength(3);
  });

  for (const turnMs of [0.1, 1, 3, 50]) {
    test(`[L1] [L5] a slice of turns of ${turnMs} ms ends when its time is over, after any previous load`, () => {
      let nowMs = 0;
      // Time passes within turns, unlike simulated time; only the clock of the host is used.
      const host: Host = Object.assign(Object.create(simulatedHost(1)), { monotonic: () => nowMs });
      const slice = new Slice(host);
      // Short turns let it read the clock less often.
      slice.begin();
      while (!slice.isOver());
      for (let again = 0; again < 3; again++) {
        const beganMs = nowMs;
        slice.begin();
        let turns = 0;
        do {
          nowMs += turnMs;
          turns++;
        } while (!slice.isOver());
        expect(turns).toBeLessThan(TURNS_SLICE_MAX);
        // At most eight turns go by between two looks, in the first slice after quick ones.
        const lateMs = (again === 0 ? 8 : 2) * turnMs;
        expect(nowMs - beganMs).toBeLessThanOrEqual(TURNS_SLICE_MS + lateMs + 1e-6);
      }
    });
  }

  test("[L1] [L5] a timer of one millisecond gets in while the lanes never run empty", async () => {
    const host = systemHost();
    const actor = new BareActor();
    let busy = true;
    const loop = await EventLoop.boot({ host, capabilities: { a: bare(() => actor) } });
    const timer = new Promise<void>((resolve) => {
      // Every message brings the next one: the lanes are busy until the timer says otherwise.
      actor.postMessage = (given) => {
        actor.reply(given);
        if (given.metadata.id === "first") host.timer(1, resolve);
        if (busy) loop.enqueue(query("Bare.Ask", host.id()));
      };
    });
    loop.enqueue(query("Bare.Ask", "first"));
    await timer;
    expect(loop.liveness.quiescent).toBe(false);
    busy = false;
    await loop.drained();
    await loop.stop();
  });
});
