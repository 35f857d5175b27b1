/**
 * Events as values: a name and the schema of its data. `tx.emit(placed, data)` and `on(placed, handler)` take the types
 * from the value. The journal has the data as it was emitted; each handler gets the output of the schema. SPEC: A6, A7.
 */
import { type DataOf, type DataSchema, dataOrProblem, type SentTo } from "../loop/message-schema.ts";
import { Failure } from "../message/error-data.ts";

/** Any Standard Schema: zod, valibot, arktype, or `type<T>()`. */
export type Schema<Output = unknown, Input = Output> = DataSchema<Output, Input>;
export type OutputOf<S> = DataOf<S>;
export type InputOf<S> = SentTo<S>;

/** A schema without a check, for data of a type that only the compiler knows. */
class TypeOnly implements Schema {
  readonly "~standard" = { version: 1, vendor: "millrace", validate: (value: unknown) => ({ value }) } as const;
}

const TYPE_ONLY = new TypeOnly();

/**
 * Names a type where a schema is expected: `event("Order.Placed", type<{ price: number }>())`. Checks nothing at run
 * time.
 */
export function type<T>(): Schema<T> {
  return TYPE_ONLY as Schema<T>;
}

/** The schema that the kernel has to check; undefined for one that checks nothing. */
export function checkedBy(schema: Schema): Schema | undefined {
  return schema instanceof TypeOnly ? undefined : schema;
}

/** An event that an app may emit. Made by `event` of the app's parts. */
export class EventDefinition<out Name extends string = string, out Output = unknown, in Input = never> {
  readonly name: Name;
  readonly schema: Schema | undefined;
  declare readonly "~types"?: { readonly output: Output; readonly input: (input: Input) => void };

  constructor(name: Name, schema: Schema) {
    this.name = name;
    this.schema = checkedBy(schema);
  }

  /** The data as handlers get it. Throws for data that does not fit. */
  read(data: unknown): Output {
    return readData(this.schema, data, `event ${this.name}`) as Output;
  }

  /** Whether data of the journal fits. An older version of the app may have emitted it. */
  fits(data: unknown): boolean {
    return this.schema === undefined || "value" in dataOrProblem(this.schema, data);
  }
}

/** An event with any data. */
export type AnyEvent = EventDefinition<string, unknown, never>;

export function isSchema(value: unknown): value is Schema {
  const standard = (value as Partial<Schema> | null | undefined)?.["~standard"];
  return typeof standard?.validate === "function";
}

/** The output of a schema for this data. Throws a `Failure` with all problems if the data does not fit. */
export function readData(schema: Schema | undefined, data: unknown, what: string): unknown {
  if (schema === undefined) return data;
  const read = dataOrProblem(schema, data);
  if ("value" in read) return read.value;
  const { text, data: issues } = read.problem;
  throw new Failure(422, `${what} does not take this data: ${text}`, { data: issues });
}
