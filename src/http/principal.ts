/**
 * Principals: the holders of tokens, and their scopes. SPEC: W27.
 *
 *     read            queries, live queries, events, views          read:Shop.*     of these types only
 *     send            commands of apps                              send:Shop.*
 *     publish         events                                        publish:Order.*
 *     operate         commands of the kernel: requeue, purge, shutdown
 *
 * A pattern is a type, or the beginning of one with `*` at its end.
 */
import { Failure } from "../message/error-data.ts";

/** The sender of requests: a name, its scopes and its clearance. */
export interface Principal {
  /** Stands in the metadata of each message that it sends. */
  readonly name: string;
  readonly scopes: readonly string[];
  /** The clearance of its requests; without one it is unlimited. */
  readonly clearance?: readonly string[];
}

const ACTIONS = ["read", "send", "publish", "operate"] as const;
export type Action = (typeof ACTIONS)[number];

const SCOPE = /^([a-z]+)(?::([A-Z][A-Za-z0-9]*(?:\.[A-Z]?[A-Za-z0-9]*)?\*?|\*))?$/;
/** Commands to the kernel itself. */
const OPERATOR = /^(?:Kernel|Syscall)\./;

/** Why a text is no scope; undefined if it is one. */
export function scopeProblem(scope: string): string | undefined {
  const [, action, pattern] = SCOPE.exec(scope) ?? [];
  if (!ACTIONS.includes(action as Action))
    return `"${scope}" is no scope; use ${ACTIONS.join(", ")}, or one of them with a pattern, like send:Shop.*`;
  return action === "operate" && pattern !== undefined ? "operate takes no pattern" : undefined;
}

/** The action that a command needs. */
export function actionOf(command: string): Action {
  return OPERATOR.test(command) ? "operate" : "send";
}

/** Throws a `Failure` 403 if none of the scopes allows the action on the type. */
export function requireScope(principal: Principal, action: Action, type?: string): void {
  if (principal.scopes.some((scope) => covers(scope, action, type))) return;
  const wanted = type === undefined || action === "operate" ? action : `${action}:${type}`;
  throw new Failure(403, `the token "${principal.name}" lacks the scope ${wanted}; add one with: millrace token add`);
}

function covers(scope: string, action: Action, type: string | undefined): boolean {
  const [ofScope, pattern] = scope.split(":");
  if (ofScope !== action) return false;
  if (pattern === undefined || pattern === "*") return true;
  if (type === undefined) return false;
  return pattern.endsWith("*") ? type.startsWith(pattern.slice(0, -1)) : type === pattern;
}
