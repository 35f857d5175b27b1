/** The entry points of handlers, behind one face: how an invocation comes in, and how its end is heard. */
import { EventBus } from "../../src/bus/event-bus.ts";
import type { Cell } from "../../src/cells/cell.ts";
import { EventLoop } from "../../src/loop/event-loop.ts";
import { transactional } from "../../src/loop/transactional.ts";
import type { Message } from "../../src/message/envelope.ts";
import { type ErrorData, thrownText } from "../../src/message/error-data.ts";
import type { Json } from "../../src/message/json.ts";
import { receiptOf } from "../../src/store/receipt-name.ts";
import { Client, command } from "../loop/loop-setup.ts";
import { type Process, SPACE } from "./world.ts";

/** The operations that handlers of all entry points have. */
export interface CaseTx {
  get<T>(cell: Cell<T>): T | undefined;
  set<T>(cell: Cell<T>, value: T): void;
  emit(type: string, data: Json): void;
}

export type CaseHandler = (data: Json, tx: CaseTx) => unknown;

/** How an invocation ended, for its sender. */
export type Ended =
  | { readonly kind: "done"; readonly result: Json }
  | { readonly kind: "failed"; readonly message: string; readonly code?: number };

export interface Entry {
  /** Sends an invocation and resolves with its end. */
  handle(id: string, data: Json): Promise<Ended>;
}

export interface EntryPoint {
  readonly name: string;
  /** Whether its invocations have ids, so that one can be repeated. */
  readonly hasIds: boolean;
  /** Whether its handlers may be asynchronous. */
  readonly isAsync: boolean;
  /** Whether a caller waits for each invocation, so that one may be refused for its content. */
  readonly hasCallers: boolean;
  /** Whether its handlers can emit events. */
  readonly emits: boolean;
  open(process: Process, handler: CaseHandler): Promise<Entry>;
}

export const EMITTED = "Case.Happened";

export const commandEntry: EntryPoint = {
  ...{ name: "command", hasIds: true, isAsync: true, hasCallers: true, emits: true },
  async open({ host, space }, handler) {
    const cases = transactional({
      space,
      description: "runs the case",
      emits: { [EMITTED]: true },
      commands: { "Case.Run": { handle: (data: Json, tx) => handler(data, tx) as Json } },
    });
    const loop = await host.run(() => EventLoop.boot({ host, capabilities: { cases } }));
    return {
      handle: (id, data) =>
        new Promise((resolve) => {
          const client = new Client(`client of ${id}`);
          client.deliver = (answer) => resolve(endedBy(answer));
          loop.receive(command("Case.Run", id, data), client);
        }),
    };
  },
};

export function endedBy({ kind, data }: Message): Ended {
  if (kind === "reply") return { kind: "done", result: data };
  const { code, message } = data as ErrorData;
  return { kind: "failed", code, message };
}

export const subscriberEntry: EntryPoint = {
  ...{ name: "bus subscriber", hasIds: true, isAsync: true, hasCallers: false, emits: true },
  async open({ host, space, store }, handler) {
    const bus = new EventBus({ host, store });
    bus.subscribe("Case.Run", ({ payload }, tx) => handler(payload, tx), { subscriberId: "cases", space });
    await host.run(() => bus.start());
    return {
      async handle(id, data) {
        const message: Message = { kind: "event", type: "Case.Run", data, metadata: { id, timestamp: 1 } };
        const row = await bus.publishMessage(message, "test");
        for (;;) {
          const [{ status, error } = { status: "gone", error: "gone" }] = await bus.query({ id: row, limit: 1 });
          if (status === "failed") return { kind: "failed", message: error ?? "" };
          if (status === "done") break;
          await new Promise<void>((resolve) => void host.timer(10, resolve));
        }
        const { documents } = await store.load(SPACE, [receiptOf({ kind: "event", id, subscriber: "cases" })]);
        return { kind: "done", result: documents[0]?.value ?? null };
      },
    };
  },
};

export const streamEntry: EntryPoint = {
  ...{ name: "stream", hasIds: true, isAsync: true, hasCallers: true, emits: true },
  async open({ space }, handler) {
    const stream = space.stream<Json>("cases");
    stream.handle((data, context) => handler(data, context));
    return {
      async handle(id, data) {
        const outcome = await stream.send(data, { eventId: id }).outcome;
        if (outcome.kind === "handled" || outcome.kind === "already") return { kind: "done", result: outcome.result };
        return { kind: "failed", message: outcome.message };
      },
    };
  },
};

export const transactEntry: EntryPoint = {
  ...{ name: "transact", hasIds: false, isAsync: false, hasCallers: true, emits: false },
  async open({ space }, handler) {
    const tx: CaseTx = {
      get: (cell) => cell.get(),
      set: (cell, value) => cell.set(value),
      emit: () => {
        throw new Error("space.transact has no emit");
      },
    };
    return {
      handle: (_id, data) =>
        space
          .transact(() => handler(data, tx) as Json)
          .then(
            (result): Ended => ({ kind: "done", result: result ?? null }),
            (error: unknown): Ended => ({ kind: "failed", message: thrownText(error) }),
          ),
    };
  },
};

export const ENTRY_POINTS: readonly EntryPoint[] = [commandEntry, subscriberEntry, streamEntry, transactEntry];
