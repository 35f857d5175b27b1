/**
 * The folder of a socket. A user with write access to it can replace the socket, so a folder that others may write to
 * is refused. A missing folder is created for its owner only; an existing one is never changed. SPEC: N10, N22.
 */
import { chmodSync, mkdirSync, statSync } from "node:fs";
import { thrownText } from "../message/error-data.ts";
import { SocketError } from "./socket-error.ts";

const OWNER_ONLY = 0o700;
const WRITABLE_BY_OTHERS = 0o022;
const ROOT = 0;

/** Creates the folder, whose parent must exist, or checks an existing one. */
export function requireSocketFolder(folder: string): void {
  try {
    if (!statSync(folder, { throwIfNoEntry: false })) return makeOwn(folder);
  } catch (error) {
    const why = thrownText(error);
    throw new SocketError("SOCKET_FAILED", `the socket's folder ${folder} cannot be used: ${why}`, { cause: error });
  }
  const problem = unsafety(folder);
  if (problem) throw new SocketError("SOCKET_UNSAFE", problem);
}

function makeOwn(folder: string): void {
  mkdirSync(folder, { mode: OWNER_ONLY });
  // The umask may have removed rights of the owner too.
  chmodSync(folder, OWNER_ONLY);
}

function unsafety(folder: string): string | undefined {
  const user = process.getuid?.();
  // Windows has neither owners nor modes of this kind.
  if (user === undefined) return undefined;
  const { uid, mode } = statSync(folder);
  const advice = "name a socket in a folder of its own, which is made with mode 700";
  if (uid !== user && uid !== ROOT)
    return `the socket's folder ${folder} belongs to another user (${uid}), who could replace the socket; ${advice}`;
  if ((mode & WRITABLE_BY_OTHERS) === 0) return undefined;
  const shown = (mode & 0o777).toString(8);
  return `others may write to the socket's folder ${folder} (mode ${shown}) and replace the socket; ${advice}, or run: chmod go-w ${folder}`;
}
