/**
 * The routing laws (RFC 0032 §9): by kind, one turn's worth at a time. Immediate failures are terminal answers plus an observation:
 * 404 nobody handles it, 409 the id is pending already, 422 the data does not fit, 503 the actor takes no more.
 */
import type { Host } from "../host/host.ts";
import { causationOf, type Message } from "../message/envelope.ts";
import { type ErrorData, errorData } from "../message/error-data.ts";
import { error } from "../message/lineage.ts";
import type { MessageSchema } from "./capability.ts";
import type { EventJournal } from "./event-journal.ts";
import type { EventLoop, EventLoopOptions } from "./event-loop.ts";
import { type Inbound, NOBODY } from "./inbound.ts";
import type { SupervisedActor } from "./supervised-actor.ts";

export class Router {
  readonly #loop: EventLoop;
  readonly #host: Host;
  readonly #events: EventJournal | undefined;
  readonly #requestTimeoutMs: number | undefined;

  constructor(loop: EventLoop, { host, events, requestTimeoutMs }: EventLoopOptions) {
    this.#loop = loop;
    this.#host = host;
    this.#events = events;
    this.#requestTimeoutMs = requestTimeoutMs;
  }

  route(inbound: Inbound): void {
    const { message } = inbound;
    switch (message.kind) {
      case "command":
      case "query":
        return message.type === "Sys.RequestTimeout" ? this.#timeout(inbound) : this.#request(inbound);
      case "event":
        return this.#event(inbound);
      case "reply":
      case "error":
        return this.#outcome(inbound);
    }
  }

  // Requests -----------------------------------------------------------------------------------------------------------------

  #request(inbound: Inbound): void {
    const { message, origin } = inbound;
    const { table, pending, actors, observations } = this.#loop;
    const route = table.route(message.kind, message.type);
    if (!route) {
      this.#loop.refuse(inbound, 404, `nobody handles ${message.kind} ${message.type}`);
      return observations.tell(
        "Sys.RoutingError",
        { kind: message.kind, type: message.type, reason: "no handler" },
        message,
      );
    }
    if (pending.has(message.metadata.id)) {
      return this.#loop.refuse(inbound, 409, `request id ${message.metadata.id} is in use`);
    }
    const actor = actors.get(route.capability) as SupervisedActor;
    const problem = validate(actor.capability.inbound, message);
    if (problem) return this.#loop.refuse(inbound, 422, problem);
    // Before it is dispatched: an actor may answer at once.
    const entry = pending.insert(message, origin);
    entry.actor = actor;
    const posted = actor.post(origin.kind === "adapter" ? message : this.#loop.copy(message));
    if (posted !== "posted") {
      pending.take(message.metadata.id);
      const why = posted === "full" ? `the mailbox of ${actor.name} is full` : `${actor.name} is unhealthy`;
      this.#loop.refuse(inbound, 503, why);
      return observations.tell("Sys.Overload", { capability: actor.name, reason: why }, message);
    }
    if (origin.kind === "adapter" && this.#requestTimeoutMs !== undefined) {
      entry.timeout = this.#host.timer(this.#requestTimeoutMs, () => this.#expire(message.metadata.id));
    }
    if (observations.wanted) observations.tell("Sys.Routed", { capability: actor.name, type: message.type }, message);
  }

