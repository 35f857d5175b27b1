/** The clock of the benchmarks, and the few statistics that are taken from it. */

/** Milliseconds that `work` took. */
export async function elapsedMs(work: () => unknown): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

/** How many of `count` things `work` does in a second, when it does them all once. */
export async function perSecond(count: number, work: () => unknown): Promise<number> {
  return (count * 1000) / (await elapsedMs(work));
}

/** The value below which the given share of the values lies, by nearest rank. */
export function percentile(values: readonly number[], share: number): number {
  if (values.length === 0) return Number.NaN;
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]!;
}

export function median(values: readonly number[]): number {
  if (values.length === 0) return Number.NaN;
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
