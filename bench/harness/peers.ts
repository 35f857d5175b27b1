/**
 * The peers' packages. They are dependencies of `bench/peers/package.json`, not of Millrace: the first benchmark
 * installs them, so that tests and users of Millrace do not need them. Without network the peers are left out, with the
 * reason.
 *
 * They have a folder of their own, so that code beside it can import the package by its name, as users do. A link leads
 * to the peers from there.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = dirname(dirname(fileURLToPath(import.meta.url)));
const PEERS = join(HERE, "peers");
const LINK = join(HERE, "node_modules");
const INSTALL = ["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"];
const INSTALL_MS_MAX = 120_000;

let installed: string | undefined | "not tried" = "not tried";
let leftOut = false;

/** Why a peer's package cannot be used, if it cannot. Installs the packages first where they are missing. */
export function whyPeerMissing(name: string): string | undefined {
  if (leftOut) return "left out by --no-peers";
  if (versionOf(name) !== undefined) return undefined;
  if (installed === "not tried") installed = install();
  if (installed !== undefined) return installed;
  return versionOf(name) === undefined ? `${name} is not in bench/peers/package.json` : undefined;
}

export function leaveOutPeers(): void {
  leftOut = true;
}

function versionOf(name: string): string | undefined {
  const file = join(HERE, "node_modules", name, "package.json");
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version : undefined;
}

function install(): string | undefined {
  process.stderr.write("bench: installing the peers of bench/peers/package.json (only the first time)\n");
  const shell = process.platform === "win32";
  const npm = spawnSync("npm", INSTALL, { cwd: PEERS, stdio: ["ignore", 2, 2], shell, timeout: INSTALL_MS_MAX });
  if (npm.status !== 0) return `"npm ${INSTALL[0]}" in bench/peers failed, with the reason above`;
  // A broken link, or packages of an older checkout.
  rmSync(LINK, { recursive: true, force: true });
  symlinkSync(join(PEERS, "node_modules"), LINK, "junction");
  return undefined;
}
