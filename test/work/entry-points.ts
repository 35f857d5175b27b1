/** The entry points of handlers, behind one face: how an invocation comes in, and how its end is heard. */
import { EventBus } from "../../src/bus/event-bus.ts";
import type { Capability } from "../../src/loop/capability.ts";
import { EventLoop } from "../../src/loop/event-loop.ts";
import { transactional } from "../../src/loop/transactional.ts";
import type { Message } from "../../src/message/envelope.ts";
import { type ErrorData, thrownText } from "../../src/message/error-data.ts";
import type { Json } from "../../src/message/json.ts";
import type { JournalQuery } from "../../src/store/journal.ts";
import { type Invocation, receiptOf } from "../../src/store/receipt-name.ts";
import { messageIdOf } from "../../src/work/timer-row.ts";
import type { Tx } from "../../src/work/tx.ts";
import { Client, command } from "../loop/loop-setup.ts";
import { bootLoop } from "./loop-world.ts";
import { type Process, SPACE } from "./world.ts";

export type CaseHandler = (data: Json, tx: Tx) => unknown;

/** How an invocation ended, for its sender. */
export type Ended =
  | { readonly kind: "done"; readonly result: Json }
  | { readonly kind: "failed"; readonly message: string; readonly code?: number };

export interface Entry {
  /** Sends an invocation and resolves with its end. */
  handle(id: string, data: Json): Promise<Ended>;
  /** Sends an invocation whose sender leaves at once. */
  begin(id: string, data: Json): void;
}

/** Parts that some entry points do not have. */
export type Ability =
  /** Its invocations have ids, so that one can be repeated. */
  | "ids"
  /** An id stands for the content of its message: another one under it is refused. */
  | "content"
  /** A caller waits for each invocation. */
  | "callers"
  /** Two processes may handle one id at once. */
  | "at once"
  /** The journal delivers its invocations under a lease. */
  | "leases"
  /** Its handlers may return promises. */
  | "promises"
  /** A handler that returns a promise has a timeout. */
  | "timeout"
  /** It declares its messages, and can ask others. */
  | "requests"
  /** Its handlers can have a clearance. */
  | "clearance"
  /** An invocation that cannot be committed fails when its window ends. */
  | "window"
  /** A synchronous handler and its commit are one job. */
  | "same job"
  /** Its handlers write in one space only. */
  | "one space";

export interface EntryPoint {
  readonly name: string;
  /** The parts that it does not have, with the reason. */
  readonly cannot: Readonly<Partial<Record<Ability, string>>>;
  open(process: Process, handler: CaseHandler, clearance?: readonly string[]): Promise<Entry>;
}

export const can = ({ cannot }: EntryPoint, ability: Ability): boolean => cannot[ability] === undefined;

export const EMITTED = "Case.Happened";
export const SENT = "Case.Other";
export const ASKED = "Case.Answer";

/** The capability of the cases, and one that it can ask. */
function capabilities(
  { space }: Process,
  handler: CaseHandler,
  clearance: readonly string[] | undefined,
  durable: "before" | "unawaited" = "unawaited",
): Record<"cases" | "other", Capability> {
  const handle = (data: Json, tx: Tx) => handler(data, tx) as Json;
  const answers = space.cell<number>("answers", 0);
  return {
    cases: transactional({
      space,
      description: "runs the case",
      emits: { [EMITTED]: true },
      sends: { [SENT]: "command", [ASKED]: "command" },
      commands: { "Case.Run": { handle } },
      on: { "Case.Came": handle },
      ...(clearance === undefined ? {} : { clearance }),
      durable,
    }),
    other: transactional({
      space,
      description: "is asked",
      commands: {
        [ASKED]: {
          handle: (_data: Json, tx) => {
            tx.update(answers, (count) => count + 1);
            return tx.get(answers);
          },
        },
      },
    }),
  };
}

/** Commands of clients that wait for the answer. */
function awaited({ host }: Process, loop: EventLoop): Entry {
  return {
    handle: (id, data) =>
      new Promise((resolve) => {
        const client = new Client(`client of ${id}`);
        client.deliver = (answer) => resolve(endedBy(answer));
        loop.receive(command("Case.Run", id, data), client);
      }),
    begin(id, data) {
      const client = new Client(`client of ${id} that leaves`);
      loop.receive(command("Case.Run", id, data), client);
      host.timer(1, () => loop.disconnect(client));
    },
  };
}

const NO_LEASE = "its caller sends it again, no journal does";
const BUSY = "the journal delivers it again as long as the store is busy (L41)";
const ONE_CLAIM = "the journal delivers a message to one process at a time";
const NO_CALLER = "the sender of a journaled message does not wait for its handler";

export const commandEntry: EntryPoint = {
  name: "command",
  cannot: { leases: NO_LEASE },
  async open(process, handler, clearance) {
    const { host } = process;
    const loop = await host.run(() =>
      EventLoop.boot({ host, capabilities: capabilities(process, handler, clearance) }),
    );
    return awaited(process, loop);
  },
};

export const journaledEntry: EntryPoint = {
  name: "journaled command",
  cannot: { "at once": ONE_CLAIM, window: BUSY },
  async open(process, handler, clearance) {
    const { loop } = await bootLoop(process, capabilities(process, handler, clearance, "before"));
    return awaited(process, loop);
  },
};

