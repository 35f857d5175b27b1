/** Conversions of the values in twin runs, which may have any type. */
export function numberOf(value: unknown): number {
  return typeof value === "number" ? value : 0;
}
