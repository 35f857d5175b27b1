/** Whole messages of a client: the scopes of its token apply to each, and its name stands in each. SPEC: W13, W27. */
import type { Rejected } from "../adapters/ndjson-connection.ts";
import type { Message } from "../message/envelope.ts";
import { Failure, isFailure } from "../message/error-data.ts";
import { isJsonObject, type Json } from "../message/json.ts";
import { actionOf, type Principal, requireScope } from "./principal.ts";

/** Commands that end a stream of the client itself. */
const ENDS: ReadonlySet<string> = new Set(["Sys.Unsubscribe", "Sys.Unwatch"]);

/** The message as it goes to the loop, or why it does not. */
export function scopedMessage(principal: Principal, message: Message): Message | Rejected {
  try {
    require(principal, message);
  } catch (error) {
    if (!isFailure(error)) throw error;
    const { type, metadata } = message;
    return { kind: "refused", code: 403, message: error.message, id: metadata.id, type };
  }
  return { ...message, metadata: { ...message.metadata, principal: principal.name } };
}

function require(principal: Principal, { kind, type, data }: Pick<Message, "kind" | "type" | "data">): void {
  switch (kind) {
    case "query":
      return requireScope(principal, "read", type);
    case "event":
      return requireScope(principal, "publish", type);
    case "command":
      return requireCommand(principal, type, data);
    case "reply":
    case "error":
      return;
  }
}

/**
 * A command that carries a message to be sent later needs the scope of that message too: a journaled command or a timer
 * would otherwise lend its authority to each holder of `send`. Malformed data is left to the schema of the command.
 */
export function requireCommand(principal: Principal, type: string, data: Json): void {
  if (ENDS.has(type)) return;
  if (type === "Sys.Subscribe") return requireScope(principal, "read");
  if (type === "Sys.Watch") return requireScope(principal, "read", watchedType(data));
  requireScope(principal, actionOf(type), type);
  if (!isJsonObject(data)) return;
  if (type === "Journal.Publish") return requireCarried(principal, { ...data, kind: "event" });
  if (type === "Journal.Send") return requireCarried(principal, { ...data, kind: "command" });
  if (type === "Timer.Set" || type === "Timer.Every") return requireCarried(principal, data["message"]);
}

function requireCarried(principal: Principal, carried: Json | undefined): void {
  if (carried === undefined || !isJsonObject(carried)) return;
  const { kind, type, data = null, metadata } = carried;
  if (typeof type !== "string" || (kind !== "command" && kind !== "query" && kind !== "event")) return;
  const named = metadata !== undefined && isJsonObject(metadata) ? metadata["principal"] : undefined;
  if (named !== undefined && named !== principal.name)
    throw new Failure(403, `the message names another principal than "${principal.name}"`);
  require(principal, { kind, type, data });
}

function watchedType(data: Json): string | undefined {
  const type = isJsonObject(data) ? data["type"] : undefined;
  return typeof type === "string" ? type : undefined;
}
