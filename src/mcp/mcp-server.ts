/**
 * A kernel for agents, by the Model Context Protocol: exposed types are tools, views are resources. SPEC: W30-W35.
 *
 *     tools/call -> message -> AgentKernel.request -> result
 *                     └ with the tasks extension: Journal.Send, then a task whose id is that of the command
 *
 * A server has no state between two calls: keys, answers and tasks are ids and receipts of the kernel.
 */
import { type CallToolResult, type ClientCapabilities, Server, type ServerContext } from "@modelcontextprotocol/server";
import { HISTORY_KEPT_MS, MCP_TASK_POLL_MS, MCP_TASK_WAIT_MS } from "../limits.ts";
import { contentId } from "../message/content-id.ts";
import { ID_LENGTH_MAX, type Message } from "../message/envelope.ts";
import { type ErrorData, Failure, failureFrom, isFailure } from "../message/error-data.ts";
import { idFrom, timeInId } from "../message/id-time.ts";
import { isJsonObject, type Json, type JsonObject } from "../message/json.ts";
import { commandMessage, queryMessage } from "../message/lineage.ts";
import type { AgentKernel, AgentType } from "./agent-kernel.ts";
import { resourceQuery, resources, resourceTemplates } from "./resources.ts";
import {
  callOf,
  exposedTypes,
  GENERAL,
  structured,
  type ToolCall,
  toolOf,
  toolsOf,
  typeNamed,
  typesWith,
} from "./tools.ts";

export interface McpOptions {
  /** Patterns of the types that agents can call: `["Tasks.*"]`. */
  readonly expose: readonly string[];
}

/** The version of the interface to agents, not of the package. */
const PROTOCOL_VERSION = "1";
const TASKS = "io.modelcontextprotocol/tasks";
const CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities";
/** Errors of the protocol itself (JSON-RPC). */
const INVALID_PARAMS = -32602;

/** An answer of `Kernel.Request`. */
interface RequestStatus {
  readonly state: "running" | "done" | "failed" | "unknown" | "forgotten" | "erased";
  readonly type?: string;
  readonly answer?: Json;
  readonly error?: ErrorData;
  readonly principal?: string;
}

/** A server for one agent; `kernel` sends as this agent. */
export function mcpServer(kernel: AgentKernel, options: McpOptions): Server {
  const server = new Server(
    { name: "millrace", title: "Millrace kernel", version: PROTOCOL_VERSION },
    { capabilities: { tools: {}, resources: {}, extensions: { [TASKS]: {} } } },
  );
  const agent = new Agent(kernel, options);
  server.setRequestHandler("tools/list", async (_, { mcpReq }) => ({
    tools: toolsOf(await agent.types(mcpReq.signal)),
  }));
  server.setRequestHandler("tools/call", ({ params }, context) => agent.call(params.name, params.arguments, context));
  server.setRequestHandler("resources/list", () => ({ resources: resources() }));
  server.setRequestHandler("resources/templates/list", () => ({ resourceTemplates: resourceTemplates() }));
  server.setRequestHandler("resources/read", ({ params }, { mcpReq }) => agent.read(params.uri, mcpReq.signal));
  const params = taskParams;
  server.setRequestHandler("tasks/get", { params }, ({ taskId }, { mcpReq }) => agent.task(taskId, mcpReq.signal));
  server.setRequestHandler("tasks/cancel", { params }, ({ taskId }, { mcpReq }) => agent.noted(taskId, mcpReq.signal));
  server.setRequestHandler("tasks/update", { params }, ({ taskId }, { mcpReq }) => agent.noted(taskId, mcpReq.signal));
  return server;
}

class Agent {
  readonly #kernel: AgentKernel;
  readonly #options: McpOptions;

  constructor(kernel: AgentKernel, options: McpOptions) {
    this.#kernel = kernel;
    this.#options = options;
  }

