/**
 * Types of a kernel as tools for agents: `Tasks.Add` is the tool `Tasks_Add`. SPEC: W31.
 *
 * The arguments of a tool are the data of its message. A schema of another form than an object stands under `data`.
 */
import type { Tool } from "@modelcontextprotocol/server";
import { MCP_TOOLS_MAX } from "../limits.ts";
import { Failure } from "../message/error-data.ts";
import { isJsonObject, type Json, type JsonObject } from "../message/json.ts";
import { nearWord } from "../message/near-word.ts";
import type { AgentType } from "./agent-kernel.ts";

/** The argument that names an attempt, in the schema of each tool for a command. */
export const KEY_ARGUMENT = "idempotencyKey";

const KEY_SCHEMA: JsonObject = {
  type: "string",
  description: "Repeat a call under the same key if its answer was lost: it takes effect once.",
};

/** A pattern of exposed types: a type, or the beginning of one with `*` at its end. */
const PATTERN = /^[A-Z][A-Za-z0-9]*(?:\.[A-Za-z0-9]*\*?|\*|\.[A-Z][A-Za-z0-9]*)$/;
/** Types of the kernel itself, which no pattern exposes. */
const OWN_TYPE = /^(?:Kernel|Syscall|Sys|Journal|Timer|Label)\./;

/** Why a text is no pattern of exposed types; undefined if it is one. */
export function exposeProblem(pattern: string): string | undefined {
  if (!PATTERN.test(pattern)) return `"${pattern}" names no types; use one like Tasks.Add or Tasks.*`;
  return OWN_TYPE.test(pattern) ? `"${pattern}" names types of the kernel, which agents cannot call` : undefined;
}

/** The types that agents can call. */
export function exposedTypes(types: readonly AgentType[], patterns: readonly string[]): AgentType[] {
  const isExposed = (type: string) =>
    patterns.some((pattern) => (pattern.endsWith("*") ? type.startsWith(pattern.slice(0, -1)) : type === pattern));
  return types.filter(({ type }) => !OWN_TYPE.test(type) && isExposed(type));
}

/**
 * The tools of these types. More than `MCP_TOOLS_MAX` would fill the context of a model: the rest is found and called
 * by three general tools.
 */
export function toolsOf(types: readonly AgentType[]): Tool[] {
  if (types.length <= MCP_TOOLS_MAX) return types.map(toolOf);
  return [...GENERAL_TOOLS, ...types.slice(0, MCP_TOOLS_MAX - GENERAL_TOOLS.length).map(toolOf)];
}

export function toolOf(described: AgentType): Tool {
  const { type, kind, description, output } = described;
  const isQuery = kind === "query";
  return {
    name: toolName(type),
    title: type,
    description: description === "" ? `${isQuery ? "Query" : "Command"} ${type}` : description,
    inputSchema: inputSchemaOf(described) as Tool["inputSchema"],
    ...(isEmptySchema(output) ? {} : { outputSchema: resultSchema(output) as NonNullable<Tool["outputSchema"]> }),
    annotations: { title: type, readOnlyHint: isQuery, idempotentHint: isQuery, openWorldHint: !isQuery },
  };
}

export function toolName(type: string): string {
  return type.replace(".", "_");
}

/** The type of a tool's name, or of a type's. Throws a `Failure` with the nearest name. */
export function typeNamed(types: readonly AgentType[], name: string): AgentType {
  const found = types.find(({ type }) => type === name || toolName(type) === name);
  if (found) return found;
  const near = nearWord(
    name,
    types.map(({ type }) => toolName(type)),
  );
  throw new Failure(404, `there is no tool ${name}${near === undefined ? "" : `; did you mean ${near}?`}`);
}

/** Types with all words of the text in their name or description. */
export function typesWith(types: readonly AgentType[], text: string): AgentType[] {
  const words = text.toLowerCase().split(/\s+/);
  return types.filter(({ type, description }) => {
    const told = `${type} ${description}`.toLowerCase();
    return words.every((word) => told.includes(word));
  });
}

// Data and arguments
// ---------------------------------------------------------------------------------------------------

export interface ToolCall {
  readonly data: Json;
  readonly key?: string;
}

/** The data of the message, and the key of the call, from the arguments of a tool. */
export function callOf({ kind, input }: AgentType, given: JsonObject): ToolCall {
  const { [KEY_ARGUMENT]: key, ...rest } = given;
  const hasKey = kind === "command" && !declares(input, KEY_ARGUMENT) && typeof key === "string";
  const args = hasKey ? rest : given;
  return { data: dataOf(input, args), ...(hasKey ? { key } : {}) };
}

function dataOf(input: Json, args: JsonObject): Json {
  if (isObjectSchema(input)) return args;
  if (!isEmptySchema(input)) return args["data"] ?? null;
  return Object.keys(args).length === 0 ? null : args;
}

function inputSchemaOf({ kind, input }: AgentType): JsonObject {
  const schema = argumentsSchema(input);
  if (kind === "query" || declares(input, KEY_ARGUMENT)) return schema;
  const properties = isJsonObject(schema["properties"] ?? null) ? (schema["properties"] as JsonObject) : {};
  return { ...schema, properties: { ...properties, [KEY_ARGUMENT]: KEY_SCHEMA } };
}

function argumentsSchema(input: Json): JsonObject {
  if (isObjectSchema(input)) return { ...input, type: "object" };
  // Without a schema the arguments are the data as they are.
  if (isEmptySchema(input)) return { type: "object" };
  return { type: "object", properties: { data: input }, required: ["data"] };
}

/** The answer of a message as the content of a result: an object. */
export function structured(output: Json, answer: Json): JsonObject {
  return isObjectSchema(output) && isJsonObject(answer) ? answer : { result: answer };
}

function resultSchema(output: Json): JsonObject {
  if (isObjectSchema(output)) return output;
  return { type: "object", properties: { result: output }, required: ["result"] };
}

function isEmptySchema(schema: Json): boolean {
  return schema === null || (isJsonObject(schema) && Object.keys(schema).length === 0);
}

/** Whether each value of the schema is an object. */
function isObjectSchema(schema: Json): schema is JsonObject {
  if (!isJsonObject(schema)) return false;
  const { type } = schema;
  return (
    type === "object" || (Array.isArray(type) && type.length === 2 && type.includes("object") && acceptsNull(type))
  );
}

/** `["object", "null"]`: no arguments are an empty object, which these types accept. */
function acceptsNull(type: readonly Json[]): boolean {
  return type.includes("null");
}

function declares(schema: Json, property: string): boolean {
  if (!isJsonObject(schema)) return false;
  const { properties } = schema;
  return properties !== undefined && isJsonObject(properties) && Object.hasOwn(properties, property);
}

// General tools
// ---------------------------------------------------------------------------------------------------

export const GENERAL = { find: "find_types", describe: "describe_type", call: "call_type" } as const;

const GENERAL_TOOLS: readonly Tool[] = [
  {
    name: GENERAL.find,
    description: "Lists the commands and queries with all words of `text` in their name or description.",
    inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
    annotations: { readOnlyHint: true },
  },
  {
    name: GENERAL.describe,
    description: "Shows the schemas of a command or query, like Tasks.Add.",
    inputSchema: { type: "object", properties: { type: { type: "string" } }, required: ["type"] },
    annotations: { readOnlyHint: true },
  },
  {
    name: GENERAL.call,
    description: "Sends a command or query, like Tasks.Add, with the arguments that describe_type shows.",
    inputSchema: {
      type: "object",
      properties: { type: { type: "string" }, arguments: { type: "object" } },
      required: ["type"],
    },
  },
];
