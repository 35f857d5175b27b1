/** Whole messages of a client: the scopes of its token apply to each, and its name stands in each. SPEC: W13, W27. */
import type { Rejected } from "../adapters/ndjson-connection.ts";
import type { Message } from "../message/envelope.ts";
import { isFailure } from "../message/error-data.ts";
import { actionOf, type Principal, requireScope } from "./principal.ts";

/** Commands that the loop answers itself, by the action that they need. */
const OF_THE_LOOP: ReadonlySet<string> = new Set(["Sys.Subscribe", "Sys.Unsubscribe", "Sys.Watch", "Sys.Unwatch"]);

/** The message as it goes to the loop, or why it does not. */
export function messageOf(principal: Principal, message: Message): Message | Rejected {
  try {
    require(principal, message);
  } catch (error) {
    if (!isFailure(error)) throw error;
    const { type, metadata } = message;
    return { kind: "refused", code: 403, message: error.message, id: metadata.id, type };
  }
  return { ...message, metadata: { ...message.metadata, principal: principal.name } };
}

function require(principal: Principal, { kind, type }: Message): void {
  switch (kind) {
    case "query":
      return requireScope(principal, "read", type);
    case "event":
      return requireScope(principal, "publish", type);
    case "command":
      return OF_THE_LOOP.has(type) ? requireScope(principal, "read") : requireScope(principal, actionOf(type), type);
    case "reply":
    case "error":
      return;
  }
}
