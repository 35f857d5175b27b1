/** The command line of `npm run bench`. */
import { parseArgs } from "node:util";
import type { Scale } from "./benchmark.ts";

export interface Options {
  /** Which benchmarks; all of them when empty. */
  readonly names: readonly string[];
  /** Only workloads with this text in their group or name. */
  readonly only: string | undefined;
  readonly scale: Scale;
  readonly rounds: number;
  readonly json: boolean;
  readonly peers: boolean;
  /** The folder of another build to compare with, instead of limits and peers. */
  readonly against: string | undefined;
}

export type Request =
  | { readonly kind: "run"; readonly options: Options }
  | { readonly kind: "help" }
  | { readonly kind: "list" }
  | { readonly kind: "misuse"; readonly message: string };

export const USAGE = `Runs the limit, the peers and Millrace side by side and prints one table for each benchmark.

  npm run bench                             every benchmark, a few minutes
  npm run bench -- store                    one of them
  npm run bench -- store message --quick    two of them, about a minute
  npm run bench -- store --only "in bulk"   the workloads whose name contains this
  npm run bench -- --json > numbers.json    for machines
  npm run bench -- loop --against ../old    this build beside that of another folder

  --quick       less work, fewer rounds: one to three minutes for a benchmark, six for the reactive core
  --long        also the workloads that need minutes of their own
  --rounds N    how often every system runs (quick 3, otherwise 5)
  --only TEXT   only workloads whose group or name contains TEXT
  --against DIR run this build and that of DIR (its dist/) by turns, each round in a process of its own, and print the ratio of
                their medians for each row; for loop, bus, streams, kernel and reactive
  --no-peers    leave out the peers, and do not install them
  --json        machine-readable, on stdout; progress stays on stderr
  --list        the names and what they measure
  --help        this text

Exit code: 0, 1 when a benchmark crashed, 2 when the command line is wrong. A missed target is reported, not an error.`;

const ROUNDS: Readonly<Record<Scale, number>> = { quick: 3, full: 5, long: 5 };
const ROUNDS_MAX = 1000;

export function parseOptions(
  args: readonly string[],
  known: readonly string[],
  comparable: readonly string[] = known,
): Request {
  let parsed: ReturnType<typeof parse>;
  try {
    parsed = parse(args);
  } catch (error) {
    // `parseArgs` throws for an unknown option: print the message without the stack.
    return misuse(error instanceof Error ? error.message : String(error));
  }
  const { values, positionals } = parsed;
  if (values.help) return { kind: "help" };
  if (values.list) return { kind: "list" };
  const unknown = positionals.find((name) => !known.includes(name));
  if (unknown !== undefined) return misuse(`there is no benchmark "${unknown}"; there are: ${known.join(", ")}`);
  if (values.quick && values.long) return misuse("--quick and --long exclude each other");
  const scale = values.quick ? "quick" : values.long ? "long" : "full";
  const rounds = values.rounds === undefined ? ROUNDS[scale] : Number(values.rounds);
  if (!Number.isInteger(rounds) || rounds < 1 || rounds > ROUNDS_MAX) {
    return misuse(`--rounds takes a whole number from 1 to ${ROUNDS_MAX}, not "${values.rounds}"`);
  }
  const { only, json, peers, against } = values;
  const apart = positionals.find((name) => !comparable.includes(name));
  if (against !== undefined && apart !== undefined)
    return misuse(`--against does not compare ${apart}; it compares: ${comparable.join(", ")}`);
  return { kind: "run", options: { names: positionals, only, scale, rounds, json, peers, against } };
}

function misuse(message: string): Request {
  return { kind: "misuse", message };
}

function parse(args: readonly string[]) {
  return parseArgs({
    args: [...args],
    allowPositionals: true,
    allowNegative: true,
    options: {
      quick: { type: "boolean", default: false },
      long: { type: "boolean", default: false },
      rounds: { type: "string" },
      only: { type: "string" },
      against: { type: "string" },
      peers: { type: "boolean", default: true },
      json: { type: "boolean", default: false },
      list: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
}
