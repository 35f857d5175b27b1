/** The listeners of errors in a space without a kernel. */
import { describe, expect, test } from "#test";
import type { SpaceOptions } from "../../src/cells/base-space.ts";
import { Space } from "../../src/cells/space.ts";
import { webPlatform } from "../../src/host/platform.ts";
import { simulatedHost } from "../../src/host/simulated-host.ts";
import { systemHost } from "../../src/host/system-host.ts";
import { Scheduler } from "../../src/scheduler/scheduler.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";

async function setup(options: Partial<SpaceOptions> = {}) {
  const complaints: string[] = [];
  const host = systemHost({
    ...webPlatform(),
    complain: (what, error) => complaints.push(`${what}: ${(error as Error).message}`),
  });
  const space = await Space.open({ store: memoryStore({ host }), host, name: "shop", ...options });
  const price = space.cell<number>("price");
  const tax = space.computed("tax", () => {
    if (price.get() === undefined) throw new Error("there is no price");
    return (price.get() ?? 0) / 5;
  });
  return { space, price, tax, complaints };
}

describe("a space without an error listener", () => {
  test("[R19] [R12] tells the host of a computed value that throws, once for each failure, and the value recovers", async () => {
    const { space, price, tax, complaints } = await setup();
    await using _ = space;
    await expect(tax.pull()).rejects.toThrow("there is no price");
    expect(tax.error).toEqual(new Error("there is no price"));
    await expect(tax.pull()).rejects.toThrow("there is no price");
    expect(complaints).toEqual(["tax failed: there is no price"]);
    await space.transact(() => price.set(10));
    expect(await tax.pull()).toBe(2);
    await space.transact(() => price.delete());
    await expect(tax.pull()).rejects.toThrow("there is no price");
    expect(complaints).toEqual(["tax failed: there is no price", "tax failed: there is no price"]);
  });

  test("[R19] makes it the error of a step in a simulation", async () => {
    const host = simulatedHost(1);
    const space = await Space.open({ store: memoryStore({ host }), host, name: "shop" });
    space.effect(() => {
      throw new Error("of the effect");
    });
    await expect(host.advance(0)).rejects.toThrow("of the effect");
  });

  test("[R19] does not tell the host of a send that failed: the sender has its outcome", async () => {
    const { space, complaints } = await setup();
    await using _ = space;
    const orders = space.stream<number>("orders");
    orders.handle(() => {
      throw new Error("sold out");
    });
    expect(await orders.send(1).outcome).toMatchObject({ kind: "failed", message: "sold out" });
    expect(complaints).toEqual([]);
  });
});

describe("a space with a listener", () => {
  test("[R19] an error listener gets the errors of a space, and the host gets none", async () => {
    const heard: unknown[] = [];
    const { space, tax, complaints } = await setup({ onError: (error, node) => heard.push([node?.id, error]) });
    await using _ = space;
    await expect(tax.pull()).rejects.toThrow("there is no price");
    expect(heard).toEqual([["tax", new Error("there is no price")]]);
    expect(complaints).toEqual([]);
  });

  test("[R19] a closed space reports no more errors of its scheduler", async () => {
    const heard: unknown[] = [];
    using scheduler = new Scheduler();
    const { space } = await setup({ scheduler, onError: (error) => heard.push(error) });
    await space.close();
    scheduler.onError(() => undefined);
    scheduler.parts.introspection.report(new Error("later"));
    expect(heard).toEqual([]);
  });
});
