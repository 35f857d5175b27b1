/** Requests that the loop answers itself; no capability can claim them. SPEC: L7, L22, L23. */
import type { Host } from "../host/host.ts";
import type { Message } from "../message/envelope.ts";
import { errorData, Failure, thrownText } from "../message/error-data.ts";
import type { Json } from "../message/json.ts";
import { error, reply } from "../message/lineage.ts";
import { reasonOf } from "../message/reasons.ts";
import type { Answers } from "./answers.ts";
import type { EventStreams } from "./event-streams.ts";
import type { Inbound } from "./inbound.ts";
import type { Lanes } from "./lanes.ts";
import type { LiveQueries } from "./live-queries.ts";
import type { Connection, Origin } from "./pending-request.ts";
import type { PendingTable } from "./pending-table.ts";
import type { RequestDispatch } from "./request-dispatch.ts";

export interface OwnRequestsParts {
  readonly host: Host;
  readonly lanes: Lanes;
  readonly pending: PendingTable;
  readonly answers: Answers;
  readonly dispatch: RequestDispatch;
  readonly streams: EventStreams;
  readonly live: LiveQueries;
}

export class OwnRequests {
  readonly #parts: OwnRequestsParts;

  constructor(parts: OwnRequestsParts) {
    this.#parts = parts;
  }

  answer(inbound: Inbound): void {
    const { streams, live, dispatch } = this.#parts;
    const { kind, type } = inbound.message;
    switch (`${kind} ${type}`) {
      case "command Sys.RequestTimeout":
        return this.#timeout(inbound);
      case "command Sys.Subscribe":
        return this.#stream(inbound, (message, connection) => streams.subscribe(message, connection));
      case "command Sys.Unsubscribe":
        return this.#stream(inbound, (message, connection) => streams.unsubscribe(message, connection));
      case "command Sys.Watch":
        return this.#stream(inbound, (message, connection) => live.watch(message, connection));
      case "command Sys.Unwatch":
        return this.#stream(inbound, (message, connection) => live.unwatch(message, connection));
      default:
        return dispatch.refuse(inbound, 404, `no capability handles ${kind} ${type}`);
    }
  }

  /** `Sys.RequestTimeout`: a client cannot end the request of another connection (§12.8), not by a timer either. */
  #timeout(inbound: Inbound): void {
    const { host, pending, answers, dispatch } = this.#parts;
    const { message, origin } = inbound;
    const { requestId, reason } = (message.data ?? {}) as { requestId?: unknown; reason?: unknown };
    if (typeof requestId !== "string")
      return dispatch.refuse(inbound, 422, "data.requestId: must be the id of a request");
    const entry = pending.get(requestId);
    const expired = entry !== undefined && mayExpire(origin, entry.origin);
    // Only the loop itself knows the reason.
    const why = origin.kind === "nobody" && typeof reason === "string" ? reason : undefined;
    if (expired) answers.giveUp(entry, error(host, entry, errorData(504, why)));
    // The loop's own timers ask for no answer.
    answers.deliver(origin, reply(host, message, { expired }));
  }

  /** Subscriptions of a client: only a connection can have them. */
  #stream(inbound: Inbound, answer: (message: Message, connection: Connection) => Json): void {
    const { host, lanes, dispatch } = this.#parts;
    const { message, origin } = inbound;
    if (origin.kind !== "adapter") return dispatch.refuse(inbound, 422, `${message.type} is for clients of an adapter`);
    if (lanes.isGone(origin)) return;
    // Only events of transactions and handlers reliably have labels: plain code may publish anything.
    if (origin.connection.clearance !== undefined && message.type === "Sys.Subscribe") {
      const reason = "a connection with a clearance cannot follow events; ask for the data it may know";
      return dispatch.refuse(inbound, 403, reason);
    }
    try {
      origin.connection.deliver(reply(host, message, answer(message, origin.connection)));
    } catch (thrown) {
      if (!(thrown instanceof Failure)) return dispatch.refuse(inbound, 503, thrownText(thrown));
      const { code, reason } = thrown;
      const known = code === 422 || code === 404 || code === 403 ? code : 503;
      dispatch.refuse(inbound, known, thrown.message, reason === reasonOf(code) ? undefined : { reason });
    }
  }
}

/** Actors and the loop may time out any request; a client only its own, directly or by a timer that it has set. */
function mayExpire(asker: Origin, waiting: Origin): boolean {
  const client =
    asker.kind === "adapter"
      ? asker.connection.id
      : asker.kind === "relay" && asker.sender?.kind === "client"
        ? asker.sender.id
        : undefined;
  if (client !== undefined) return waiting.kind === "adapter" && waiting.connection.id === client;
  return asker.kind !== "relay" || asker.sender !== undefined;
}
