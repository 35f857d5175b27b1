/**
 * The Timer capability (RFC 0032 §12): "send this message later". `Timer.Set` answers with a timer id; when the time comes,
 * `Timer.Fired` and then the message are put into the loop, both caused by the `Timer.Set`. The message's data is opaque.
 */
import type { Host } from "../host/host.ts";
import { TIMER_DELAY_MS_MAX } from "../limits.ts";
import { contentId } from "../message/content-id.ts";
import { isId, isMessageType, type Message } from "../message/envelope.ts";
import type { Failure } from "../message/error-data.ts";
import { isJsonObject, type Json, type JsonObject } from "../message/json.ts";
import { causedBy, event, type Lineage } from "../message/lineage.ts";
import type { Store } from "../store/store.ts";
import type { Capability, CapabilityActor } from "./capability.ts";
import { declared } from "./define-capability.ts";
import { MailboxActor } from "./mailbox-actor.ts";
import { dataSchema } from "./message-schema.ts";
import { type ArmedTimer, TimerTable } from "./timer-table.ts";

interface Template {
  readonly kind: "command" | "query" | "event";
  readonly type: string;
  readonly data: Json;
  readonly metadata?: JsonObject;
}

type SetData = ({ readonly delayMs: number } | { readonly dueAt: number }) & { readonly message: Template };

/** The last moment that a JavaScript date can name. */
const DUE_AT_MAX = 8_640_000_000_000_000;

const setInput = dataSchema<SetData>(setProblem, {
  type: "object",
  properties: {
    delayMs: { type: "number", minimum: 0 },
    dueAt: { type: "number" },
    message: {
      type: "object",
      properties: {
        kind: { enum: ["command", "query", "event"] },
        type: { type: "string" },
        data: {},
        metadata: { type: "object" },
      },
      required: ["kind", "type", "data"],
    },
  },
  required: ["message"],
});

const cancelInput = dataSchema<{ timerId: string }>(
  (data) =>
    typeof (data as { timerId?: unknown } | null)?.timerId === "string" ? undefined : "timerId: must be a string",
  { type: "object", properties: { timerId: { type: "string" } }, required: ["timerId"] },
);

/** Durable when a store is given. */
export function timerCapability(store?: Store): Capability {
  return {
    ...declared({
      description: "sends a message later",
      commands: {
        "Timer.Set": { input: setInput, handle: () => null },
        "Timer.Cancel": { input: cancelInput, handle: () => null },
      },
      emits: { "Timer.Fired": true },
    }),
    // What it sends is what others gave it; the template was checked when it was set.
    relays: true,
    spawn: ({ host }) => spawnTimer(host, store),
  };
}

function spawnTimer(host: Host, store: Store | undefined): CapabilityActor {
  const table = new TimerTable({ host, store, fire: (timer) => fire(host, actor, timer) });
  const actor: MailboxActor = new MailboxActor(host, async (message) => {
    if (message.type === "Timer.Cancel") {
      return { cancelled: await table.cancel((message.data as { timerId: string }).timerId) };
    }
    // The inbound schema has checked it.
    const data = message.data as never as SetData;
    const timerId = host.id();
    // Whole milliseconds, upwards: never early.
    const dueAtMs = Math.ceil("delayMs" in data ? host.now() + data.delayMs : data.dueAt);
    await table.set({
      id: timerId,
      dueAtMs,
      data: { lineage: causedBy(message) as JsonObject, template: data.message as never },
    });
    return { timerId };
  });
  void table.open();
  const terminate = actor.terminate.bind(actor);
  actor.terminate = () => {
    table.close();
    terminate();
  };
  Object.defineProperty(actor, "scheduled", { get: () => table.scheduled });
  return actor;
}

/** Resolves when a request was answered, whatever the answer is; an event is done with when it is in the loop. */
async function fire(host: Host, actor: MailboxActor, { id, data }: ArmedTimer): Promise<void> {
  const { lineage, template } = data as Json & { lineage: Lineage; template: Template };
  actor.emit(event(host, "Timer.Fired", { timerId: id }, lineage));
  const { id: _id, timestamp: _timestamp, causation: _causation, ...kept } = template.metadata ?? {};
  const message: Message = {
    kind: template.kind,
    type: template.type,
    data: template.data,
    // Derived from the timer, so that a timer that fires twice because of a crash sends the same message.
    metadata: { ...lineage, ...kept, id: contentId(["timer", id]), timestamp: host.now() } as Message["metadata"],
  };
  if (message.kind === "event") return actor.emit(message);
  // Refused is handled too: its sender was told when it set the timer that nobody would listen.
  await actor.ask(message).catch((failure: Failure) => {
    if (failure.code === 503) throw failure;
  });
}

function setProblem(data: unknown): string | undefined {
  if (!isJsonObject(data as Json)) return "must be an object with message and delayMs or dueAt";
  const { delayMs, dueAt, message } = data as { delayMs?: unknown; dueAt?: unknown; message?: unknown };
  if ((delayMs === undefined) === (dueAt === undefined)) return "needs either delayMs or dueAt";
  if (delayMs !== undefined && !(typeof delayMs === "number" && delayMs >= 0 && delayMs <= TIMER_DELAY_MS_MAX)) {
    return `delayMs: must be 0 to ${TIMER_DELAY_MS_MAX}`;
  }
  if (dueAt !== undefined && !(typeof dueAt === "number" && Math.abs(dueAt) <= DUE_AT_MAX))
    return "dueAt: must be milliseconds since 1970";
  if (!isJsonObject(message as Json)) return "message: must be an object with kind, type and data";
  const { kind, type, data: inner, metadata } = message as Partial<Template>;
  if (kind !== "command" && kind !== "query" && kind !== "event")
    return "message.kind: must be command, query or event";
  if (typeof type !== "string" || !isMessageType(type)) return "message.type: must be like Memory.Get";
  if (inner === undefined) return "message.data: is required; use null for none";
  if (metadata !== undefined && !isJsonObject(metadata)) return "message.metadata: must be an object";
  // What is wrong with it must be said now: when the timer fires, nobody listens.
  if (metadata?.["correlation"] !== undefined && !isId(metadata["correlation"]))
    return "message.metadata.correlation: must be a string of 1 to 255 characters";
  return undefined;
}
