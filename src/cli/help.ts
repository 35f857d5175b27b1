/**
 * The texts of `millrace --help` and of a verb's help.
 */
import type { Terminal } from "./terminal.ts";
import type { Verb } from "./verb.ts";

export function sayVerbHelp({ name, usage, summary, options, example }: Verb, terminal: Terminal): void {
  terminal.line(`usage: millrace ${name} ${usage}`.trimEnd());
  terminal.line(`  ${summary}`);
  terminal.line();
  const shown = Object.entries(options).map(([option, { value, about }]): [string, string] => [
    value === undefined ? `--${option}` : `--${option} ${value}`,
    about,
  ]);
  const width = Math.max(0, ...shown.map(([option]) => option.length));
  if (shown.length > 0) terminal.line("options:");
  for (const [option, about] of shown) terminal.line(`  ${option.padEnd(width)}  ${about}`);
  if (shown.length > 0) terminal.line();
  terminal.line("example:");
  for (const line of example.split("\n")) terminal.line(`  ${line}`);
}

export function sayHelp(verbs: readonly Verb[], terminal: Terminal): void {
  terminal.line("millrace: a durable, reactive message kernel");
  terminal.line();
  terminal.line("usage: millrace <verb>");
  const width = Math.max(...verbs.map(({ name }) => name.length));
  for (const { name, summary } of verbs) terminal.line(`  ${name.padEnd(width)}  ${summary}`);
  terminal.line();
  terminal.line('"millrace <verb> --help" has its options and an example; --version');
  terminal.line();
  terminal.line(
    "MILLRACE_DIR is the directory of the files (default .millrace), MILLRACE_FILE another store file to read;",
  );
  terminal.line("NO_COLOR is honoured.");
  terminal.line("Exit codes: 0 ok, 1 failed, 2 wrong usage, 3 kernel not reachable, 130 ended by a second signal.");
}
