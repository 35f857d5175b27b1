/**
 * Actions of an operator, in the process that owns the store: on journal rows (`Kernel.Requeue`, `Kernel.Discard`,
 * `Kernel.Replay`, `Kernel.Purge`), consumers (`Kernel.RemoveConsumer`), timers (`Kernel.CancelTimer`), extensions
 * (`Kernel.RestartExtension`) and actors (`Kernel.Heal`). Each leaves an audit row in the journal (`Sys.Audited`).
 * SPEC: K40, K90, K91.
 */
import { consumersRemoved, type OperatorAction, recordAction } from "../bus/audit.ts";
import { ExtensionError } from "../extensions/extension-error.ts";
import type { ExtensionLoader } from "../extensions/extension-loader.ts";
import type { ExtensionStatus } from "../extensions/extension-record.ts";
import type { Host } from "../host/host.ts";
import { OPERATOR_TEXT_LENGTH_MAX, PURGE_STEPS_MAX, REQUEUE_IDS_MAX, RETENTION_STEP_ROWS } from "../limits.ts";
import type { Capability } from "../loop/capability.ts";
import type { AnyRequestHandler } from "../loop/capability-definition.ts";
import { capability } from "../loop/define-capability.ts";
import type { EventLoop } from "../loop/event-loop.ts";
import type { CapabilityContext } from "../loop/mailbox-actor.ts";
import { type DataSchema, dataSchema } from "../loop/message-schema.ts";
import { isMessageType } from "../message/envelope.ts";
import { Failure } from "../message/error-data.ts";
import type { Json, JsonObject } from "../message/json.ts";
import type { Store } from "../store/store.ts";
import { type BulkAsk, failedRows } from "./journal-views.ts";
import { type ReplayAsk, type ReplayParts, replay } from "./replay.ts";

export interface OperatorParts extends ReplayParts {
  extensions(): ExtensionLoader | undefined;
  readonly loop: () => EventLoop;
}

/** The operator's name as sent by the client; the socket belongs to one user. */
interface ByOperator {
  readonly by?: string;
}

interface Ids extends ByOperator {
  readonly ids: readonly number[];
  readonly consumer?: string;
}

/** The rows of a request: by id, or a step of those that a filter finds. */
type Rows = Ids & Partial<BulkAsk>;

interface ConsumerName extends ByOperator {
  readonly name: string;
  readonly pattern?: string;
}

interface Bounds extends ByOperator {
  readonly settledBeforeMs?: number;
  readonly keepSettled?: number;
}

/** Audit rows for a verb that changes the store of a stopped kernel. */
export const recordOperatorAction = recordAction;
export const removedByOperator = consumersRemoved;