  async types(signal: AbortSignal): Promise<AgentType[]> {
    const { types } = (await this.#view("Syscall.Describe", null, signal)) as unknown as {
      types: readonly AgentType[];
    };
    return exposedTypes(types, this.#options.expose);
  }

  /** Failures are results with a text for the model, which may mend its call. */
  async call(name: string, given: unknown, context: ServerContext): Promise<CallToolResult> {
    try {
      const args = (given ?? {}) as JsonObject;
      const types = await this.types(context.mcpReq.signal);
      if (types.some(({ type }) => toolOf(typeNamed(types, type)).name === name))
        return await this.#send(typeNamed(types, name), args, context);
      switch (name) {
        case GENERAL.find:
          return found(typesWith(types, textOf(args, "text")));
        case GENERAL.describe:
          return content(toolOf(typeNamed(types, textOf(args, "type"))) as unknown as JsonObject);
        case GENERAL.call: {
          const inner = args["arguments"] ?? {};
          if (!isJsonObject(inner))
            throw new Failure(400, "`arguments` takes an object; describe_type shows its schema");
          return await this.#send(typeNamed(types, textOf(args, "type")), inner, context);
        }
        default:
          typeNamed(types, name);
          throw new Failure(404, `there is no tool ${name}`);
      }
    } catch (error) {
      if (!isFailure(error)) throw error;
      return failed(error);
    }
  }

  async #send(described: AgentType, args: JsonObject, context: ServerContext): Promise<CallToolResult> {
    const { type, kind, output } = described;
    const { signal } = context.mcpReq;
    this.#kernel.allow(kind, type);
    const call = callOf(described, args);
    if (kind === "query") {
      const answer = await this.#kernel.request(
        this.#asAgent(queryMessage(this.#kernel.mint, type, call.data), context),
        signal,
      );
      return resultOf(answer, output);
    }
    const message = this.#commandOf(type, call, context);
    if (takesTasks(context)) return await this.#sendAsTask(message, described, context);
    return resultOf(await this.#kernel.request(message, signal), output, message.metadata.id);
  }

