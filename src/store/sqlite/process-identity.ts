/**
 * Which process holds a lease, named so that another one on the same machine can see that it is dead.
 *
 * The name is (boot of the machine, process namespace, process id, start time of the process). All four are needed: a number
 * alone is reused, and looks dead from another container that shares the file. Where the operating system does not tell
 * (anything but Linux), nobody is provably dead and a lease ends by its expiry alone.
 */
import { readFileSync, readlinkSync } from "node:fs";
import { pid } from "node:process";

interface Identity {
  /** Boot and namespace: where process ids can be compared. */
  readonly place: string;
  readonly pid: number;
  readonly start: string;
}

let own: string | undefined;
let known = false;

/** The name of this process, or undefined where there is none to be had. */
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
  // Another start time under that number: the number was given to a new process.
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

/** Clock ticks since boot at which the process started: field 22, counted behind the name, which may hold anything. */
function startOf(process: number): string | undefined {
  const stat = readOrUndefined(() => readFileSync(`/proc/${process}/stat`, "utf8"));
  const fields = stat?.slice(stat.lastIndexOf(")") + 2).split(" ");
  // A zombie has ended; only its parent has not asked yet.
  return fields?.[0] === "Z" ? undefined : fields?.[19];
}

/** What cannot be read is not there: the process is gone, or this is no Linux. */
function readOrUndefined(read: () => string): string | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
