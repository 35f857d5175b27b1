/**
 * The servers that some peers need, private to a run: started in its scratch directory, reached through a Unix socket
 * there (no port to collide on, and the fastest way the peers have), ended by their own process id. It installs nothing
 * and touches no server that the machine already runs; where the programs are missing, it says which package has them.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, closeSync, existsSync, openSync, readdirSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { delimiter, dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import type { Scene } from "../harness/benchmark.ts";
import type { Durability } from "../store/durability.ts";

const READY_MS_MAX = 20_000;
const READY_POLL_MS = 5;
const DEBIAN_POSTGRES = "/usr/lib/postgresql";

export function whyRedisMissing(): string | undefined {
  return pathTo("redis-server") ? undefined : "redis-server is not installed (Debian: apt-get install redis-server)";
}

export function whyPostgresMissing(): string | undefined {
  if (!postgresPrograms()) return "postgres and initdb are not installed (Debian: apt-get install postgresql)";
  if (isRoot() && !unprivileged()) return "Postgres refuses to run as root, and there is no user postgres or nobody";
  return undefined;
}

/** A running server. */
export class Service implements AsyncDisposable {
  /** The address for clients: Redis' socket, or the directory of Postgres' socket. */
  readonly socket: string;
  readonly #child: ChildProcess;
  readonly #ending: NodeJS.Signals;
  readonly #onExit = () => void this.#child.kill(this.#ending);

  constructor(socket: string, child: ChildProcess, ending: NodeJS.Signals) {
    this.socket = socket;
    this.#child = child;
    this.#ending = ending;
    // An interrupted run leaves no server behind; before the scratch directory is removed under it.
    process.prependOnceListener("exit", this.#onExit);
  }

  /** Until `isReady`, or until it is clear that it will not be. */
  async ready(isReady: () => boolean | Promise<boolean>, log: string): Promise<this> {
    const deadline = performance.now() + READY_MS_MAX;
    while (!(await isReady())) {
      if (this.#child.exitCode !== null || performance.now() > deadline) {
        await this[Symbol.asyncDispose]();
        throw new Error(`${this.#child.spawnfile} did not start:\n${readFileSync(log, "utf8").slice(-2_000)}`);
      }
      await wait(READY_POLL_MS);
    }
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    process.off("exit", this.#onExit);
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, "exit");
    this.#child.kill(this.#ending);
    await ended;
  }
}

/**
 * `power`: every answer waits for the append-only file's flush. `process`: the file is written and the system flushes
 * it.
 */
export function startRedis(directory: string, durability: Durability): Promise<Service> {
  const socket = join(directory, "redis.sock");
  const log = join(directory, "redis.log");
  const settings = {
    port: "0",
    unixsocket: socket,
    dir: directory,
    save: "",
    appendonly: "yes",
    appendfsync: durability === "power" ? "always" : "no",
  };
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
  const child = spawnLogged(pathTo("redis-server")!, args, directory, log);
  return new Service(socket, child, "SIGTERM").ready(() => isListening(socket), log);
}

/** The file of a socket exists before the server listens. */
async function isListening(socket: string): Promise<boolean> {
  const connection = connect(socket);
  const { promise, resolve } = Promise.withResolvers<boolean>();
  connection.once("connect", () => resolve(true)).once("error", () => resolve(false));
  const isThere = await promise;
  connection.destroy();
  return isThere;
}

/** A server on a fresh copy of an empty cluster, with the defaults, of which `synchronous_commit` on is one. */
export async function startPostgres({ directory, shared }: Scene): Promise<Service> {
  const programs = postgresPrograms()!;
  const user: Partial<User> = isRoot() ? unprivileged()! : {};
  const cluster = await shared("postgres", async (made) => {
    handOver(made, user);
    const args = ["-D", join(made, "data"), "-U", POSTGRES_USER, "--auth=trust", "--encoding=UTF8", "--locale=C"];
    execFileSync(programs.initdb, args, { cwd: made, stdio: "ignore", ...user });
  });
  handOver(directory, user);
  const data = join(directory, "data");
  execFileSync("cp", ["-a", join(cluster, "data"), data], { cwd: directory, ...user });
  const log = join(directory, "postgres.log");
  const args = ["-D", data, "-k", directory, "-c", "listen_addresses=", "-c", "synchronous_commit=on"];
  const child = spawnLogged(programs.postgres, args, directory, log, user);
  // Ended at once and without a checkpoint: the data goes with the directory.
  return await new Service(directory, child, "SIGQUIT").ready(() => isPostgresReady(data), log);
}

export const POSTGRES_USER = "bench";

function spawnLogged(program: string, args: readonly string[], cwd: string, log: string, user: Partial<User> = {}) {
  const output = openSync(log, "w");
  try {
    return spawn(program, args, { cwd, stdio: ["ignore", output, output], ...user });
  } finally {
    closeSync(output);
  }
}

/** The last line of the file says so, when it is. */
function isPostgresReady(data: string): boolean {
  const file = join(data, "postmaster.pid");
  return existsSync(file) && readFileSync(file, "utf8").trimEnd().endsWith("ready");
}

interface User {
  readonly uid: number;
  readonly gid: number;
}

/** Makes a directory the server's own, and the scratch directory above it one that its user may pass through. */
function handOver(directory: string, { uid, gid }: Partial<User>): void {
  if (uid === undefined || gid === undefined) return;
  chmodSync(dirname(directory), 0o711);
  chownSync(directory, uid, gid);
}

function isRoot(): boolean {
  return process.getuid?.() === 0;
}

function unprivileged(): User | undefined {
  const accounts = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .map((line) => line.split(":"));
  for (const name of ["postgres", "nobody"]) {
    const account = accounts.find(([login]) => login === name);
    if (account) return { uid: Number(account[2]), gid: Number(account[3]) };
  }
  return undefined;
}

function postgresPrograms(): { readonly postgres: string; readonly initdb: string } | undefined {
  const postgres = pathTo("postgres", debianPostgres());
  const initdb = postgres && join(dirname(postgres), "initdb");
  return initdb && existsSync(initdb) ? { postgres, initdb } : undefined;
}

/** Where Debian puts them, off the path; the newest version first. */
function debianPostgres(): readonly string[] {
  if (!existsSync(DEBIAN_POSTGRES)) return [];
  const versions = readdirSync(DEBIAN_POSTGRES).toSorted((a, b) => Number(b) - Number(a));
  return versions.map((version) => join(DEBIAN_POSTGRES, version, "bin"));
}

function pathTo(program: string, first: readonly string[] = []): string | undefined {
  const directories = [...first, ...(process.env["PATH"] ?? "").split(delimiter)];
  return directories.map((directory) => join(directory, program)).find((path) => existsSync(path));
}
