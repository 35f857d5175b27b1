/**
 * `millrace discard`: discards dead letters by id or by a filter, with a reason. They stay in the journal as discarded,
 * with the reason and their error, until `purge` removes them like other done rows. Matches of a filter are counted
 * first and discarded only with `--yes`. SPEC: K90.
 */
import { FILTER_OPTION } from "./filter-option.ts";
import { counted } from "./journal-lines.ts";
import { inRequests, withOwner } from "./journal-owner.ts";
import { type FailedRows, findFailed, IDS_MAX, readIds } from "./requeue.ts";
import { EXIT, type ExitCode, JSON_OPTION, UsageError, type Verb, type VerbCall } from "./verb.ts";

export const discard: Verb = {
  name: "discard",
  usage: "<id>... | --all | [--topic T] [--correlation C] [--newer AGE] [--filter F] --reason TEXT [--yes] [--json]",
  summary: "discard dead letters, with a reason: by id or by filter (counts them; --yes does it)",
  example:
    'millrace discard 12 --reason "sent by hand"\nmillrace discard --topic Email.Received --reason "old campaign" --yes',
  options: {
    reason: { type: "string", value: "TEXT", about: "the reason, which is stored with the row" },
    all: { type: "boolean", about: "every event and command that has failed" },
    topic: { type: "string", value: "T", about: "rows of this topic or type" },
    correlation: { type: "string", value: "C", about: "rows of this correlation" },
    newer: { type: "string", value: "AGE", about: "rows that failed within the last 90s, 15m, 12h or 30d" },
    filter: FILTER_OPTION,
    yes: { type: "boolean", about: "do it, and do not only count" },
    json: JSON_OPTION,
  },
  wordsMax: IDS_MAX,
  run,
};

async function run(call: VerbCall): Promise<ExitCode> {
  const { options, terminal } = call;
  const { reason } = options;
  const named = readIds(call);
  if (typeof reason !== "string" || reason.trim() === "")
    throw new UsageError('say why: --reason "sent by hand"; the reason stays with the row');
  const ids = named.length > 0 ? named : allOf(await findFailed(call));
  if (named.length === 0 && !options["yes"]) {
    if (options["json"]) terminal.line(JSON.stringify({ failed: ids.length, discarded: 0 }));
    else terminal.line(`${counted(ids.length, "dead letter")} would be discarded; add --yes to do it`);
    return EXIT.ok;
  }
  const done: number[] = [];
  if (ids.length > 0)
    await withOwner(call, async (owner) => {
      for (const list of inRequests(ids)) {
        done.push(...(await owner.discard(list, reason)));
        terminal.progress(`${done.length} of ${ids.length} discarded`);
      }
    });
  const missing = named.filter((id) => !done.includes(id));
  if (options["json"]) terminal.line(JSON.stringify({ failed: ids.length, discarded: done.length, ids: done }));
  else terminal.line(`${done.length} discarded`);
  if (missing.length > 0)
    terminal.complain(`no failed event or command: ${missing.join(", ")}; "millrace ls failures" lists them`);
  return missing.length > 0 ? EXIT.failed : EXIT.ok;
}

function allOf({ events, commands }: FailedRows): number[] {
  return [...events, ...commands].sort((a, b) => a - b);
}
