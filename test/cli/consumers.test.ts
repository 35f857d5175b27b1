/**
 * `consumers`, and the output of other verbs about an event that waits for a consumer: on a running kernel, and on the
 * file of a stopped one.
 */
import { join } from "node:path";
import { expect, test } from "vitest";
import { openSqliteStore } from "../../src/store/sqlite/index.ts";
import { setup } from "./cli-setup.ts";

test.for(["a running kernel", "a stopped kernel's file"] as const)(
  "[K91] [K95] [K96] a missing consumer is shown with its events, removed and audited, by %s",
  async (where) => {
    const { cwd, millrace, json, start, untilStatus } = setup();
    const first = await start();
    await first.stop();
    {
      await using store = await openSqliteStore({ path: join(cwd, ".millrace", "kernel.db") });
      await store.declareConsumers({ consumers: [{ name: "ghost", pattern: "Order.Placed" }] });
    }
    const kernel = await start();
    const client = await kernel.connect();
    await client.command("Shop.Order", { price: 1 });
    await client.close();
    await untilStatus("Order.Placed", "pending");
    const [event] = (await json("ls", "events", "--topic", "Order.Placed")) as { id: number; error: string }[];
    expect(event?.error).toBe("waits for ghost on Order.Placed, which is not running");
    const doctor = await millrace("doctor");
    expect([doctor.code, doctor.stdout]).toEqual([1, expect.stringMatching(/ghost on Order.Placed \(1 events wait\)/)]);
    const names = (await json("consumers")) as { name: string; leases: number[] }[];
    const running = names.find(({ name }) => name !== "ghost")!;
    expect(running.leases).toHaveLength(1);
    expect(await millrace("consumers", "remove", running.name)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("is running, so it stays"),
    });
    if (where !== "a running kernel") await kernel.stop();
    expect((await millrace("why", String(event!.id))).stdout).toContain("waits for ghost, which is not running");
    expect((await millrace("consumers")).stdout).toMatch(/ghost +Order.Placed +not running +1/);
    expect(await millrace("consumers", "remove", "gost")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("did you mean ghost?"),
    });
    expect((await millrace("consumers", "remove", "ghost")).stdout).toBe(
      "ghost on Order.Placed removed; 1 event waited for it\n",
    );
    const audited = (await json("ls", "events", "--topic", "Sys.Audited")) as { message: { data: { by: string } } }[];
    expect(audited.map(({ message }) => message.data)).toMatchObject([
      { action: "remove-consumer", consumer: "ghost", topics: ["Order.Placed"], by: expect.stringMatching(/^.+@.+$/) },
    ]);
    if (where !== "a running kernel") await start();
    await untilStatus("Order.Placed", "done");
    const [done] = (await json("ls", "events", "--topic", "Order.Placed")) as { reason: string }[];
    expect(done?.reason).toBe("not handled by ghost: the consumer was removed");
    expect((await millrace("requeue", String(event!.id), "--consumer", "ghost")).stderr).toContain(
      "ghost is no consumer of Order.Placed",
    );
    expect((await millrace("requeue", String(event!.id), "--consumer", running.name)).stdout).toBe("1 put back\n");
    expect((await millrace("consumers", "rename")).code).toBe(2);
  },
);
