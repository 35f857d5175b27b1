/** Webhooks of other services: signatures, repetitions and refusals. */
import { createHmac } from "node:crypto";
import { describe, expect, test } from "vitest";
import { type IncomingWebhook, serveHttp } from "../../src/http/index.ts";
import { standardSignature, verifierOf, type WebhookFormat } from "../../src/http/webhook-signature.ts";
import { WEBHOOK_SIGNATURES_MAX } from "../../src/limits.ts";
import { contentId } from "../../src/message/content-id.ts";
import { STORES, type StoreName } from "../app/app-setup.ts";
import { serve } from "./http-setup.ts";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const payments: IncomingWebhook = { name: "payments", event: "Payment.Received", verify: "standard", secret: SECRET };

async function opened(hooks: readonly IncomingWebhook[] = [payments], store: StoreName = "memory") {
  const { server, kernel } = await serve({ webhooks: hooks }, store);
  const post = (name: string, body: string, headers: Record<string, string>) =>
    fetch(`${server.url}/hooks/${name}`, { method: "POST", body, headers });
  const events = async () => {
    const { rows } = (await kernel.kernel.query("Kernel.Journal", { filter: "type:Payment.Received" })) as never as {
      rows: { message: { data: unknown; metadata: { principal?: string } } }[];
    };
    return rows.map(({ message }) => message.data);
  };
  return { post, events, kernel, url: server.url };
}

async function signed(id: string, body: string, { secret = SECRET, atMs = Date.now() } = {}) {
  const atS = Math.floor(atMs / 1_000);
  return {
    "webhook-id": id,
    "webhook-timestamp": String(atS),
    "webhook-signature": await standardSignature(secret, id, atS, body),
  };
}

describe.for(STORES)("Standard Webhooks, %s", (store) => {
  test("[W28] a webhook with a valid signature is one event, and its repetition none", async () => {
    const { post, events } = await opened([payments], store);
    const body = '{"amount": 30}';
    const first = await post("payments", body, await signed("msg_1", body));
    expect(first.status).toBe(202);
    const again = await post("payments", body, await signed("msg_1", body, { atMs: Date.now() - 60_000 }));
    expect([again.status, await again.json()]).toEqual([202, await first.json()]);
    expect((await post("payments", body, await signed("msg_2", body))).status).toBe(202);
    expect(await events()).toEqual([{ amount: 30 }, { amount: 30 }]);
  });

  test("[W28] a repetition with another body is the first event, and leaves no second one", async () => {
    const { post, events } = await opened([payments], store);
    const [body, other] = ['{"amount": 30}', '{"amount": 30, "pending": 1}'];
    const first = await post("payments", body, await signed("msg_1", body));
    const again = await post("payments", other, await signed("msg_1", other));
    expect([again.status, await again.json()]).toEqual([202, await first.json()]);
    expect(await events()).toEqual([{ amount: 30 }]);
  });

  test("[W28] a webhook whose id was taken by an event of another type is refused, not lost in silence", async () => {
    const { post, events, kernel } = await opened([payments], store);
    const metadata = { id: contentId(["hook", "payments", "msg_1"]), timestamp: Date.now() };
    const data = { type: "Other.Event", data: null };
    await kernel.kernel.loop.request({ kind: "command", type: "Journal.Publish", data, metadata });
    const body = '{"amount": 30}';
    const refused = await post("payments", body, await signed("msg_1", body));
    expect([refused.status, await refused.json()]).toMatchObject([422, { reason: "ID_REUSED" }]);
    expect(await events()).toEqual([]);
  });

  test("[W28] a bad signature, time, body, id or name gives an error and no event", async () => {
    const { post, events } = await opened([payments], store);
    const body = '{"amount": 30}';
    const good = await signed("msg_1", body);
    const bad: Record<string, string>[] = [
      {},
      { ...good, "webhook-signature": "v1,AAAA" },
      { ...good, "webhook-signature": "v1,%%%" },
      { ...good, "webhook-signature": good["webhook-signature"].slice(3) },
      { ...good, "webhook-id": "msg_2" },
      { ...good, "webhook-timestamp": String(Number(good["webhook-timestamp"]) + 1) },
      await signed("msg_1", body, { secret: "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" }),
      await signed("msg_1", body, { atMs: Date.now() - 6 * 60_000 }),
      await signed("msg_1", body, { atMs: Date.now() + 6 * 60_000 }),
    ];
    for (const headers of bad) expect((await post("payments", body, headers)).status).toBe(401);
    expect((await post("payments", '{"amount": 31}', good)).status).toBe(401);
    expect((await post("nothing", body, good)).status).toBe(404);
    const broken = '{"amount": ';
    expect((await post("payments", broken, await signed("msg_3", broken))).status).toBe(400);
    expect((await post("payments", " ".repeat(2_000_000), good)).status).toBe(413);
    expect(await events()).toEqual([]);
  });
});

