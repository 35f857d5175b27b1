/**
 * What a stream's handler may do. Synchronous code needs little of it: cells and streams find the handling by themselves. What comes
 * after an await has lost that context and goes through `get`, `set`, `send`, or takes it up with `within`. Everything happens with
 * the handling's commit or not at all.
 */
import type { Json } from "../message/json.ts";
import type { Handling } from "../scheduler/handling.ts";
import type { Launch } from "../scheduler/lineage.ts";
import type { SendOptions, Sent } from "../scheduler/send.ts";
import type { Cell } from "./cell.ts";
import type { Stream } from "./stream.ts";

export class HandlerContext {
  readonly #handling: Handling;

  constructor(handling: Handling) {
    this.#handling = handling;
  }

  /** The event's id: the same in every attempt and wherever it is sent again. */
  get eventId(): string {
    return this.#handling.send.id;
  }

  /** Counts from 1; more than one where commits were stale. */
  get attempt(): number {
    return this.#handling.send.attempts;
  }

  /** An id that follows from the event's, by a name or by counting: a repeated handling makes the same things, not others. */
  newId(name?: string): string {
    return this.#handling.newId(name);
  }

  /** Runs synchronous code as part of the handling. Not for code that awaits; each stretch between two awaits needs its own. */
  within<T>(code: () => T): T {
    return this.#handling.within(code);
  }

  get<T>(cell: Cell<T>): T | undefined {
    return this.within(() => cell.get());
  }

  set<T>(cell: Cell<T>, value: T): void {
    this.within(() => cell.set(value));
  }

  delete(cell: Cell<unknown>): void {
    this.within(() => cell.delete());
  }

  /** Sends to another stream, or this one: handled only if this handling commits. */
  send<T>(stream: Stream<T>, value: T, options?: SendOptions): Sent {
    return this.within(() => stream.send(value, options));
  }

  /** Publishes an event in the handling's own commit. */
  emit(topic: string, data: Json): void {
    this.#handling.emit(topic, data);
  }

  /** Ties other work to this attempt: it is told when the commit is applied, confirmed, or has failed. */
  launch(launch: Launch): void {
    this.#handling.lineage.launch(launch);
  }
}