  /** A key makes the id, so that a repeated call gets the first answer. */
  #commandOf(type: string, { data, key: argument }: ToolCall, context: ServerContext): Message {
    const made = this.#asAgent(commandMessage(this.#kernel.mint, type, data), context);
    const key = argument ?? keyOf(context);
    if (key === undefined) return made;
    if (key === "" || key.length > ID_LENGTH_MAX)
      throw new Failure(400, `idempotencyKey takes 1 to ${ID_LENGTH_MAX} characters`);
    const hash = contentId(["mcp", this.#kernel.principal, type, key]);
    const madeAt = timeInId(key);
    const id = madeAt === undefined ? hash : idFrom(madeAt, hash);
    return { ...made, metadata: { ...made.metadata, id } };
  }

  #asAgent(message: Message, { mcpReq }: ServerContext): Message {
    const { traceparent, tracestate } = (mcpReq._meta ?? {}) as Record<string, unknown>;
    const trace = {
      ...(typeof traceparent === "string" ? { traceparent } : {}),
      ...(typeof tracestate === "string" ? { tracestate } : {}),
    };
    return { ...message, metadata: { ...message.metadata, ...trace, principal: this.#kernel.principal } };
  }

  // Tasks
  // -------------------------------------------------------------------------------------------------

  /** The command is a row of the journal before its task exists, so that both outlive the kernel's process. */
  async #sendAsTask(message: Message, described: AgentType, context: ServerContext): Promise<CallToolResult> {
    const { signal } = context.mcpReq;
    const { type, data, metadata } = message;
    const sent = await this.#kernel.request(
      { kind: "command", type: "Journal.Send", data: { type, data }, metadata },
      signal,
    );
    if (sent.kind === "error") return failed(failureFrom(sent.data as ErrorData));
    const { id } = sent.data as { id: string };
    for (let waitedMs = 0, pauseMs = 5; waitedMs < MCP_TASK_WAIT_MS; waitedMs += pauseMs, pauseMs *= 2) {
      const status = await this.#statusOf(id, signal);
      if (status.state !== "running") return ended(status, described.output, id);
      await this.#kernel.pause(Math.min(pauseMs, MCP_TASK_WAIT_MS - waitedMs));
    }
    const task: unknown = { resultType: "task", ...taskState(id, this.#kernel.mint.now()), status: "working" };
    return task as CallToolResult;
  }

  async task(id: string, signal: AbortSignal): Promise<JsonObject> {
    const status = await this.#own(id, signal);
    const state = taskState(id, this.#kernel.mint.now());
    if (status.state === "running") return { ...state, status: "working" };
    const { output = null } = (await this.types(signal)).find(({ type }) => type === status.type) ?? {};
    const result = { resultType: "complete", ...ended(status, output, id) } as unknown as JsonObject;
    return { ...state, status: "completed", result };
  }

  /** Tasks need no input, and a command in the journal runs to its end. */
  async noted(id: string, signal: AbortSignal): Promise<JsonObject> {
    await this.#own(id, signal);
    return {};
  }

  async #own(id: string, signal: AbortSignal): Promise<RequestStatus> {
    const status = await this.#statusOf(id, signal);
    if (status.state === "unknown" || status.principal !== this.#kernel.principal)
      throw Object.assign(new Error(`no task has the id ${id}`), { code: INVALID_PARAMS });
    return status;
  }

  async #statusOf(id: string, signal: AbortSignal): Promise<RequestStatus> {
    return (await this.#view("Kernel.Request", { id }, signal)) as unknown as RequestStatus;
  }

  // Resources
  // -------------------------------------------------------------------------------------------------

  async read(uri: string, signal: AbortSignal) {
    const { type, data } = resourceQuery(uri);
    this.#kernel.allow("query", type);
    const view = await this.#view(type, data, signal);
    const shown = type === "Syscall.Describe" ? await this.types(signal) : view;
    return { contents: [{ uri, mimeType: "application/json", text: JSON.stringify(shown) }] };
  }

  async #view(type: string, data: Json, signal: AbortSignal): Promise<Json> {
    const answer = await this.#kernel.request(queryMessage(this.#kernel.mint, type, data), signal);
    if (answer.kind === "error") throw failureFrom(answer.data as ErrorData);
    return answer.data;
  }
}

// Results
// ---------------------------------------------------------------------------------------------------

function resultOf(answer: Message, output: Json, id?: string): CallToolResult {
  if (answer.kind === "error") return failed(failureFrom(answer.data as ErrorData), id);
  return content(structured(output, answer.data), id);
}

function ended({ state, answer, error }: RequestStatus, output: Json, id: string): CallToolResult {
  if (state === "done") return content(structured(output, answer ?? null), id);
  if (state === "failed") return failed(failureFrom(error ?? { code: 500, message: "failed" }), id);
  return failed(new Failure(410, `the answer is no longer kept (${state})`), id);
}

function content(value: JsonObject, id?: string): CallToolResult {
  return { content: [{ type: "text", text: JSON.stringify(value) }], structuredContent: value, ...about(id) };
}

function found(types: readonly AgentType[]): CallToolResult {
  return content({ types: types.map(({ type, kind, description }) => ({ type, kind, description })) });
}

function failed({ code, reason, message, data, retryable }: Failure, id?: string): CallToolResult {
  const lines = [
    `error ${code}${reason === undefined ? "" : ` ${reason}`}: ${message}`,
    ...(data === undefined || data === null ? [] : [JSON.stringify(data)]),
    retryable ? "The same call may succeed later; repeat it with the same idempotencyKey." : "",
  ];
  return { content: [{ type: "text", text: lines.filter(Boolean).join("\n") }], isError: true, ...about(id) };
}

/** The request's id, under which `millrace://trace/{id}` and `millrace trace` show its consequences. */
function about(id: string | undefined): Pick<CallToolResult, "_meta"> {
  return id === undefined ? {} : { _meta: { "millrace/requestId": id, "millrace/trace": `millrace://trace/${id}` } };
}

function taskState(id: string, nowMs: number) {
  const createdAt = new Date(timeInId(id) ?? nowMs).toISOString();
  const lastUpdatedAt = new Date(nowMs).toISOString();
  return { taskId: id, createdAt, lastUpdatedAt, ttlMs: HISTORY_KEPT_MS, pollIntervalMs: MCP_TASK_POLL_MS };
}

function takesTasks({ mcpReq }: ServerContext): boolean {
  const envelope = mcpReq.envelope as { readonly [CLIENT_CAPABILITIES]?: ClientCapabilities } | undefined;
  return envelope?.[CLIENT_CAPABILITIES]?.extensions?.[TASKS] !== undefined;
}

/** From the header `Idempotency-Key`, or `idempotencyKey` in `_meta`. */
function keyOf({ mcpReq, http }: ServerContext): string | undefined {
  const inMeta = (mcpReq._meta as Record<string, unknown> | undefined)?.["idempotencyKey"];
  return typeof inMeta === "string" ? inMeta : (http?.req?.headers.get("idempotency-key") ?? undefined);
}

function textOf(args: JsonObject, name: string): string {
  const text = args[name];
  if (typeof text === "string") return text;
  throw new Failure(400, `\`${name}\` takes a text`);
}

/** The parameters of requests about tasks, as a Standard Schema. */
const taskParams = {
  "~standard": {
    version: 1,
    vendor: "millrace",
    validate: (value: unknown) => {
      const taskId = (value as { taskId?: unknown } | null)?.taskId;
      return typeof taskId === "string" ? { value: { taskId } } : { issues: [{ message: "taskId takes a text" }] };
    },
    types: undefined as unknown as { input: { taskId: string }; output: { taskId: string } },
  },
} as const;
