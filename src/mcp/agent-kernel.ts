/** The kernel as an agent reaches it: over the socket, or as the holder of a token. */
import type { Message } from "../message/envelope.ts";
import type { Json } from "../message/json.ts";
import type { Mint } from "../message/lineage.ts";

/** A type, in the form of `Syscall.Describe`. */
export interface AgentType {
  readonly type: string;
  readonly kind: "command" | "query";
  readonly capability: string;
  readonly description: string;
  readonly input: Json;
  readonly output: Json;
}

export interface AgentKernel {
  /** Makes ids and timestamps. */
  readonly mint: Mint;
  /** The name of the agent; its idempotency keys are its own. */
  readonly principal: string;
  /** Throws a `Failure` if the agent may not use the type. */
  allow(kind: "command" | "query", type: string): void;
  /** The whole answer, a reply or an error. Aborting the signal ends the waiting. */
  request(message: Message, signal: AbortSignal): Promise<Message>;
  pause(ms: number): Promise<void>;
}
