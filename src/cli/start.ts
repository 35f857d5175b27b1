/**
 * `millrace start [app]`: a kernel that stays up. A first SIGINT, SIGTERM or SIGHUP ends it in good order, the same again at once; so does
 * `Syscall.Shutdown` over the socket. SPEC: K14, K22.
 */

import { systemHost } from "../host/system-host.ts";
import { configuredOptions } from "../kernel/configured-options.ts";
import { type DataDirectory, dataDirectory, makeDataDirectory } from "../kernel/data-directory.ts";
import { FaultLines } from "../kernel/fault-lines.ts";
import { InstanceLock } from "../kernel/instance-lock.ts";
import { Kernel } from "../kernel/kernel.ts";
import type { KernelHealth } from "../kernel/kernel-options.ts";
import { openStore } from "../kernel/open-store.ts";
import { readSettings, type Settings } from "../kernel/settings.ts";
import { thrownText } from "../message/error-data.ts";
import type { Terminal } from "./terminal.ts";
import { END_SIGNALS, EXIT, type ExitCode, type Verb, type VerbCall } from "./verb.ts";
import { packageVersion } from "./version.ts";

/** Pieces that could not be taken up again and are named one by one; `Kernel.Health` has all of them. */
const PIECES_NAMED_MAX = 10;

export const start: Verb = {
  name: "start",
  usage: "[app]",
  summary: "run a kernel in this directory until it is stopped; app is a module with capabilities",
  example: "millrace start app.ts",
  options: {},
  wordsMax: 1,
  run,
};

async function run({ words: [appPath], environment, terminal }: VerbCall): Promise<ExitCode> {
  const host = systemHost();
  const began = host.monotonic();
  const stops = new StopSignals(terminal);
  const directory = dataDirectory(environment);
  if (makeDataDirectory(directory))
    terminal.complain(`${directory.path} was open to others; it is its owner's alone now`);
  using _lock = InstanceLock.take(directory);
  const settings = await readSettings({ environment, folder: process.cwd(), code: { app: appPath } });
  const configured = await configuredOptions(settings, directory);
  const store = await openStore(host, directory.databaseFile, {
    durability: settings.durability.value,
    payloadBytesMax: settings.payloadBytesMax.value,
  });
  const kernel = await Kernel.open({
    ...{ ...configured, host, store, socketPath: directory.socketFile, trace: true, alone: true },
    ...{ observeFaults: new FaultLines(host, (text) => terminal.complain(text)).observe, signal: stops.boot },
  }).catch((error: unknown) => {
    if (error !== stops.boot.reason) throw error;
  });
  if (kernel === undefined) {
    terminal.line("stopped before it was ready");
    return EXIT.ok;
  }
  // Before anybody can know that it is there.
  stops.end(kernel);
  sayReady(terminal, { directory, settings, health: kernel.health(), readyMs: Math.round(host.monotonic() - began) });
  if (settings.app.value === undefined && configured.extensions === undefined)
    terminal.line("  no app was named: only what every kernel has is on; millrace start app.ts");
  await kernel.closed();
  terminal.line("stopped");
  return EXIT.ok;
}

interface Ready {
  readonly directory: DataDirectory;
  readonly settings: Settings;
  readonly health: KernelHealth;
  readonly readyMs: number;
}

function sayReady(terminal: Terminal, { directory, settings, health, readyMs }: Ready): void {
  const [nodeMajor] = process.versions.node.split(".");
  const { routes, subscriptions, actors, nodes, liveNodes, recovered, extensions, pieces, piecesLeft } = health;
  const store = `store ${directory.databaseFile} (sqlite, durability ${settings.durability.value})`;
  terminal.line(
    `${terminal.strong(`millrace ${packageVersion()}`)} · node ${nodeMajor} · ${store} · ready in ${readyMs} ms`,
  );
  const active = extensions.filter(({ state }) => state === "ACTIVE").length;
  const wrong = extensions.filter(({ state }) => state === "ERROR").length;
  const loaded = extensions.length === 0 ? "" : `   extensions ${active}${wrong === 0 ? "" : ` (${wrong} failed)`}`;
  const running = pieces === 0 ? "" : `   pieces ${pieces}`;
  terminal.line(
    `  routes ${routes}   subscriptions ${subscriptions}   actors ${Object.keys(actors).length}   nodes ${nodes} (${liveNodes} live)${running}${loaded}`,
  );
  terminal.line(`  socket ${directory.socketFile}   pid ${process.pid}`);
  if (recovered > 0) terminal.line(`  ${recovered} events that an earlier kernel had in hand are delivered again`);
  for (const { id, reason } of piecesLeft.slice(0, PIECES_NAMED_MAX))
    terminal.complain(`piece ${id} does not run: ${reason}`);
  if (piecesLeft.length > PIECES_NAMED_MAX)
    terminal.complain(`and ${piecesLeft.length - PIECES_NAMED_MAX} more; see: millrace query Kernel.Health`);
}

/**
 * A first signal ends a boot or a kernel in good order, the same again the process at once. Another one is no second wish: what a terminal
 * sends to all, `millrace dev` hears as well, and ends us with a signal of its own; service managers send two in a row.
 */
class StopSignals {
  readonly #terminal: Terminal;
  readonly #boot = new AbortController();
  #kernel: Kernel | undefined;
  readonly #heard = new Set<string>();

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
    for (const signal of END_SIGNALS) process.on(signal, () => this.#stop(signal));
    // Started by `millrace dev`: when that is gone, nobody would end this one.
    process.once("disconnect", () => this.#stop("disconnect"));
    // The channel alone does not keep a kernel that has closed.
    process.channel?.unref();
  }

  /** Aborted by a signal that comes before the kernel is there. */
  get boot(): AbortSignal {
    return this.#boot.signal;
  }

  /** From now on a signal ends this kernel. */
  end(kernel: Kernel): void {
    this.#kernel = kernel;
  }

  #stop(why: string): void {
    if (this.#heard.has(why)) process.exit(EXIT.ok);
    this.#heard.add(why);
    if (this.#heard.size > 1) return;
    this.#terminal.line("stopping: work under way finishes first; once more ends it at once");
    if (this.#kernel === undefined) return this.#boot.abort();
    this.#kernel.close().catch((error: unknown) => {
      this.#terminal.complain(thrownText(error));
      process.exit(EXIT.failed);
    });
  }
}
