/**
 * The contract of tables with state in memory. A table may cache reads and buffer writes until another process writes;
 * the writer calls `flush` and `forget`.
 */
export interface TableCache {
  /** Writes the buffered changes. Called before every COMMIT. */
  flush(): void;
  /** Clears the cache: another process wrote, or the transaction was rolled back. */
  forget(): void;
}
