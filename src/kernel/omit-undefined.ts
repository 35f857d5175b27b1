/**
 * Removes undefined options: under `exactOptionalPropertyTypes` an undefined option is not an omitted one.
 */
export type DefinedOnly<T> = { [Name in keyof T]?: Exclude<T[Name], undefined> };

export function omitUndefined<T extends object>(options: T): DefinedOnly<T> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as DefinedOnly<T>;
}
