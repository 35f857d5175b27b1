/** A kernel in a process of its own, started as a user does, so that it can be killed. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { Client, type ClientOptions } from "../../src/client/client.ts";
import { ROOT } from "../repo/program.ts";

export const MAIN = join(ROOT, "src", "cli", "main.ts");
/** An app with an account that can be checked from outside. */
export const LEDGER_APP = join(import.meta.dirname, "ledger-app.ts");

/** Without it every process would strip the types of the whole source again. */
const compiled = mkdtempSync(join(tmpdir(), "millrace-compiled-"));
process.on("exit", () => rmSync(compiled, { recursive: true, force: true }));
export const COMPILE_CACHE = { NODE_COMPILE_CACHE: compiled } as const;

/** Just under the time limit of a test. */
const PATIENCE_MS = 590_000;

export class KernelProcess {
  readonly #child: ChildProcess;
  readonly #cwd: string;
  readonly #closed: Promise<unknown>;
  output = "";
  complaints = "";

  /**
   * Resolves when it says that it is ready. Ends with the test. `main` is the command, by default that of the sources.
   */
  static async start(
    cwd: string,
    app?: string,
    main: string = MAIN,
    options: readonly string[] = [],
  ): Promise<KernelProcess> {
    const kernel = KernelProcess.launch(cwd, app, main, options);
    await kernel.ready();
    return kernel;
  }

  /** Begins to start it, without waiting. */
  static launch(cwd: string, app?: string, main: string = MAIN, options: readonly string[] = []): KernelProcess {
    const kernel = new KernelProcess(cwd, [main, "start", ...(app === undefined ? [] : [app]), ...options]);
    onTestFinished(() => kernel.kill());
    return kernel;
  }

  /** Resolves when it says that it is. */
  async ready(): Promise<void> {
    await this.said(/socket .*pid \d+\n/);
  }

  private constructor(cwd: string, args: readonly string[]) {
    const { MILLRACE_DIR, MILLRACE_STORE, FORCE_COLOR, ...inherited } = process.env;
    const env = { ...inherited, ...COMPILE_CACHE };
    this.#cwd = cwd;
    this.#child = spawn(process.execPath, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
    this.#closed = once(this.#child, "close");
    this.#child.stdout?.on("data", (chunk: Buffer) => {
      this.output += chunk;
    });
    this.#child.stderr?.on("data", (chunk: Buffer) => {
      this.complaints += chunk;
    });
  }

  get socketPath(): string {
    return join(this.#cwd, ".millrace", "kernel.sock");
  }

  /** Resolves when its output matches; fails when it ends before. */
  async said(pattern: RegExp): Promise<void> {
    while (!pattern.test(this.output)) {
      if (this.#child.exitCode !== null || this.#child.signalCode !== null)
        throw new Error(`the kernel ended: ${this.output}${this.complaints}`);
      await Promise.race([once(this.#child.stdout!, "data"), this.#closed]);
    }
  }

  /** A patient client: a long wait on a busy machine is no failure. */
  connect(options: Partial<ClientOptions> = {}): Promise<Client> {
    return Client.connect({ path: this.socketPath, timeoutMs: PATIENCE_MS, ...options });
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Its exit code, or the signal that ended it. */
  async ended(): Promise<number | string | null> {
    await this.#closed;
    return this.#child.exitCode ?? this.#child.signalCode;
  }

  /** Ends it at once, as a crash does; resolves when it is gone. */
  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#closed;
  }

  async stop(): Promise<number | string | null> {
    this.signal("SIGTERM");
    return this.ended();
  }
}
