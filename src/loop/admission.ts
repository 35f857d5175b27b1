/**
 * Refusals before a message reaches an actor: clearance and the kernel's own events (403), data that does not fit
 * (422). SPEC: L8, F9, N19.
 */
import type { Message } from "../message/envelope.ts";
import type { ErrorExtras } from "../message/error-data.ts";
import { kernelEventProblem } from "../message/kernel-event.ts";
import { isWithin, labelOfMessage } from "../store/label.ts";
import type { Capability } from "./capability.ts";
import type { SentMessage } from "./inbound.ts";
import { schemaProblem } from "./message-schema.ts";
import type { Origin } from "./pending-request.ts";
import type { SupervisedActor } from "./supervised-actor.ts";

export interface RequestRefusal {
  readonly code: 403 | 422;
  readonly reason: string;
  readonly extras?: ErrorExtras;
}

export function requestRefusal(
  { message, origin }: SentMessage,
  { name, capability }: SupervisedActor,
): RequestRefusal | undefined {
  if (capability.operates && origin.kind === "adapter" && origin.connection.clearance !== undefined)
    return {
      code: 403,
      reason: `${message.type} acts on the kernel itself, which a connection with a clearance may not`,
    };
  if (!mayBeTold(origin, capability)) {
    const whose = origin.kind === "actor" ? origin.actor.name : "this connection";
    const reason = `${message.type} may reveal data above the clearance of ${whose}`;
    return { code: 403, reason: `${reason}; give ${name} a clearance that lies within it` };
  }
  if (!mayKnow(capability, message))
    return { code: 403, reason: `${message.type} was made from data above the clearance of ${name}` };
  const problem = schemaProblem(capability.inbound, message);
  return problem && { code: 422, reason: problem.text, extras: { data: problem.data } };
}

/**
 * The reason why an event of a client is not published; undefined if it is. Actors publish only the types that they
 * declare.
 */
export function eventRefusal({ message: { type }, origin }: SentMessage): string | undefined {
  if (origin.kind !== "adapter") return undefined;
  const problem = kernelEventProblem(type);
  if (problem !== undefined) return problem;
  if (origin.connection.clearance === undefined) return undefined;
  return "a connection with a clearance cannot publish events; send a command to a capability that does";
}

/** Whether the label of a message is within a capability's clearance. */
export function mayKnow({ clearance }: Capability, message: Message): boolean {
  return (
    message.metadata.label === undefined || clearance === undefined || isWithin(labelOfMessage(message), clearance)
  );
}

/**
 * Whether all answers of a capability are within the clearance of the sender. A relay is exempt, because it gets only
 * acknowledgements.
 */
function mayBeTold(origin: Origin, capability: Capability): boolean {
  const clearance = clearanceOf(origin);
  if (clearance === undefined || (origin.kind === "actor" && capability.relays)) return true;
  return capability.clearance !== undefined && isWithin(capability.clearance, clearance);
}

function clearanceOf(origin: Origin): readonly string[] | undefined {
  if (origin.kind === "adapter") return origin.connection.clearance;
  return origin.kind === "actor" ? origin.actor.capability.clearance : undefined;
}
