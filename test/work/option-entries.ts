/** The entry points that take the options of handlers, behind one face. */
import { EventBus } from "../../src/bus/event-bus.ts";
import type { HandleOptions } from "../../src/cells/stream.ts";
import type { Capability } from "../../src/loop/capability.ts";
import { capability } from "../../src/loop/define-capability.ts";
import type { Message } from "../../src/message/envelope.ts";
import type { Json } from "../../src/message/json.ts";
import type { HandlerFailure } from "../../src/work/handler-options.ts";
import type { Retry } from "../../src/work/retry-policy.ts";
import { Tx } from "../../src/work/tx.ts";
import { WorkBoard } from "../../src/work/work-board.ts";
import { bootLoop } from "./loop-world.ts";
import type { Process } from "./world.ts";

/** `tx` is undefined for handlers without a transaction. */
export interface CaseOptions {
  readonly retry?: Retry;
  readonly timeoutMs?: number;
  readonly concurrency?: number;
  /** Gives the key from the data. */
  readonly serialBy?: (data: Json) => string;
  readonly onFailed?: (failure: HandlerFailure, tx: Tx | undefined, data: Json) => unknown;
}

export type OptionHandler = (data: Json, tx: Tx | undefined) => unknown;

export interface OptionEntry {
  /** Sends a message without waiting. */
  send(id: string, data: Json): void;
  /** Leaves the process without waiting for its handlers. */
  leave(): Promise<void>;
  readonly board: WorkBoard;
  /** Answers to callers, as `done` or the text of the error. */
  readonly answers: string[];
}

export interface OptionEntryPoint {
  readonly name: string;
  /** Of a `command`, the sender hears the end. */
  readonly kind: "command" | "event";
  readonly hasTx: boolean;
  /** Whether the row of a failed message is in the journal. */
  readonly hasRow: boolean;
  /** Whether it takes `concurrency` and `serialBy`. */
  readonly isParallel: boolean;
  /** Whether the message is in the journal before its handler is called. */
  readonly isJournaled: boolean;
  /** Whether its handlers run one at a time, in the order of their messages, unless the options say otherwise. */
  readonly isOrdered: boolean;
  /** The type of its messages on the work board. */
  readonly boardType: string;
  open(process: Process, handler: OptionHandler, options: CaseOptions): Promise<OptionEntry>;
}

export const TYPE = "Case.Run";

export function caseMessage(kind: "command" | "event", id: string, data: Json): Message {
  return { kind, type: TYPE, data, metadata: { id, timestamp: 1 } };
}

function capabilityOf(
  { space }: Process,
  handler: OptionHandler,
  options: CaseOptions,
  point: CapabilityPoint,
): Capability {
  const { serialBy, onFailed, ...rest } = options;
  const keyed = serialBy === undefined ? {} : { serialBy: wrapped(serialBy, (key) => (data: Json) => key(data)) };
  const failing = (context: unknown) => (context instanceof Tx ? context : undefined);
  const failed =
    onFailed === undefined
      ? {}
      : {
          onFailed: wrapped(
            onFailed,
            (hook) => (failure: HandlerFailure, context: unknown, data: Json) => hook(failure, failing(context), data),
          ),
        };
  const durable = point.durable === undefined ? {} : { durable: point.durable };
  const shared = { description: "runs the case", ...rest, ...keyed, ...failed, ...durable };
  if (!point.hasTx) {
    return capability({
      ...shared,
      idempotent: true,
      ...(point.kind === "command"
        ? { commands: { [TYPE]: { handle: (data: Json) => handler(data, undefined) as Json } } }
        : { on: { [TYPE]: (data: Json) => handler(data, undefined) } }),
    });
  }
  return capability({
    ...{ ...shared, space },
    ...(point.kind === "command"
      ? { commands: { [TYPE]: { handle: (data: Json, tx: Tx) => handler(data, tx) as Json } } }
      : { on: { [TYPE]: (data: Json, tx: Tx) => handler(data, tx) } }),
  });
}

/** A wrapper of a function; a value that is none stays, so that the entry point refuses it. */
function wrapped<Given, Made>(given: Given, wrap: (given: Given) => Made): Made {
  return typeof given === "function" ? wrap(given) : (given as never);
}

interface CapabilityPoint {
  readonly kind: "command" | "event";
  readonly hasTx: boolean;
  readonly durable?: "before" | "unawaited" | false;
}

