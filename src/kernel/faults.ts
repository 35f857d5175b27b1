/**
 * Faults of a kernel as observations: of the bus, its handlers and the nodes of the space, beside the loop's own.
 * Faults before the loop exists are reported later. SPEC: K53.
 *
 * Their texts are made here too, because an embedded kernel shows them like the command does (`FaultLines`).
 */
import { RetryLater } from "../bus/concluded.ts";
import type { BusObservation } from "../bus/observation.ts";
import type { EventLoop } from "../loop/event-loop.ts";
import { type ObservationType, stackOf } from "../loop/observation.ts";
import { DeliveryFailed } from "../loop/parcel.ts";
import type { Message } from "../message/envelope.ts";
import { fromError, thrownText } from "../message/error-data.ts";
import type { JsonObject } from "../message/json.ts";
import { isRefusal } from "../store/label.ts";

export class Faults {
  #loop: EventLoop | undefined;
  #early: { readonly type: ObservationType; readonly data: JsonObject }[] = [];

  ofBus(observation: BusObservation): void {
    switch (observation.kind) {
      case "handler-failed":
        return this.#ofSubscriber(observation);
      case "unreadable":
      case "gave-up":
        return this.#tell("Sys.BusFault", { event: observation.event, reason: observation.error });
      case "store-trouble":
        return this.#tell("Sys.BusFault", { doing: observation.doing, reason: observation.error });
      case "lease-lost": {
        const reason = "its lease ended before it was renewed; its events may be handled by another process";
        return this.#tell("Sys.BusFault", { lease: observation.lease, reason });
      }
      case "no-subscriber":
      case "claim-lost":
        // Ordinary work: the journal has the note, and the process that took the event over settles it.
        return;
    }
  }

  #ofSubscriber(failure: BusObservation & { readonly kind: "handler-failed" }): void {
    const { subscriber, topic, event, error, outcome, thrown } = failure;
    const actor = this.#loop?.actors.get(subscriber);
    if (actor !== undefined) {
      // The loop has reported it, unless it is the delivery of a transactional handler.
      const isReported = thrown instanceof DeliveryFailed || thrown instanceof RetryLater;
      if (actor.capability.work === undefined || isReported) return;
      const { code } = fromError(thrown);
      return this.#tell("Sys.ActorFault", {
        capability: subscriber,
        reason: error,
        code,
        type: topic,
        ...stackOf(thrown),
      });
    }
    this.#tell("Sys.SubscriberFault", { subscriber, topic, event, reason: error, outcome, ...stackOf(thrown) });
  }

  ofNode(error: unknown, node: string | undefined): void {
    if (isRefusal(error)) return;
    this.#tell("Sys.NodeFault", { node: node ?? null, reason: thrownText(error), ...stackOf(error) });
  }

  tellTo(loop: EventLoop): void {
    this.#loop = loop;
    for (const { type, data } of this.#early) loop.observations.tell(type, data);
    this.#early = [];
  }

  #tell(type: ObservationType, data: JsonObject): void {
    if (this.#loop) this.#loop.observations.tell(type, data);
    else this.#early.push({ type, data });
  }
}

/** The text of an observation for people; undefined for ordinary work. */
export function faultText({ type, data }: Message): string | undefined {
  const fault = data as JsonObject;
  const why = whereAndWhy(fault);
  switch (type) {
    case "Sys.ActorFault":
      return `${fault["capability"]} failed${fault["type"] === undefined ? "" : ` on ${fault["type"]}`}: ${why}`;
    case "Sys.SubscriberFault":
      return `${fault["subscriber"]} failed on event ${fault["event"]} ${fault["topic"]}${fault["outcome"] === "retry" ? ", which comes again" : ""}: ${why}`;
    case "Sys.BusFault":
      return busFaultText(fault, why);
    case "Sys.NodeFault":
      return fault["node"] === null ? why : `${fault["node"]} failed: ${why}`;
    case "Sys.ActorUnhealthy":
      return `${fault["capability"]} crashed too often and takes no more: ${why}`;
    case "Sys.WaitingCircle":
      return why;
    case "Sys.MicrotaskFault":
    case "Sys.Overload":
      return `${fault["capability"] ?? fault["adapter"] ?? "the loop"}: ${why}`;
    default:
      return undefined;
  }
}

function busFaultText({ event, doing }: JsonObject, why: string): string {
  if (event !== undefined) return `event ${event} failed and is not handled: ${why}`;
  return doing === undefined ? `the bus: ${why}` : `the bus tries again (${doing}): ${why}`;
}

/** The error and its place in the user's code. */
export function thrownWhere(thrown: unknown): string {
  return whereAndWhy({ reason: thrownText(thrown), ...stackOf(thrown) });
}

/** Frames of Node and of this package are hidden if there are others. */
const isForeign = (frame: string) => /[ (]node:/.test(frame) || PACKAGE.some((folder) => frame.includes(folder));
/** The locations of the package's code, with and without source maps. */
const PACKAGE = ["../../dist/", "../../src/"].map((folder) => new URL(folder, import.meta.url).pathname);

/** The reason, followed by the known place in the user's code. */
function whereAndWhy({ reason, stack }: JsonObject): string {
  if (typeof stack !== "string") return String(reason);
  const frames = stack.split("\n").filter((line) => /^\s+at /.test(line));
  const own = frames.filter((line) => !isForeign(line));
  const shown = own.length > 0 ? own : frames;
  const head = stack.slice(0, frames[0] === undefined ? undefined : stack.indexOf(frames[0])).trimEnd();
  return [head, ...shown.map((line) => `  ${line.trim()}`)].join("\n");
}
