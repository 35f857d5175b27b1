/** The result of an app's function. SPEC: A1. */
import type { AnyEvent } from "./event-definition.ts";
import type { AnyOn } from "./on.ts";
import type { AnyCommand, AnyQuery } from "./request.ts";
import type { ScheduleDefinition } from "./schedule.ts";
import type { WorkerDefinition } from "./worker-commands.ts";

/** The result of the function of an app: its handlers, by their names. */
export interface Definition {
  /** For people and tools. */
  readonly description?: string;
  /** By type, two PascalCase names: `"Shop.Order"`. Each is a transaction, or handled by a worker thread. */
  readonly commands?: Readonly<Record<string, AnyCommand | WorkerDefinition>>;
  /** By type. Synchronous reads, therefore live. */
  readonly queries?: Readonly<Record<string, AnyQuery>>;
  /** By a name that stays: `payment` of the app `shop` is the durable subscriber `shop.payment`. */
  readonly on?: Readonly<Record<string, AnyOn>>;
  /** By a name that stays. */
  readonly schedules?: Readonly<Record<string, ScheduleDefinition>>;
  /** Events that callers may follow with `kernel.events`. Those in `on` are among them. */
  readonly events?: Readonly<Record<string, AnyEvent>>;
}
