/**
 * A stream: an input of a space with exactly one handler. Sends are handled in the order of the space's queue, each in
 * one transaction. It also writes the receipt: the handler's return value, at a place derived from the event's id.
 * Sends are kept in memory. A send that is repeated with the same id, after a crash or by another process, is handled
 * once.
 *
 *     const orders = space.stream("orders", z.object({ item: z.string() }));
 *     orders.handle((order, { newId }) => { stock.key(order.item).update((n = 0) => n - 1); });
 *     const { outcome } = orders.send({ item: "tea" });
 */
import type { Json } from "../message/json.ts";
import type { NodeAddress } from "../scheduler/node.ts";
import type { SendOptions, Sent } from "../scheduler/send.ts";
import type { Attempt } from "../work/attempt.ts";
import { type HandlerFailure, type HandlerOptions, handlerOptionsProblem } from "../work/handler-options.ts";
import { Tx } from "../work/tx.ts";
import { WorkError } from "../work/work-error.ts";
import type { LinkTargets } from "./links.ts";
import { LazyPlace } from "./place.ts";
import { requireValid, type StandardSchema } from "./schema.ts";

/** Handles a sent value in one transaction. */
export type StreamHandler<T> = (value: T, tx: Tx) => unknown;

/** A cell of any type. */
export interface Readable {
  get(): unknown;
}

/** Options of `stream.handle`. */
export interface HandleOptions<T> extends Pick<HandlerOptions<never, Tx, T>, "retry" | "timeoutMs" | "onFailed"> {
  /** For people. Default: the function's name. */
  readonly name?: string;
  /** Cells that the handler reads; may depend on the value. They are loaded and up to date before it is called. */
  readonly reads?: readonly Readable[] | ((value: T) => readonly Readable[]);
  /** Fetches data for the handler, which is called when the promise settles, also if it is rejected. */
  readonly presync?: (value: T) => Promise<unknown>;
  /** Labels that the handler may read; default all. */
  readonly clearance?: readonly string[];
}

const KNOWN: Readonly<Record<keyof HandleOptions<unknown>, true>> = {
  ...{ name: true, reads: true, presync: true, clearance: true },
  ...{ retry: true, timeoutMs: true, onFailed: true },
};

/** A queue of values in a space that one handler takes in order. */
export class Stream<T = unknown> extends LazyPlace {
  readonly #schema: StandardSchema<T> | undefined;

  constructor(address: NodeAddress, targets: LinkTargets, schema?: StandardSchema<T>) {
    super(address, targets);
    this.#schema = schema;
  }

  /** Registers the one handler. The returned function removes it; later sends wait for another handler. */
  handle(handler: StreamHandler<T>, options: HandleOptions<T> = {}): () => void {
    const { name, reads, presync, clearance, timeoutMs, retry, onFailed } = options;
    const { scheduler } = this.targets;
    const problem = handlerOptionsProblem(options, KNOWN);
    if (problem !== undefined) throw new WorkError("WORK_MISUSE", problem);
    const outbox = this.targets.outbox(String(this));
    const failed = (hook: NonNullable<typeof onFailed>) => (failure: HandlerFailure, attempt: Attempt, value: Json) =>
      hook(failure, new Tx(attempt, outbox, undefined), value as T);
    const run = (value: Json, attempt: Attempt) => handler(value as T, new Tx(attempt, outbox, undefined));
    return scheduler.parts.events.addHandler(run, this.address, {
      name: name ?? (handler.name || `the handler of ${this}`),
      ...(clearance === undefined ? {} : { clearance }),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
      ...(retry === undefined ? {} : { retry }),
      ...(onFailed === undefined ? {} : { onFailed: failed(onFailed) }),
      ...(reads === undefined ? {} : { preflight: (value: Json) => readAll(reads, value as T) }),
      ...(presync === undefined ? {} : { presync: (value: Json) => presync(value as T) }),
    });
  }

  /** Sends a value; inside a handler or a transaction, only if that commits. Refused inside a computation. */
  send(value: T, options?: SendOptions): Sent {
    if (this.#schema) requireValid(this.#schema, value, String(this));
    return this.targets.scheduler.queueEvent(this.address, value, options);
  }

  override toString(): string {
    return `stream ${this.address}`;
  }
}

function readAll<T>(reads: readonly Readable[] | ((value: T) => readonly Readable[]), value: T): void {
  for (const cell of typeof reads === "function" ? reads(value) : reads) cell.get();
}
