/**
 * `/mcp`: the kernel for agents, over streamable HTTP. Each request is answered by a server of its own, so that an
 * agent does not notice a restart of the kernel. SPEC: W30.
 */
import type { McpHttpHandler } from "@modelcontextprotocol/server";
import type { Hono } from "hono";
import { pause } from "../host/pause.ts";
import { LINE_BYTES_MAX } from "../limits.ts";
import type { AgentKernel } from "../mcp/agent-kernel.ts";
import { exposeProblem } from "../mcp/tools.ts";
import { Failure } from "../message/error-data.ts";
import type { HttpExchanges } from "./exchanges.ts";
import type { HttpEnv, HttpParts } from "./http-context.ts";
import { actionOf, type Principal, requireScope } from "./principal.ts";

/** What agents see of a kernel. */
export interface McpRouteOptions {
  /** Types that agents can call: `["Tasks.*"]`. */
  readonly expose: readonly string[];
}

export function addMcpRoutes(
  app: Hono<HttpEnv>,
  parts: HttpParts,
  exchanges: HttpExchanges,
  options: McpRouteOptions,
): void {
  for (const pattern of options.expose) {
    const problem = exposeProblem(pattern);
    if (problem !== undefined) throw new TypeError(`httpApp: mcp.expose: ${problem}`);
  }
  let handler: Promise<McpHttpHandler> | undefined;
  const load = async () => {
    const [{ createMcpHandler }, { mcpServer }] = await Promise.all([sdk(), import("../mcp/mcp-server.ts")]);
    return createMcpHandler(
      ({ authInfo }) => mcpServer(agentOf(parts, exchanges, authInfo?.extra?.["principal"] as Principal), options),
      { maxRequestBodySize: LINE_BYTES_MAX },
    );
  };
  app.all("/mcp", async (context) => {
    handler ??= load();
    const principal = context.get("principal");
    const authInfo = { token: "", clientId: principal.name, scopes: [...principal.scopes], extra: { principal } };
    return (await handler).fetch(context.req.raw, { authInfo });
  });
}

/** The package is an optional dependency of those who serve agents. */
async function sdk(): Promise<typeof import("@modelcontextprotocol/server")> {
  try {
    return await import("@modelcontextprotocol/server");
  } catch (cause) {
    throw new Failure(503, "the package for agents is not installed; npm install @modelcontextprotocol/server", {
      retryable: false,
      cause,
    });
  }
}

function agentOf({ host }: HttpParts, exchanges: HttpExchanges, principal: Principal): AgentKernel {
  return {
    mint: host,
    principal: principal.name,
    allow: (kind, type) =>
      kind === "query" ? requireScope(principal, "read", type) : requireScope(principal, actionOf(type), type),
    request: async (message, signal) => {
      const answer = await exchanges.ask(exchanges.open(principal), message, { signal });
      if (answer === undefined) throw new Failure(499, "the agent no longer waits");
      return answer;
    },
    pause: (ms) => pause(host, ms, { keepAlive: false }),
  };
}
