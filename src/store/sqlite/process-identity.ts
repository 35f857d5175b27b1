/**
 * Identifies the process that holds a lease, so that another process on the same machine can tell that it is dead.
 *
 * The identity is (boot id, process namespace, process id, start time). All four are needed: process ids are reused,
 * and look dead from another container that shares the file. On systems other than Linux no process is provably dead,
 * and a lease ends only by its expiry.
 */
import { readFileSync, readlinkSync } from "node:fs";
import { pid } from "node:process";

interface Identity {
  /** Boot and namespace: process ids are comparable within both. */
  readonly place: string;
  readonly pid: number;
  readonly start: string;
}

let own: string | undefined;
let known = false;

/** The identity of this process; undefined if unavailable. */
export function ownIdentity(): string | undefined {
  if (known) return own;
  known = true;
  const place = ownPlace();
  const start = place === undefined ? undefined : startOf(pid);
  own = place === undefined || start === undefined ? undefined : `${place} ${pid} ${start}`;
  return own;
}

export function isProvablyDead(identity: string): boolean {
  const mine = parse(ownIdentity());
  const theirs = parse(identity);
  if (!mine || !theirs || mine.place !== theirs.place) return false;
  // A different start time means that the id was reused.
  return startOf(theirs.pid) !== theirs.start;
}

function parse(identity: string | undefined): Identity | undefined {
  const [place, number, start] = identity?.split(" ") ?? [];
  if (place === undefined || number === undefined || start === undefined) return undefined;
  return { place, pid: Number(number), start };
}

function ownPlace(): string | undefined {
  const boot = readOrUndefined(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim());
  const namespace = readOrUndefined(() => readlinkSync("/proc/self/ns/pid"));
  return boot === undefined || namespace === undefined ? undefined : `${boot}/${namespace}`;
}

/**
 * Clock ticks since boot at the start of the process: field 22, counted after the name, which may contain any
 * character.
 */
function startOf(process: number): string | undefined {
  const stat = readOrUndefined(() => readFileSync(`/proc/${process}/stat`, "utf8"));
  const fields = stat?.slice(stat.lastIndexOf(")") + 2).split(" ");
  // A zombie has ended; its parent has not collected it yet.
  return fields?.[0] === "Z" ? undefined : fields?.[19];
}

/** Undefined if unreadable: the process has ended, or this is not Linux. */
function readOrUndefined(read: () => string): string | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
