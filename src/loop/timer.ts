/**
 * The Timer capability (RFC 0032 §12): "send this message later". `Timer.Set` answers with a timer id; when the time comes,
 * `Timer.Fired` and then the message are put into the loop, both caused by the `Timer.Set`. `Timer.Every` does the same again and
 * again, at the slots of a schedule, until it is cancelled. SPEC: T.
 */
import type { Host } from "../host/host.ts";
import { TIMER_DELAY_MS_MAX } from "../limits.ts";
import { contentId } from "../message/content-id.ts";
import type { Message } from "../message/envelope.ts";
import { Failure } from "../message/error-data.ts";
import { isJsonObject, type Json, type JsonObject } from "../message/json.ts";
import { causedBy, event } from "../message/lineage.ts";
import type { Store } from "../store/store.ts";
import type { Capability, CapabilityActor } from "./capability.ts";
import { declared } from "./define-capability.ts";
import { type TimerLimits, timerLimits } from "./loop-limits.ts";
import { MailboxActor } from "./mailbox-actor.ts";
import { dataSchema } from "./message-schema.ts";
import { nextSlot, type Schedule, scheduleProblem } from "./schedule.ts";
import { messageOf, TEMPLATE_JSON_SCHEMA, type Template, templateProblem } from "./template.ts";
import { type Firing, TimerTable } from "./timer-table.ts";

type SetData = ({ readonly delayMs: number } | { readonly dueAt: number }) & { readonly message: Template };
type EveryData = Schedule & { readonly message: Template };

/** The last moment that a JavaScript date can name. */
const DUE_AT_MAX = 8_640_000_000_000_000;

const setInput = dataSchema<SetData>(setProblem, {
  type: "object",
  properties: { delayMs: { type: "number", minimum: 0 }, dueAt: { type: "number" }, message: TEMPLATE_JSON_SCHEMA },
  required: ["message"],
});

const everyInput = dataSchema<EveryData>(everyProblem, {
  type: "object",
  properties: {
    cron: { type: "string" },
    timezone: { type: "string" },
    everyMs: { type: "integer", minimum: 1 },
    message: TEMPLATE_JSON_SCHEMA,
  },
  required: ["message"],
});

const cancelInput = dataSchema<{ timerId: string }>(
  (data) =>
    typeof (data as { timerId?: unknown } | null)?.timerId === "string" ? undefined : "timerId: must be a string",
  { type: "object", properties: { timerId: { type: "string" } }, required: ["timerId"] },
);

/** Durable when a store is given. */
export function timerCapability(store?: Store, given: Partial<TimerLimits> = {}): Capability {
  const limits = timerLimits(given);
  return {
    ...declared({
      description: "sends a message later",
      commands: {
        "Timer.Set": { input: setInput, handle: () => null },
        "Timer.Every": { input: everyInput, handle: () => null },
        "Timer.Cancel": { input: cancelInput, handle: () => null },
      },
      emits: { "Timer.Fired": true },
    }),
    // Its own row in the due table is durable before it answers.
    durable: "unawaited",
    // A request that sets a timer and comes again sets the same one.
    idempotent: true,
    // What it sends is what others gave it; the template was checked when it was set.
    relays: true,
    spawn: ({ host }) => spawnTimer(host, store, limits),
  };
}

function spawnTimer(host: Host, store: Store | undefined, limits: TimerLimits): CapabilityActor {
  const { timersMax } = limits;
  const table = new TimerTable({
    ...{ host, store, timersMax },
    tell: (firing) => tell(host, actor, firing),
    fire: (firing) => fire(host, actor, firing),
  });
  // The inbound schemas have checked the data.
  const actor: MailboxActor = new MailboxActor(host, (message) => {
    switch (message.type) {
      case "Timer.Set":
        return set({ host, table, message, limits }, message.data as never as SetData);
      case "Timer.Every":
        return every({ host, table, message, limits }, message.data as never as EveryData);
      default:
        return cancel(table, message.data as { timerId: string });
    }
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

interface Setting {
  readonly host: Host;
  readonly table: TimerTable;
  readonly limits: TimerLimits;
  readonly message: Message;
}

async function set({ host, table, limits, message }: Setting, data: SetData): Promise<Json> {
  // Whole milliseconds, upwards: never early.
  const now = host.now();
  const dueAtMs = Math.ceil("delayMs" in data ? now + data.delayMs : data.dueAt);
  requireNear(dueAtMs - now, limits, "delayMs" in data ? "delayMs" : "dueAt");
  const id = timerIdOf(message);
  await table.set({ id, dueAtMs, data: { lineage: causedBy(message) as JsonObject, template: data.message } });
  return { timerId: id };
}

async function every({ host, table, limits, message }: Setting, data: EveryData): Promise<Json> {
  const { message: template, ...schedule } = data;
  const now = host.now();
  const dueAtMs = nextSlot(schedule, now, now);
  if (dueAtMs === undefined) throw new Failure(422, "cron: has no moment after now");
  requireNear(dueAtMs - now, limits, "cron" in schedule ? "cron" : "everyMs");
  const id = timerIdOf(message);
  await table.set({ id, dueAtMs, data: { lineage: causedBy(message) as JsonObject, template, schedule } });
  return { timerId: id, dueAt: dueAtMs };
}

function requireNear(delayMs: number, { timerDelayMsMax }: TimerLimits, field: string): void {
  if (delayMs <= timerDelayMsMax) return;
  throw new Failure(422, `${field}: comes due in ${delayMs} ms; at most ${timerDelayMsMax} ms ahead is allowed`);
}

/** Follows from the request: whoever repeats one that was not answered sets the same timer. */
function timerIdOf({ metadata }: Message): string {
  const hash = contentId(["timer of", metadata.id]);
  // As a UUID of version 8, whose digits are made by a rule of one's own.
  const [third, fourth] = [`8${hash.slice(13, 16)}`, `a${hash.slice(17, 20)}`];
  return [hash.slice(0, 8), hash.slice(8, 12), third, fourth, hash.slice(20, 32)].join("-");
}

async function cancel(table: TimerTable, { timerId }: { timerId: string }): Promise<Json> {
  return { cancelled: await table.cancel(timerId) };
}

function tell(host: Host, actor: MailboxActor, { timerId, slotMs, data: { lineage } }: Firing): void {
  actor.emit(event(host, "Timer.Fired", slotMs === undefined ? { timerId } : { timerId, dueAt: slotMs }, lineage));
}

/** Resolves when a request was answered, whatever the answer is, or an event is in the journal. */
async function fire(host: Host, actor: MailboxActor, { id, data: { lineage, template } }: Firing): Promise<void> {
  // The id is derived, so that what fires twice because of a crash sends the same message.
  const message = messageOf(template, { ...lineage, id: contentId(["timer", id]), timestamp: host.now() });
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
  return templateProblem(message);
}

function everyProblem(data: unknown): string | undefined {
  if (!isJsonObject(data as Json)) return "must be an object with message and cron or everyMs";
  const { message, ...schedule } = data as JsonObject;
  return scheduleProblem(schedule) ?? templateProblem(message);
}
