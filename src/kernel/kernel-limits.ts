/**
 * The bounds that whoever runs a kernel may choose, each by itself; what `limits.ts` says holds for the others. SPEC: N9, K56.
 *
 * Not here: bounds of what is stored or sent (how deep a document is, how long a topic, 1 MiB for a message), which every process on a store
 * and every client has to share; and paces (how often something is looked at, how much is done in one go), of which none makes anything fail.
 */
import { type ConnectionLimits, connectionLimits } from "../adapters/connection-limits.ts";
import type { UnixSocketOptions } from "../adapters/unix-socket.ts";
import type { EventBusOptions } from "../bus/event-bus.ts";
import type { SpaceOptions } from "../cells/space.ts";
import type { AgentLimits } from "../extensions/agent-slot.ts";
import type { EventLoopOptions } from "../loop/event-loop.ts";
import { requireLimit, type TimerLimits } from "../loop/loop-limits.ts";
import { unknownOption } from "../message/near-word.ts";
import { given } from "./given.ts";

export interface KernelLimits extends Partial<ConnectionLimits> {
  /** Clients of the socket; the next one is told so and closed. */
  readonly connectionsMax?: number;
  /** Bytes of output that all clients together may leave unread; beyond, the connection with the most is dropped. */
  readonly unreadOutputAllBytesMax?: number;
  /** Messages that wait in one mailbox; the next one is refused. */
  readonly mailboxMax?: number;
  /** Messages that wait to be routed, in each of the two lanes; the next one is refused. */
  readonly laneMax?: number;
  /** Microtasks of the loop at the end of one turn; the rest is carried to the next. */
  readonly microtasksMax?: number;
  /** How far ahead a timer may be set. */
  readonly timerDelayMsMax?: number;
  /** Timers of one client that wait; the next one is refused. */
  readonly timersPerClientMax?: number;
  /** Handlers of one subscription to events that run at once. */
  readonly concurrency?: number;
  /** A handler of events that runs longer has failed, unless its subscription says otherwise; so has a task of an extension's schedule. */
  readonly handlerTimeoutMs?: number;
  /** An answer of the agent that takes longer has failed. */
  readonly agentInvokeMs?: number;
  /** Questions that wait for the agent; the next one is refused. */
  readonly agentWaitingMax?: number;
  /** Documents of the kernel's space that are kept in memory; beyond, those that nobody observes are dropped. */
  readonly residentDocumentsMax?: number;
}

/** The limits by whose they are; what was not chosen is left out. */
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

/** Throws for a limit that is not known or not valid, before anything is opened. */
export function limitsByPart(limits: KernelLimits = {}): LimitsByPart {
  const problem = unknownOption(limits, KNOWN);
  if (problem !== undefined) throw new RangeError(`limits: ${problem}`);
  const chosen: KernelLimits = given(limits);
  for (const [name, value] of Object.entries(chosen)) requireLimit(name, value);
  const { connectionsMax, mailboxMax, laneMax, microtasksMax, timerDelayMsMax, timersPerClientMax, ...others } = chosen;
  const { concurrency, handlerTimeoutMs, residentDocumentsMax, unreadOutputAllBytesMax, ...further } = others;
  const { agentInvokeMs, agentWaitingMax, ...ofClient } = further;
  return {
    socket: { limits: connectionLimits(ofClient), ...given({ connectionsMax, unreadOutputAllBytesMax }) },
    loop: given({ mailboxMax, laneMax, microtasksMax }),
    timer: given({ timerDelayMsMax, timersPerClientMax }),
    bus: given({ concurrency, handlerTimeoutMs }),
    agent: given({ agentInvokeMs, agentWaitingMax }),
    space: given({ residentDocumentsMax }),
  };
}
