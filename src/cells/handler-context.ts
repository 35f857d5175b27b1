/**
 * What a stream's handler may do. Synchronous code needs little of it: cells and streams find the handling by themselves. What comes
 * after an await has lost that context and goes through `get`, `set`, `send`, or takes it up with `within`. Everything happens with
 * the handling's commit or not at all.
 */
import type { Json } from "../message/json.ts";
import type { Handling } from "../scheduler/handling.ts";
import type { SendOptions, Sent } from "../scheduler/send.ts";
import type { Launch } from "../work/lineage.ts";
import type { Cell } from "./cell.ts";
import type { Stream } from "./stream.ts";

export interface HandlerContext {
  /** The event's id: the same in every attempt and wherever it is sent again. */
  readonly eventId: string;
  /** Counts from 1; more than one where commits were stale. */
  readonly attempt: number;
  /** An id that follows from the event's, by a name or by counting: a repeated handling makes the same things, not others. */
  newId(name?: string): string;
  /** Runs synchronous code as part of the handling. Not for code that awaits; each stretch between two awaits needs its own. */
  within<T>(code: () => T): T;
  get<T>(cell: Cell<T>): T;
  set<T>(cell: Cell<T>, value: T): void;
  delete(cell: Cell<unknown>): void;
  /** Sends to another stream, or this one: handled only if this handling commits. */
  send<T>(stream: Stream<T>, value: T, options?: SendOptions): Sent;
  /** Publishes an event in the handling's own commit. */
  emit(topic: string, data: Json): void;
  /** Ties other work to this attempt: it is told when the commit is applied, confirmed, or has failed. */
  launch(launch: Launch): void;
}

/** Each operation is made when it is asked for: a handler uses few of them, and may take them out of the context. */
class Context implements HandlerContext {
  readonly #handling: Handling;

  constructor(handling: Handling) {
    this.#handling = handling;
  }

  get eventId(): string {
    return this.#handling.send.id;
  }

  get attempt(): number {
    return this.#handling.send.attempts;
  }

  get newId(): HandlerContext["newId"] {
    return (name) => this.#handling.newId(name);
  }

  get within(): HandlerContext["within"] {
    return (code) => this.#handling.within(code);
  }

  get get(): HandlerContext["get"] {
    return (cell) => this.#handling.within(() => cell.get());
  }

  get set(): HandlerContext["set"] {
    return (cell, value) => this.#handling.within(() => cell.set(value));
  }

  get delete(): HandlerContext["delete"] {
    return (cell) => this.#handling.within(() => cell.delete());
  }

  get send(): HandlerContext["send"] {
    return (stream, value, options) => this.#handling.within(() => stream.send(value, options));
  }

  get emit(): HandlerContext["emit"] {
    return (topic, data) => this.#handling.emit(topic, data);
  }

  get launch(): HandlerContext["launch"] {
    return (launch) => this.#handling.lineage.launch(launch);
  }
}

export function contextOf(handling: Handling): HandlerContext {
  return new Context(handling);
}
