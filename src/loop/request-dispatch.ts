/**
 * Gives a pending request to its actor, or answers why not, and limits the time that its requester waits. SPEC: L10,
 * L15, L16, L22.
 */
import type { HandlingRing } from "../bus/handling-ring.ts";
import type { Host } from "../host/host.ts";
import type { Message } from "../message/envelope.ts";
import { type ErrorExtras, errorData, type SystemErrorCode, thrownText } from "../message/error-data.ts";
import { causedBy, commandMessage, error } from "../message/lineage.ts";
import type { Answers } from "./answers.ts";
import type { CommandJournal } from "./command-journal.ts";
import { inbound, type SentMessage } from "./inbound.ts";
import type { Lanes } from "./lanes.ts";
import type { Observations } from "./observation.ts";
import type { Sending } from "./parcel.ts";
import type { PendingRequest } from "./pending-request.ts";
import { NOBODY, senderText } from "./pending-request.ts";
import type { PendingTable } from "./pending-table.ts";

export interface RequestDispatchParts {
  readonly host: Host;
  readonly lanes: Lanes;
  readonly pending: PendingTable;
  readonly observations: Observations;
  readonly answers: Answers;
  readonly commands: CommandJournal | undefined;
  readonly requestTimeoutMs: number | undefined;
  readonly handlings: HandlingRing | undefined;
}

/** A request as its sender's event waits for it, if it does. */
export interface SentRequest extends SentMessage {
  readonly sending?: Sending | undefined;
}

export class RequestDispatch {
  readonly #parts: RequestDispatchParts;

  constructor(parts: RequestDispatchParts) {
    this.#parts = parts;
  }

  post(request: SentRequest, entry: PendingRequest): void {
    const { pending, observations, lanes, handlings } = this.#parts;
    const { message, origin } = request;
    const { actor } = entry;
    let refusal: string | undefined;
    // Before it is dispatched: an actor may answer at once.
    if (entry.handling !== undefined) handlings?.ended(entry.handling, "failed, and tried again");
    entry.handling = handlings?.given(message, actor.name, senderText(entry.kept?.sentBy ?? origin));
    try {
      refusal = actor.post({ message, request: entry, parcel: undefined });
    } catch (thrown) {
      const reason = `postMessage failed: ${thrownText(thrown)}`;
      observations.tell("Sys.ActorFault", { capability: actor.name, reason }, message);
      return this.#takeBack(request, entry, 500, `${actor.name}: ${reason}`);
    }
    if (refusal !== undefined) return this.#takeBack(request, entry, 503, refusal);
    // The request is handled although its sender left; its answer is an orphan.
    if (lanes.isGone(origin) && entry.kept === undefined) pending.take(entry.id);
    if (entry.kept === undefined) this.limitTime(entry);
    if (observations.wanted) observations.tell("Sys.Routed", { capability: actor.name, type: message.type }, message);
  }

  #takeBack(request: SentRequest, entry: PendingRequest, code: 500 | 503, reason: string): void {
    this.#parts.pending.take(entry.id);
    if (entry.handling !== undefined) this.#parts.handlings?.ended(entry.handling, `${code}: ${reason}`);
    entry.kept?.ended(error(this.#parts.host, entry, errorData(code, reason)), entry.origin);
    this.refuse(request, code, reason);
  }

  /** If no requester waits for the answer, the event whose handler sent the request fails with the reason. */
  refuse(request: SentRequest, code: SystemErrorCode, reason: string, extras?: ErrorExtras): void {
    const { commands, observations, answers } = this.#parts;
    const { message, origin, sending } = request;
    if (origin.kind === "actor" && !origin.actor.awaits(message.metadata.id))
      sending?.done(`${message.type} was refused: ${reason}`);
    // The setter of a timer was told that it is set. A message that is refused for the moment is sent again.
    if (origin.kind === "relay" && code !== 503) {
      if (message.kind === "command") commands?.refused?.(message, reason);
      const fault = { capability: origin.actor.name, reason, code, type: message.type };
      observations.tell("Sys.ActorFault", fault, message);
    }
    answers.refuse(request, code, reason, extras);
  }

  limitTime(entry: PendingRequest): void {
    const { host, pending, requestTimeoutMs } = this.#parts;
    const { kind } = entry.origin;
    if (requestTimeoutMs === undefined || kind === "caller" || kind === "nobody") return;
    if (pending.get(entry.id) !== entry) return;
    entry.timeout = host.timer(requestTimeoutMs, () => this.timeoutLater(entry));
  }

  /** The loop's own timeout goes through the system lane like every other (§12.7). */
  timeoutLater(request: Pick<Message, "metadata">, reason?: string): void {
    const { host, lanes, answers } = this.#parts;
    const data = { requestId: request.metadata.id, ...(reason === undefined ? {} : { reason }) };
    const timeout = inbound(commandMessage(host, "Sys.RequestTimeout", data, causedBy(request)), NOBODY);
    const refusal = lanes.put(timeout, "system");
    if (refusal !== undefined) answers.refuse(timeout, 503, refusal);
  }
}
