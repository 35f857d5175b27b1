/** What programs of twin runs make of a value that may be anything. */
export function numberOf(value: unknown): number {
  return typeof value === "number" ? value : 0;
}