export function endedBy({ kind, data }: Message): Ended {
  if (kind === "reply") return { kind: "done", result: data };
  const { code, message } = data as ErrorData;
  return { kind: "failed", code, message };
}

/** The end of a journaled message, by its row and its receipt. */
async function endOfRow(
  { host, store }: Process,
  query: Omit<JournalQuery, "limit">,
  invocation: Invocation,
): Promise<Ended> {
  for (;;) {
    const [{ status, error } = { status: "absent", error: "" }] = await store.query({ ...query, limit: 1 });
    if (status === "failed") return { kind: "failed", message: error ?? "" };
    if (status === "done") break;
    await new Promise<void>((resolve) => void host.timer(10, resolve));
  }
  const { documents } = await store.load(SPACE, [receiptOf(invocation)]);
  return { kind: "done", result: documents[0]?.value ?? null };
}

/** Publishes the event of an invocation for one subscriber. */
function published(process: Process, bus: EventBus, type: string): Entry {
  const handle = async (id: string, data: Json): Promise<Ended> => {
    const message: Message = { kind: "event", type, data, metadata: { id, timestamp: 1 } };
    const row = await bus.publishMessage(message, "test");
    return endOfRow(process, { id: row }, { kind: "event", id, subscriber: "cases" });
  };
  return { handle, begin: (id, data) => void handle(id, data) };
}

export const subscriberEntry: EntryPoint = {
  name: "bus subscriber",
  cannot: {
    "at once": ONE_CLAIM,
    callers: NO_CALLER,
    requests: "it declares no messages, and has no loop to ask",
    clearance: "a subscription has none",
  },
  async open(process, handler) {
    const { host, space, store } = process;
    const bus = new EventBus({ host, store });
    bus.subscribe("Case.Run", ({ payload }, tx) => handler(payload, tx), { subscriberId: "cases", space });
    await host.run(() => bus.start());
    return published(process, bus, "Case.Run");
  },
};

export const onEntry: EntryPoint = {
  name: "event of a capability",
  cannot: {
    "at once": ONE_CLAIM,
    callers: NO_CALLER,
    "same job": "the handler ends in its actor, and the bus commits",
  },
  async open(process, handler, clearance) {
    const { bus } = await bootLoop(process, capabilities(process, handler, clearance));
    return published(process, bus, "Case.Came");
  },
};

export const timerEntry: EntryPoint = {
  name: "command of a timer",
  cannot: { "at once": ONE_CLAIM, callers: NO_CALLER, window: BUSY },
  async open(process, handler, clearance) {
    const { loop } = await bootLoop(process, capabilities(process, handler, clearance));
    const handle = async (id: string, data: Json): Promise<Ended> => {
      const message = { kind: "command", type: "Case.Run", data };
      const set = endedBy(await loop.request(command("Timer.Set", id, { delayMs: 1, message })));
      if (set.kind === "failed") return set;
      const messageId = messageIdOf({ id: (set.result as { timerId: string }).timerId });
      const end = await endOfRow(process, { messageId }, { kind: "command", id: messageId });
      return end.kind === "failed" ? end : { kind: "done", result: (end.result as { result: Json }).result };
    };
    return { handle, begin: (id, data) => void handle(id, data) };
  },
};

export const streamEntry: EntryPoint = {
  name: "stream",
  cannot: {
    leases: NO_LEASE,
    requests: "it declares no messages, and has no loop to ask",
    content: "a send is its id: its receipt keeps no value",
    "one space": "its handlers write other spaces first (Scheduler v2, decision 11)",
  },
  async open({ space }, handler, clearance) {
    const stream = space.stream<Json>("cases");
    stream.handle(handler, clearance === undefined ? {} : { clearance });
    const handle = async (id: string, data: Json): Promise<Ended> => {
      const outcome = await stream.send(data, { eventId: id }).outcome;
      if (outcome.kind === "handled" || outcome.kind === "already") return { kind: "done", result: outcome.result };
      return { kind: "failed", message: outcome.message };
    };
    return { handle, begin: (id, data) => void handle(id, data) };
  },
};

export const transactEntry: EntryPoint = {
  name: "transact",
  cannot: {
    ids: "each call is new",
    content: "each call is new",
    "at once": "each call is new",
    leases: NO_LEASE,
    promises: "its code is synchronous; after an await use tx of a handler, or space.begin",
    timeout: "its code is synchronous",
    requests: "it declares no messages, and has no loop to ask",
    clearance: "it has that of the code that calls it",
  },
  async open({ space }, handler) {
    const handle = (_id: string, data: Json) =>
      space
        .transact((tx) => handler(data, tx) as Json)
        .then(
          (result): Ended => ({ kind: "done", result: result ?? null }),
          (error: unknown): Ended => ({ kind: "failed", message: thrownText(error) }),
        );
    return { handle, begin: (id, data) => void handle(id, data) };
  },
};

export const ENTRY_POINTS: readonly EntryPoint[] = [
  ...[commandEntry, journaledEntry, onEntry, timerEntry, subscriberEntry, streamEntry, transactEntry],
];
