/**
 * Whether the buses on one store have the same subscribers, as they must (J82): each says with its lease what it had when it started, and one
 * that opens a lease tells its observer of every other that differs. Who subscribes later is not compared: nobody knows when the others have
 * done the same. For people: nothing is decided by it. SPEC: J91.
 */
import type { Host } from "../host/host.ts";
import { isJsonObject, type Json } from "../message/json.ts";
import type { BusObserver } from "./observation.ts";
import type { Subscriptions } from "./subscriptions.ts";

interface Said {
  readonly bus: string;
  readonly subscribers: readonly string[];
}

export class SubscriberCheck {
  readonly #host: Host;
  readonly #subscriptions: Subscriptions;
  readonly #observe: BusObserver;
  readonly #kind: "event" | "command";
  /** What this bus says with all its leases; by its name they are told from those of others. */
  #own: Said | undefined;

  constructor(parts: {
    host: Host;
    subscriptions: Subscriptions;
    observe: BusObserver;
    kind: "event" | "command";
  }) {
    this.#host = parts.host;
    this.#subscriptions = parts.subscriptions;
    this.#observe = parts.observe;
    this.#kind = parts.kind;
  }

  /** What this bus says about itself. */
  get about(): string | undefined {
    // Who handles commands is the loop's to say.
    if (this.#kind === "command") return undefined;
    this.#own ??= { bus: this.#host.id(), subscribers: this.#subscribers() };
    return JSON.stringify(this.#own);
  }

  /** Compares what others have said. */
  compare(others: readonly string[]): void {
    const { bus, subscribers: here } = this.#own ?? { bus: "", subscribers: [] };
    // A bus may have several leases, and says the same with each.
    const said = new Map(others.flatMap((other) => read(other) ?? []).map((one) => [one.bus, one]));
    said.delete(bus);
    for (const { subscribers: there } of said.values()) {
      const onlyHere = without(here, there);
      const onlyThere = without(there, here);
      if (onlyHere.length + onlyThere.length > 0) this.#observe({ kind: "subscribers-differ", onlyHere, onlyThere });
    }
  }

  #subscribers(): string[] {
    const names = this.#subscriptions.views.map(({ pattern, subscriberId }) => `${subscriberId} on ${pattern}`);
    return [...new Set(names)].sort();
  }
}

/** Undefined for what no bus of ours has said. */
function read(text: string): Said | undefined {
  try {
    const said = JSON.parse(text) as Json;
    return isJsonObject(said) && typeof said["bus"] === "string" && isTexts(said["subscribers"])
      ? { bus: said["bus"], subscribers: said["subscribers"] }
      : undefined;
  } catch {
    // Another kind of holder: nothing to compare with.
    return undefined;
  }
}

function isTexts(value: Json | undefined): value is readonly string[] {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}

function without(names: readonly string[], others: readonly string[]): string[] {
  const known = new Set(others);
  return names.filter((name) => !known.has(name));
}
