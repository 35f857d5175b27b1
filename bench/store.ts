/**
 * The store beside bare `node:sqlite`: journal and documents through our seam against the same durable work with
 * hand-written statements. What a limit is and how it is run: `docs/decisions/0004-benchmarks.md`.
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
