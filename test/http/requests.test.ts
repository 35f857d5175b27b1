/** Commands, queries and answers over HTTP, on both stores. */
import { describe, expect, test } from "vitest";
import { STORES } from "../app/app-setup.ts";
import { serve } from "./http-setup.ts";

describe.each(STORES)("requests over HTTP (%s)", (store) => {
  test("[W20] a command answers with the data of its reply, a query too", async () => {
    const { post, ask } = await serve({}, store);
    const ordered = await post("/v1/commands/Shop.Order", { price: 30 });
    expect([ordered.status, await ordered.json()]).toEqual([200, { orders: 1 }]);
    expect(ordered.headers.get("millrace-request-id")).toMatch(/^[0-9a-f-]{36}$/);
    const sum = await ask("/v1/queries/Shop.Sum");
    expect([sum.status, await sum.json()]).toEqual([200, 30]);
  });

  test("[W21] a repeated Idempotency-Key gets the first answer, and the command takes effect once", async () => {
    const { post, ask } = await serve({}, store);
    const key = { "idempotency-key": "order-17" };
    const first = await post("/v1/commands/Shop.Order", { price: 30 }, key);
    const again = await post("/v1/commands/Shop.Order", { price: 30 }, key);
    expect(await again.json()).toEqual(await first.json());
    expect(await (await ask("/v1/queries/Shop.Sum")).json()).toBe(30);
    const other = await post("/v1/commands/Shop.Order", { price: 40 }, key);
    expect([other.status, await other.json()]).toMatchObject([422, { reason: "ID_REUSED", code: 409 }]);
  });

  test("[W21] other data under a used key is ID_REUSED for respond-async and published events too", async () => {
    const { post } = await serve({}, store);
    for (const [path, headers] of [
      ["/v1/commands/Shop.Order", { "idempotency-key": "order-17", prefer: "respond-async" }],
      ["/v1/events/Mail.Received", { "idempotency-key": "mail-1" }],
    ] as const) {
      expect((await post(path, { price: 30 }, headers)).ok, path).toBe(true);
      const other = await post(path, { price: 40 }, headers);
      expect([other.status, await other.json()], path).toMatchObject([422, { reason: "ID_REUSED", code: 409 }]);
    }
  });

  test("[W61] an answer from a receipt says so in Idempotency-Replayed, and the first one does not", async () => {
    const { post } = await serve({}, store);
    const order = () => post("/v1/commands/Shop.Order", { price: 30 }, { "idempotency-key": "order-18" });
    const replayed = async () => (await order()).headers.get("idempotency-replayed");
    expect([await replayed(), await replayed()]).toEqual([null, "true"]);
  });

  test("[W21] the same key of two principals is two commands", async () => {
    const { post, ask, token } = await serve({}, store);
    const other = await token("other", ["send"]);
    const key = { "idempotency-key": "order-17" };
    await post("/v1/commands/Shop.Order", { price: 30 }, key);
    await post("/v1/commands/Shop.Order", { price: 40 }, { ...key, authorization: `Bearer ${other}` });
    expect(await (await ask("/v1/queries/Shop.Sum")).json()).toBe(70);
  });

  test("[W22] a refusal is a problem with reason and data", async () => {
    const { post } = await serve({}, store);
    const refused = await post("/v1/commands/Shop.Order", { price: 300 });
    expect(refused.headers.get("content-type")).toBe("application/problem+json");
    expect([refused.status, await refused.json()]).toMatchObject([
      409,
      { status: 409, reason: "TOO_DEAR", data: { most: 100 }, type: "/v1/problems/too-dear" },
    ]);
  });

  test("[W20] a command sent with respond-async is durable, and its answer is found by its address", async () => {
    const { post, ask } = await serve({}, store);
    const accepted = await post("/v1/commands/Shop.Order", { price: 30 }, { prefer: "respond-async" });
    expect(accepted.status).toBe(202);
    const address = accepted.headers.get("location") as string;
    const done = await ask(`${address}?wait=30`);
    expect([done.status, await done.json()]).toEqual([200, { orders: 1 }]);
  });

  test("[W20] the answer of a request is for the principal that sent it", async () => {
    const { post, ask, token } = await serve({}, store);
    const accepted = await post("/v1/commands/Shop.Order", { price: 30 }, { prefer: "respond-async" });
    const address = accepted.headers.get("location") as string;
    await ask(`${address}?wait=30`);
    const other = await token("other", ["read", "send"]);
    expect((await ask(address, { headers: { authorization: `Bearer ${other}` } })).status).toBe(404);
    expect((await ask("/v1/requests/unknown")).status).toBe(404);
  });
});

describe("requests over HTTP", () => {
  test("[W20] a query by GET has an ETag, and 304 for an unchanged answer", async () => {
    const { ask, post } = await serve();
    const first = await ask("/v1/queries/Shop.Sum");
    const etag = first.headers.get("etag") as string;
    expect((await ask("/v1/queries/Shop.Sum", { headers: { "if-none-match": etag } })).status).toBe(304);
    await post("/v1/commands/Shop.Order", { price: 1 });
    expect((await ask("/v1/queries/Shop.Sum", { headers: { "if-none-match": etag } })).status).toBe(200);
  });

  test.each([
    ["no such type", "/v1/commands/Shop.Nothing", "{}", 404],
    ["a name that is no type", "/v1/commands/shop", "{}", 404],
    ["malformed JSON", "/v1/commands/Shop.Order", "{", 400],
    ["deep JSON", "/v1/commands/Shop.Order", `${"[".repeat(200)}${"]".repeat(200)}`, 422],
    ["a large body", "/v1/commands/Shop.Order", `"${"x".repeat(1_100_000)}"`, 413],
    ["no route", "/v1/nothing", "{}", 404],
  ])("[W22] %s is one clear problem", async (_, path, body, status) => {
    const { ask } = await serve();
    const answer = await ask(path, { method: "POST", body, headers: { "content-type": "application/json" } });
    const problem = (await answer.json()) as { status: number; detail: string };
    expect([answer.status, problem.status]).toEqual([status, status]);
    expect(problem.detail.length).toBeGreaterThan(10);
  });

  test("[W23] a body of another type is refused with 415", async () => {
    const { ask } = await serve();
    const answer = await ask("/v1/commands/Shop.Order", { method: "POST", body: "price=3" });
    expect(answer.status).toBe(415);
  });
});
