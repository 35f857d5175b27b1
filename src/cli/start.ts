/**
 * `millrace start [app]`: runs a kernel until it is stopped (`stop-signals.ts`) or gets `Syscall.Shutdown` over its
 * socket. SPEC: K14, K22, K60.
 */

import { systemHost } from "../host/system-host.ts";
import { LOOPBACK_HOSTS } from "../http/gate.ts";
import type { HttpServer } from "../http/serve-http.ts";
import { configuredOptions } from "../kernel/configured-options.ts";
import { type DataDirectory, dataDirectory, makeDataDirectory } from "../kernel/data-directory.ts";
import { FaultLines } from "../kernel/fault-lines.ts";
import { InstanceLock } from "../kernel/instance-lock.ts";
import { Kernel } from "../kernel/kernel.ts";
import type { KernelHealth } from "../kernel/kernel-options.ts";
import { isDatabaseUrl, openStore, storePlaceText } from "../kernel/open-store.ts";
import { servePipes } from "../kernel/piped-kernel.ts";
import { readSettings, type Settings } from "../kernel/settings.ts";
import { visibleLine } from "../message/visible-text.ts";
import { counted } from "./journal-lines.ts";
import { exposedIn } from "./mcp.ts";
import { runtimeName } from "./runtime.ts";
import { StopSignals } from "./stop-signals.ts";
import type { Terminal } from "./terminal.ts";
import { EXIT, type ExitCode, readNumber, UsageError, type Verb, type VerbCall } from "./verb.ts";
import { packageVersion } from "./version.ts";

/** Limit of named pieces that could not be resumed; `Kernel.Health` lists all of them. */
const PIECES_NAMED_MAX = 10;

export const start: Verb = {
  name: "start",
  usage:
    "[app] [--store URL] [--stdio] [--http PORT] [--http-address IP] [--http-host NAMES] [--cors ORIGINS] [--mcp TYPES]",
  summary: "run a kernel with an app in this directory until it is stopped",
  example:
    "millrace start app.ts\nmillrace start app.ts --store postgres://app@db.example/shop\nmillrace start app.ts --http 4646\nmillrace start app.ts --stdio < requests.ndjson",
  options: {
    store: { type: "string", value: "URL", about: "the Postgres database of the store; also MILLRACE_STORE" },
    stdio: {
      type: "boolean",
      about: "also take NDJSON on standard input, answer on standard output, end with the input",
    },
    http: {
      type: "string",
      value: "PORT",
      about: "also serve HTTP and WebSocket on this port; 0: any free one; 4646+: that one if it is free",
    },
    "http-address": { type: "string", value: "IP", about: "listen on this address; default 127.0.0.1" },
    "http-host": { type: "string", value: "NAMES", about: "host names of this server, separated by commas" },
    cors: { type: "string", value: "ORIGINS", about: "origins of pages that may send requests, separated by commas" },
    mcp: { type: "string", value: "TYPES", about: "with --http: serve these types to agents at /mcp, like 'Tasks.*'" },
  },
  wordsMax: 1,
  run,
};

async function run({ words: [appPath], options, environment, terminal: own }: VerbCall): Promise<ExitCode> {
  const isPiped = options["stdio"] === true;
  const terminal = isPiped ? besideAnswers(own) : own;
  const host = systemHost();
  const began = host.monotonic();
  const faults = new FaultLines(host, (text) => terminal.complain(text));
  const stops = new StopSignals(host, terminal, faults);
  const directory = dataDirectory(environment);
  if (makeDataDirectory(directory))
    terminal.complain(`${directory.path} was open to others; it is its owner's alone now`);
  using _lock = InstanceLock.take(directory);
  const settings = await readSettings({
    environment,
    folder: process.cwd(),
    code: { app: appPath, store: readStore(options) },
  });
  const configured = await loaded(terminal, settings, configuredOptions(settings, directory));
  const place = settings.store.value ?? directory.databaseFile;
  const store = await openStore(host, place, {
    durability: settings.durability.value,
    payloadBytesMax: settings.payloadBytesMax.value,
  });
  const kernel = await Kernel.open({
    ...{ ...configured, host, store, socketPath: directory.socketFile, trace: true, alone: !isDatabaseUrl(place) },
    ...{ observeFaults: faults.observe, signal: stops.boot },
  }).catch((error: unknown) => {
    if (error !== stops.boot.reason) throw error;
  });
  if (kernel === undefined) {
    terminal.line("stopped before it was ready");
    return stops.exitCode;
  }
  // Before a client can know that it is ready.
  stops.end(kernel);
  const http = await serveIfAsked(kernel, options).catch(async (error: unknown) => {
    await kernel.close();
    throw error;
  });
  sayReady(terminal, {
    ...{ directory, place, settings, health: kernel.health(), readyMs: Math.round(host.monotonic() - began) },
    http: http?.url,
  });
  if (settings.app.value === undefined && configured.extensions === undefined)
    terminal.line("  no app was named: only the capabilities of every kernel are on; millrace start app.ts");
  if (isPiped) void servePipes(host, kernel, { input: process.stdin, output: process.stdout });
  await kernel.closed();
  terminal.line("stopped");
  return stops.exitCode;
}

