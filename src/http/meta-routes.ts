/**
 * Health for load balancers, metrics, and the description of the types. SPEC: W20, W24.
 */
import type { Hono } from "hono";
import { KERNEL_REASONS } from "../message/reasons.ts";
import type { HttpEnv, HttpParts } from "./http-context.ts";
import { METRICS_TYPE, type Measured, metricsText } from "./metrics-text.ts";
import { type DescribedType, openApi } from "./openapi.ts";
import { requireScope } from "./principal.ts";

export function addMetaRoutes(app: Hono<HttpEnv>, parts: HttpParts): void {
  const { kernel } = parts;
  app.get("/livez", () => new Response("live\n"));
  app.get("/readyz", () => (parts.isDraining ? new Response("draining\n", { status: 503 }) : new Response("ready\n")));
  app.get("/openapi.json", async (context) => {
    requireScope(context.get("principal"), "read");
    const { types } = (await kernel.query("Syscall.Describe", null)) as unknown as { types: readonly DescribedType[] };
    return Response.json(openApi(types));
  });
  app.get("/metrics", async (context) => {
    requireScope(context.get("principal"), "read");
    const measured = (await kernel.query("Kernel.Metrics", null)) as never as Measured;
    const server = {
      requests: parts.requests.all,
      ...{ streams: parts.streams.size, webSockets: parts.webSockets.size },
    };
    return new Response(metricsText(measured, server), { headers: { "content-type": METRICS_TYPE } });
  });
  app.get("/v1/problems/:reason", (context) => {
    const reason = context.req.param("reason").toUpperCase().replaceAll("-", "_");
    const code = KERNEL_REASONS[reason as keyof typeof KERNEL_REASONS];
    if (code === undefined) return Response.json({ reason, origin: "an app of this kernel" });
    return Response.json({ reason, status: code, origin: "the kernel" });
  });
}
