/** What a 422 says: every problem, and those of each alternative of a union. */

import { z } from "zod";
import { describe, expect, test } from "#test";
import { capability } from "../../src/loop/define-capability.ts";
import type { Json } from "../../src/message/json.ts";
import { command, setup } from "./loop-setup.ts";

const address = z.union([z.object({ street: z.string() }), z.object({ box: z.number() })]);

async function refusal(input: z.ZodType, data: Json): Promise<string> {
  const shop = capability({ description: "shop", commands: { "Shop.Order": { input, handle: () => null } } });
  const { loop, client, settle } = await setup({ shop });
  const one = client();
  loop.receive(command("Shop.Order", "c", data), one);
  await settle();
  const { code, message } = (one.received[0]?.data ?? {}) as { code?: number; message?: string };
  expect(code).toBe(422);
  return message ?? "";
}

describe("problems of data", () => {
  test("[L71] every problem is named with its place", async () => {
    const order = z.object({ price: z.number(), name: z.string(), tags: z.array(z.string()) });
    const text = await refusal(order, { price: "x", name: 1, tags: ["a", 2] });
    expect(text.split("; ").map((problem) => problem.split(": ")[0])).toEqual([
      "data.price",
      "data.name",
      "data.tags.1",
    ]);
  });

  test("[L71] more than eight problems are counted", async () => {
    const text = await refusal(z.array(z.string()), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(text).toMatch(/; and 2 more$/);
  });

  test("[L71] a union names the problems with each alternative, at their places", async () => {
    const text = await refusal(z.object({ to: address }), { to: { street: 5 } });
    expect(text).toMatch(
      /^data\.to: fits none of 2 alternatives \(street: .*expected string.*; or box: .*expected number.*\)$/,
    );
    expect(text).not.toContain("Invalid input)");
  });
});
