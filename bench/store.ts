/**
 * The store beside bare `node:sqlite`: journal and documents through `Store`, and the same durable work with
 * hand-written statements. The limit and the method: `docs/decisions/0004-benchmarks.md`.
 */
import type { Benchmark } from "./harness/benchmark.ts";
import { documentWorkloads } from "./store/document-workloads.ts";
import { DURABILITIES } from "./store/durability.ts";
import { fullJournalWorkloads } from "./store/full-journal.ts";
import { journalWorkloads } from "./store/journal-workloads.ts";
import { SYSTEMS } from "./store/side-by-side.ts";

export const storeBenchmark: Benchmark = {
  name: "store",
  what: "journal and documents, events of about 200 bytes",
  systems: SYSTEMS,
  workloads: [...DURABILITIES.flatMap(journalWorkloads), ...documentWorkloads, ...fullJournalWorkloads],
};
