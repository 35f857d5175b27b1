/** A second process on the file: started by a test, spoken to and answering in lines of JSON, ended with the test. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Json } from "../../../src/message/json.ts";

export interface ProgramOptions {
  /** Runs it as a user without files of its own, if this process may choose. */
  readonly asStranger?: boolean;
}

/** The id of the user `nobody` on every Linux. */
const STRANGER = 65_534;

export class Program implements AsyncDisposable {
  readonly #process: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  readonly #exited: Promise<unknown>;

  constructor(child: ChildProcess) {
    this.#process = child;
    this.#exited = once(child, "exit");
    this.#lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
  }

  /** The next line that it says; waits as long as it takes, which is for the test's own time limit to bound. */
  async next(): Promise<Json> {
    const line = await this.#lines.next();
    if (line.done === true) throw new Error("the program ended without saying more");
    return JSON.parse(line.value);
  }

  tell(order: Json): void {
    this.#process.stdin?.write(`${JSON.stringify(order)}\n`);
  }

  /** Ends it without any warning. */
  async kill(): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }
}

/** Starts one of the programs in `programs.ts`. */
export function startProgram(name: string, settings: Json, options: ProgramOptions = {}): Program {
  const file = join(import.meta.dirname, "programs.ts");
  const isRoot = process.getuid?.() === 0;
  const child = spawn(process.execPath, [file, name, JSON.stringify(settings)], {
    stdio: ["pipe", "pipe", "inherit"],
    ...(options.asStranger && isRoot ? { uid: STRANGER, gid: STRANGER } : {}),
  });
  return new Program(child);
}
