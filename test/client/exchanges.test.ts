/** The types of a client that knows its app: checked by the compiler, and by a kernel that answers accordingly. */
import { join } from "node:path";
import { describe, expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { Client } from "../../src/client/client.ts";
import { Kernel } from "../../src/kernel/kernel.ts";
import type { KernelParts } from "../../src/kernel/kernel-options.ts";
import type { Capability } from "../../src/loop/capability.ts";
import { capability, handler } from "../../src/loop/define-capability.ts";
import type { ExchangesOf } from "../../src/loop/exchanges.ts";
import { transactional } from "../../src/loop/transactional.ts";
import type { Json } from "../../src/message/json.ts";
import { memoryStore } from "../../src/store/memory/memory-store.ts";
import { scratchFolder } from "../repo/program.ts";

const Order = z.object({ item: z.string(), note: z.string().optional() });
const written: Capability = capability({ description: "untyped" });

const app = ({ space }: KernelParts) => ({
  written,
  shop: transactional({
    space,
    description: "takes orders",
    commands: {
      "Shop.Order": {
        input: Order,
        output: z.object({ ordered: z.string() }),
        handle: ({ item, note }) => ({ ordered: note === undefined ? item : `${item}, ${note}` }),
      },
    },
    queries: { "Shop.Anything": { handle: (data) => data } },
  }),
  clock: capability({
    description: "has the year",
    queries: { "Clock.Year": { input: z.null(), output: z.number(), handle: () => 2026 } },
  }),
});
type App = ExchangesOf<typeof app>;

describe("a client of an app", () => {
  test("[K55] a typed client has the input and output types of the schemas of its capabilities", async () => {
    expectTypeOf<keyof App>().toEqualTypeOf<"Shop.Order" | "Shop.Anything" | "Clock.Year">();
    expectTypeOf<App["Shop.Order"]["input"]>().toEqualTypeOf<{ item: string; note?: string | undefined }>();
    expectTypeOf<App["Shop.Anything"]>().toEqualTypeOf<{ readonly input: Json; readonly output: Json }>();
    const path = join(scratchFolder(), "kernel.sock");
    await using _kernel = await Kernel.open({ store: memoryStore(), capabilities: app, socketPath: path });
    await using client = await Client.connect<App>({ path });

    const { ordered } = await client.command("Shop.Order", { item: "tea" });
    expectTypeOf(ordered).toEqualTypeOf<string>();
    const year = await client.query("Clock.Year", null);
    expectTypeOf(year).toEqualTypeOf<number>();
    expect([ordered, year, await client.query("Shop.Anything", [1])]).toEqual(["tea", 2026, [1]]);
    // @ts-expect-error: an item is a text.
    await expect(client.command("Shop.Order", { item: 1 })).rejects.toThrow("data.item");
    // @ts-expect-error: nothing of the app has this type.
    await expect(client.query("Clock.Month", null)).rejects.toThrow("Clock.Month");
  });

  test("[K55] a field with a schema default may be omitted by the client, and is present for the handler", async () => {
    const Brew = z.object({ leaf: z.string(), cups: z.number().default(2), hot: z.boolean().default(true) });
    const kettle = ({ space }: KernelParts) => ({
      kettle: capability({
        description: "brews",
        commands: {
          "Kettle.Brew": {
            input: Brew,
            output: z.object({ cups: z.number() }),
            handle: (brew) => {
              expectTypeOf(brew).toEqualTypeOf<{ leaf: string; cups: number; hot: boolean }>();
              return { cups: brew.cups };
            },
          },
          "Kettle.Made": handler({
            input: Brew,
            output: z.object({ cups: z.number() }),
            handle: ({ cups }) => ({ cups }),
          }),
        },
        queries: {
          "Kettle.Length": { input: z.string().transform((text) => text.length), handle: (length) => length },
        },
      }),
      pot: transactional({
        space,
        description: "keeps",
        commands: { "Pot.Fill": { input: Brew, handle: ({ cups }) => cups } },
        queries: { "Pot.Ask": { input: Brew, handle: ({ hot }) => hot } },
      }),
    });
    type Kettle = ExchangesOf<typeof kettle>;
    type Sent = { leaf: string; cups?: number | undefined; hot?: boolean | undefined };
    expectTypeOf<Kettle["Kettle.Brew"]["input"]>().toEqualTypeOf<Sent>();
    expectTypeOf<Kettle["Kettle.Made"]["input"]>().toEqualTypeOf<Sent>();
    expectTypeOf<Kettle["Pot.Fill"]["input"]>().toEqualTypeOf<Sent>();
    expectTypeOf<Kettle["Pot.Ask"]["input"]>().toEqualTypeOf<Sent>();
    expectTypeOf<Kettle["Kettle.Length"]["input"]>().toEqualTypeOf<string>();
    expectTypeOf<Kettle["Kettle.Brew"]["output"]>().toEqualTypeOf<{ cups: number }>();
    const path = join(scratchFolder(), "kernel.sock");
    await using _kernel = await Kernel.open({ store: memoryStore(), capabilities: kettle, socketPath: path });
    await using client = await Client.connect<Kettle>({ path });
    expect([
      await client.command("Kettle.Brew", { leaf: "mint" }),
      await client.command("Kettle.Made", { leaf: "mint", cups: 3 }),
      await client.query("Kettle.Length", "mint"),
      await client.command("Pot.Fill", { leaf: "mint" }),
      await client.query("Pot.Ask", { leaf: "mint" }),
    ]).toEqual([{ cups: 2 }, { cups: 3 }, 4, 2, true]);
    // @ts-expect-error: a leaf is not filled in.
    await expect(client.command("Kettle.Brew", { cups: 1 })).rejects.toThrow("data.leaf");
  });

  test("[K55] one capability, several by name and a promise of them have the same types", () => {
    type Made = ReturnType<typeof app>;
    expectTypeOf<ExchangesOf<Made>>().toEqualTypeOf<App>();
    expectTypeOf<ExchangesOf<() => Promise<Made>>>().toEqualTypeOf<App>();
    expectTypeOf<keyof ExchangesOf<Made["clock"]>>().toEqualTypeOf<"Clock.Year">();
    expectTypeOf<keyof ExchangesOf<Capability>>().toEqualTypeOf<never>();
  });
});