export function operatorCapability(parts: OperatorParts): Capability {
  const { host, bus, store, extensions, loop } = parts;
  const record = (action: OperatorAction) => recordAction({ host, store }, action);
  return capability({
    description: "operations on dead letters, done rows and timers",
    // The audit row is durable before the answer.
    durable: "unawaited",
    sends: { "Timer.Cancel": "command" },
    commands: byPrincipal({
      "Kernel.Requeue": {
        description:
          "puts events back that failed, or that were settled without a consumer; done ones for one consumer",
        input: rowList(),
        handle: async ({ ids, filter, consumer, by, ...step }: Rows) => {
          if (filter === undefined) {
            const requeued = [...(await bus.requeue(ids, { consumer }))];
            if (requeued.length > 0) await record({ action: "requeue", by, ids: requeued });
            return { requeued };
          }
          // Senders of failed commands were told, and may have sent them again.
          const { ids: matched, ...further } = await failedRows({ host, store }, { filter, ...step }, "event");
          const requeued = step.dryRun === true ? [] : [...(await bus.requeue(matched))];
          if (requeued.length > 0) await record({ action: "requeue", by, ids: requeued, filter });
          return { matched: matched.length, requeued, ...further };
        },
      },
      "Kernel.Discard": {
        description: "gives dead letters up, with a reason: by id, or a step of those that a filter finds",
        input: rowList(["reason"]),
        handle: async ({ ids, filter, reason, by, ...step }: Rows & { reason: string }) => {
          if (filter === undefined) {
            const discarded = [...(await bus.discard(ids, reason))];
            if (discarded.length > 0) await record({ action: "discard", by, ids: discarded, reason });
            return { discarded };
          }
          const { ids: matched, ...further } = await failedRows({ host, store }, { filter, ...step }, undefined);
          const discarded = step.dryRun === true ? [] : [...(await bus.discard(matched, reason))];
          if (discarded.length > 0) await record({ action: "discard", by, ids: discarded, reason, filter });
          return { matched: matched.length, discarded, ...further };
        },
      },
      "Kernel.Replay": {
        description: "sends the message of a row again, as a new one, with other data or another type if given",
        input: replayAsk,
        handle: async ({ by, ...asked }: ByOperator & ReplayAsk, _context, request) => {
          const replayed = await replay(parts, asked, request);
          await record({ action: "replay", by, row: asked.id, message: replayed.messageId });
          return replayed;
        },
      },
      "Kernel.Purge": {
        description: `removes done rows of the journal, at most ${PURGE_STEPS_MAX * RETENTION_STEP_ROWS} at a time; dead letters stay`,
        input: bounds,
        handle: async ({ by, ...given }: Bounds) => {
          const removed = await purge(host, store, given);
          if (removed > 0) await record({ action: "purge", by, removed, ...given });
          return { removed };
        },
      },
      "Kernel.RemoveConsumer": {
        description: "removes a consumer that is gone for good, and settles the events that wait for it alone",
        input: consumerName,
        handle: async ({ name, pattern, by }: ConsumerName) => {
          const removed = await bus.removeConsumers(name, pattern);
          const action = consumersRemoved(by, name, removed);
          if (action !== undefined) await record(action);
          return JSON.parse(JSON.stringify({ removed })) as Json;
        },
      },
      "Kernel.RestartExtension": {
        description: "starts an extension in ERROR again, and those that failed because they depend on it",
        input: extensionId,
        handle: async ({ id, by }: ByOperator & { id: string }) => {
          const restarted = await restart(extensions(), id);
          await record({ action: "restart", by, extension: id });
          return JSON.parse(JSON.stringify({ extensions: restarted })) as Json;
        },
      },
      "Kernel.Heal": {
        description: "starts an actor that was given up after too many crashes",
        input: capabilityName,
        handle: async ({ capability: name, by }: ByOperator & { capability: string }) => {
          const actor = loop().actors.get(name);
          if (!actor) throw new Failure(404, `there is no capability ${name}; see: millrace ls actors`);
          const healed = actor.state === "unhealthy";
          if (healed) {
            actor.heal();
            await record({ action: "heal", by, capability: name });
          }
          return { healed, state: actor.state };
        },
      },
      "Kernel.CancelTimer": {
        description: "cancels a timer",
        input: timerId,
        handle: async ({ timerId, by }: ByOperator & { timerId: string }, context) => {
          const answer = (await context.command("Timer.Cancel", { timerId })) as JsonObject;
          if (answer["cancelled"] === true) await record({ action: "cancel", by, timerId });
          return answer;
        },
      },
    }),
  });
}

type Commands = Readonly<Record<string, AnyRequestHandler<CapabilityContext>>>;

/** A client of HTTP acts in the name of its token; others may name themselves. */
function byPrincipal(commands: Commands): Commands {
  const named = Object.entries(commands).map(([type, command]) => {
    const handle: typeof command.handle = (data, context, request) => {
      const { principal } = request.metadata;
      return command.handle(typeof principal === "string" ? { ...data, by: principal } : data, context, request);
    };
    return [type, { ...command, handle }];
  });
  return Object.fromEntries(named);
}

async function restart(loader: ExtensionLoader | undefined, id: string): Promise<readonly ExtensionStatus[]> {
  if (loader === undefined) throw new Failure(404, "this kernel has no extensions");
  try {
    return await loader.restart(id);
  } catch (error) {
    if (error instanceof ExtensionError) throw new Failure(409, error.message);
    throw error;
  }
}

async function purge(host: Host, store: Store, given: Omit<Bounds, "by">): Promise<number> {
  let removed = 0;
  for (let step = 0; step < PURGE_STEPS_MAX; step++) {
    const went = await store.retain({ ...given, limit: RETENTION_STEP_ROWS });
    removed += went;
    if (went < RETENTION_STEP_ROWS) break;
    await host.yield();
  }
  return removed;
}

const extensionId = dataSchema<ByOperator & { id: string }>(
  (data) =>
    typeof (data as { id?: unknown } | null)?.id === "string" ? byProblem(data) : "id: must be an extension's id",
  { type: "object", properties: { id: { type: "string" }, by: { type: "string" } }, required: ["id"] },
);

function textProblem(name: string, value: unknown): string | undefined {
  if (typeof value === "string" && value.trim() !== "" && value.length <= OPERATOR_TEXT_LENGTH_MAX) return undefined;
  return `${name}: must be a text of 1 to ${OPERATOR_TEXT_LENGTH_MAX} characters`;
}

function byProblem(data: unknown): string | undefined {
  const { by } = (data ?? {}) as { by?: unknown };
  return by === undefined ? undefined : textProblem("by", by);
}

const ID_LIST: JsonObject = { type: "array", items: { type: "integer" } };

