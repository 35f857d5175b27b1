/** The task board of `examples/`, as a user of the built package would run it, in a process that can be killed. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, symlinkSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { UserProject } from "../examples/user-project.ts";
import { COMPILE_CACHE } from "../kernel/kernel-process.ts";
import { ROOT, scratchFolder } from "../repo/program.ts";

/** A project with the package, the example and the libraries of its page. */
export async function boardProject(): Promise<UserProject> {
  const project = await UserProject.build();
  for (const name of ["react-dom", "rolldown"])
    symlinkSync(join(ROOT, "node_modules", name), join(project.folder, "node_modules", name));
  for (const name of ["task-board", "back-office"])
    cpSync(join(ROOT, "examples", name), join(project.folder, name), { recursive: true });
  return project;
}

export class BoardServer {
  readonly #project: UserProject;
  readonly #port: number;
  readonly #file = join(scratchFolder(), "board.db");
  #child!: ChildProcess;
  #address = "";

  static async start(project: UserProject): Promise<BoardServer> {
    const board = new BoardServer(project, await freePort());
    onTestFinished(() => board.kill());
    await board.start();
    return board;
  }

  private constructor(project: UserProject, port: number) {
    this.#project = project;
    this.#port = port;
  }

  /** Also after `kill`: on the same port, with the same file. */
  async start(): Promise<void> {
    const env = { ...process.env, ...COMPILE_CACHE, FILE: this.#file, PORT: String(this.#port) };
    const program = join(this.#project.folder, "task-board", "serve.ts");
    this.#child = spawn(process.execPath, [program], { env, stdio: ["ignore", "pipe", "inherit"] });
    let output = "";
    for await (const chunk of this.#child.stdout as NodeJS.ReadableStream) {
      output += String(chunk);
      const [address] = /http:\S+\n/.exec(output) ?? [];
      if (address !== undefined) {
        this.#address = address.trim();
        return;
      }
    }
    throw new Error(`the board has ended: ${output}`);
  }

  /** With the token. */
  get address(): string {
    return this.#address;
  }

  get origin(): string {
    return new URL(this.#address).origin;
  }

  /** Reads bytes from the network and drops them. */
  freeze(): void {
    this.#child.kill("SIGSTOP");
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const closed = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await closed;
  }
}

/** Below the ports that connections get by themselves, so that none takes it while the server is away. */
async function freePort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 10_000);
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once("error", () => resolve(false));
      server.listen(port, "127.0.0.1", () => resolve(true));
    });
    if (!isFree) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
}
