/**
 * The schemas of the back office: named fields, each a text or a number. Any Standard Schema library does the same and
 * more.
 */
import type { Schema } from "millrace";

type Field = "text" | "text?" | "number" | "number?";
type Fields = Readonly<Record<string, Field>>;
type ValueOf<F extends Field> = F extends "text" | "text?" ? string : number;

/** The data that fields describe; fields with a question mark are optional. */
export type Shaped<F extends Fields> = {
  readonly [K in keyof F as F[K] extends `${string}?` ? never : K]: ValueOf<F[K]>;
} & { readonly [K in keyof F as F[K] extends `${string}?` ? K : never]?: ValueOf<F[K]> };

export function shape<const F extends Fields>(fields: F): Schema<Shaped<F>> {
  const required = Object.keys(fields).filter((name) => !fields[name]?.endsWith("?"));
  const properties = Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [name, { type: field.startsWith("text") ? "string" : "number" }]),
  );
  return {
    "~standard": {
      version: 1,
      vendor: "back-office",
      validate: (value) => {
        const issues = issuesOf(fields, value);
        return issues.length > 0 ? { issues } : { value };
      },
      // Clients and tools see it in `Syscall.Describe`.
      jsonSchema: { input: () => ({ type: "object", properties, required }) },
    },
  };
}

function issuesOf(fields: Fields, data: unknown): { message: string; path: string[] }[] {
  if (typeof data !== "object" || data === null)
    return [{ message: `must be an object with ${Object.keys(fields).join(", ")}`, path: [] }];
  const given = new Map(Object.entries(data));
  return Object.entries(fields).flatMap(([name, field]) => {
    const value = given.get(name);
    if (value === undefined && field.endsWith("?")) return [];
    const wanted = field.startsWith("text") ? "string" : "number";
    return typeof value === wanted ? [] : [{ message: `must be a ${wanted}`, path: [name] }];
  });
}
