/** Names of apps: of their spaces, their capabilities and the commands that the kernel sends to them. SPEC: A5. */
import { show } from "../message/problem.ts";

const NAME = /^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/;
/** Capabilities and spaces of the kernel itself. */
const RESERVED: ReadonlySet<string> = new Set([
  ...[
    "access",
    "health",
    "syscall",
    "shutdown",
    "inspector",
    "operator",
    "eraser",
    "journal",
    "memory",
    "timer",
    "timers",
    "kernel",
  ],
]);

/** Throws for a name that no app can have. */
export function requireAppName(what: string, name: unknown): void {
  if (typeof name === "string" && NAME.test(name) && !RESERVED.has(name)) return;
  throw new TypeError(
    `${what}: a name is a word like shop or order-desk, and none of the kernel's own; got ${show(name)}`,
  );
}
