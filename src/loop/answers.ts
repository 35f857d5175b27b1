/**
 * Delivers answers to the connection, actor or caller that asked, and ends entries of the pending table. Every refusal
 * and every undeliverable answer is observed. SPEC: L2, L6, L7, L10.
 */
import type { HandlingRing } from "../bus/handling-ring.ts";
import type { Host } from "../host/host.ts";
import type { Message, Refused } from "../message/envelope.ts";
import {
  type ErrorData,
  type ErrorExtras,
  errorData,
  type SystemErrorCode,
  thrownText,
} from "../message/error-data.ts";
import { error } from "../message/lineage.ts";
import type { SentMessage } from "./inbound.ts";
import type { Lanes } from "./lanes.ts";
import type { Observations } from "./observation.ts";
import type { Connection, Origin, PendingRequest, RequestingActor } from "./pending-request.ts";
import type { PendingTable } from "./pending-table.ts";

export interface AnswersParts {
  readonly host: Host;
  readonly lanes: Lanes;
  readonly pending: PendingTable;
  readonly observations: Observations;
  readonly handlings: HandlingRing | undefined;
}

type Answer = Message | Message<ErrorData>;

/** Why a message is invalid, with as much of its envelope as can be read. */
export type InvalidMessage = Omit<Refused, "kind">;

export class Answers {
  readonly #parts: AnswersParts;

  constructor(parts: AnswersParts) {
    this.#parts = parts;
  }

  /**
   * Tells why a message was not accepted. The sender of a request and the client that sent an event get an error; the
   * pending table is not changed.
   */
  refuse({ message, origin }: SentMessage, code: SystemErrorCode, reason: string, extras?: ErrorExtras): void {
    const { host, lanes, observations } = this.#parts;
    const { kind, type } = message;
    const told = error(host, message, errorData(code, reason, code === 503 && lanes.isClosed ? DRAINING : extras));
    // The mark tells a refusal from a handler's own answer: the request may be sent again.
    const refusal = { ...told, metadata: { ...told.metadata, refused: true } };
    if (kind === "command" || kind === "query") this.deliver(origin, refusal);
    else if (kind === "event" && origin.kind === "adapter") {
      origin.connection.taken?.(message);
      this.tell(origin.connection, refusal);
    }
    observations.tell(code === 503 ? "Sys.Overload" : "Sys.RoutingError", { kind, type, code, reason }, message);
  }

  /** Answers a client that sent no valid message. */
  invalid(
    { code, message, id, type = "Validation.Failed", correlation }: InvalidMessage,
    connection: Connection,
  ): void {
    const { host, observations } = this.#parts;
    const metadata = {
      ...{ id: host.id(), timestamp: host.now() },
      ...(correlation === undefined ? {} : { correlation }),
      ...(id === undefined ? {} : { causation: id }),
    };
    this.tell(connection, { kind: "error", type, data: errorData(code, message), metadata });
    observations.tell("Sys.RoutingError", { kind: "invalid", type, code, reason: message });
  }

  /**
   * Answers a pending request and removes it. With `from`, only a request of that actor; with `request`, only that one.
   */
  resolve(id: string, answer: Answer, from?: RequestingActor, request?: PendingRequest): boolean {
    const { pending, lanes, handlings } = this.#parts;
    const entry = pending.take(id, from, request);
    if (!entry) return false;
    entry.kept?.ended(answer, entry.origin);
    if (entry.handling !== undefined) handlings?.ended(entry.handling, outcomeText(answer), entry.begunAt);
    this.deliver(entry.origin, answer, entry.begunAt);
    lanes.checkRest();
    return true;
  }

  /** Answers a requester that waits no longer; a journaled command is handled all the same. */
  giveUp(entry: PendingRequest, answer: Message<ErrorData>): void {
    if (entry.kept === undefined) return void this.resolve(entry.id, answer);
    const { origin } = entry;
    this.#parts.pending.release(entry);
    this.deliver(origin, answer);
  }

  /** Gives up every request of a connection. */
  abandon(connection: Connection, reason: string): void {
    const { host, pending } = this.#parts;
    for (const request of pending.waitingFor(connection))
      this.giveUp(request, error(host, request, errorData(503, reason)));
  }

  /** `begunAt`: when the handler began, if the actor tells. */
  deliver(origin: Origin, answer: Answer, begunAt?: number): void {
    switch (origin.kind) {
      case "adapter":
        return this.#deliverTo(origin.connection, answer, begunAt);
      case "actor":
        if (!this.#answerTo(origin.actor, answer)) this.orphan(answer, origin);
        return;
      case "caller":
        return origin.answer(answer);
      case "relay":
        // The relay does not wait, but it may want to know that the message was handled.
        this.#answerTo(origin.actor, answer);
        return;
      case "nobody":
        return;
    }
  }

  /** An actor whose `postMessage` throws counts as answered. */
  #answerTo(actor: RequestingActor, answer: Answer): boolean {
    try {
      return actor.answer(answer);
    } catch (thrown) {
      const reason = `postMessage failed: ${thrownText(thrown)}`;
      this.#parts.observations.tell("Sys.ActorFault", { capability: actor.name, reason }, answer);
      return true;
    }
  }

  #deliverTo(connection: Connection, answer: Answer, begunAt: number | undefined): void {
    try {
      connection.deliver(answer as Message, begunAt);
    } catch (thrown) {
      this.#notWritten("delivered", connection, answer, thrown);
    }
  }

  /** Writes to a connection a message that answers none of its requests. */
  tell(connection: Connection, message: Answer): void {
    try {
      connection.stream(message as Message);
    } catch (thrown) {
      this.#notWritten("written", connection, message, thrown);
    }
  }

  #notWritten(how: string, { adapter }: Connection, message: Answer, thrown: unknown): void {
    const { kind, type } = message;
    const reason = `not ${how} by ${adapter}: ${thrownText(thrown)}`;
    this.#parts.observations.tell("Sys.RoutingError", { kind, type, reason }, message);
  }

  /** An answer that no requester waits for (§14.5). */
  orphan({ kind, type, metadata }: Answer, origin: Origin): void {
    const from = origin.kind === "actor" ? origin.actor.name : origin.kind;
    const told = { type, kind, causation: metadata.causation ?? "", from };
    this.#parts.observations.tell("Sys.OrphanOutcome", told, { metadata });
  }
}

const DRAINING: ErrorExtras = { reason: "DRAINING" };

function outcomeText({ kind, data }: Answer): string {
  if (kind === "reply") return "replied";
  const { code, message } = data as ErrorData;
  return `${code}: ${message}`;
}
