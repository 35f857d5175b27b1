/** Commands that come again when their receipts have had their end. */
import { describe, expect, test } from "#test";
import { Space } from "../../src/cells/space.ts";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { transactional } from "../../src/loop/transactional.ts";
import type { ErrorData } from "../../src/message/error-data.ts";
import type { Json } from "../../src/message/json.ts";
import { MemoryDisk } from "../../src/store/memory/memory-disk.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { receiptOf } from "../../src/store/receipt-name.ts";
import { command, setup } from "./loop-setup.ts";

const DAY_MS = 86_400_000;

async function adding() {
  const host = simulatedHost(1);
  const store = memoryStore({ host, disk: new MemoryDisk({ changesKept: 2 }) });
  const space = await host.run(() => Space.open({ store, host, name: "test" }));
  const total = space.cell<number>("total");
  const adder = transactional({
    space,
    description: "adds",
    commands: {
      "Total.Add": {
        handle: (amount: Json, tx) => {
          const sum = (tx.get(total) ?? 0) + (amount as number);
          tx.set(total, sum);
          return sum;
        },
      },
    },
  });
  const { loop, client } = await setup({ adder }, { host });
  const add = async (id: string, amount: number) => {
    const one = client();
    loop.receive(command("Total.Add", id, amount), one);
    await host.advance(1_000);
    return { answer: one.answers[0], message: (one.received[0]?.data as ErrorData | undefined)?.message };
  };
  const forget = () => host.run(() => store.forgetReceipts({ madeBeforeMs: host.now(), limit: 100 }));
  const has = async (id: string) => {
    const ref = receiptOf({ kind: "command", id });
    const { documents } = await host.run(() => store.load("test", [ref]));
    return documents[0]?.value !== undefined;
  };
  return { host, add, forget, has, total };
}

describe("a command that is too old", () => {
  test("[L32] [S101] a command repeated after its receipt expired is answered with 410 and has no effect", async () => {
    const { host, add, forget, has, total } = await adding();
    const id = host.id();
    expect((await add(id, 5)).answer).toBe(`reply ${id} 5`);
    for (let n = 0; n < 3; n++) await add(host.id(), 1);
    await host.advance(DAY_MS);
    expect((await add(id, 5)).answer).toBe(`reply ${id} 5`);
    await forget();
    expect(await has(id)).toBe(false);
    const { answer, message } = await add(id, 5);
    expect(answer).toBe(`error ${id} 410`);
    expect(message).toMatch(/was made at .*see whether it was handled, and if it was not, send it under a new id/);
    expect(total.get()).toBe(8);
  });

  test("[L32] [S101] an old command that was never handled is refused too; an id without a time is not", async () => {
    const { host, add, forget, total } = await adding();
    const late = host.id();
    expect((await add("order-17", 1)).answer).toBe("reply order-17 1");
    for (let n = 0; n < 3; n++) await add(host.id(), 1);
    await host.advance(DAY_MS);
    await forget();
    expect((await add(late, 1)).answer).toBe(`error ${late} 410`);
    expect((await add("order-17", 1)).answer).toBe("reply order-17 1");
    expect((await add("order-18", 1)).answer).toBe("reply order-18 5");
    expect(total.get()).toBe(5);
  });
});
