/** The types of a kernel as OpenAPI 3.1. SPEC: W20. */
import type { Json, JsonObject } from "../message/json.ts";

/** A type as `Syscall.Describe` tells it. */
export interface DescribedType {
  readonly type: string;
  readonly kind: "command" | "query";
  readonly capability: string;
  readonly description: string;
  readonly input: Json;
  readonly output: Json;
}

const PROBLEM = { $ref: "#/components/schemas/Problem" };
const problemContent = { "application/problem+json": { schema: PROBLEM } };

export function openApi(types: readonly DescribedType[]): JsonObject {
  const paths: Record<string, Json> = {};
  for (const described of types) {
    const path = described.kind === "command" ? "commands" : "queries";
    paths[`/v1/${path}/${described.type}`] = { post: operationOf(described) };
  }
  return {
    openapi: "3.1.0",
    info: { title: "Millrace kernel", version: "1" },
    security: [{ token: [] }],
    paths,
    components: {
      securitySchemes: { token: { type: "http", scheme: "bearer" } },
      schemas: {
        Problem: {
          type: "object",
          required: ["type", "title", "status", "detail", "code", "reason"],
          properties: {
            ...{ type: { type: "string" }, title: { type: "string" }, status: { type: "integer" } },
            ...{ detail: { type: "string" }, instance: { type: "string" }, code: { type: "integer" } },
            ...{ reason: { type: "string" }, retryAfterMs: { type: "integer" }, refused: { type: "boolean" } },
          },
        },
      },
    },
  };
}

function operationOf({ type, kind, capability, description, input, output }: DescribedType): JsonObject {
  const answered = { description: "the answer", content: { "application/json": { schema: schemaOf(output) } } };
  const running = { description: "still running; its answer will be at `Location`" };
  return {
    operationId: type.replace(".", "_"),
    tags: [capability],
    ...(description === "" ? {} : { summary: description }),
    ...(kind === "command" ? { parameters: [idempotencyKey] } : {}),
    requestBody: { content: { "application/json": { schema: schemaOf(input) } } },
    responses: {
      "200": answered,
      ...(kind === "command" ? { "202": running } : {}),
      default: { description: "a failure or refusal", content: problemContent },
    },
  };
}

const idempotencyKey: JsonObject = {
  ...{ name: "Idempotency-Key", in: "header", required: false, schema: { type: "string", maxLength: 255 } },
  description: "a command that is repeated under its key takes effect once, and gets the first answer",
};

/** A type without a schema takes and gives any JSON. */
function schemaOf(schema: Json): Json {
  return schema ?? {};
}
