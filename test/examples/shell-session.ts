/**
 * The commands of one page, one after the other, as a reader types them, and what they print beside what the page says. Ids, times,
 * numbers of processes and rates differ from run to run: they count as equal, and an id or a process that the page names later stands
 * for the one that was printed in its place.
 *
 * A command that ends with `&` goes on: a kernel until it is killed or the page ends, other commands until `wait`, which prints their
 * output. `kill -9 PID %JOB` kills the kernel and every command in the background. A line `…` on the page stands for any lines, and `…`
 * in a line for any text. A reader repeats a command whose result is not there yet: so does this, with commands that only look. `sleep`
 * ends when the kernel has printed the longest text in the data of the command before it. `npm start` runs the app of a clone, as the
 * clone's own script does.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";

export interface Exchange {
  readonly command: string;
  readonly expected: string;
}

export function exchangesOf(code: string): Exchange[] {
  return code
    .split(/^\$ /m)
    .slice(1)
    .map((text) => {
      const [command = "", ...lines] = text.split("\n");
      return { command, expected: lines.join("\n").trimEnd() };
    });
}

/** Parts that differ between runs, and their placeholders. */
const CHANGING: readonly (readonly [RegExp, string])[] = [
  [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, "<id>"],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, "<time>"],
  [/\d+(?:\.\d+)? ms/g, "<n> ms"],
  [/pid \d+/g, "pid <n>"],
  // They count the built-in capabilities too, which grow.
  [/routes \d+/g, "routes <n>"],
  [/actors \d+/g, "actors <n>"],
  [/ *[\d,]+ \/s/g, " <n> /s"],
  [/\d+ KiB/g, "<n> KiB"],
  [/Node \d+\.\d+\.\d+/g, "Node <n>"],
  [/\d+\.\d+\.\d+/g, "<version>"],
];
const ONLY_LOOKS = /^npx millrace (?:query|ls|trace|why|show|graph|verify) /;
/** Each look takes a tenth of a second or more; the work that a page waits for takes some seconds. */
const LOOKS_MAX = 500;
const IDS = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;

export class ShellSession implements AsyncDisposable {
  readonly #folder: string;
  readonly #env: Record<string, string | undefined>;
  readonly #running: Running[] = [];
  /** The page's name of a value, and its name here. */
  readonly #names = new Map<string, string>();
  #kernel: Running | undefined;

  /** The longest text in the data of the latest command. */
  #subject = "";

  /** `command` is the file of the millrace command; `app` the app of `npm start`. */
  constructor(folder: string, command: string, app = "none") {
    this.#folder = folder;
    const bin = join(folder, ".bin");
    mkdirSync(bin, { recursive: true });
    // One process each, so that a kill ends the started process.
    const script = (words: string) => `#!/bin/sh\n${words}exec ${process.execPath} ${command} "$@"\n`;
    writeFileSync(join(bin, "npx"), script("shift\n"), { mode: 0o755 });
    writeFileSync(join(bin, "millrace"), script(""), { mode: 0o755 });
    writeFileSync(join(bin, "npm"), script(`set -- "$@" ${app}\n`), { mode: 0o755 });
    const { MILLRACE_DIR, FORCE_COLOR, ...inherited } = process.env;
    this.#env = { ...inherited, NO_COLOR: "1", PATH: [bin, inherited["PATH"]].join(delimiter) };
  }

  /** Runs one command; returns its output, and whether that equals the page. */
  async run({ command, expected }: Exchange): Promise<{ printed: string; matches: boolean }> {
    const wanted = pattern(expected);
    let printed = await this.#do(this.#rename(command), expected);
    for (let looks = 1; looks < LOOKS_MAX && ONLY_LOOKS.test(command) && !wanted.test(`${normal(printed)}\n`); looks++)
      printed = await this.#do(this.#rename(command), expected);
    this.#learn(expected, printed);
    return { printed, matches: wanted.test(`${normal(printed)}\n`) };
  }

