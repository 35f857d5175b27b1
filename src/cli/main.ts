/**
 * The `millrace` command: finds the verb, reads its arguments, runs it, and turns what it throws into one line and an exit
 * code. SPEC: K11-K13. What a verb does is in the file of its name.
 */
import { parseArgs } from "node:util";
import { ClientError } from "../client/client-error.ts";
import { MessageTypeError } from "../message/lineage.ts";
import { bench } from "./bench.ts";
import { cancel } from "./cancel.ts";
import { dev } from "./dev.ts";
import { doctor } from "./doctor.ts";
import { graph } from "./graph.ts";
import { sayHelp, sayVerbHelp } from "./help.ts";
import { init } from "./init.ts";
import { ls } from "./ls.ts";
import { nearWord } from "./near-word.ts";
import { purge } from "./purge.ts";
import { ask, emit, send } from "./request.ts";
import { requeue } from "./requeue.ts";
import { show } from "./show.ts";
import { start } from "./start.ts";
import { tail } from "./tail.ts";
import { processTerminal, type Terminal } from "./terminal.ts";
import { trace } from "./trace.ts";
import { EXIT, type ExitCode, UsageError, type Verb } from "./verb.ts";
import { verify } from "./verify.ts";
import { packageVersion } from "./version.ts";
import { why } from "./why.ts";

/** In the order in which a user meets them. */
const VERBS: readonly Verb[] = [
  ...[init, dev, start, send, ask, emit],
  ...[tail, ls, show, trace, why, graph],
  ...[requeue, cancel, purge, verify, doctor, bench],
];

const terminal = processTerminal();
process.exitCode = await main(process.argv.slice(2), terminal).catch((error: unknown) => explain(error, terminal));

async function main([first, ...rest]: readonly string[], terminal: Terminal): Promise<ExitCode> {
  if (first === "--version" || first === "-v" || first === "version") {
    terminal.line(packageVersion());
    return EXIT.ok;
  }
  if (first === undefined || first === "--help" || first === "-h" || first === "help") {
    const [about] = rest;
    if (about === undefined) sayHelp(VERBS, terminal);
    else sayVerbHelp(findVerb(about), terminal);
    return first === undefined ? EXIT.usage : EXIT.ok;
  }
  const verb = findVerb(first);
  const { values, positionals } = readArguments(verb, rest);
  if (values["help"]) {
    sayVerbHelp(verb, terminal);
    return EXIT.ok;
  }
  return verb.run({ words: positionals, options: values, environment: process.env, terminal });
}

function findVerb(name: string): Verb {
  const verb = VERBS.find((candidate) => candidate.name === name);
  if (verb) return verb;
  const names = VERBS.map((candidate) => candidate.name);
  throw new UsageError(`there is no verb "${name}"; ${meantWord(name, names)}"millrace --help" lists them`);
}

function meantWord(word: string, known: readonly string[], prefix = ""): string {
  const near = nearWord(word, known);
  return near === undefined ? "" : `did you mean ${prefix}${near}? `;
}

function readArguments(verb: Verb, args: readonly string[]) {
  const options = { ...verb.options, help: { type: "boolean", short: "h" } } as const;
  try {
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true });
    if (positionals.length > verb.wordsMax)
      throw new UsageError(`one word too many: ${JSON.stringify(positionals[verb.wordsMax])}`);
    return { values: values as Readonly<Record<string, string | boolean | undefined>>, positionals };
  } catch (error) {
    // `parseArgs` throws TypeErrors with a first sentence for people.
    const [sentence = ""] = error instanceof Error ? error.message.split(/\.\s/) : [String(error)];
    const [, unknown] = /^Unknown option '--(.+)'$/.exec(sentence) ?? [];
    const meant = unknown === undefined ? "" : meantWord(unknown, Object.keys(options), "--");
    throw new UsageError(`${sentence}; ${meant}usage: millrace ${verb.name} ${verb.usage}`.trimEnd());
  }
}

/** Expected errors carry a code and say what to do; anything else is a bug and shows where it comes from. */
function explain(error: unknown, terminal: Terminal): ExitCode {
  if (error instanceof UsageError || error instanceof MessageTypeError) {
    terminal.complain(error.message);
    return EXIT.usage;
  }
  if (error instanceof ClientError && error.code === "NOT_REACHABLE") {
    terminal.complain(`not reachable: ${error.message}; start one with: npm start, or millrace start app.ts`);
    return EXIT.unreachable;
  }
  if (error instanceof Error && "code" in error) terminal.complain(error.message);
  else terminal.complain(error instanceof Error ? (error.stack ?? error.message) : String(error));
  return EXIT.failed;
}
