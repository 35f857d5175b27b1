/** Starting, reading and killing processes that run `bus-program.ts`. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Role } from "./bus-program.ts";

const PROGRAM = fileURLToPath(new URL("bus-program.ts", import.meta.url));

/** A directory that is gone after the test. */
export function scratchDirectory(): Disposable & { readonly path: string } {
  const path = mkdtempSync(join(tmpdir(), "millrace-bus-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

export class BusProcess {
  /** Its output so far. */
  readonly lines: string[] = [];
  readonly ended: Promise<void>;
  readonly #child: ChildProcess;
  #onLine: () => void = () => {};

  constructor(file: string, name: string, role: Role) {
    this.#child = spawn(process.execPath, ["--no-warnings", PROGRAM, file, name, role], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    const reader = createInterface({ input: this.#child.stdout! });
    reader.on("line", (line) => {
      this.lines.push(line);
      this.#onLine();
    });
    this.ended = new Promise((resolve) => {
      this.#child.on("close", () => {
        this.#onLine();
        resolve();
      });
    });
  }

  get isAlive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  get exitCode(): number | null {
    return this.#child.exitCode;
  }

  /** The words after the first of all lines that begin with it. */
  told(word: string): string[][] {
    return this.lines.filter((line) => line.startsWith(`${word} `)).map((line) => line.split(" ").slice(1));
  }

  /** Resolves when it has told so many lines that begin with the word. Rejects if it ends before. */
  async hasTold(word: string, count = 1): Promise<void> {
    const isEnough = () => this.lines.filter((line) => line.split(" ")[0] === word).length >= count;
    while (!isEnough()) {
      if (!this.isAlive) throw new Error(`the process ended (${this.exitCode}) before it told "${word}"`);
      await new Promise<void>((resolve) => {
        this.#onLine = resolve;
      });
    }
  }

  /** kill -9; resolves when all its output is read. */
  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.ended;
  }

  /** Lets it end by itself. */
  async end(): Promise<void> {
    this.#child.stdin?.end();
    await this.ended;
  }
}
