/** Waits for rest inside work that rest waits for. */
import { describe, expect, test } from "#test";
import type { RunHandle } from "../../src/scheduler/node.ts";
import { setup } from "./scheduler-setup.ts";

const REFUSED = { code: "SCHEDULER_WAITS_FOR_ITSELF" };

async function site() {
  const here = await setup();
  const errors: unknown[] = [];
  here.scheduler.onError((error) => errors.push(error));
  const a = here.space.cell<number>("a");
  a.set(1);
  return { ...here, errors, a };
}

describe("waits that would never end", () => {
  for (const what of ["pull", "idle", "settled"] as const) {
    test(`[R49] ${what} awaited by an asynchronous effect is refused, and the effect has failed`, async () => {
      const { space, a, errors, host } = await site();
      space.effect(async () => void (await (what === "pull" ? a.pull() : space[what]())), { id: "waits" });
      await host.run(() => space.idle());
      expect(errors).toMatchObject([REFUSED]);
      expect(String(errors)).toMatch(/waits would wait for itself.*get\(\)/);
    });

    test(`[R49] ${what} in a later stretch is refused where that is taken up with within`, async () => {
      const { space, a, errors, host } = await site();
      space.effect(async (run: RunHandle) => {
        await host.yield();
        await run.within(() => (what === "pull" ? a.pull() : space[what]()));
      });
      await host.run(() => space.idle());
      expect(errors).toMatchObject([REFUSED]);
    });
  }

  test("[R49] a computation that awaits a pull has failed, and so has a sink", async () => {
    const { space, a, errors, host } = await site();
    const doubled = space.computed("doubled", async () => 2 * ((await a.pull()) ?? 0));
    a.sink(async () => void (await a.pull()));
    await expect(host.run(() => doubled.pull())).rejects.toMatchObject(REFUSED);
    expect(errors).toMatchObject([REFUSED, REFUSED]);
  });

  test("[R49] idle and settled awaited by an asynchronous handler are refused; a pull is not", async () => {
    const { space, a, host } = await site();
    const stream = space.stream<"idle" | "settled" | "pull">("orders");
    stream.handle(async (what) => (what === "pull" ? await a.pull() : await space[what]()));
    const outcomes = (["idle", "settled", "pull"] as const).map((what) => stream.send(what).outcome);
    const [idle, settled, pull] = await host.run(() => Promise.all(outcomes));
    expect([idle, settled]).toMatchObject([{ error: REFUSED }, { error: REFUSED }]);
    expect(pull).toMatchObject({ kind: "handled", result: 1 });
  });

  test("[R49] idle in a later part of a handler is refused inside within", async () => {
    const { space, host } = await site();
    const stream = space.stream<number>("orders");
    stream.handle(async (_, { within }) => {
      await host.yield();
      await within(() => space.idle());
    });
    expect(await host.run(() => stream.send(1).outcome)).toMatchObject({ error: REFUSED });
  });

  test("[R49] code that does not wait may begin a pull: synchronous, it gets the value; asynchronous, it does not fail", async () => {
    const { space, a, errors, host } = await site();
    const got: unknown[] = [];
    space.effect(() => void a.pull().then((value) => got.push(value)));
    space.effect(async () => {
      void a.pull();
      await host.yield();
      got.push("ended");
    });
    await host.run(() => space.idle());
    await host.advance(0);
    expect(got.sort()).toEqual([1, "ended"]);
    expect(errors).toEqual([]);
  });

  test("[R49] [R48] an unrecognized wait is named when the space closes", async () => {
    const { space, a, errors, host } = await site();
    space.effect(
      async () => {
        await host.yield();
        await a.pull();
      },
      { id: "lost" },
    );
    const closing = space.close({ graceMs: 10 });
    await host.advance(10);
    await closing;
    expect(errors).toMatchObject([{ code: "SCHEDULER_GAVE_UP" }]);
  });
});
