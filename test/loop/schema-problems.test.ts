/** Texts of a 422: every problem, and those of each alternative of a union. */

import { z } from "zod";
import { describe, expect, test } from "#test";
import { capability } from "../../src/loop/define-capability.ts";
import { checkMessage } from "../../src/message/envelope.ts";
import type { ErrorData } from "../../src/message/error-data.ts";
import type { Json } from "../../src/message/json.ts";
import { command, setup } from "./loop-setup.ts";

const address = z.union([z.object({ street: z.string() }), z.object({ box: z.number() })]);

async function refused(input: z.ZodType, data: Json): Promise<ErrorData> {
  const shop = capability({ description: "shop", commands: { "Shop.Order": { input, handle: () => null } } });
  const { loop, client, settle } = await setup({ shop });
  const one = client();
  loop.receive(command("Shop.Order", "c", data), one);
  await settle();
  const answer = one.received[0]?.data as ErrorData;
  expect(answer.code).toBe(422);
  return answer;
}

async function refusal(input: z.ZodType, data: Json): Promise<string> {
  return (await refused(input, data)).message;
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

  test("[M44] data.issues has every problem with its path", async () => {
    const order = z.object({ price: z.number(), tags: z.array(z.string()) });
    const { data } = await refused(order, { price: "x", tags: ["a", 2] });
    const { issues } = data as { issues: { path: unknown[]; message: string }[] };
    expect(issues.map(({ path }) => path)).toEqual([
      ["data", "price"],
      ["data", "tags", 1],
    ]);
    for (const { message } of issues) expect(message).toContain("expected");
  });

  test("[M44] issues beyond the bound are counted, and the answer stays a valid message", async () => {
    const many = await refused(
      z.array(z.string()),
      Array.from({ length: 1_000 }, (_, n) => n),
    );
    expect((many.data as { issues: unknown[] }).issues.length).toBe(256);
    expect(many.data).toMatchObject({ more: 744 });
    const long = "ü".repeat(20_000);
    const shape = z.record(z.string(), z.string());
    const wide = await refused(shape, { [`a${long}`]: 1, [`b${long}`]: 2, [`c${long}`]: 3 });
    const { issues, more } = wide.data as { issues: unknown[]; more: number };
    expect(issues.length + (more ?? 0)).toBe(3);
    const metadata = { id: "m2", timestamp: 1, causation: "m1" };
    expect(checkMessage({ kind: "error", type: "A.B", data: wide as unknown as Json, metadata }).kind).toBe("accepted");
  });
});