function rowList(texts: readonly string[] = []): DataSchema<Rows & { reason: string }> {
  return dataSchema(
    (data) => {
      const given = (data ?? {}) as { readonly [name: string]: unknown };
      const problem = given["filter"] === undefined ? idsProblem(given) : stepProblem(given);
      if (problem !== undefined) return problem;
      for (const name of texts) {
        const textual = textProblem(name, given[name]);
        if (textual) return textual;
      }
      return byProblem(data);
    },
    {
      type: "object",
      properties: {
        ...{ ids: ID_LIST, consumer: { type: "string" }, filter: { type: "string" }, dryRun: { type: "boolean" } },
        ...{ cursor: { type: "string" }, upTo: { type: "string" }, by: { type: "string" } },
        ...Object.fromEntries(texts.map((name) => [name, TEXT])),
      },
      ...(texts.length === 0 ? {} : { required: [...texts] }),
    },
  );
}

function idsProblem({ ids, consumer, dryRun }: { readonly [name: string]: unknown }): string | undefined {
  if (consumer !== undefined && typeof consumer !== "string") return "consumer: must be a consumer's name";
  if (dryRun !== undefined) return "dryRun: is for a filter";
  if (!Array.isArray(ids) || ids.length > REQUEUE_IDS_MAX)
    return `ids: must be a list of at most ${REQUEUE_IDS_MAX}; or name a filter`;
  return ids.every(isRowId) ? undefined : "ids: must be ids of journal rows";
}

function stepProblem({ ids, consumer, filter, dryRun, cursor, upTo }: { readonly [name: string]: unknown }) {
  if (ids !== undefined || consumer !== undefined) return "filter: stands alone, without ids and consumer";
  if (dryRun !== undefined && typeof dryRun !== "boolean") return "dryRun: must be true or false";
  for (const [name, value] of Object.entries({ filter, cursor, upTo }))
    if (value !== undefined && typeof value !== "string") return `${name}: must be a text`;
  return undefined;
}

function isRowId(id: unknown): boolean {
  return Number.isSafeInteger(id) && (id as number) > 0;
}

const replayAsk = dataSchema<ByOperator & ReplayAsk>(
  (data) => {
    const { id, type } = (data ?? {}) as { id?: unknown; type?: unknown };
    if (!isRowId(id)) return "id: must be the id of a journal row";
    if (type !== undefined && (typeof type !== "string" || !isMessageType(type)))
      return "type: must be like Order.Placed";
    return byProblem(data);
  },
  {
    type: "object",
    properties: { id: { type: "integer" }, type: { type: "string" }, data: {}, by: { type: "string" } },
    required: ["id"],
  },
);

const TEXT: Json = { type: "string", minLength: 1, maxLength: OPERATOR_TEXT_LENGTH_MAX };

const consumerName = dataSchema<ConsumerName>(
  (data) => {
    const { name, pattern } = (data ?? {}) as { name?: unknown; pattern?: unknown };
    if (typeof name !== "string") return "name: must be a consumer's name";
    if (pattern !== undefined && typeof pattern !== "string") return "pattern: must be a topic or a pattern";
    return byProblem(data);
  },
  {
    type: "object",
    properties: { name: { type: "string" }, pattern: { type: "string" }, by: { type: "string" } },
    required: ["name"],
  },
);

const capabilityName = dataSchema<ByOperator & { capability: string }>(
  (data) =>
    typeof (data as { capability?: unknown } | null)?.capability === "string"
      ? byProblem(data)
      : "capability: must be the name of a capability",
  {
    type: "object",
    properties: { capability: { type: "string" }, by: { type: "string" } },
    required: ["capability"],
  },
);

const timerId = dataSchema<ByOperator & { timerId: string }>(
  (data) =>
    typeof (data as { timerId?: unknown } | null)?.timerId === "string" ? byProblem(data) : "timerId: must be a string",
  { type: "object", properties: { timerId: { type: "string" }, by: { type: "string" } }, required: ["timerId"] },
);

const bounds = dataSchema<Bounds>(
  (data) => {
    const { settledBeforeMs, keepSettled } = (data ?? {}) as { settledBeforeMs?: unknown; keepSettled?: unknown };
    if (settledBeforeMs === undefined && keepSettled === undefined)
      return "needs settledBeforeMs, keepSettled or both: without a bound all done rows would go";
    for (const [name, value] of Object.entries({ settledBeforeMs, keepSettled }))
      if (value !== undefined && !(Number.isSafeInteger(value) && (value as number) >= 0))
        return `${name}: must be a whole number from 0 on`;
    return byProblem(data);
  },
  {
    type: "object",
    properties: {
      settledBeforeMs: { type: "integer", minimum: 0 },
      keepSettled: { type: "integer", minimum: 0 },
      by: { type: "string" },
    },
  },
);
