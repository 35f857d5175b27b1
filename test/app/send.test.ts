/** Commands and events that a transaction of an app sends, now and later. */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { app, type Cell, command, on, type } from "../../src/index.ts";
import { Machine, openOn } from "./app-setup.ts";

const MINUTE_MS = 60_000;

const clinic = app("clinic", ({ cell, event }) => {
  const log = cell<string[]>("log", []);
  const booked = event("Clinic.Booked", type<{ name: string }>());
  const remind = command(z.object({ name: z.string() }), ({ name }, tx) => tx.push(log, `remind ${name}`));
  return {
    commands: {
      "Clinic.Book": ({ name }: { name: string }, tx) => {
        tx.send(remind, { name }, { delay: "5 min" });
        tx.send("Office.Note", { text: name });
        tx.emit(booked, { name }, { delay: 1_000 });
        if (name === "Eve") return tx.refuse("UNKNOWN");
        return "booked";
      },
      "Clinic.Remind": remind,
      "Clinic.Wrong": (_, tx) => tx.send("Clinic.Remnd", null),
      "Clinic.Invalid": (_, tx) => tx.send(remind, { name: 3 } as never),
      "Clinic.Stranger": (_, tx) =>
        tx.send(
          command(type<null>(), () => null),
          null,
        ),
    },
    queries: { "Clinic.Log": () => log.get() },
    on: { note: on(booked, ({ name }, tx) => tx.push(log, `booked ${name}`)) },
  };
});

const office = app("office", ({ cell }) => {
  const notes = cell<string[]>("notes", []);
  return {
    commands: { "Office.Note": ({ text }: { text: string }, tx) => tx.push(notes, text) },
    queries: { "Office.Notes": () => notes.get() },
  };
});

describe("borders of a command", () => {
  test("[A40] with concurrency, its calls run side by side up to the limit, beside the others of the app", async () => {
    const gates: (() => void)[] = [];
    let [running, most] = [0, 0];
    const desk = app("desk", ({ cell }) => {
      const done = cell("done", 0);
      return {
        commands: {
          "Desk.Slow": command(
            type<null>(),
            async (_, tx) => {
              most = Math.max(most, ++running);
              await new Promise<void>((resolve) => gates.push(resolve));
              running--;
              tx.update(done, (n) => n + 1);
            },
            { concurrency: 2 },
          ),
          "Desk.Quick": () => running,
        },
        queries: { "Desk.Done": () => done.get() },
      };
    });
    const kernel = await openOn("memory", desk);
    const slow = [1, 2, 3, 4, 5].map(() => kernel.command("Desk.Slow", null));
    while (gates.length < 2) await kernel.query("Desk.Done");
    expect(await kernel.command("Desk.Quick")).toBe(2);
    let ended = false;
    const all = Promise.all(slow).then(() => {
      ended = true;
    });
    while (!ended) {
      gates.shift()?.();
      await kernel.query("Desk.Done");
    }
    await all;
    expect([most, await kernel.query("Desk.Done")]).toEqual([2, 5]);
  });

  test("[A40] a limit that is no whole number of at least 1 is a boot error", async () => {
    const wrong = app("wrong", () => ({
      commands: { "Wrong.One": command(type<null>(), () => 1, { concurrency: 0 }) },
    }));
    await expect(openOn("memory", wrong)).rejects.toThrow(
      "command Wrong.One: concurrency must be a whole number of at least 1, got 0",
    );
  });

  test("[A33] a handler that takes longer than its timeout is rolled back, and its later writes are refused", async () => {
    const machine = new Machine();
    const late: unknown[] = [];
    const slow = app("slow", ({ cell }) => {
      const count = cell("count", 0);
      const wait = (ms: number) => new Promise<void>((resolve) => machine.world.timer(ms, resolve));
      return {
        commands: {
          "Slow.Add": command(
            type<{ ms: number }>(),
            async ({ ms }, tx) => {
              tx.update(count, (n) => n + 1);
              await wait(ms);
              try {
                tx.update(count, (n) => n + 1);
              } catch (error) {
                late.push(error);
              }
            },
            { timeout: "1 s" },
          ),
        },
        queries: { "Slow.Count": () => count.get() },
      };
    });
    const kernel = await machine.start(slow);
    const refused = await machine.run(() => kernel.safeCommand("Slow.Add", { ms: 5_000 }));
    expect(refused).toMatchObject({ ok: false, failure: { code: 504, reason: "TIMED_OUT" } });
    await machine.run(() => kernel.command("Slow.Add", { ms: 500 }));
    await machine.advance(10_000);
    expect(await machine.run(() => kernel.query("Slow.Count"))).toBe(2);
    expect(late).toMatchObject([{ code: "WORK_OVER" }]);
  });

  test("[A34] a handler that writes the state of another app is refused as a whole", async () => {
    const machine = new Machine();
    let theirs: Cell<number> | undefined;
    const one = app("one", ({ cell }) => {
      theirs = cell("n", 0);
      const n = theirs;
      return { queries: { "One.N": () => n.get() } };
    });
    const two = app("two", ({ cell }) => {
      const n = cell("n", 0);
      return {
        commands: {
          "Two.Both": (_, tx) => {
            tx.set(n, 1);
            if (theirs) tx.set(theirs, 1);
          },
        },
        queries: { "Two.N": () => n.get() },
      };
    });
    const kernel = await machine.start([one, two]);
    const result = await machine.run(() => kernel.safeCommand("Two.Both"));
    expect(result).toMatchObject({ ok: false, failure: { message: expect.stringMatching(/one space|space "one"/) } });
    expect(await machine.run(() => kernel.query("One.N"))).toBe(0);
    expect(await machine.run(() => kernel.query("Two.N"))).toBe(0);
  });
});

