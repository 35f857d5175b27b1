/**
 * `millrace mcp`: the running kernel for one agent on standard input and output, over the kernel's socket. It goes on
 * over a restart of the kernel. SPEC: W30.
 */

import { pause } from "../host/pause.ts";
import { systemHost } from "../host/system-host.ts";
import { MCP_LINE_BYTES_MAX } from "../limits.ts";
import type { AgentKernel } from "../mcp/agent-kernel.ts";
import { exposeProblem } from "../mcp/tools.ts";
import { connectKernel } from "./connection.ts";
import { EXIT, type ExitCode, UsageError, type Verb, type VerbCall } from "./verb.ts";

export const mcp: Verb = {
  name: "mcp",
  usage: "--expose TYPES [--agent NAME]",
  summary: "serve the running kernel to an agent on standard input and output (Model Context Protocol)",
  example: "millrace mcp --expose 'Tasks.*,Notes.Add' --agent assistant",
  options: {
    expose: { type: "string", value: "TYPES", about: "types that the agent can call, by commas: Tasks.Add, Notes.*" },
    agent: {
      type: "string",
      value: "NAME",
      about: "the name of the agent in messages and in its keys; default: agent",
    },
  },
  wordsMax: 0,
  run,
};

/** An agent may wait this long for a command; it can give up by itself. */
const ANSWER_MS = 86_400_000;

async function run(call: VerbCall): Promise<ExitCode> {
  const { agent = "agent", expose: types } = call.options;
  if (typeof types !== "string") throw new UsageError("name the types that the agent can call: --expose 'Tasks.*'");
  const expose = exposedIn("expose", types);
  const [{ serveStdio, StdioServerTransport }, { mcpServer }] = await Promise.all([
    sdk(),
    import("../mcp/mcp-server.ts"),
  ]);
  await using client = await connectKernel(call);
  const host = systemHost();
  const kernel: AgentKernel = {
    mint: host,
    principal: String(agent),
    // The permissions of the socket's directory decide.
    allow: () => undefined,
    request: (message, signal) => client.request(message, { signal, timeoutMs: ANSWER_MS }),
    pause: (ms) => pause(host, ms),
  };
  const { stdin, stdout } = process;
  const transport = new StdioServerTransport(stdin, stdout, { maxBufferSize: MCP_LINE_BYTES_MAX });
  const ended = Promise.withResolvers<void>();
  let isOver = false;
  const server = serveStdio(() => mcpServer(kernel, { expose }), {
    transport,
    // The error that ends the connection is told below.
    onerror: (error) => host.microtask(() => isOver || call.terminal.complain(error.message)),
  });
  const closed = transport.onclose;
  transport.onclose = () => {
    isOver = true;
    ended.resolve();
    closed?.();
  };
  await ended.promise;
  await server.close();
  if (stdin.readableEnded || stdin.destroyed) return EXIT.ok;
  // A paused input would keep the process alive.
  stdin.destroy();
  call.terminal.complain(
    `ended before its input: a message has more than ${MCP_LINE_BYTES_MAX} bytes, or the output is closed; start it again, and send large data in parts`,
  );
  return EXIT.failed;
}

/** The patterns in an option. */
export function exposedIn(option: string, text: string): readonly string[] {
  const patterns = text.split(",").map((pattern) => pattern.trim());
  for (const pattern of patterns) {
    const problem = exposeProblem(pattern);
    if (problem !== undefined) throw new UsageError(`--${option}: ${problem}`);
  }
  return patterns;
}

/** The package is an optional dependency of those who serve agents. */
async function sdk(): Promise<typeof import("@modelcontextprotocol/server/stdio")> {
  try {
    return await import("@modelcontextprotocol/server/stdio");
  } catch {
    throw new UsageError("the package for agents is not installed; npm install @modelcontextprotocol/server");
  }
}