  /** `Sys.RequestTimeout`: an outsider cannot touch what another connection waits for (§12.8). */
  #timeout(inbound: Inbound): void {
    const { message, origin } = inbound;
    const requestId = (message.data as { requestId?: unknown } | null)?.requestId;
    if (typeof requestId !== "string")
      return this.#loop.refuse(inbound, 422, "data.requestId: must be the id of a request");
    const entry = this.#loop.pending.get(requestId);
    const own =
      origin.kind !== "adapter" || (entry?.origin.kind === "adapter" && entry.origin.connection === origin.connection);
    const expired = entry !== undefined && own;
    if (expired) this.#expire(requestId);
    // Whoever asked is told what came of it; the loop's own timers ask for nothing.
    this.#loop.deliver(origin, {
      kind: "reply",
      type: message.type,
      data: { expired },
      metadata: { id: this.#host.id(), timestamp: this.#host.now(), causation: message.metadata.id },
    });
  }

  #expire(requestId: string): void {
    const entry = this.#loop.pending.get(requestId);
    if (entry) this.#loop.resolve(requestId, error(this.#host, entry.request, errorData(504)));
  }

  // Events -------------------------------------------------------------------------------------------------------------------

  #event({ message, origin }: Inbound): void {
    const source =
      origin.kind === "actor" ? origin.actor.name : origin.kind === "adapter" ? origin.connection.adapter : "kernel";
    if (!this.#events) {
      for (const name of this.#loop.table.subscribers(message.type)) void this.deliverEvent(message, name);
      return;
    }
    this.#events.publish(message, source).catch((thrown: unknown) => {
      const reason = `not journaled: ${thrown instanceof Error ? thrown.message : String(thrown)}`;
      this.#loop.observations.tell("Sys.RoutingError", { type: message.type, reason }, message);
    });
  }

  /** Puts an event into one subscriber's mailbox; throws where it cannot be taken, so that the delivery fails visibly. */
  deliverEvent(message: Message, name: string): void {
    const actor = this.#loop.actors.get(name);
    const posted = actor?.post(this.#loop.copy(message)) ?? "unhealthy";
    if (posted === "posted") return;
    const reason = posted === "full" ? `the mailbox of ${name} is full` : `${name} is unhealthy`;
    this.#loop.observations.tell("Sys.Overload", { capability: name, reason }, message);
    if (this.#events) throw new Error(reason);
  }

  // Outcomes -----------------------------------------------------------------------------------------------------------------

  /** Joined on causation alone, and only from the actor that was asked (§9.1, §14.5). */
  #outcome({ message, origin }: Inbound): void {
    const id = causationOf(message) ?? "";
    const entry = this.#loop.pending.get(id);
    if (entry && origin.kind === "actor" && entry.actor === origin.actor) {
      this.#loop.resolve(id, message);
      return;
    }
    const from = origin.kind === "actor" ? origin.actor.name : origin.kind;
    this.#loop.observations.tell(
      "Sys.OrphanOutcome",
      { type: message.type, kind: message.kind, causation: id, from },
      message,
    );
  }

  // What actors emit -----------------------------------------------------------------------------------------------------------

  emission(actor: SupervisedActor, message: Message): void {
    const { table } = this.#loop;
    if (causationOf(message) === undefined)
      return this.badEmission(actor, message, "metadata.causation: is required of what an actor emits");
    if (actor.capability.relays)
      return this.#loop.enqueue(message, isOutcome(message) ? { kind: "actor", actor } : NOBODY);
    if (!table.mayEmit(actor.name, message.kind, message.type)) {
      return this.badEmission(
        actor,
        message,
        `${message.kind} ${message.type} is not among what ${actor.name} declares as outbound`,
      );
    }
    const problem = message.kind === "error" ? undefined : validate(actor.capability.outbound, message);
    if (problem) return this.badEmission(actor, message, problem);
    if (message.kind === "error") {
      const { code, message: text } = message.data as ErrorData;
      if (code >= 500)
        this.#loop.observations.tell("Sys.ActorFault", { capability: actor.name, reason: text, code }, message);
    }
    this.#loop.enqueue(message, { kind: "actor", actor });
  }

  /** What an actor emitted is not routed; if it was somebody's answer, he gets an error instead of nothing. */
  badEmission(actor: SupervisedActor, data: unknown, reason: string): void {
    const cause = data as Partial<Message> | null;
    this.#loop.observations.tell("Sys.ActorFault", { capability: actor.name, reason });
    if (cause?.kind !== "reply" && cause?.kind !== "error") return;
    const id = cause.metadata?.causation;
    const entry = typeof id === "string" ? this.#loop.pending.get(id) : undefined;
    if (!entry || entry.actor !== actor) return;
    const answer = error(this.#host, entry.request, errorData(500, `${actor.name} gave an invalid answer: ${reason}`));
    this.#loop.resolve(entry.request.metadata.id, answer);
  }
}

function isOutcome({ kind }: Message): boolean {
  return kind === "reply" || kind === "error";
}

/** What is wrong with a message by a schema, or undefined. The message itself stays as it is. */
function validate(schema: MessageSchema, message: Message): string | undefined {
  const result = schema["~standard"].validate(message);
  if (result instanceof Promise) return "the schema validates asynchronously, which routing cannot wait for";
  const [issue] = result.issues ?? [];
  if (!issue) return undefined;
  const path = (issue.path ?? []).map((step) =>
    typeof step === "object" && step !== null && "key" in step ? step.key : step,
  );
  return path.length === 0 ? issue.message : `${path.join(".")}: ${issue.message}`;
}