describe("tx.send and tx.emit", () => {
  test("[A14] [A6] a command to another app, one for later, and an event for later come from one commit", async () => {
    const machine = new Machine();
    const kernel = await machine.start([clinic, office]);
    await machine.run(() => kernel.command("Clinic.Book", { name: "Ada" }));
    await machine.run(() => kernel.safeCommand("Clinic.Book", { name: "Eve" }));
    await machine.advance(500);
    expect(await machine.run(() => kernel.query("Office.Notes"))).toEqual(["Ada"]);
    expect(await machine.run(() => kernel.query("Clinic.Log"))).toEqual([]);
    await machine.advance(2_000);
    expect(await machine.run(() => kernel.query("Clinic.Log"))).toEqual(["booked Ada"]);
    await machine.advance(6 * MINUTE_MS);
    expect(await machine.run(() => kernel.query("Clinic.Log"))).toEqual(["booked Ada", "remind Ada"]);
  });

  test("[A14] a command for later survives the process", async () => {
    const machine = new Machine();
    const first = await machine.start([clinic, office]);
    await machine.run(() => first.command("Clinic.Book", { name: "Ada" }));
    machine.kill();
    await machine.advance(10 * MINUTE_MS);
    const second = await machine.start([clinic, office]);
    await machine.advance(MINUTE_MS);
    const log = await machine.run(() => second.query("Clinic.Log"));
    expect(log.toSorted()).toEqual(["booked Ada", "remind Ada"]);
  });

  test.for([
    ["Clinic.Wrong", /Clinic\.Remnd is not declared/],
    ["Clinic.Invalid", /Clinic\.Remind does not take this data: name/],
    ["Clinic.Stranger", /under no name/],
  ] as const)("[A14] %s fails with the reason", async ([name, text]) => {
    const machine = new Machine();
    const kernel = await machine.start([clinic, office]);
    const result = await machine.run(() => kernel.safeCommand(name));
    expect(result).toMatchObject({ ok: false, failure: { message: expect.stringMatching(text) } });
  });
});
