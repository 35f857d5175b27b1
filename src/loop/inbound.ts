/** What stands in a lane: a message and where it came from. Where it came from decides who may be answered, and by whom. */
import type { Message } from "../message/envelope.ts";
import type { SupervisedActor } from "./supervised-actor.ts";

/** One client of an adapter. Messages that are delivered to it are answers, or events it asked for. */
export interface Connection {
  readonly id: string;
  readonly adapter: string;
  deliver(message: Message): void;
}

/** Who asks, and therefore who gets the answer. */
export type Origin =
  | { readonly kind: "adapter"; readonly connection: Connection }
  | { readonly kind: "actor"; readonly actor: SupervisedActor }
  /** A caller in this process. */
  | { readonly kind: "caller"; readonly answer: (answer: Message) => void }
  /** The loop itself, timers and the journal: nobody waits. */
  | { readonly kind: "nobody" };

export interface Inbound {
  readonly message: Message;
  readonly origin: Origin;
}

export const NOBODY: Origin = { kind: "nobody" };

/** The lanes a message can be put into; microtasks are the loop's own (RFC 0032 §8.1). */
export type LaneName = "system" | "user";

/** Where a message goes whose sender did not say: `Sys.*` to the system lane (§8.2). `Syscall.*` is not `Sys.*`. */
export function laneOf(type: string): LaneName {
  return type.startsWith("Sys.") ? "system" : "user";
}
