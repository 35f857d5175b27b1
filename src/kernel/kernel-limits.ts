/**
 * The configurable limits of a kernel; defaults are in `limits.ts`. SPEC: N9, K56.
 *
 * Not here: limits of stored or sent data (depth, topic length, 1 MiB per message), which all processes and clients
 * share; and intervals and batch sizes, which cause no failure.
 */
import { type ConnectionLimits, connectionLimits } from "../adapters/connection-limits.ts";
import type { UnixSocketOptions } from "../adapters/unix-socket.ts";
import type { EventBusOptions } from "../bus/event-bus.ts";
import type { SpaceOptions } from "../cells/base-space.ts";
import type { AgentLimits } from "../extensions/agent-slot.ts";
import type { EventLoopOptions } from "../loop/event-loop.ts";
import { requireLimit, type TimerLimits } from "../loop/loop-limits.ts";
import { unknownOption } from "../message/near-word.ts";
import { omitUndefined } from "./omit-undefined.ts";

/** Limits of a kernel, such as clients, mailboxes and lanes. */
export interface KernelLimits extends Partial<ConnectionLimits> {
  /** Clients of the socket; the next one gets an error and is closed. */
  readonly connectionsMax?: number;
  /** Bytes of unread output of all clients together; beyond, the connection with the most is dropped. */
  readonly unreadOutputAllBytesMax?: number;
  /** Messages waiting in one mailbox; the next one is refused. */
  readonly mailboxMax?: number;
  /** Messages waiting to be routed, in each of the two lanes; the next one is refused. */
  readonly laneMax?: number;
  /** Microtasks of the loop at the end of one turn; the rest is left to the next. */
  readonly microtasksMax?: number;
  /** The longest delay of a timer. */
  readonly timerDelayMsMax?: number;
  /** Waiting timers of one client; the next one is refused. */
  readonly timersPerClientMax?: number;
  /** Handlers of one event subscription that run at once. */
  readonly concurrency?: number;
  /** Time limit of event handlers, unless the subscription has its own, and of tasks of an extension's schedule. */
  readonly handlerTimeoutMs?: number;
  /** Time limit of an agent's answer. */
  readonly agentInvokeMs?: number;
  /** Questions waiting for the agent; the next one is refused. */
  readonly agentWaitingMax?: number;
  /** Documents of the kernel's space in memory; beyond, unobserved ones are dropped. */
  readonly residentDocumentsMax?: number;
}

/** The limits by component, without undefined ones. */
export interface LimitsByPart {
  readonly socket: Pick<UnixSocketOptions, "connectionsMax" | "unreadOutputAllBytesMax" | "limits">;
  readonly loop: Pick<EventLoopOptions, "mailboxMax" | "laneMax" | "microtasksMax">;
  readonly timer: Pick<Partial<TimerLimits>, "timerDelayMsMax" | "timersPerClientMax">;
  readonly bus: Pick<EventBusOptions, "concurrency" | "handlerTimeoutMs">;
  readonly agent: AgentLimits;
  readonly space: Pick<SpaceOptions, "residentDocumentsMax">;
}

const KNOWN: Readonly<Record<keyof KernelLimits, true>> = {
  ...{ lineBytesMax: true, depthMax: true, keysMax: true, lineCompleteMs: true, requestsInFlightMax: true },
  ...{
    unreadOutputBytesMax: true,
    unreadOutputAllBytesMax: true,
    connectionsMax: true,
    mailboxMax: true,
    laneMax: true,
  },
  ...{
    microtasksMax: true,
    timerDelayMsMax: true,
    timersPerClientMax: true,
    concurrency: true,
    handlerTimeoutMs: true,
  },
  ...{ residentDocumentsMax: true, agentInvokeMs: true, agentWaitingMax: true },
};

/** Throws for an unknown or invalid limit before any part is opened. */
export function limitsByPart(limits: KernelLimits = {}): LimitsByPart {
  const problem = unknownOption(limits, KNOWN);
  if (problem !== undefined) throw new RangeError(`limits: ${problem}`);
  const chosen: KernelLimits = omitUndefined(limits);
  for (const [name, value] of Object.entries(chosen)) requireLimit(name, value);
  const { connectionsMax, mailboxMax, laneMax, microtasksMax, timerDelayMsMax, timersPerClientMax, ...others } = chosen;
  const { concurrency, handlerTimeoutMs, residentDocumentsMax, unreadOutputAllBytesMax, ...further } = others;
  const { agentInvokeMs, agentWaitingMax, ...ofClient } = further;
  return {
    socket: { limits: connectionLimits(ofClient), ...omitUndefined({ connectionsMax, unreadOutputAllBytesMax }) },
    loop: omitUndefined({ mailboxMax, laneMax, microtasksMax }),
    timer: omitUndefined({ timerDelayMsMax, timersPerClientMax }),
    bus: omitUndefined({ concurrency, handlerTimeoutMs }),
    agent: omitUndefined({ agentInvokeMs, agentWaitingMax }),
    space: omitUndefined({ residentDocumentsMax }),
  };
}