  async #do(command: string, expected: string): Promise<string> {
    if (/^wait %\d+$/.test(command)) return this.#waitForAll();
    const kill = /^kill -9 \d+( %\d+)?$/.exec(command);
    if (kill) {
      await this.#kernel?.kill();
      if (kill[1] !== undefined) for (const running of this.#running) await running.kill();
      return "";
    }
    if (/^sleep \d+$/.test(command)) {
      await this.#kernel?.names(this.#subject);
      return "";
    }
    this.#subject = longestText(command);
    const isBackground = command.endsWith(" &");
    const running = new Running(command.replace(/ &$/, ""), { cwd: this.#folder, env: this.#env });
    if (!isBackground) return running.all();
    this.#running.push(running);
    if (!/\b(?:start|dev)\b/.test(command)) return "";
    this.#kernel = running;
    await running.said(/pid \d+\n/);
    // Beyond its first lines it prints the output of the app as it comes.
    const lines = expected === "" ? [] : expected.split("\n");
    if (lines.at(-1) !== "…") await running.lines(lines.filter((line) => line !== "…").length);
    return lines.length === 0 ? "" : running.output;
  }

  /** Resolves when the kernel has ended, as the page told it to. */
  async kernelEnded(): Promise<void> {
    await this.#kernel?.all();
  }

  async #waitForAll(): Promise<string> {
    const others = this.#running.filter((running) => running !== this.#kernel && !running.isOver);
    const outputs = await Promise.all(others.map((running) => running.all()));
    return outputs.join("");
  }

  #rename(command: string): string {
    return command.replaceAll(IDS, (id) => this.#names.get(id) ?? id);
  }

  #learn(expected: string, printed: string): void {
    const found = printed.match(IDS) ?? [];
    for (const [i, name] of (expected.match(IDS) ?? []).entries()) {
      const here = found[i];
      if (here !== undefined && !this.#names.has(name)) this.#names.set(name, here);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const running of this.#running) await running.kill();
  }
}

class Running {
  readonly #child: ChildProcess;
  readonly #closed: Promise<unknown>;
  readonly #looks: (() => void)[] = [];
  output = "";
  isOver = false;

  constructor(command: string, options: { cwd: string; env: Record<string, string | undefined> }) {
    // `exec`, so that the process is the command and not a shell around it.
    const line = /[|;]|&&/.test(command) ? command : `exec ${command}`;
    this.#child = spawn("/bin/sh", ["-c", line], { ...options, stdio: ["ignore", "pipe", "pipe"] });
    this.#closed = once(this.#child, "close").then(() => {
      this.isOver = true;
    });
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.on("data", (chunk: Buffer) => {
        this.output += chunk;
        for (const look of this.#looks.splice(0)) look();
      });
  }

  async all(): Promise<string> {
    await this.#closed;
    return this.output;
  }

  async said(wanted: RegExp): Promise<void> {
    while (!wanted.test(this.output) && !this.isOver) await this.#change();
    if (!wanted.test(this.output)) throw new Error(`it ended before it said ${wanted}:\n${this.output}`);
  }

  async names(subject: string): Promise<void> {
    while (!this.output.includes(subject) && !this.isOver) await this.#change();
  }

  lines(count: number): Promise<void> {
    return this.said(new RegExp(`^(?:.*\\n){${count}}`));
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#closed;
  }

  /** Resolves when it has said more, or has ended. */
  async #change(): Promise<void> {
    await Promise.race([new Promise<void>((look) => this.#looks.push(look)), this.#closed]);
  }
}

function longestText(command: string): string {
  const texts = [...command.matchAll(/"([^"]*)"/g)].map(([, text]) => text as string);
  return texts.sort((a, b) => b.length - a.length)[0] ?? "";
}

function normal(text: string): string {
  let result = text.trimEnd();
  for (const [changing, name] of CHANGING) result = result.replaceAll(changing, name);
  // Columns are as wide as their contents.
  return result.replaceAll(/ {2,}/g, "  ").replaceAll(/ +$/gm, "");
}

function pattern(expected: string): RegExp {
  const lines = normal(expected)
    .split("\n")
    .map((line) => {
      if (line === "…") return "(?:.*\\n)*";
      const text = line.split("…").map((part) => part.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
      return `${text.join(".*")}\\n`;
    });
  return new RegExp(`^${lines.join("")}$`);
}
