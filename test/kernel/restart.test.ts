/** Kernels that are stopped, killed and started again, in processes of their own; what they must still know is checked from outside. */
import { describe, expect, test } from "vitest";
import { Client } from "../../src/client/client.ts";
import { systemHost } from "../../src/host/system-host.ts";
import type { Json } from "../../src/message/json.ts";
import { command } from "../../src/message/lineage.ts";
import { runProgram, scratchFolder } from "../repo/program.ts";
import { COMPILE_CACHE, KernelProcess, LEDGER_APP, MAIN } from "./kernel-process.ts";

interface Ledger {
  readonly entries: Readonly<Record<string, number>>;
  readonly total: number;
  readonly heard: readonly string[];
}

async function read(client: Client): Promise<Ledger> {
  return (await client.query("Ledger.Read", null)) as never as Ledger;
}

/** Asks until the answer is as wanted; the time limit of the test ends what never is. */
async function until(client: Client, type: string, data: Json, wanted: (answer: Json) => boolean): Promise<void> {
  const host = systemHost();
  for (;;) {
    const answer = await client.query(type, data).catch(() => null);
    if (wanted(answer)) return;
    await host.yield();
  }
}

describe("restart", () => {
  test.for(["stopped", "killed"] as const)("[K24] memory and ledger are there after a kernel was %s", async (how) => {
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

  test("[K24] a timer that was set before the kernel was killed fires after it is back, once", async () => {
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
    await until(after, "Ledger.Read", null, (answer) => (answer as never as Ledger).total > 0);
    await second.kill();
    const third = await KernelProcess.start(folder, LEDGER_APP);
    await using later = await third.connect();
    expect((await read(later)).entries).toEqual({ soon: 1 });
  });
});

describe("kill -9 under load", () => {
  const KILLS = process.env["MILLRACE_LONG"] ? 300 : 20;

  test("[K25] [K26] [J1] [J2] [J3] acknowledged commands are there exactly once, and every event was heard", async () => {
    const host = systemHost();
    const folder = scratchFolder();
    let kernel = await KernelProcess.start(folder, LEDGER_APP);
    const client = await Client.connect({ path: kernel.socketPath, timeoutMs: 60_000 });
    await using _client = client;
    const acknowledged = new Set<string>();
    let sending = true;
    const senders = Array.from({ length: 8 }, async (_, sender) => {
      for (let n = 0; sending; n++) {
        const key = `${sender}-${n}`;
        const request = command(host, "Ledger.Add", { key, amount: 1 });
        // 503 says that nothing was done: the same request, under the same id, until it is.
        for (
          let answer = await client.request(request);
          answer.kind === "error";
          answer = await client.request(request)
        ) {
          expect(answer.data).toMatchObject({ code: 503 });
        }
        acknowledged.add(key);
      }
    });
    let kills = 0;
    for (; kills < KILLS; kills++) {
      // After it has done something, and each time a different amount; where exactly it is then, nobody knows.
      const enough = acknowledged.size + 1 + ((kills * 17) % 41);
      while (acknowledged.size < enough) await host.yield();
      await kernel.kill();
      kernel = await KernelProcess.start(folder, LEDGER_APP);
    }
    sending = false;
    await Promise.all(senders);
    const { entries, total } = await read(client);
    console.log(`${kills} kills, ${acknowledged.size} commands acknowledged, ${total} in the ledger`);
    expect(total).toBe(acknowledged.size);
    expect(Object.keys(entries).sort()).toEqual([...acknowledged].sort());
    expect(new Set(Object.values(entries))).toEqual(new Set([1]));
    await until(client, "Ledger.Read", null, (answer) => {
      return answer !== null && (answer as never as Ledger).heard.length === acknowledged.size;
    });
    expect(await kernel.stop()).toBe(0);
    const verified = await runProgram(process.execPath, [MAIN, "verify"], { cwd: folder, env: COMPILE_CACHE });
    expect(verified).toMatchObject({ code: 0, stderr: "" });
  });
});
