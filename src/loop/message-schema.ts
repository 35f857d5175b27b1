/**
 * Message schemas from data schemas: a capability lists its commands, queries, replies and events by type, each with a
 * schema of its data, without envelopes. The result is an ordinary `MessageSchema`: it validates whole messages and
 * describes itself as a union of branches.
 */
import { FAILURE_DATA_BYTES_MAX, ISSUES_MAX } from "../limits.ts";
import type { Kind, Message } from "../message/envelope.ts";
import { cleanErrorText } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import { isThenable } from "../work/handler-call.ts";
import type { MessageSchema, SchemaResult } from "./capability.ts";

/** A Standard Schema of the data alone: a sender may send `Input`, the handler gets `Output`, with defaults. */
export interface DataSchema<Output = unknown, Input = Output> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult | Promise<SchemaResult>;
    readonly jsonSchema?: { readonly input: (options: { target: string }) => unknown };
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** The output of a data schema; any JSON without a schema. */
export type DataOf<Schema> = Schema extends DataSchema<infer Output, unknown> ? Output : Json;

/** The input of a data schema. */
export type SentTo<Schema> = Schema extends DataSchema<unknown, infer Input> ? Input : Json;

export interface Branch {
  readonly kind: Kind;
  readonly type: string;
  /** Any JSON when absent. */
  readonly data?: DataSchema | undefined;
  /** A description for people and tools. */
  readonly description?: string | undefined;
}

/** A schema of this package, which can tell whether it checks a message. */
class DeclaredMessages implements MessageSchema {
  readonly "~standard": MessageSchema["~standard"];
  /** Whether messages of this kind and type are declared with any data, so that there is no check. */
  readonly takesAny: (message: Message) => boolean;

  constructor(standard: MessageSchema["~standard"], takesAny: (message: Message) => boolean) {
    this["~standard"] = standard;
    this.takesAny = takesAny;
  }
}

export function messageSchema(branches: readonly Branch[]): MessageSchema {
  // By kind, then by type: joined into one key, the text would be made and hashed anew for every message.
  const byKind = new Map(
    [...Map.groupBy(branches, ({ kind }) => kind)].map(([kind, all]) => [
      kind,
      new Map(all.map((branch) => [branch.type, branch])),
    ]),
  );
  const branchOf = ({ kind, type }: Message) => byKind.get(kind)?.get(type);
  const takesAny = (message: Message) => {
    const branch = branchOf(message);
    return branch !== undefined && branch.data === undefined;
  };
  return new DeclaredMessages(
    {
      version: 1,
      vendor: "millrace",
      validate: (value) => {
        const message = value as Message;
        const branch = branchOf(message);
        if (!branch)
          return { issues: [{ message: `${message.kind} ${message.type} is not declared${declarationOf(message)}` }] };
        const result = atOnce(branch.data?.["~standard"].validate(message.data));
        if (result === LATER) return { issues: [{ message: NOT_AT_ONCE }] };
        if (result?.issues === undefined) return { value };
        return {
          issues: result.issues.map((issue) => ({ ...issue, path: ["data", ...(issue.path ?? [])] })),
        };
      },
      jsonSchema: {
        input: (options) => ({
          anyOf: branches.map(({ kind, type, data, description }) => ({
            type: "object",
            ...(description === undefined ? {} : { description }),
            properties: {
              kind: { const: kind },
              type: { const: type },
              data: data?.["~standard"].jsonSchema?.input(options) ?? {},
            },
            required: ["kind", "type", "data"],
          })),
        }),
      },
    },
    takesAny,
  );
}

/** Whether a schema takes every message of this kind and type, so that it need not validate. */
export function takesAny(schema: MessageSchema, message: Message): boolean {
  return schema instanceof DeclaredMessages && schema.takesAny(message);
}

/** A data schema written by hand: a check that names the problem, and the JSON Schema of the same data. */
export function dataSchema<T>(check: (data: unknown) => string | undefined, jsonSchema: Json): DataSchema<T> {
  return {
    "~standard": {
      version: 1,
      vendor: "millrace",
      validate: (value) => {
        const problem = check(value);
        return problem === undefined ? { value } : { issues: [{ message: problem }] };
      },
      jsonSchema: { input: () => jsonSchema },
    },
  };
}

/**
 * Why a message does not fit a schema: as one text for people, and as the `data` of a failure for programs. SPEC: L71,
 * M44.
 */
export interface SchemaProblem {
  readonly text: string;
  readonly data: { readonly issues: JsonIssue[]; readonly more?: number };
}

/** One problem of a value and its place, as a client gets it. */
export type JsonIssue = { readonly path: (string | number)[]; readonly message: string };

