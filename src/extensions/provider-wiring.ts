/**
 * Connects the providers of an extension with the kernel: channels, agents and tools with the message router,
 * `notify_user` topics with the bus; schedules become calls or events. Each wiring leaves its undo function on the
 * record. SPEC: X20, X26, X40-X44.
 */
import type { EventBus } from "../bus/event-bus.ts";
import type { Host } from "../host/host.ts";
import { contentId } from "../message/content-id.ts";
import { eventMessage } from "../message/lineage.ts";
import { show } from "../message/problem.ts";
import { topicType } from "../message/topic.ts";
import { cronProblem } from "../work/cron.ts";
import type { Activity } from "./activity.ts";
import type { Cause } from "./cause.ts";
import { ExtensionError } from "./extension-error.ts";
import type { ExtensionRecord } from "./extension-record.ts";
import type { ScheduleDeclaration } from "./manifest.ts";
import type { MessageRouter } from "./message-router.ts";
import { asProvider, type ScheduledRun, type SchedulerProvider, type TaskResult } from "./providers.ts";
import { publishOnce } from "./publish-once.ts";
import type { ExtensionSchedule } from "./schedule-table.ts";
import { notify } from "./system-topics.ts";
import { withinTime } from "./time-limit.ts";

export interface WiringParts {
  readonly host: Host;
  readonly bus: EventBus;
  readonly router: MessageRouter;
  readonly activity: Activity;
  readonly cause: Cause;
}

export interface SchedulingParts extends WiringParts {
  /** A task that runs longer has failed. */
  readonly handlerTimeoutMs: number;
}

/** The name of the schedule that `getSchedule` gives. */
const CODE_SCHEDULE = "execute";

export function wireProviders(record: ExtensionRecord, { bus, router }: WiringParts): void {
  const { id, manifest } = record;
  const extension = record.extension!;
  for (const { topic, handler, retry } of manifest?.subscribes ?? []) {
    if (handler !== "notify_user") continue;
    const options = { subscriberId: id, ...(retry === undefined ? {} : { retry }) };
    bus.subscribe(topic, ({ payload }) => notify(router, payload), options);
    record.wired(() => bus.suspend(topic, id));
  }
  const channel = asProvider("channel", extension);
  if (channel) record.wired(router.registerChannel(id, channel));
  const agent = asProvider("agent", extension);
  if (agent) record.wired(router.agent.offer({ extensionId: id, agent }));
  for (const tool of asProvider("tool", extension)?.getTools() ?? []) record.wired(router.registerTool(id, tool));
}

/** The schedules to arm for it. Throws for a schedule that could never run. */
export function schedulesOf(record: ExtensionRecord, parts: SchedulingParts): ExtensionSchedule[] {
  const provider = asProvider("scheduler", record.extension!);
  const ofCode = record.scheduled();
  if (ofCode.length > 0) return [...ofCode];
  const declared = (record.manifest?.schedules ?? []).map((one) => declaredSchedule(record, one, provider, parts));
  if (provider?.getSchedule === undefined) return declared;
  return [...declared, codeSchedule(record, provider, parts)];
}

function declaredSchedule(
  { id }: ExtensionRecord,
  { name, cron, timezone, task, emit }: ScheduleDeclaration,
  provider: SchedulerProvider | undefined,
  parts: SchedulingParts,
): ExtensionSchedule {
  const timing = { extensionId: id, name, cron, timezone };
  if (emit !== undefined)
    return { ...timing, does: `event ${emit}`, run: (slot) => publishSlot(id, emit, slot, parts) };
  if (typeof provider?.executeTask !== "function")
    throw new ExtensionError(
      "EXTENSION_PROVIDER",
      `the schedule ${name} has nobody to run it; give the extension executeTask(task), or the schedule emit: a topic`,
    );
  return {
    ...timing,
    does: `task ${task}`,
    run: (slot) => runTask(id, slot, parts, (one) => provider.executeTask?.(task, one)),
  };
}

function codeSchedule(
  { id, manifest }: ExtensionRecord,
  provider: SchedulerProvider,
  parts: SchedulingParts,
): ExtensionSchedule {
  const cron: unknown = provider.getSchedule?.();
  const problem = cronProblem(cron);
  if (problem !== undefined) throw new ExtensionError("EXTENSION_PROVIDER", `getSchedule: ${problem}`);
  if (typeof provider.execute !== "function")
    throw new ExtensionError("EXTENSION_PROVIDER", "getSchedule needs execute() beside it");
  if (manifest?.schedules.some(({ name }) => name === CODE_SCHEDULE))
    throw new ExtensionError(
      "EXTENSION_PROVIDER",
      `getSchedule is called ${CODE_SCHEDULE}; rename that of the manifest`,
    );
  return {
    ...{ extensionId: id, name: CODE_SCHEDULE, cron: String(cron), timezone: undefined, does: "execute()" },
    run: (slot) => runTask(id, slot, parts, (one) => provider.execute?.(one)),
  };
}

/** Under an id that is the slot's: once for each slot, however often it is tried. */
async function publishSlot(source: string, topic: string, slot: ScheduledRun, { bus }: WiringParts): Promise<void> {
  const { schedule, slotMs } = slot;
  const mint = { id: () => contentId(["schedule", source, schedule, slotMs]), now: () => slotMs };
  await publishOnce(bus, { message: eventMessage(mint, topicType(topic), { schedule, slotMs }), topic, source });
}

async function runTask(
  extensionId: string,
  slot: ScheduledRun,
  { host, router, activity, cause, handlerTimeoutMs: limitMs }: SchedulingParts,
  run: (slot: ScheduledRun) => TaskResult | Promise<TaskResult>,
): Promise<void> {
  const what = `${slot.schedule} of ${extensionId}`;
  await activity.during(async () => {
    const limit = { host, limitMs, what, signal: slot.signal };
    const result = await cause.outside(() => withinTime(limit, (signal) => run({ ...slot, signal })));
    if (result === null || result === undefined) return;
    if (typeof result !== "object" || typeof result.text !== "string")
      throw new ExtensionError("EXTENSION_PROVIDER", `${what} gave ${show(result)}; a task gives {text} or nothing`);
    await router.notifyUser(result.text);
  });
}
