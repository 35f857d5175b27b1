/** Options without those that nobody has said: under `exactOptionalPropertyTypes` an option that is undefined is not one that is left out. */
export type Given<T> = { [Name in keyof T]?: Exclude<T[Name], undefined> };

export function given<T extends object>(options: T): Given<T> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Given<T>;
}
