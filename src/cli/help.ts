/** What `millrace --help` says, and the verbs that are planned but not there yet. */
import type { Terminal } from "./terminal.ts";
import type { Verb } from "./verb.ts";

/** They need the kernel's socket or the loop; naming them tells a mistyped verb from one that is to come. */
export const PLANNED = [
  "dev",
  "send",
  "query",
  "emit",
  "tail",
  "trace",
  "why",
  "show",
  "graph",
  "requeue",
  "cancel",
  "purge",
  "bench",
  "init",
] as const;

export function sayHelp(verbs: readonly Verb[], terminal: Terminal): void {
  terminal.line("millrace: a durable, reactive message kernel");
  terminal.line();
  terminal.line("usage: millrace <verb>");
  const calls = verbs.map(({ name, usage }) => `${name} ${usage}`.trimEnd());
  const width = Math.max(...calls.map((call) => call.length));
  for (const [i, { summary }] of verbs.entries()) terminal.line(`  ${calls[i]!.padEnd(width)}  ${summary}`);
  terminal.line();
  terminal.line("  --help, --version");
  terminal.line();
  terminal.line("MILLRACE_DIR says where the files are (default .millrace); NO_COLOR is honoured.");
  terminal.line("Exit codes: 0 ok, 1 failed, 2 wrong usage, 3 kernel not reachable.");
  terminal.line(`To come with the kernel: ${PLANNED.join(", ")}.`);
}
