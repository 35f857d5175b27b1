/**
 * Handlers of events. A function is a transaction: its effect happens exactly once. With `run`, the handler first calls
 * the outside world, at least once, and then commits the result, once. SPEC: A15-A19.
 */
import type { Failure } from "../message/error-data.ts";
import { show } from "../message/problem.ts";
import type { Retry } from "../work/retry-policy.ts";
import type { Duration } from "./duration.ts";
import { EventDefinition } from "./event-definition.ts";
import type { AppTx } from "./request.ts";

/** Options of `on`. `Data` is the data of the event. */
export interface OnOptions<Data = unknown> {
  /** How often a delivery is tried in all, or a policy; once unless given. Then the event is a dead letter. */
  readonly retry?: Retry;
  /** A handler that takes longer has failed; 5 min unless given. */
  readonly timeout?: Duration;
  /** How many events it handles at once. */
  readonly concurrency?: number;
  /**
   * Takes effect once after the last attempt has failed, or after the processes that handled the event died; then the
   * event is a dead letter.
   */
  readonly failed?: (failure: Failure, tx: AppTx, data: Data) => unknown;
}

/** The facts of one call of `run`. */
export interface RunContext {
  /** The same in every attempt at this event: the idempotency key for the service that is called. */
  readonly idempotencyKey: string;
  /** Aborted when the time is over, and when the kernel stops. */
  readonly signal: AbortSignal;
  /** Counts the attempts from 1. */
  readonly attempt: number;
  /** The type of the event. */
  readonly type: string;
  /** When the event was published. */
  readonly publishedAtMs: number;
}

/** The steps of a subscription: `run` calls the outside world, `commit` takes effect. */
export interface Steps<Data, Result> extends OnOptions<Data> {
  /** Calls the outside world: at least once, without a transaction. */
  readonly run: (data: Data, context: RunContext) => Result;
  /** Takes effect exactly once, after `run`. */
  readonly commit?: (result: Awaited<Result>, tx: AppTx, data: Data) => unknown;
}

export type OnFunction = (data: never, tx: AppTx) => unknown;

/** A subscription of an app. Made by `on`. */
export class OnDefinition<out Name extends string = string, out Output = unknown, in Input = never> {
  readonly event: EventDefinition<Name, Output, Input>;
  readonly does: OnFunction | Steps<never, unknown>;
  readonly options: OnOptions<never>;

  constructor(
    event: EventDefinition<Name, Output, Input>,
    does: OnFunction | Steps<never, unknown>,
    options: OnOptions<never>,
  ) {
    this.event = event;
    this.does = does;
    this.options = options;
  }
}

export type AnyOn = OnDefinition<string, unknown, never>;

/** Handles an event as one transaction. */
export function on<Name extends string, Output, Input>(
  event: EventDefinition<Name, Output, Input>,
  handler: (data: Output, tx: AppTx) => unknown,
  options?: OnOptions<Output>,
): OnDefinition<Name, Output, Input>;
/** Calls the outside world with `run`, then takes effect with `commit`. */
export function on<Name extends string, Output, Input, Result>(
  event: EventDefinition<Name, Output, Input>,
  steps: Steps<Output, Result>,
): OnDefinition<Name, Output, Input>;
export function on<Name extends string, Output, Input>(
  event: EventDefinition<Name, Output, Input>,
  does: OnFunction | Steps<never, unknown>,
  options: OnOptions<never> = {},
): OnDefinition<Name, Output, Input> {
  if (!(event instanceof EventDefinition))
    throw new TypeError(`on(event, handler): the first argument comes from event("Name.Like", …), got ${show(event)}`);
  if (typeof does === "function") return new OnDefinition(event, does, options);
  if (typeof does?.run !== "function")
    throw new TypeError(`on(${event.name}): takes a function, or { run, commit, failed }, got ${show(does)}`);
  const { run: _run, commit: _commit, ...own } = does;
  return new OnDefinition(event, does, own);
}
