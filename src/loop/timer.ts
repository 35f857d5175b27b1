/**
 * The Timer capability (RFC 0032 §12): "send this message later". `Timer.Set` answers with a timer id; when the time
 * comes, `Timer.Fired` and then the message are put into the loop, both caused by the `Timer.Set`. `Timer.Every` does
 * the same again and again, at the slots of a schedule, until it is cancelled. SPEC: T.
 */
import type { Host } from "../host/host.ts";
import { TIMER_DELAY_MS_MAX } from "../limits.ts";
import { contentId } from "../message/content-id.ts";
import type { Message } from "../message/envelope.ts";
import { Failure } from "../message/error-data.ts";
import { isJsonObject, type Json, type JsonObject } from "../message/json.ts";
import { causedBy } from "../message/lineage.ts";
import { admit } from "../store/admit.ts";
import { labelOfMessage } from "../store/label.ts";
import { Receipt } from "../store/receipt.ts";
import { receiptOf } from "../store/receipt-name.ts";
import type { Rejection } from "../store/rejection.ts";
import { Replica } from "../store/replica.ts";
import type { Store } from "../store/store.ts";
import { pullStored } from "../store/stored-value.ts";
import { nextSlot, type Schedule, scheduleProblem } from "../work/schedule.ts";
import { messageFrom, TEMPLATE_JSON_SCHEMA, type Template, templateProblem } from "../work/template.ts";
import { type ArmedTimer, armed, type Firing, messageIdOf, type TimerData } from "../work/timer-row.ts";
import type { Capability, CapabilityActor, SpawnContext, Withdrawn } from "./capability.ts";
import { declared } from "./capability-definition.ts";
import { type TimerLimits, timerLimits } from "./loop-limits.ts";
import { AnswerLater, MailboxActor } from "./mailbox-actor.ts";
import { dataSchema } from "./message-schema.ts";
import { type PendingRequest, senderOf } from "./pending-request.ts";
import { TimerClients } from "./timer-clients.ts";
import { TimerMemory } from "./timer-memory.ts";
import { TimerTable } from "./timer-table.ts";
import { answerOf, requestOf } from "./transactional.ts";

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

export interface TimerCapabilityOptions extends Partial<TimerLimits> {
  /** Keeps timers beyond the process; in memory unless given. */
  readonly store?: Store | undefined;
  /** The space that keeps the receipts; one of the timers' own unless given. */
  readonly replica?: Replica | undefined;
}

const NONE_WITHDRAWN: Withdrawn = { withdrawn: 0, underway: 0 };

/** The space of the receipts of a loop that has no other. */
const OWN_SPACE = "timers";

/** The capability that sends messages later: `Timer.Set`, `Timer.Every`, `Timer.Cancel`. */
export function timerCapability({ store, replica, ...given }: TimerCapabilityOptions = {}): Capability {
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
    // A repeated request sets the same timer.
    idempotent: true,
    // It sends messages of others; the template was checked when the timer was set.
    relays: true,
    spawn: (context) => spawnTimer(context, store, replica, limits),
  };
}

/** Components that the handlers of one actor use. */
interface TimerParts {
  readonly host: Host;
  readonly limits: TimerLimits;
  readonly table: TimerTable;
  readonly clients: TimerClients;
  /** Arms a timer for a request, once. */
  readonly arm: (message: Message, timer: ArmedTimer, answer: Json) => Promise<SetOnce>;
}

