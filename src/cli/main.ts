/**
 * The `millrace` command: finds the verb, parses its arguments, runs it, and converts errors into one line and an exit
 * code. SPEC: K11-K13. Each verb is in the file of its name.
 */
import { parseArgs } from "node:util";
import { thrownWhere } from "../kernel/faults.ts";
import { unknownVariables } from "../kernel/settings.ts";
import { isFailure } from "../message/error-data.ts";
import { MessageTypeError } from "../message/lineage.ts";
import { nearWord } from "../message/near-word.ts";
import { backup } from "./backup.ts";
import { bench } from "./bench.ts";
import { cancel } from "./cancel.ts";
import { completion } from "./completion.ts";
import { consumers } from "./consumers.ts";
import { copy } from "./copy.ts";
import { dev } from "./dev.ts";
import { discard } from "./discard.ts";
import { doctor } from "./doctor.ts";
import { erase } from "./erase.ts";
import { exportVerb } from "./export.ts";
import { extension } from "./extension.ts";
import { graph } from "./graph.ts";
import { sayHelp, sayVerbHelp } from "./help.ts";
import { importVerb } from "./import.ts";
import { init } from "./init.ts";
import { ls } from "./ls.ts";
import { mcp } from "./mcp.ts";
import { migrate } from "./migrate.ts";
import { pg } from "./pg.ts";
import { purge } from "./purge.ts";
import { emit, send, sendRequest } from "./request.ts";
import { requeue } from "./requeue.ts";
import { restore } from "./restore.ts";
import { show } from "./show.ts";
import { start } from "./start.ts";
import { tail } from "./tail.ts";
import { processTerminal, type Terminal } from "./terminal.ts";
import { token } from "./token.ts";
import { trace } from "./trace.ts";
import { EXIT, type ExitCode, UsageError, type Verb } from "./verb.ts";
import { verify } from "./verify.ts";
import { packageVersion } from "./version.ts";
import { why } from "./why.ts";

/** In the order in which users meet them. */
const VERBS: readonly Verb[] = [
  ...[init, dev, start, mcp, send, sendRequest, emit],
  ...[tail, ls, show, trace, why, graph],
  ...[requeue, discard, consumers, extension, cancel, purge, erase, token],
  ...[backup, restore, exportVerb, importVerb, copy, verify, doctor, migrate, pg, bench, completion(() => VERBS)],
];

const HELP: readonly string[] = ["help", "--help", "-h"];
const VERSION: readonly string[] = ["version", "--version", "-v"];

const terminal = processTerminal();
process.exitCode = await main(process.argv.slice(2), terminal).catch((error: unknown) => explain(error, terminal));

async function main(args: readonly string[], terminal: Terminal): Promise<ExitCode> {
  const [first, ...rest] = args;
  if (first === undefined) {
    sayHelp(VERBS, terminal);
    return EXIT.usage;
  }
  if (HELP.includes(first)) return help(rest, terminal);
  if (VERSION.includes(first)) return isHelpAsked(rest) ? help([], terminal) : version(rest, terminal);
  const verb = findVerb(first);
  // Help is shown even if the call has other errors.
  if (isHelpAsked(rest)) return help([verb.name], terminal);
  const { values, positionals } = readArguments(verb, rest);
  // `dev` has already printed them for its child process.
  if (!process.connected) for (const unknown of unknownVariables(process.env)) terminal.complain(unknown);
  return verb.run({ words: positionals, options: values, environment: process.env, terminal });
}

/** `millrace help`, for all verbs or one. */
function help(rest: readonly string[], terminal: Terminal): ExitCode {
  const [about, tooMany] = rest.filter((word) => !HELP.includes(word));
  if (tooMany !== undefined) throw new UsageError(`one word too many: "${tooMany}"; usage: millrace help [verb]`);
  if (about === undefined || VERSION.includes(about)) sayHelp(VERBS, terminal);
  else sayVerbHelp(findVerb(about), terminal);
  return EXIT.ok;
}

function version([tooMany]: readonly string[], terminal: Terminal): ExitCode {
  if (tooMany !== undefined) throw new UsageError(`one word too many: "${tooMany}"; usage: millrace --version`);
  terminal.line(packageVersion());
  return EXIT.ok;
}

/** After `--` every word is an argument. */
function isHelpAsked(rest: readonly string[]): boolean {
  const end = rest.indexOf("--");
  return rest.slice(0, end === -1 ? rest.length : end).some((word) => word === "--help" || word === "-h");
}

function findVerb(name: string): Verb {
  const verb = VERBS.find((candidate) => candidate.name === name);
  if (verb) return verb;
  const names = [...VERBS.map((candidate) => candidate.name), ...HELP, ...VERSION];
  throw new UsageError(`there is no verb "${name}"; ${meantWord(name, names)}"millrace --help" lists them`);
}

function meantWord(word: string, known: readonly string[], prefix = ""): string {
  const near = nearWord(word, known);
  return near === undefined ? "" : `did you mean ${prefix}${near}? `;
}

function readArguments(verb: Verb, args: readonly string[]) {
  const { options } = verb;
  try {
    const { values, positionals } = parseArgs({ args: withNumbers(options, args), options, allowPositionals: true });
    if (positionals.length > verb.wordsMax)
      throw new UsageError(`one word too many: ${JSON.stringify(positionals[verb.wordsMax])}`);
    // Most likely an unset shell variable.
    if (positionals.includes("")) throw new UsageError("one word is empty");
    return { values: values as Readonly<Record<string, string | boolean | undefined>>, positionals };
  } catch (error) {
    // `parseArgs` throws TypeErrors with a first sentence for people.
    const [sentence = ""] = error instanceof Error ? error.message.split(/\.\s/) : [String(error)];
    const [, unknown] = /^Unknown option '--(.+)'$/.exec(sentence) ?? [];
    const meant = unknown === undefined ? "" : meantWord(unknown, [...Object.keys(options), "help"], "--");
    throw new UsageError(`${sentence}; ${meant}usage: millrace ${verb.name} ${verb.usage}`.trimEnd());
  }
}

/** A negative number after an option is its value, which the option then refuses, and not another option. */
function withNumbers(options: Verb["options"], args: readonly string[]): string[] {
  const joined: string[] = [];
  for (const word of args) {
    const before = joined.at(-1);
    const isValue = before !== undefined && options[before.slice(2)]?.type === "string" && before.startsWith("--");
    if (isValue && !joined.includes("--") && /^-\d/.test(word)) joined[joined.length - 1] = `${before}=${word}`;
    else joined.push(word);
  }
  return joined;
}

/** Expected errors have a code and a remedy; any other error is a bug and is shown with its stack. */
function explain(error: unknown, terminal: Terminal): ExitCode {
  if (error instanceof UsageError || error instanceof MessageTypeError) {
    terminal.complain(error.message);
    return EXIT.usage;
  }
  if (isFailure(error, "NOT_REACHABLE")) {
    terminal.complain(`not reachable: ${error.message}`);
    return EXIT.unreachable;
  }
  terminal.complain(error instanceof Error && "code" in error ? error.message : thrownWhere(error));
  return EXIT.failed;
}
