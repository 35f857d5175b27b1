/**
 * Schemas: any Standard Schema (zod, valibot, arktype, …) may describe a cell. It checks writes; stored values are
 * returned without a check. Validation must be synchronous, because a write is.
 */
import { MillraceError } from "../message/millrace-error.ts";
import { pathText } from "../message/path.ts";

/** The part of Standard Schema v1 that is used here. */
export interface StandardSchema<Output = unknown> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => ValidationResult | Promise<ValidationResult>;
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
  };
}

type ValidationResult =
  | { readonly value: unknown; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

/** One problem of a value, and its place. */
export interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly unknown[] | undefined;
}

/** The type that a schema describes. */
export type Described<Schema> = Schema extends StandardSchema<infer Output> ? Output : never;

/** A write that a cell's schema does not allow. */
export class SchemaError extends MillraceError<"CELL_SCHEMA"> {
  override readonly name = "SchemaError";
  /** Every problem as the schema reports it. */
  readonly issues: readonly SchemaIssue[];

  constructor(message: string, issues: readonly SchemaIssue[] = []) {
    super("CELL_SCHEMA", message);
    this.issues = issues;
  }
}

export function requireValid(schema: StandardSchema, value: unknown, what: string): void {
  const result = schema["~standard"].validate(value);
  if (result instanceof Promise)
    throw new SchemaError(`the schema of ${what} validates asynchronously; a write cannot wait`);
  if (result.issues === undefined) return;
  const problems = result.issues.map(({ message, path }) => `${showPath(path)}${message}`);
  throw new SchemaError(`${what} does not take this value: ${problems.join("; ")}`, result.issues);
}

function showPath(path: readonly unknown[] | undefined): string {
  if (!path?.length) return "";
  const steps = path.map((step) => (typeof step === "object" && step !== null && "key" in step ? step.key : step));
  return `${pathText(steps.map(String))}: `;
}
