/**
 * `millrace purge`: removes rows of the journal that are done, by age, by number or both. Rows that wait, are being handled or have failed
 * stay. Without `--yes` it only counts. The hash chain goes on across what was removed. SPEC: K44.
 */
import { systemHost } from "../host/system-host.ts";
import { type KernelStore, openStoreForReading } from "../kernel/open-store.ts";
import { JOURNAL_PAGE_ROWS } from "../limits.ts";
import { existingDatabaseFile } from "./database-file.ts";
import { counted, type Row } from "./journal-lines.ts";
import { type PurgeBounds, withOwner } from "./journal-owner.ts";
import { EXIT, type ExitCode, JSON_OPTION, readAge, readNumber, UsageError, type Verb, type VerbCall } from "./verb.ts";

export const purge: Verb = {
  name: "purge",
  usage: "[--older AGE] [--keep N] [--yes] [--json]",
  summary: "remove handled rows of the journal, by age or number (counted first; --yes does it)",
  example: "millrace purge --older 30d\nmillrace purge --older 30d --keep 100000 --yes",
  options: {
    older: { type: "string", value: "AGE", about: "settled longer ago than 90s, 15m, 12h or 30d" },
    keep: { type: "string", value: "N", about: "all but the last so many" },
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
    throw new UsageError("say what may go: --older 30d, --keep 100000, or both");
  const bounds: PurgeBounds = {
    ...(olderMs === undefined ? {} : { settledBeforeMs: host.now() - olderMs }),
    ...(keepSettled === undefined ? {} : { keepSettled }),
  };
  if (options["yes"]) {
    const removed = await withOwner(call, async (owner) => {
      let gone = 0;
      for (let went = await owner.purgeSome(bounds); went > 0; went = await owner.purgeSome(bounds)) {
        gone += went;
        terminal.progress(`${gone} removed`);
      }
      return gone;
    });
    terminal.line(options["json"] ? JSON.stringify({ removed }) : `${counted(removed, "settled row")} removed`);
    return EXIT.ok;
  }
  await using store = await openStoreForReading(host, existingDatabaseFile(undefined, environment));
  const { rows, settled } = await countRemovable(store, bounds, terminal.progress);
  if (options["json"]) terminal.line(JSON.stringify({ removable: rows, settled, removed: 0 }));
  else terminal.line(`${rows} of ${counted(settled, "settled row")} would be removed; add --yes to do it`);
  return EXIT.ok;
}

/** What `retain` would remove, counted from the newest row back. */
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
      if (!isSettled(row)) continue;
      settled++;
      if (settled > keepSettled || (row.processedAtMs ?? 0) < settledBeforeMs) rows++;
    }
    progress(`${settled} settled rows looked at`);
    if (page.length < JOURNAL_PAGE_ROWS) return { rows, settled };
    cursor = (page.at(-1) as Row).id;
  }
}

function isSettled({ status }: Row): boolean {
  return status === "done";
}
