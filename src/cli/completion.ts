/**
 * `millrace completion <shell>`: prints a script that completes verbs and their options. The words come from the verbs
 * themselves, so a new verb needs no change here. SPEC: K75.
 */
import { notKnown } from "../message/near-word.ts";
import { EXIT, type ExitCode, UsageError, type Verb, type VerbCall } from "./verb.ts";

const SHELLS = { bash, zsh, fish } as const;
const NAMES = Object.keys(SHELLS) as (keyof typeof SHELLS)[];

/** `verbs` returns all verbs, including this one. */
export function completion(verbs: () => readonly Verb[]): Verb {
  return {
    name: "completion",
    usage: "<bash | zsh | fish>",
    summary: "print a script that completes verbs and options in your shell",
    example: "millrace completion bash > ~/.local/share/bash-completion/completions/millrace",
    options: {},
    wordsMax: 1,
    run: (call) => run(call, verbs()),
  };
}

async function run({ words, terminal }: VerbCall, verbs: readonly Verb[]): Promise<ExitCode> {
  const [shell] = words;
  if (shell === undefined) throw new UsageError(`name a shell: ${NAMES.join(", ")}`);
  const name = NAMES.find((candidate) => candidate === shell);
  if (!name) throw new UsageError(`the shell ${JSON.stringify(shell)} ${notKnown(shell, NAMES)}`);
  for (const line of SHELLS[name](verbs)) terminal.line(line);
  return EXIT.ok;
}

function optionsOf({ options }: Verb): string[] {
  return [...Object.keys(options).map((name) => `--${name}`), "--help"];
}

function namesOf(verbs: readonly Verb[]): string {
  return [...verbs.map(({ name }) => name), "help", "version"].join(" ");
}

function bash(verbs: readonly Verb[]): string[] {
  return [
    "_millrace() {",
    `  local word="\${COMP_WORDS[COMP_CWORD]}"`,
    '  if [ "$COMP_CWORD" -eq 1 ]; then',
    `    COMPREPLY=($(compgen -W "${namesOf(verbs)}" -- "$word"))`,
    "    return",
    "  fi",
    `  case "\${COMP_WORDS[1]}" in`,
    ...verbs.map((verb) => `    ${verb.name}) COMPREPLY=($(compgen -W "${optionsOf(verb).join(" ")}" -- "$word")) ;;`),
    "  esac",
    "}",
    "complete -o default -F _millrace millrace",
  ];
}

function zsh(verbs: readonly Verb[]): string[] {
  return [
    "#compdef millrace",
    "_millrace() {",
    "  local -a verbs",
    "  verbs=(",
    ...verbs.map(({ name, summary }) => `    ${quoted(`${name}:${summary}`)}`),
    "  )",
    "  if (( CURRENT == 2 )); then _describe verb verbs; return; fi",
    "  case $words[2] in",
    ...verbs.map((verb) => `    ${verb.name}) compadd -- ${optionsOf(verb).join(" ")}; _files ;;`),
    "  esac",
    "}",
    "compdef _millrace millrace",
  ];
}

function fish(verbs: readonly Verb[]): string[] {
  return [
    "complete -c millrace -f",
    ...verbs.map(
      ({ name, summary }) => `complete -c millrace -n __fish_use_subcommand -a ${name} -d ${quoted(summary)}`,
    ),
    ...verbs.flatMap(({ name, options }) =>
      Object.entries(options).map(
        ([option, { about }]) =>
          `complete -c millrace -n '__fish_seen_subcommand_from ${name}' -l ${option} -d ${quoted(about)}`,
      ),
    ),
  ];
}

/** Single quotes work in all these shells. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
