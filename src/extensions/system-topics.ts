/**
 * Topics that the kernel itself answers. Every extension may emit them without declaring it, and so may clients. SPEC:
 * X27.
 *
 *   system.user.notify        { text, channel_id? }     the user is told
 *   system.agent.task         { prompt, channel_id? }   the agent is asked, the user gets its answer
 *   system.agent.background   { prompt }                the agent is asked; its answer is dropped
 *
 * A payload that lacks its text fails its delivery with the reason; `millrace requeue` brings it back when it was
 * repaired.
 */
import type { EventBus } from "../bus/event-bus.ts";
import { TIMER_DELAY_MS_MAX } from "../limits.ts";
import { isJsonObject, type Json } from "../message/json.ts";
import { show } from "../message/problem.ts";
import { ExtensionError } from "./extension-error.ts";
import type { MessageRouter } from "./message-router.ts";

/** Their handler's name in the journal. */
export const SYSTEM_SUBSCRIBER = "kernel";

export function wireSystemTopics(bus: EventBus, router: MessageRouter): void {
  const options = { subscriberId: SYSTEM_SUBSCRIBER };
  // One at a time, and without a limit of the bus: the agent has one of its own, which begins when it is asked.
  const asking = { ...options, concurrency: 1, timeoutMs: TIMER_DELAY_MS_MAX };
  bus.subscribe("system.user.notify", ({ payload }) => notify(router, payload), options);
  bus.subscribe(
    "system.agent.task",
    async ({ payload, correlation }, { signal }) => {
      const answer = await router.invokeAgent(textOf(payload, "prompt"), { correlation, signal });
      await router.notifyUser(answer, channelOf(payload));
    },
    asking,
  );
  bus.subscribe(
    "system.agent.background",
    async ({ payload, correlation }, { signal }) => {
      await router.invokeAgent(textOf(payload, "prompt"), { correlation, signal });
    },
    asking,
  );
}

/** Delivers an event of a `notify_user` handler, or of `system.user.notify`. */
export function notify(router: MessageRouter, payload: Json): Promise<void> {
  return router.notifyUser(textOf(payload, "text"), channelOf(payload));
}

function textOf(payload: Json, field: "text" | "prompt"): string {
  const text = isJsonObject(payload) ? payload[field] : undefined;
  if (typeof text === "string") return text;
  throw new ExtensionError("EXTENSION_MISUSE", `the payload needs ${field}, a text; got ${show(text ?? payload)}`);
}

function channelOf(payload: Json): string | undefined {
  const channel = isJsonObject(payload) ? payload["channel_id"] : undefined;
  if (channel === undefined || channel === null || typeof channel === "string") return channel ?? undefined;
  throw new ExtensionError("EXTENSION_MISUSE", `channel_id must name a channel; got ${show(channel)}`);
}