function spawnTimer(
  { host, withdraw = async () => NONE_WITHDRAWN }: SpawnContext,
  store: Store | undefined,
  given: Replica | undefined,
  limits: TimerLimits,
): CapabilityActor {
  const memory = new TimerMemory(host, limits.timersMax);
  const rows = store ?? memory;
  const clients = new TimerClients({ host, rows, timersPerClientMax: limits.timersPerClientMax });
  const table = new TimerTable({
    ...{ host, rows, withdraw },
    tell: (firing) => tell(host, actor, firing),
    fire: (firing) => fire(host, actor, firing),
    // A timer with a schedule goes on.
    gone: ({ data }) => data.schedule ?? clients.remove(data.sender),
  });
  const own = store && !given ? Replica.open({ store, host, space: OWN_SPACE }) : undefined;
  // Its failure is told to each request that needs it.
  own?.catch(() => undefined);
  const arm: TimerParts["arm"] = async (message, timer, answer) => {
    const replica = given ?? (await own);
    return replica ? setOnce(replica, message, timer, answer) : { isNew: memory.set(timer), answer };
  };
  const parts: TimerParts = { host, limits, table, clients, arm };
  // The inbound schemas have checked the data. Timers that are set one after the other share group commits: none waits
  // for another.
  const actor: MailboxActor = new MailboxActor(host, (message, _, request) => {
    switch (message.type) {
      case "Timer.Set":
        return new AnswerLater(set(parts, message, request));
      case "Timer.Every":
        return new AnswerLater(every(parts, message, request));
      default:
        return cancel(parts, message.data as { timerId: string }, request);
    }
  });
  table.open();
  const terminate = actor.terminate.bind(actor);
  actor.terminate = () => {
    table.close();
    void own?.then((replica) => replica.close()).catch(() => undefined);
    terminate();
  };
  Object.defineProperty(actor, "scheduled", { get: () => table.scheduled });
  return actor;
}

function set(parts: TimerParts, message: Message, request: PendingRequest | undefined): Promise<Json> {
  const { limits, table } = parts;
  const data = message.data as never as SetData;
  // Whole milliseconds, upwards: never early.
  const now = table.now();
  const dueAtMs = Math.ceil("delayMs" in data ? now + data.delayMs : data.dueAt);
  requireNear(dueAtMs - now, limits, "delayMs" in data ? "delayMs" : "dueAt");
  const id = timerIdOf(message);
  const clock = "delayMs" in data ? { clock: table.clock } : {};
  const timer = { id, dueAtMs, data: { ...dataOf(message, data.message, request), ...clock } };
  return armOnce(parts, message, timer, { timerId: id });
}

async function every(parts: TimerParts, message: Message, request: PendingRequest | undefined): Promise<Json> {
  const { message: template, ...schedule } = message.data as never as EveryData;
  const now = parts.table.now();
  const dueAtMs = nextSlot(schedule, now, now);
  if (dueAtMs === undefined) throw new Failure(422, "cron: has no moment after now");
  requireNear(dueAtMs - now, parts.limits, "cron" in schedule ? "cron" : "everyMs");
  const id = timerIdOf(message);
  const timer = { id, dueAtMs, data: { ...dataOf(message, template, request), schedule, slotMs: dueAtMs } };
  return armOnce(parts, message, timer, { timerId: id, dueAt: dueAtMs });
}

async function armOnce({ table, clients, arm }: TimerParts, message: Message, timer: ArmedTimer, answer: Json) {
  const { sender } = timer.data;
  await clients.add(sender);
  let isNew = false;
  try {
    const set = await table.set(timer.id, () => arm(message, timer, answer));
    isNew = set.isNew;
    return set.answer;
  } finally {
    if (!isNew) clients.remove(sender);
  }
}

function dataOf(message: Message, template: Template, request: PendingRequest | undefined): TimerData {
  const sender = senderOf(request);
  // Only a timeout needs the authority of its sender; but all timers of a client are counted.
  const isKept = sender?.kind === "client" || template.type === "Sys.RequestTimeout";
  return {
    lineage: causedBy(message) as JsonObject,
    template,
    request: requestOf(message),
    ...(isKept && sender ? { sender } : {}),
  };
}

function requireNear(delayMs: number, { timerDelayMsMax }: TimerLimits, field: string): void {
  if (delayMs <= timerDelayMsMax) return;
  throw new Failure(422, `${field}: comes due in ${delayMs} ms; at most ${timerDelayMsMax} ms ahead is allowed`);
}

