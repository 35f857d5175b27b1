/** Metrics of a kernel: `Kernel.Metrics`, `/metrics`, and the headers that time a request. */
import { describe, expect, test } from "vitest";
import { DurationHistogram, HandlingMetrics } from "../../src/bus/handling-metrics.ts";
import { METRIC_SERIES_MAX } from "../../src/limits.ts";
import { addToken, serve } from "./http-setup.ts";

describe("the histogram of durations", () => {
  test("[W12] a quantile is never too small, and at most 12.5 % too large", () => {
    for (const ms of [0, 0.001, 0.007, 0.008, 0.1, 1, 3.7, 99, 1_234.567, 61_000, 3_600_000]) {
      const histogram = new DurationHistogram();
      histogram.add(ms);
      // A longer one, so that the bound is that of the bucket.
      histogram.add(4_000_000);
      const { p50Ms } = histogram.view();
      expect(p50Ms, `${ms}`).toBeGreaterThanOrEqual(ms);
      expect(p50Ms, `${ms}`).toBeLessThanOrEqual(ms * 1.125 + 0.001);
    }
  });

  test("[W12] the counts below each bound are exact for all durations below it", () => {
    const histogram = new DurationHistogram();
    const all = Array.from({ length: 500 }, (_, index) => index ** 2 / 50);
    for (const ms of all) histogram.add(ms);
    const { count, sumMs, maxMs, atMost } = histogram.view();
    expect(count).toBe(500);
    expect(maxMs).toBeCloseTo(499 ** 2 / 50, 2);
    expect(sumMs).toBeCloseTo(
      all.reduce((sum, ms) => sum + ms, 0),
      0,
    );
    for (const [boundMs, below] of atMost)
      expect(below, `${boundMs}`).toBe(all.filter((ms) => Math.round(ms * 1_000) < boundMs * 1_000).length);
  });

  test("[W12] further types are counted as other, so that names of clients cannot fill the memory", () => {
    const metrics = new HandlingMetrics();
    for (let index = 0; index < METRIC_SERIES_MAX + 10; index++)
      metrics.ended({ kind: "command", type: `Type.N${index}`, handler: "one" }, "done", 1, undefined);
    const view = metrics.view();
    expect(view).toHaveLength(METRIC_SERIES_MAX + 1);
    expect(view.at(-1)).toMatchObject({ type: "other", handler: "other", done: 10 });
  });
});

/** The value of a sample by its name and labels. */
function sample(text: string, start: string): number | undefined {
  const line = text.split("\n").find((one) => one.startsWith(start));
  return line === undefined ? undefined : Number(line.slice(line.lastIndexOf(" ")));
}

test("[W89] /metrics counts handlings by type and outcome, requests by route and status, and rows by status", async () => {
  const { ask, post } = await serve();
  for (let count = 0; count < 3; count++)
    expect((await post("/v1/commands/Shop.Order", { price: count })).status).toBe(200);
  expect((await post("/v1/commands/Shop.Order", { price: 101 })).status).toBe(409);
  expect((await ask("/v1/nowhere")).status).toBe(404);
  const response = await ask("/metrics");
  expect(response.headers.get("content-type")).toContain("version=0.0.4");
  const text = await response.text();
  const order = 'kind="command",type="Shop.Order",handler="shop"';
  expect(sample(text, `millrace_handlings_total{${order},outcome="done"}`)).toBe(3);
  expect(sample(text, `millrace_handlings_total{${order},outcome="refused"}`)).toBe(1);
  expect(sample(text, `millrace_handling_seconds_count{${order}}`)).toBe(4);
  expect(sample(text, `millrace_handling_seconds_bucket{${order},le="+Inf"}`)).toBe(4);
  expect(sample(text, `millrace_handling_seconds_sum{${order}}`)).toBeGreaterThan(0);
  expect(sample(text, 'millrace_http_requests_total{route="/v1/commands/:type",status="200"}')).toBe(3);
  expect(sample(text, 'millrace_http_requests_total{route="/v1/commands/:type",status="409"}')).toBe(1);
  expect(sample(text, 'millrace_journal_rows{status="failed"}')).toBe(0);
  expect(sample(text, 'millrace_mailbox_depth{actor="shop"}')).toBe(0);
  for (const line of text.trim().split("\n"))
    expect(line).toMatch(/^(?:# (?:HELP|TYPE) millrace_\w+ .+|millrace_\w+(?:\{(?:\w+="[^"\n]*",?)+\})? [\d.e+-]+)$/);
});

test("[W89] /metrics needs a token that may read", async () => {
  const { ask, token } = await serve();
  const authorization = `Bearer ${await token("sender", ["send"])}`;
  expect((await ask("/metrics", { headers: { authorization } })).status).toBe(403);
});

test("[W89] /metrics is refused to a token with a clearance, as Kernel.Metrics is", async () => {
  const { ask, kernel } = await serve();
  const authorization = `Bearer ${await addToken(kernel, "cleared", ["read"], ["alice"])}`;
  for (const path of ["/metrics", "/v1/queries/Kernel.Metrics?data=null"])
    expect((await ask(path, { headers: { authorization } })).status, path).toBe(403);
});

test("[W90] an answer tells the time in the queue and in the handler; a published event tells its journal id", async () => {
  const { post } = await serve();
  const answer = await post("/v1/commands/Shop.Order", { price: 5 });
  expect(answer.headers.get("server-timing")).toMatch(/^(?:queue;dur=[\d.]+, handle|total);dur=[\d.]+$/);
  const published = await post("/v1/events/Mail.Received", { from: "ann" });
  expect(Number(published.headers.get("millrace-journal-id"))).toBe(((await published.json()) as { id: number }).id);
});