describe("formats", () => {
  test("[W28] the signature of Standard Webhooks agrees with the example of its documentation", async () => {
    const signature = await standardSignature(
      SECRET,
      "msg_p5jXN8AQM9LWM0D4loKWxJek",
      1_614_265_330,
      '{"test": 2432232314}',
    );
    expect(signature).toBe("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
  });

  test("[W28] the signature of GitHub agrees with the example of its documentation", async () => {
    const verify = verifierOf("github", ["It's a Secret to Everybody"]);
    const headers = new Headers({
      "x-github-delivery": "d1",
      "x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
    });
    const body = new TextEncoder().encode("Hello, World!");
    expect(await verify({ headers, body, nowMs: 0 })).toBe("d1");
    expect(await verify({ headers, body: new TextEncoder().encode("Hello, World?"), nowMs: 0 })).toBeUndefined();
  });

  test("[W28] an event of Stripe has the id of its body, and an old secret is valid beside the new one", async () => {
    const atS = 1_700_000_000;
    const text = '{"id": "evt_1"}';
    const v1 = createHmac("sha256", "old").update(`${atS}.${text}`).digest("hex");
    const headers = new Headers({ "stripe-signature": `t=${atS},v0=00,v1=${v1}` });
    const received = { headers, body: new TextEncoder().encode(text), nowMs: atS * 1_000 };
    expect(await verifierOf("stripe", ["new", "old"])(received)).toBe("evt_1");
    expect(await verifierOf("stripe", ["new"])(received)).toBeUndefined();
    expect(await verifierOf("stripe", ["old"])({ ...received, nowMs: atS * 1_000 + 301_000 })).toBeUndefined();
  });

  test("[W404] of a header with signatures only the first parts are read", async () => {
    const atS = 1_700_000_000;
    const text = '{"id": "evt_1"}';
    const v1 = createHmac("sha256", "secret").update(`${atS}.${text}`).digest("hex");
    const own = await standardSignature(SECRET, "msg_1", atS, text);
    const wrong = (count: number) => Array.from({ length: count }, () => "v1=00").join(",");
    const idOf = (format: WebhookFormat, secret: string, headers: Record<string, string>) =>
      verifierOf(format, [secret])({
        ...{ headers: new Headers(headers), body: new TextEncoder().encode(text), nowMs: atS * 1_000 },
      });
    for (const [place, isRead] of [
      [WEBHOOK_SIGNATURES_MAX, true],
      [WEBHOOK_SIGNATURES_MAX + 1, false],
    ] as const) {
      const stripe = { "stripe-signature": `t=${atS},${wrong(place - 2)},v1=${v1}` };
      expect(await idOf("stripe", "secret", stripe), `stripe, ${place}`).toBe(isRead ? "evt_1" : undefined);
      const standard = {
        ...{ "webhook-id": "msg_1", "webhook-timestamp": String(atS) },
        "webhook-signature": `${"v1,AAAA ".repeat(place - 1)}${own}`,
      };
      expect(await idOf("standard", SECRET, standard), `standard, ${place}`).toBe(isRead ? "msg_1" : undefined);
    }
  });

  test("[W28] a function checks webhooks of any other service, and gives the id", async () => {
    const verify: IncomingWebhook["verify"] = ({ headers }) => headers.get("x-key") ?? undefined;
    const { post, events } = await opened([{ name: "mine", event: "Payment.Received", verify }]);
    expect((await post("mine", "1", { "x-key": "a" })).status).toBe(202);
    expect((await post("mine", "1", { "x-key": "a" })).status).toBe(202);
    expect((await post("mine", "1", {})).status).toBe(401);
    expect(await events()).toEqual([1]);
  });
});

test("[W28] a bad definition is refused when the server starts, with a remedy", async () => {
  const { kernel } = await opened();
  const bad: [object, RegExp][] = [
    [{ ...payments, secret: undefined }, /is it in the environment/],
    [{ ...payments, secret: "plain" }, /whsec_/],
    [{ ...payments, name: "A b" }, /small letters/],
    [{ ...payments, event: "payment" }, /type of events/],
    [{ ...payments, event: "Sys.Stopped" }, /type of events/],
    [{ ...payments, verify: "paypal" }, /standard, github, stripe or a function/],
    [{ ...payments, secrets: ["a"] }, /secret/],
  ];
  for (const [hook, text] of bad)
    await expect(serveHttp(kernel, { port: 0, webhooks: [hook as IncomingWebhook] })).rejects.toThrow(text);
  await expect(serveHttp(kernel, { port: 0, webhooks: [payments, payments] })).rejects.toThrow(/two are called/);
});
