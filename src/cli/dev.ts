/**
 * `millrace dev <app>`: runs `millrace start <app>` in a process of its own, watches the app's folder, and starts it
 * again when a file changes. SPEC: K45.
 *
 * ```
 *   running ──a file changed──> stopping ──ended──> running
 *      └──ended by itself──> waiting ──a file changed──> running
 * ```
 * The child is connected by a channel: if this process is killed, the channel closes and the child ends as on a signal,
 * so that none is left behind. One that does not end in time is killed; its work is repeated, as after any crash.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { Host } from "../host/host.ts";
import { pause } from "../host/pause.ts";
import { systemHost } from "../host/system-host.ts";
import { AppError } from "../kernel/load-app.ts";
import { DRAIN_MS } from "../limits.ts";
import { FolderWatch } from "./folder-watch.ts";
import type { Terminal } from "./terminal.ts";
import { END_SIGNALS, EXIT, type ExitCode, UsageError, type Verb, type VerbCall } from "./verb.ts";

/** Editors write a file in several steps. */
const CALM_MS = 60;
/** A little more than the kernel's own grace for running work. */
const PATIENCE_MS = DRAIN_MS + 2_000;

/** This port, or any free one: other kernels may run on this machine. */
const HTTP_DEFAULT = "4646+";

export const dev: Verb = {
  name: "dev",
  usage: "<app> [--http PORT]",
  summary: "run a kernel with an app, and start it again whenever a file beside it changes",
  example: "millrace dev app.ts",
  options: {
    http: {
      type: "string",
      value: "PORT",
      about: "serve HTTP and WebSocket on this port, as start does; default 4646+",
    },
  },
  wordsMax: 1,
  run,
};

async function run({ words: [app], options, terminal }: VerbCall): Promise<ExitCode> {
  if (app === undefined) throw new UsageError('name your app: "millrace dev app.ts"; "millrace init" makes one');
  if (!existsSync(dirname(resolve(app))))
    throw new AppError(`there is no folder of ${app}; name the module of your app`);
  const session = new DevSession(app, String(options["http"] ?? HTTP_DEFAULT), systemHost(), terminal);
  return session.run();
}

class DevSession {
  readonly #app: string;
  readonly #http: string;
  readonly #host: Host;
  readonly #terminal: Terminal;
  /** Reasons for the next round: changed files, or the end. */
  readonly #changed = new Set<string>();
  #ending = false;
  #wake: () => void = () => undefined;

  constructor(app: string, http: string, host: Host, terminal: Terminal) {
    this.#app = app;
    this.#http = http;
    this.#host = host;
    this.#terminal = terminal;
  }

  async run(): Promise<ExitCode> {
    const folder = dirname(resolve(this.#app));
    using _watch = new FolderWatch(folder, (file) => {
      this.#changed.add(file);
      this.#wake();
    });
    for (const signal of END_SIGNALS) process.on(signal, () => this.#end());
    this.#terminal.line(`watching ${folder}; Ctrl-C ends it`);
    while (!this.#ending) await this.#round();
    return EXIT.ok;
  }

  /** One process, from its start until it has ended and there is a reason for the next. */
  async #round(): Promise<void> {
    const child = this.#start();
    const ended = new Promise<void>((done) => child.once("close", () => done()));
    await Promise.race([ended, this.#reason()]);
    if (child.exitCode === null && child.signalCode === null) {
      await this.#stop(child, ended);
    } else if (!this.#ending && this.#changed.size === 0) {
      this.#terminal.complain(
        `the app ended (${child.exitCode ?? child.signalCode}); it starts again when a file changes`,
      );
      await this.#reason();
    }
    if (this.#ending) return;
    // All files of one save are one reason.
    await pause(this.#host, CALM_MS);
    this.#terminal.line(`${[...this.#changed].join(", ")} changed; starting again`);
    this.#changed.clear();
  }

  #start(): ChildProcess {
    const main = process.argv[1] as string;
    return spawn(process.execPath, [...process.execArgv, main, "start", this.#app, "--http", this.#http], {
      stdio: ["inherit", "inherit", "inherit", "ipc"],
    });
  }

  /** Resolves when a file has changed or the end was requested. */
  #reason(): Promise<void> {
    if (this.#ending || this.#changed.size > 0) return Promise.resolve();
    return new Promise((wake) => {
      this.#wake = wake;
    });
  }

  async #stop(child: ChildProcess, ended: Promise<void>): Promise<void> {
    child.kill("SIGTERM");
    const timer = this.#host.timer(PATIENCE_MS, () => {
      this.#terminal.complain("it does not end; it is killed, and its work is repeated");
      child.kill("SIGKILL");
    });
    await ended;
    timer.cancel();
  }

  #end(): void {
    this.#ending = true;
    this.#wake();
  }
}