/** Follows from the request, so that a repeated request names the same timer. */
function timerIdOf({ metadata }: Message): string {
  const hash = contentId(["timer of", metadata.id]);
  // A UUID of version 8: its digits follow a rule of their maker.
  const [third, fourth] = [`8${hash.slice(13, 16)}`, `a${hash.slice(17, 20)}`];
  return [hash.slice(0, 8), hash.slice(8, 12), third, fourth, hash.slice(20, 32)].join("-");
}

async function cancel(
  { table, clients }: TimerParts,
  { timerId }: { timerId: string },
  request: PendingRequest | undefined,
): Promise<Json> {
  const { isDisarmed, withdrawn, underway } = await table.cancel(timerId);
  // Counted for the client that cancels, as if it had set the timer: the sum over all clients stays right.
  if (isDisarmed) clients.remove(senderOf(request));
  return { cancelled: isDisarmed || withdrawn > 0, ...(underway > 0 ? { underway } : {}) };
}

/** Resolves when the subscribers in this loop were given the event. Its id is derived, as that of the message is. */
async function tell(host: Host, actor: MailboxActor, { id, timerId, slotMs, data }: Firing): Promise<void> {
  const told = slotMs === undefined ? { timerId } : { timerId, dueAt: slotMs };
  const metadata = { ...data.lineage, id: contentId(["timer fired", id]), timestamp: host.now() };
  await settled(actor.relay({ kind: "event", type: "Timer.Fired", data: told, metadata }, undefined));
}

/** Resolves when a request was answered, or refused for good, or when a command or an event is in the journal. */
async function fire(host: Host, actor: MailboxActor, firing: Firing): Promise<void> {
  const { lineage, template, sender } = firing.data;
  const message = messageFrom(template, { ...lineage, id: messageIdOf(firing), timestamp: host.now() });
  await settled(actor.relay(message, sender));
}

/** A refusal for good is an end too: the router has reported it. After a 503 the message is sent again. */
async function settled(answer: Promise<Json>): Promise<void> {
  await answer.catch((failure: Failure) => {
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

/** Whether the timer is new, and the answer to its request. */
interface SetOnce {
  readonly isNew: boolean;
  readonly answer: Json;
}

/**
 * Sets a durable timer once: the row of the due table and the receipt of the request are one commit. A request that is
 * repeated gets its first answer; another request under a used id is refused with 409, as for every transactional
 * command. SPEC: T9, T13.
 */
async function setOnce(replica: Replica, message: Message, timer: ArmedTimer, answer: Json): Promise<SetOnce> {
  const receipt = receiptOf({ kind: "command", id: message.metadata.id });
  const transaction = replica.transaction();
  transaction.due.push(armed(timer));
  transaction.leave(new Receipt(receipt, admit({ request: requestOf(message), result: answer }, undefined)));
  const label = labelOfMessage(message);
  if (label.length > 0) transaction.labels.push({ ...receipt, path: [], labels: [...label] });
  const outcome = await transaction.commit().outcome;
  if (outcome.kind === "committed") return { isNew: true, answer };
  if (outcome.reason !== "document-exists") throw failureOf(outcome);
  const found = await pullStored(replica, receipt);
  if (found === undefined)
    throw new Failure(410, `${message.metadata.id} was handled, and its answer is not kept any more`);
  return { isNew: false, answer: answerOf(found, message) };
}

function failureOf(rejection: Rejection): Failure {
  if (rejection.reason === "too-old") return new Failure(410, rejection.message, { reason: "TOO_OLD" });
  if (rejection.class === "refused") return new Failure(422, `not set: ${rejection.message}`);
  const became = rejection.class === "unknown" ? "it is not known whether it was set" : "not set";
  return new Failure(503, `${became}: ${rejection.message}; repeat it under its id`);
}
