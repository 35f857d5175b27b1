/**
 * The operator's name in the journal: user and machine.
 */
import { hostname, userInfo } from "node:os";

export function operatorName(): string {
  return `${userName()}@${hostname()}`;
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A user without an entry in the system's list, as in containers.
    return `uid ${process.getuid?.() ?? "unknown"}`;
  }
}
