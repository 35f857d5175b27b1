/**
 * `millrace requeue`: puts events back that failed or were settled without a consumer, by id, or all failed ones that
 * match a filter. Subscribers that have handled one do not get it again. With `--consumer`, done events go back for
 * that consumer only. Matches of a filter are counted first and put back only with `--yes`. Commands are put back only
 * by id: their senders were told of the failure and may have sent them again. SPEC: K44.
 */
import { systemHost } from "../host/system-host.ts";
import { failedRowsOf } from "../kernel/filtered-rows.ts";
import { openStoreForReading } from "../kernel/open-store.ts";
import { existingStore } from "./database-file.ts";
import { FILTER_OPTION, readFilter } from "./filter-option.ts";
import { counted } from "./journal-lines.ts";
import { inRequests, type JournalOwner, withOwner } from "./journal-owner.ts";
import { EXIT, type ExitCode, JSON_OPTION, readAge, UsageError, type Verb, type VerbCall } from "./verb.ts";

export const IDS_MAX = 10_000;

export const requeue: Verb = {
  name: "requeue",
  usage:
    "<id>... [--consumer NAME] | --all | [--topic T] [--correlation C] [--newer AGE] [--filter F] [--yes] [--json]",
  summary: "put failed events back into the journal: by id or by filter (counts them; --yes does it)",
  example: "millrace requeue 12\nmillrace requeue --topic Email.Received --newer 2h --yes",
  options: {
    all: { type: "boolean", about: "every event that has failed" },
    topic: { type: "string", value: "T", about: "events of this topic or type" },
    correlation: { type: "string", value: "C", about: "events of this correlation" },
    newer: { type: "string", value: "AGE", about: "events that failed within the last 90s, 15m, 12h or 30d" },
    filter: FILTER_OPTION,
    consumer: { type: "string", value: "NAME", about: "events that are done go back too, for this consumer alone" },
    yes: { type: "boolean", about: "do it, and do not only count" },
    json: JSON_OPTION,
  },
  wordsMax: IDS_MAX,
  run,
};

async function run(call: VerbCall): Promise<ExitCode> {
  const { options, terminal } = call;
  const named = readIds(call);
  const { consumer } = options;
  if (consumer !== undefined && named.length === 0) throw new UsageError("--consumer takes the ids of events");
  const found = named.length > 0 ? { events: named, commands: [] } : await findFailed(call);
  const { events: ids } = found;
  const commands = found.commands.length;
  if (commands > 0 && !options["json"])
    terminal.line(
      `${counted(commands, "failed command")} ${commands === 1 ? "is" : "are"} left; put one back by its id, if its sender has not sent it again`,
    );
  if (named.length === 0 && !options["yes"]) {
    if (options["json"]) terminal.line(JSON.stringify({ failed: ids.length, commands, requeued: 0 }));
    else terminal.line(`${counted(ids.length, "failed event")} would be put back; add --yes to do it`);
    return EXIT.ok;
  }
  const done = ids.length === 0 ? [] : await withOwner(call, (owner) => putBack(owner, ids, call));
  const missing = named.filter((id) => !done.includes(id));
  if (options["json"])
    terminal.line(JSON.stringify({ failed: ids.length, commands, requeued: done.length, ids: done }));
  else terminal.line(`${done.length} put back`);
  const why = consumer === undefined ? "no failed event, and none without a consumer" : "no settled event";
  if (missing.length > 0) terminal.complain(`${why}: ${missing.join(", ")}; "millrace ls events" lists them`);
  return missing.length > 0 ? EXIT.failed : EXIT.ok;
}

async function putBack(owner: JournalOwner, ids: readonly number[], call: VerbCall): Promise<number[]> {
  const { consumer } = call.options;
  const done: number[] = [];
  for (const list of inRequests(ids)) {
    done.push(...(await owner.requeue(list, typeof consumer === "string" ? consumer : undefined)));
    call.terminal.progress(`${done.length} of ${ids.length} put back`);
  }
  return done;
}

/** The ids of a call; empty if it has a filter instead. */
export function readIds({ words, options }: VerbCall): number[] {
  const named = words.map(readId);
  const filtered = ["topic", "correlation", "newer", "filter"].some((name) => options[name] !== undefined);
  if (named.length > 0 && (filtered || options["all"])) throw new UsageError("name ids, or a filter, not both");
  if (named.length === 0 && !filtered && !options["all"])
    throw new UsageError('name failed events, or --all; "millrace ls failures" lists them');
  return named;
}

/** Ids of failed rows that match a filter. */
export interface FailedRows {
  readonly events: readonly number[];
  readonly commands: readonly number[];
}

export async function findFailed({ options, environment }: VerbCall): Promise<FailedRows> {
  const host = systemHost();
  const { topic, correlation } = options;
  const newerMs = readAge("newer", options["newer"]);
  const filter = readFilter(options["filter"], host);
  await using store = await openStoreForReading(host, existingStore(undefined, environment));
  const query = {
    ...(typeof topic === "string" ? { named: topic } : {}),
    ...(typeof correlation === "string" ? { correlation } : {}),
    ...(newerMs === undefined ? {} : { createdFromMs: host.now() - newerMs }),
  };
  const events: number[] = [];
  const commands: number[] = [];
  for await (const { id, message } of failedRowsOf({ host, store }, filter, query))
    (message?.kind === "command" ? commands : events).push(id);
  return { events, commands };
}

function readId(word: string): number {
  const id = Number(word);
  if (Number.isSafeInteger(id) && id > 0) return id;
  throw new UsageError(`${JSON.stringify(word)} is not the id of a journal row; "millrace ls failures" lists them`);
}
