/**
 * The finite set of (kind, type) pairs that a message schema describes (RFC 0032 §11.1), found in its JSON Schema:
 * unions of branches, each with literal kind and type. All problems are reported together.
 */
import { isKind, isMessageType, type Kind } from "../message/envelope.ts";
import { thrownText } from "../message/error-data.ts";
import type { MessageSchema } from "./capability.ts";

export interface HandledType {
  readonly kind: Kind;
  readonly type: string;
  /** JSON Schema of `data`, for people and tools. */
  readonly data: unknown;
  /** The description of its branch, if it has one. */
  readonly description: string | undefined;
}

export interface HandledTypes {
  readonly handles: readonly HandledType[];
  readonly problems: readonly string[];
  /**
   * Whether every branch has a literal kind and type. An outbound schema need not be finite: then it only validates.
   */
  readonly isFinite: boolean;
}

interface JsonSchema {
  readonly description?: unknown;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly allOf?: readonly JsonSchema[];
  readonly $ref?: string;
  readonly $defs?: { readonly [name: string]: JsonSchema };
  readonly definitions?: { readonly [name: string]: JsonSchema };
  readonly properties?: { readonly [name: string]: JsonSchema };
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly not?: unknown;
}

/** Unions inside unions, and references; deeper than this it is a circle. */
const DEPTH_MAX = 16;

export function findHandledTypes(schema: MessageSchema): HandledTypes {
  const root = jsonSchemaOf(schema);
  if (typeof root === "string") return { handles: [], problems: [root], isFinite: true };
  const handles: HandledType[] = [];
  const problems: string[] = [];
  let hasLiterals = true;
  branches(root, root, 0, problems).forEach((branch, index, all) => {
    const description = typeof branch.description === "string" ? branch.description : undefined;
    const where = all.length === 1 ? "" : `branch ${index + 1}: `;
    const kinds = literals(branch.properties?.["kind"], root);
    const types = literals(branch.properties?.["type"], root);
    if (kinds === undefined) problems.push(`${where}kind is not a literal`);
    if (types === undefined) problems.push(`${where}type is not a literal, so the set of handlers is not finite`);
    if (kinds === undefined || types === undefined) hasLiterals = false;
    for (const type of types ?? []) {
      if (typeof type !== "string" || !isMessageType(type)) {
        problems.push(`${where}type ${JSON.stringify(type)} is not two PascalCase names joined by a dot`);
        continue;
      }
      for (const kind of kinds ?? []) {
        if (isKind(kind)) handles.push({ kind, type, data: branch.properties?.["data"] ?? {}, description });
        else problems.push(`${where}kind ${JSON.stringify(kind)} is not a kind of message`);
      }
    }
  });
  return { handles, problems, isFinite: hasLiterals };
}

function jsonSchemaOf(schema: MessageSchema): JsonSchema | string {
  const standard = (schema as Partial<MessageSchema> | undefined)?.["~standard"];
  if (!standard) return "is not a schema (a Standard Schema is expected, such as a zod union)";
  if (!standard.jsonSchema)
    return `the schema library ${standard.vendor} gives no JSON Schema; its types cannot be discovered`;
  try {
    // The output must be describable too: a schema that transforms does not describe messages as they are sent.
    standard.jsonSchema.output?.({ target: "draft-2020-12" });
    const described = standard.jsonSchema.input({ target: "draft-2020-12" });
    // Through text, because libraries attach hidden fields to descriptions (zod its validator), and clients get the
    // result.
    return JSON.parse(JSON.stringify(described)) as JsonSchema;
  } catch (error) {
    return `has no JSON Schema: ${thrownText(error)}`;
  }
}

function branches(schema: JsonSchema, root: JsonSchema, depth: number, problems: string[]): JsonSchema[] {
  if (depth > DEPTH_MAX) {
    problems.push("is nested too deeply");
    return [];
  }
  const target = resolve(schema, root);
  const union = target.anyOf ?? target.oneOf;
  if (union) return union.flatMap((branch) => branches(branch, root, depth + 1, problems));
  // `{ "not": {} }` describes no message at all: the capability takes or gives none.
  return isNever(target) ? [] : [target];
}

function isNever({ not }: JsonSchema): boolean {
  return typeof not === "object" && not !== null && Object.keys(not).length === 0;
}

function resolve(schema: JsonSchema, root: JsonSchema): JsonSchema {
  if (schema.$ref === undefined) return schema;
  if (schema.$ref === "#") return root;
  const name = schema.$ref.split("/").at(-1) ?? "";
  return root.$defs?.[name] ?? root.definitions?.[name] ?? schema;
}

function literals(schema: JsonSchema | undefined, root: JsonSchema): readonly unknown[] | undefined {
  if (!schema) return undefined;
  const target = resolve(schema, root);
  if (target.const !== undefined) return [target.const];
  return target.enum;
}