/** Undefined if the message fits. */
export function schemaProblem(schema: MessageSchema, message: Message): SchemaProblem | undefined {
  if (takesAny(schema, message)) return undefined;
  const result = atOnce(schema["~standard"].validate(message));
  if (result === LATER) return ASYNCHRONOUS;
  const issues = result.issues ?? [];
  return issues.length === 0 ? undefined : problemOf(issues);
}

function problemOf(issues: readonly Issue[]): SchemaProblem {
  const told = issues.slice(0, PROBLEMS_TOLD_MAX).map((issue) => issueText(issue));
  if (issues.length > told.length) told.push(`and ${issues.length - told.length} more`);
  return { text: told.join("; "), data: issuesData(issues) };
}

/** All issues, as far as they fit the data of a failure; `more` counts the others. */
function issuesData(issues: readonly Issue[]): SchemaProblem["data"] {
  const told: JsonIssue[] = [];
  let bytes = 0;
  for (const issue of issues.slice(0, ISSUES_MAX)) {
    const message = cleanErrorText(alternativesText(issue.errors, 0) ?? String(issue.message));
    const one = { path: stepsOf(issue).map(cleanStep), message };
    bytes += JSON.stringify(one).length * CHARACTER_BYTES_MAX;
    if (bytes > FAILURE_DATA_BYTES_MAX) break;
    told.push(one);
  }
  return issues.length === told.length ? { issues: told } : { issues: told, more: issues.length - told.length };
}

/** A character of a JSON text takes at most three bytes as UTF-8. */
const CHARACTER_BYTES_MAX = 3;

function stepsOf({ path }: Issue): readonly unknown[] {
  return (path ?? []).map((step) => (typeof step === "object" && step !== null && "key" in step ? step.key : step));
}

function cleanStep(step: unknown): string | number {
  return typeof step === "number" && Number.isFinite(step) ? step : cleanErrorText(String(step));
}

/** Problems of one message, and alternatives of one union, that an answer names. */
const PROBLEMS_TOLD_MAX = 8;
/** Unions inside unions. */
const UNION_DEPTH_MAX = 4;

interface Issue {
  readonly message: string;
  readonly path?: readonly unknown[] | undefined;
  /** Of a union, as zod tells them: the problems with each alternative, their paths from the union on. */
  readonly errors?: unknown;
}

function issueText(issue: Issue, depth = 0): string {
  const { message, errors } = issue;
  const place = stepsOf(issue).join(".");
  const text = alternativesText(errors, depth) ?? message;
  return place === "" ? text : `${place}: ${text}`;
}

/** `fits none of 2 alternatives (kind: expected "a"; or size: expected number)` */
function alternativesText(errors: unknown, depth: number): string | undefined {
  if (!Array.isArray(errors) || errors.length === 0 || depth >= UNION_DEPTH_MAX) return undefined;
  const lists = errors.filter((list): list is Issue[] => Array.isArray(list) && list.length > 0);
  if (lists.length !== errors.length) return undefined;
  const texts = lists.map((list) => list.map((issue) => issueText(issue, depth + 1)).join(" and "));
  const told = [...new Set(texts)].slice(0, PROBLEMS_TOLD_MAX);
  return `fits none of ${lists.length} alternatives (${told.join("; or ")})`;
}

/**
 * The schema's output for the data: with defaults, without unknown fields. It is computed again for the handler (70 ns
 * for a small object), because the message is routed, journaled, compared and sent to Workers as it was sent.
 */
export function dataAs(schema: DataSchema | undefined, data: Json): unknown {
  const result = atOnce(schema?.["~standard"].validate(data));
  return result === undefined || result === LATER || result.issues ? data : result.value;
}

/** The output of a schema, or every problem with the data. */
export function dataOrProblem(
  schema: DataSchema,
  data: unknown,
): { readonly value: unknown } | { readonly problem: SchemaProblem } {
  const result = atOnce(schema["~standard"].validate(data));
  if (result === LATER) return { problem: ASYNCHRONOUS };
  return result.issues === undefined ? { value: result.value } : { problem: problemOf(result.issues) };
}

/**
 * Some schemas return a rejected promise if one of their checks throws: the rejection must affect only this message.
 */
function atOnce<T>(result: T | Promise<T>): T | typeof LATER {
  if (!isThenable(result)) return result;
  Promise.resolve(result).catch(() => undefined);
  return LATER;
}

const LATER = Symbol("answers with a promise");
const NOT_AT_ONCE =
  "the schema answers with a promise (it checks asynchronously, or one of its checks throws), which routing cannot wait for";

const ASYNCHRONOUS: SchemaProblem = { text: NOT_AT_ONCE, data: { issues: [{ path: [], message: NOT_AT_ONCE }] } };

/** Where a capability says that it emits or asks this. */
export function declarationOf({ kind, type }: Pick<Message, "kind" | "type">): string {
  if (kind === "event") return `; add it: emits: { "${type}": true }`;
  return kind === "command" || kind === "query" ? `; add it: sends: { "${type}": "${kind}" }` : "";
}
