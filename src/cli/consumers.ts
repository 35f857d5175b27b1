/**
 * `millrace consumers`: declared consumers, the processes that run them, and how many events wait for them;
 * `consumers remove` ends one that is gone for good. Read from the file, also without a kernel. SPEC: K95, K96.
 */
import type { RemovedConsumer } from "../kernel/consumer-repair.ts";
import { nearWord } from "../message/near-word.ts";
import { counted, table } from "./journal-lines.ts";
import { withOwner } from "./journal-owner.ts";
import { declaredConsumers, consumerListing as listing } from "./list-database.ts";
import { EXIT, type ExitCode, JSON_OPTION, UsageError, type Verb, type VerbCall } from "./verb.ts";

export const consumers: Verb = {
  name: "consumers",
  usage: "[remove NAME [--topic T]] [--json]",
  summary: "list declared subscribers and their waiting events; remove one that is gone for good",
  example: "millrace consumers\nmillrace consumers remove mail-agent",
  options: {
    topic: { type: "string", value: "T", about: "with remove: only under this topic or pattern" },
    json: JSON_OPTION,
  },
  wordsMax: 2,
  run,
};

async function run(call: VerbCall): Promise<ExitCode> {
  const [deed, name] = call.words;
  if (deed === undefined) return list(call);
  if (deed !== "remove") throw new UsageError(`there is no "consumers ${deed}"; usage: millrace consumers remove NAME`);
  if (name === undefined) throw new UsageError('name a consumer; "millrace consumers" lists them');
  return remove(call, name);
}

async function list(call: VerbCall): Promise<ExitCode> {
  const { options, terminal } = call;
  if (options["topic"] !== undefined) throw new UsageError("--topic goes with remove");
  const declared = await declaredConsumers(call);
  if (options["json"]) for (const one of declared) terminal.line(JSON.stringify(one));
  else if (declared.length === 0) terminal.line("no consumers");
  else for (const line of table([listing.head, ...declared.map(listing.cells)])) terminal.line(line);
  return EXIT.ok;
}

async function remove(call: VerbCall, name: string): Promise<ExitCode> {
  const { options, terminal } = call;
  const { topic } = options;
  const removed = await withOwner(call, (owner) =>
    owner.removeConsumers(name, typeof topic === "string" ? topic : undefined),
  );
  if (options["json"]) terminal.line(JSON.stringify({ name, removed }));
  else for (const one of removed) say(call, one);
  if (removed.length > 0) return removed.every(({ result }) => result !== "running") ? EXIT.ok : EXIT.failed;
  const near = nearWord(name, [...new Set((await declaredConsumers(call)).map((one) => one.name))]);
  const meant = near === undefined || near === name ? "" : `; did you mean ${near}?`;
  terminal.complain(
    `no consumer is called ${name}${topic === undefined ? "" : ` on ${topic}`}${meant || '; "millrace consumers" lists them'}`,
  );
  return EXIT.failed;
}

function say({ terminal }: VerbCall, { name, pattern, waiting, result }: RemovedConsumer): void {
  if (result === "running")
    terminal.complain(`${name} on ${pattern} is running, so it stays; stop the process or extension that runs it`);
  else terminal.line(`${name} on ${pattern} removed; ${counted(waiting, "event")} waited for it`);
}
