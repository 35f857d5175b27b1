/**
 * `millrace purge`: removes done rows of the journal, by age, by number or both. Waiting, running and failed rows (dead
 * letters) stay. Only counts them without `--yes`. The hash chain continues across removed rows. SPEC: K44, K92.
 */
import { systemHost } from "../host/system-host.ts";
import { type KernelStore, openStoreForReading } from "../kernel/open-store.ts";
import { JOURNAL_PAGE_ROWS } from "../limits.ts";
import { existingStore } from "./database-file.ts";
import { counted, type JournalLine } from "./journal-lines.ts";
import { PURGE_ROWS_MAX, type PurgeBounds, withOwner } from "./journal-owner.ts";
import { EXIT, type ExitCode, JSON_OPTION, readAge, readNumber, UsageError, type Verb, type VerbCall } from "./verb.ts";

export const purge: Verb = {
  name: "purge",
  usage: "[--older AGE] [--keep N] [--yes] [--json]",
  summary: "remove done rows of the journal, by age or number; dead letters stay (counts them; --yes does it)",
  example: "millrace purge --older 30d\nmillrace purge --older 30d --keep 100000 --yes",
  options: {
    older: { type: "string", value: "AGE", about: "rows that were done longer ago than 90s, 15m, 12h or 30d" },
    keep: { type: "string", value: "N", about: "keep the last N rows" },
    yes: { type: "boolean", about: "do it, and do not only count" },
    json: JSON_OPTION,
  },
  wordsMax: 0,
  run,
};

async function run(call: VerbCall): Promise<ExitCode> {
  const { options, environment, terminal } = call;
  const host = systemHost();
  const olderMs = readAge("older", options["older"]);
  const keepSettled = readNumber("keep", options["keep"], { min: 0, max: Number.MAX_SAFE_INTEGER });
  if (olderMs === undefined && keepSettled === undefined)
    throw new UsageError("give a bound: --older 30d, --keep 100000, or both");
  const bounds: PurgeBounds = {
    ...(olderMs === undefined ? {} : { settledBeforeMs: host.now() - olderMs }),
    ...(keepSettled === undefined ? {} : { keepSettled }),
  };
  if (options["yes"]) {
    const removed = await withOwner(call, async (owner) => {
      let gone = 0;
      // Each purge leaves an audit row that the next may remove, so it continues only after a full step.
      for (let went = PURGE_ROWS_MAX; went >= PURGE_ROWS_MAX; ) {
        went = await owner.purgeSome(bounds);
        gone += went;
        terminal.progress(`${gone} removed`);
      }
      return gone;
    });
    terminal.line(options["json"] ? JSON.stringify({ removed }) : `${counted(removed, "done row")} removed`);
    return EXIT.ok;
  }
  await using store = await openStoreForReading(host, existingStore(undefined, environment));
  const { rows, settled } = await countRemovable(store, bounds, terminal.progress);
  if (options["json"]) terminal.line(JSON.stringify({ removable: rows, settled, removed: 0 }));
  else terminal.line(`${rows} of ${counted(settled, "done row")} would be removed; add --yes to do it`);
  return EXIT.ok;
}

/** The number of rows that `retain` would remove, counted from the newest row back. */
async function countRemovable(
  store: KernelStore,
  { settledBeforeMs = Number.NEGATIVE_INFINITY, keepSettled = Number.POSITIVE_INFINITY }: PurgeBounds,
  progress: (text: string) => void,
): Promise<{ rows: number; settled: number }> {
  let settled = 0;
  let rows = 0;
  for (let cursor = Number.MAX_SAFE_INTEGER; ; ) {
    const page = await store.query({ cursor, order: "descending", limit: JOURNAL_PAGE_ROWS });
    for (const row of page) {
      if (row.status !== "done") continue;
      settled++;
      if (settled > keepSettled || (row.processedAtMs ?? 0) < settledBeforeMs) rows++;
    }
    progress(`${settled} done rows counted`);
    if (page.length < JOURNAL_PAGE_ROWS) return { rows, settled };
    cursor = (page.at(-1) as JournalLine).id;
  }
}
