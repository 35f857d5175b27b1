/**
 * Removes undefined options: under `exactOptionalPropertyTypes` an undefined option is not an omitted one.
 */
export type Given<T> = { [Name in keyof T]?: Exclude<T[Name], undefined> };

export function given<T extends object>(options: T): Given<T> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Given<T>;
}
