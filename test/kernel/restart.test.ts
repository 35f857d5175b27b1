/**
 * Kernels that are stopped, killed and started again, in processes of their own; their durable state is checked from
 * outside.
 */
import { describe, expect, test } from "vitest";
import { counted, type LongPart, Rounds, timeoutMs } from "../portable/long-run.ts";
import { runProgram, scratchFolder } from "../repo/program.ts";
import { COMPILE_CACHE, KernelProcess, LEDGER_APP, MAIN } from "./kernel-process.ts";
import { type Ledger, Load, read, totalOf, until, untilNothingIsOpen } from "./ledger.ts";

describe("restart", () => {
  test.for(["stopped", "killed"] as const)("[K24] memory and ledger survive after a kernel was %s", async (how) => {
    const folder = scratchFolder();
    const first = await KernelProcess.start(folder, LEDGER_APP);
    const before = await first.connect();
    await before.command("Memory.Set", { key: "/colour", value: { name: "grün" } });
    await before.command("Ledger.Add", { key: "a", amount: 2 });
    await before.command("Ledger.Add", { key: "b", amount: 3 });
    await before.close();
    if (how === "stopped") expect(await first.stop()).toBe(0);
    else await first.kill();
    const second = await KernelProcess.start(folder, LEDGER_APP);
    await using after = await second.connect();
    expect(await after.query("Memory.Get", { key: "/colour" })).toEqual({ value: { name: "grün" } });
    expect(await read(after)).toMatchObject({ entries: { a: 2, b: 3 }, total: 5 });
    expect(await after.command("Ledger.Add", { key: "b", amount: 1 })).toEqual({ total: 6 });
  });

  test("[K24] a timer that was set before a kill fires once after the restart", async () => {
    const folder = scratchFolder();
    const first = await KernelProcess.start(folder, LEDGER_APP);
    const before = await first.connect();
    const add = (key: string) => ({ kind: "command", type: "Ledger.Add", data: { key, amount: 1 } });
    await before.command("Timer.Set", { delayMs: 300, message: add("soon") });
    await before.command("Timer.Set", { delayMs: 86_400_000, message: add("tomorrow") });
    await before.close();
    await first.kill();
    const second = await KernelProcess.start(folder, LEDGER_APP);
    await using after = await second.connect();
    await until(after, "Ledger.Read", null, (answer) => totalOf(answer) > 0);
    await second.kill();
    const third = await KernelProcess.start(folder, LEDGER_APP);
    await using later = await third.connect();
    expect((await read(later)).entries).toEqual({ soon: 1 });
  });
});

describe("under load", () => {
  const PART: LongPart = { name: "kill -9 of a kernel", short: 20, long: 300, minutes: 3 };

  test("[K24] [T6] timers that come due during repeated kills each take effect once", async () => {
    const folder = scratchFolder();
    let kernel = await KernelProcess.start(folder, LEDGER_APP);
    await using client = await kernel.connect();
    const keys = Array.from({ length: 200 }, (_, index) => `timer ${index}`);
    await Promise.all(
      keys.map((key, index) => {
        const message = { kind: "command", type: "Ledger.Add", data: { key, amount: 1 } };
        return client.command("Timer.Set", { delayMs: 500 + index * 5, message });
      }),
    );
    for (const handled of [1, 50, 100, 150]) {
      await until(client, "Ledger.Read", null, (answer) => totalOf(answer) >= handled);
      await kernel.kill();
      kernel = await KernelProcess.start(folder, LEDGER_APP);
    }
    await until(client, "Ledger.Read", null, (answer) => totalOf(answer) >= keys.length);
    const { entries, total } = await read(client);
    expect(total).toBe(keys.length);
    expect(Object.keys(entries).sort()).toEqual(keys.toSorted());
  });

  test("[K23] a kernel ends on request, and the next one finishes its unanswered work", async () => {
    const folder = scratchFolder();
    const first = await KernelProcess.start(folder, LEDGER_APP);
    await using client = await first.connect();
    const load = new Load(client);
    await load.more(50);
    expect(await first.stop()).toBe(0);
    expect(first.complaints).toBe("");
    await KernelProcess.start(folder, LEDGER_APP);
    await load.more(50);
    await load.end();
    await load.check();
  });

  test("[K25] [K26] [J1] [J2] [J3] after kill -9 acknowledged commands exist exactly once, and every event was handled", {
    timeout: timeoutMs(PART),
  }, async () => {
    const folder = scratchFolder();
    let kernel = await KernelProcess.start(folder, LEDGER_APP);
    await using client = await kernel.connect();
    const load = new Load(client);
    const budget = new Rounds(PART);
    for (let kills = 0; budget.goesOn(kills); kills++) {
      // After some work, a different amount each time, so that its exact state is unknown.
      await load.more(1 + ((kills * 17) % 41));
      await kernel.kill();
      kernel = await KernelProcess.start(folder, LEDGER_APP);
    }
    await load.end();
    await load.check();
    const { size } = load.acknowledged;
    const requeued = await untilNothingIsOpen(client, folder);
    counted(budget.done, "kills of a kernel");
    counted(size, "commands answered across kills");
    console.log(`${budget.done} kills, ${size} commands acknowledged, each in the ledger once; ${requeued} requeued`);
    await until(client, "Ledger.Read", null, (answer) => {
      return answer !== null && (answer as never as Ledger).heard.length === size;
    });
    expect(await kernel.stop()).toBe(0);
    const verified = await runProgram(process.execPath, [MAIN, "verify"], { cwd: folder, env: COMPILE_CACHE });
    expect(verified).toMatchObject({ code: 0, stderr: "" });
  });
});