function readStore({ store }: VerbCall["options"]): string | undefined {
  return typeof store === "string" ? store : undefined;
}

const PORT_MAX = 65_535;

/** The server's packages are loaded only if it is asked for. */
async function serveIfAsked(kernel: Kernel, options: VerbCall["options"]): Promise<HttpServer | undefined> {
  const asked = typeof options["http"] === "string" ? options["http"] : undefined;
  const port = readNumber("http", asked?.replace(/\+$/, ""), { min: 0, max: PORT_MAX });
  const mcp = typeof options["mcp"] === "string" ? { expose: exposedIn("mcp", options["mcp"]) } : undefined;
  if (port === undefined) {
    if (mcp) throw new UsageError("--mcp needs a server: --http PORT");
    return undefined;
  }
  const { HttpError, serveHttp } = await import("../http/serve-http.ts");
  const { "http-address": address, "http-host": hosts, cors } = options;
  const serving = {
    ...(typeof address === "string" ? { address } : {}),
    ...(typeof hosts === "string" ? { hosts: [...LOOPBACK_HOSTS, ...hosts.split(",")] } : {}),
    ...(typeof cors === "string" ? { cors: cors.split(",") } : {}),
    ...(mcp === undefined ? {} : { mcp }),
  };
  return serveHttp(kernel, { ...serving, port }).catch((error: unknown) => {
    if (!asked?.endsWith("+") || !(error instanceof HttpError && isAddressTaken(error.cause))) throw error;
    return serveHttp(kernel, { ...serving, port: 0 });
  });
}

function isAddressTaken(cause: unknown): boolean {
  return cause instanceof Error && "code" in cause && cause.code === "EADDRINUSE";
}

/** Standard output is for answers: the command's lines and the app's console go to standard error. */
function besideAnswers(terminal: Terminal): Terminal {
  const { error } = console;
  Object.assign(console, { log: error, info: error, debug: error });
  return { ...terminal, line: (text = "") => void process.stderr.write(`${visibleLine(text)}\n`) };
}

/**
 * The app's module may await a promise that never resolves. If no other work is left, Node would exit without an
 * explanation.
 */
async function loaded<T>(terminal: Terminal, { app }: Settings, loading: Promise<T>): Promise<T> {
  const stuck = () => {
    terminal.complain(
      `${app.value} never finished loading: it awaits, outside of any function, a promise that does not settle`,
    );
    process.exit(EXIT.failed);
  };
  process.once("beforeExit", stuck);
  try {
    return await loading;
  } finally {
    process.off("beforeExit", stuck);
  }
}

interface Ready {
  readonly directory: DataDirectory;
  /** The file or the URL of the store. */
  readonly place: string;
  readonly settings: Settings;
  readonly health: KernelHealth;
  readonly readyMs: number;
  readonly http: string | undefined;
}

function sayReady(terminal: Terminal, { directory, place, settings, health, readyMs, http }: Ready): void {
  const { routes, subscriptions, actors, nodes, liveNodes, recovered, extensions, pieces, piecesLeft } = health;
  const backend = isDatabaseUrl(place) ? "postgres" : "sqlite";
  const store = `store ${storePlaceText(place)} (${backend}, durability ${settings.durability.value})`;
  terminal.line(
    `${terminal.strong(`millrace ${packageVersion()}`)} · ${runtimeName()} · ${store} · ready in ${readyMs} ms`,
  );
  const active = extensions.filter(({ state }) => state === "ACTIVE").length;
  const wrong = extensions.filter(({ state }) => state === "ERROR").length;
  const loaded = extensions.length === 0 ? "" : `   extensions ${active}${wrong === 0 ? "" : ` (${wrong} failed)`}`;
  const running = pieces === 0 ? "" : `   pieces ${pieces}`;
  terminal.line(
    `  routes ${routes}   subscriptions ${subscriptions}   actors ${Object.keys(actors).length}   nodes ${nodes} (${liveNodes} live)${running}${loaded}`,
  );
  terminal.line(`  socket ${directory.socketFile}   pid ${process.pid}`);
  if (http !== undefined)
    terminal.line(`  http ${http}   (a client needs a token: millrace token add NAME --scope read)`);
  const again = `that an earlier kernel had in hand ${recovered === 1 ? "is" : "are"} delivered again`;
  if (recovered > 0) terminal.line(`  ${counted(recovered, "event")} ${again}`);
  for (const { id, reason } of piecesLeft.slice(0, PIECES_NAMED_MAX))
    terminal.complain(`piece ${id} does not run: ${reason}`);
  if (piecesLeft.length > PIECES_NAMED_MAX)
    terminal.complain(`and ${piecesLeft.length - PIECES_NAMED_MAX} more; see: millrace query Kernel.Health`);
}
