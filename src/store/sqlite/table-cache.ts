/**
 * What every table with state in memory promises the writer. A table may remember what it read and hold back what it changed,
 * but only for as long as nobody else has written: the writer tells it when to write and when to forget.
 */
export interface TableCache {
  /** Writes what was held back. Called before every COMMIT. */
  flush(): void;
  /** Drops everything remembered: another process wrote, or the transaction was rolled back. */
  forget(): void;
}
