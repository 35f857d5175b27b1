/** What the back office's messages must look like: named fields, each a text or a number. Any Standard Schema would do as well. */
import { type DataSchema, dataSchema } from "millrace/loop";

type Field = "text" | "text?" | "number" | "number?";
type Fields = Readonly<Record<string, Field>>;
type ValueOf<F extends Field> = F extends "text" | "text?" ? string : number;

/** The data that fields describe; those with a question mark may be left out. */
export type Shaped<F extends Fields> = {
  readonly [K in keyof F as F[K] extends `${string}?` ? never : K]: ValueOf<F[K]>;
} & { readonly [K in keyof F as F[K] extends `${string}?` ? K : never]?: ValueOf<F[K]> };

export function shape<const F extends Fields>(fields: F): DataSchema<Shaped<F>> {
  const required = Object.keys(fields).filter((name) => !fields[name]?.endsWith("?"));
  const properties = Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [name, { type: field.startsWith("text") ? "string" : "number" }]),
  );
  return dataSchema((data) => problemWith(fields, data), { type: "object", properties, required });
}

function problemWith(fields: Fields, data: unknown): string | undefined {
  if (typeof data !== "object" || data === null) return `must be an object with ${Object.keys(fields).join(", ")}`;
  const given = new Map(Object.entries(data));
  for (const [name, field] of Object.entries(fields)) {
    const value = given.get(name);
    if (value === undefined && field.endsWith("?")) continue;
    const wanted = field.startsWith("text") ? "string" : "number";
    if (typeof value !== wanted) return `${name}: must be a ${wanted}`;
  }
  return undefined;
}