function capabilityEntry(name: string, point: CapabilityPoint): OptionEntryPoint {
  const isJournaled = point.kind === "event" || point.durable === "before";
  return {
    ...{ name, kind: point.kind, hasTx: point.hasTx, isJournaled, hasRow: isJournaled || point.hasTx },
    ...{ isOrdered: true, isParallel: true, boardType: TYPE },
    async open(process, handler, options) {
      const { host } = process;
      const board = new WorkBoard(host);
      const made = capabilityOf(process, handler, options, point);
      const spawn: Capability["spawn"] = (context) => made.spawn({ ...context, board });
      const { loop, bus, commands } = await bootLoop(process, { cases: { ...made, spawn } });
      const answers: string[] = [];
      return {
        ...{ board, answers },
        send(id, data) {
          if (point.kind === "event") {
            void bus.publishMessage(caseMessage("event", id, data), "test");
            return;
          }
          loop.command(TYPE, data).then(
            () => void answers.push("done"),
            (error: Error) => void answers.push(error.message),
          );
        },
        leave: async () => void (await Promise.all([bus.stop({ graceMs: 0 }), commands.stop({ graceMs: 0 })])),
      };
    },
  };
}

function subscriberEntry(name: string, hasTx: boolean): OptionEntryPoint {
  return {
    ...{ name, kind: "event", hasTx, isJournaled: true, hasRow: true, isOrdered: false, isParallel: true },
    boardType: TYPE,
    async open({ host, store, space }, handler, options) {
      const board = new WorkBoard(host);
      const bus = new EventBus({ host, store, board });
      const { serialBy, onFailed, ...rest } = options;
      const shared = {
        ...{ ...rest, subscriberId: "cases" },
        ...(serialBy === undefined
          ? {}
          : { serialBy: wrapped(serialBy, (key) => (event: { payload: Json }) => key(event.payload)) }),
      };
      if (hasTx) {
        const failed = onFailed && {
          onFailed: wrapped(
            onFailed,
            (hook) => (failure: HandlerFailure, tx: Tx, event: { payload: Json }) => hook(failure, tx, event.payload),
          ),
        };
        bus.subscribe(TYPE, ({ payload }, tx) => handler(payload, tx), { ...shared, ...failed, space });
      } else {
        const failed = onFailed && {
          onFailed: wrapped(
            onFailed,
            (hook) => (failure: HandlerFailure, _: unknown, event: { payload: Json }) =>
              hook(failure, undefined, event.payload),
          ),
        };
        bus.subscribe(TYPE, ({ payload }) => handler(payload, undefined), { ...shared, ...failed });
      }
      await host.run(() => bus.start());
      return {
        ...{ board, answers: [] },
        send: (id, data) => void bus.publishMessage(caseMessage("event", id, data), "test"),
        leave: () => bus.stop({ graceMs: 0 }),
      };
    },
  };
}

const streamEntry: OptionEntryPoint = {
  ...{ name: "stream", kind: "command", hasTx: true, isJournaled: false, hasRow: false },
  // Its sends are handled one after the other (I4), so it takes neither `concurrency` nor `serialBy`.
  ...{ isOrdered: true, isParallel: false, boardType: "send" },
  async open({ host, space }, handler, options) {
    const board = new WorkBoard(host);
    space.scheduler.parts.events.board = board;
    const stream = space.stream<Json>("cases");
    stream.handle((data, tx) => handler(data, tx), options as HandleOptions<Json>);
    const answers: string[] = [];
    return {
      ...{ board, answers },
      send: (id, data) =>
        void stream.send(data, {
          eventId: id,
          onOutcome: (outcome) => void answers.push(outcome.kind === "failed" ? outcome.message : "done"),
        }),
      leave: () => space.close(),
    };
  },
};

export const OPTION_ENTRIES: readonly OptionEntryPoint[] = [
  capabilityEntry("transactional command", { kind: "command", hasTx: true, durable: "unawaited" }),
  capabilityEntry("journaled transactional command", { kind: "command", hasTx: true, durable: "before" }),
  capabilityEntry("plain command", { kind: "command", hasTx: false, durable: false }),
  capabilityEntry("journaled plain command", { kind: "command", hasTx: false, durable: "before" }),
  capabilityEntry("event of a transactional capability", { kind: "event", hasTx: true }),
  capabilityEntry("event of a plain capability", { kind: "event", hasTx: false }),
  subscriberEntry("subscriber with a space", true),
  subscriberEntry("plain subscriber", false),
  streamEntry,
];
