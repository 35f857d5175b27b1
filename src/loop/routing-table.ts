/**
 * The actor of each request type, built once at boot from the capabilities' schemas (RFC 0032 §11). All problems of all
 * capabilities are reported together, before any actor is spawned.
 */

import { isMessageType, type Kind } from "../message/envelope.ts";
import { MillraceError } from "../message/millrace-error.ts";
import { type Capability, durabilityProblem } from "./capability.ts";
import { isObservationType, type ObservationType } from "./observation.ts";
import { findHandledTypes, type HandledType } from "./schema-types.ts";

export interface Route {
  readonly capability: string;
  readonly kind: "command" | "query";
  readonly type: string;
  readonly input: unknown;
  /** JSON Schema of the reply's data, where the capability declares one. */
  readonly output: unknown;
  /** The description that the capability gives this type. */
  readonly description: string | undefined;
}

/** Boot failed; every problem is in `problems`. */
export class BootError extends MillraceError<"BOOT_FAILED"> {
  override readonly name = "BootError";
  readonly problems: readonly string[];

  constructor(problems: readonly string[], options?: ErrorOptions) {
    super(
      "BOOT_FAILED",
      `the kernel cannot start:\n${problems.map((problem) => `  - ${problem}`).join("\n")}`,
      options,
    );
    this.problems = problems;
  }
}

/** Answered by the loop itself. */
const RESERVED: ReadonlySet<string> = new Set([
  ...["Sys.RequestTimeout", "Sys.Subscribe", "Sys.Unsubscribe", "Sys.Watch", "Sys.Unwatch"],
]);

export class RoutingTable {
  /** By kind, then by type: joined into one key, the text would be made and hashed anew for every message. */
  readonly #routes = { command: new Map<string, Route>(), query: new Map<string, Route>() };
  /** All routes, in the order they were claimed. */
  readonly #inOrder: Route[] = [];
  /** The capabilities that subscribe to each event type, in declared order. */
  readonly #subscribers = new Map<string, string[]>();
  /** The same for observations, which are not events that code can publish. */
  readonly #observers = new Map<ObservationType, string[]>();
  /** The types that each capability may emit, by kind; `"any"` if its schema is not finite. */
  readonly #outbound = new Map<string, ReadonlyMap<Kind, ReadonlySet<string>> | "any">();

  /** Throws one `BootError` with all problems. */
  static build(capabilities: ReadonlyMap<string, Capability>): RoutingTable {
    const table = new RoutingTable();
    const problems: string[] = [];
    for (const [name, capability] of capabilities) {
      const found = shapeProblems(capability);
      if (found.length === 0) found.push(...table.#add(name, capability));
      problems.push(...found.map((problem) => `capability ${name}: ${problem}`));
    }
    if (problems.length > 0) throw new BootError(problems);
    return table;
  }

  route(kind: Kind, type: string): Route | undefined {
    return kind === "command" || kind === "query" ? this.#routes[kind].get(type) : undefined;
  }

  subscribers(type: string): readonly string[] {
    return this.#subscribers.get(type) ?? [];
  }

  subscribedTypes(): Iterable<[string, readonly string[]]> {
    return this.#subscribers;
  }

  observedTypes(): Iterable<[ObservationType, readonly string[]]> {
    return this.#observers;
  }

  mayEmit(capability: string, kind: Kind, type: string): boolean {
    const outbound = this.#outbound.get(capability);
    return kind === "error" || outbound === "any" || (outbound?.get(kind)?.has(type) ?? false);
  }

  routes(): Iterable<Route> {
    return this.#inOrder;
  }

  #add(name: string, capability: Capability): string[] {
    const inbound = findHandledTypes(capability.inbound);
    const outbound = findHandledTypes(capability.outbound);
    const problems = [
      ...inbound.problems.map((problem) => `inbound ${problem}`),
      ...(outbound.isFinite ? outbound.problems.map((problem) => `outbound ${problem}`) : []),
    ];
    for (const handle of inbound.handles) {
      // An inbound schema may list the events that the capability subscribes to.
      if (handle.kind === "event" && capability.subscribes?.includes(handle.type)) continue;
      const problem = this.#claim(name, handle, outbound.handles);
      if (problem) problems.push(problem);
    }
    const grouped = Map.groupBy(outbound.handles, ({ kind }) => kind);
    const emitted = new Map([...grouped].map(([kind, all]) => [kind, new Set(all.map(({ type }) => type))]));
    this.#outbound.set(name, outbound.isFinite ? emitted : "any");
    for (const type of capability.subscribes ?? []) {
      const problem = this.#subscribe(name, type, capability);
      if (problem) problems.push(problem);
    }
    return problems;
  }

  #subscribe(name: string, type: string, { clearance }: Capability): string | undefined {
    if (!isMessageType(type)) return `subscribes to ${JSON.stringify(type)}, which is not a message type`;
    const isObservation = isObservationType(type);
    const already = (isObservation ? this.#observers.get(type) : this.#subscribers.get(type)) ?? [];
    if (already.includes(name)) return `subscribes to ${type} twice`;
    if (!isObservation) this.#subscribers.set(type, [...already, name]);
    else if (clearance === undefined) this.#observers.set(type, [...already, name]);
    else return `subscribes to ${type}, which may reveal data above any clearance; leave out one of the two`;
    return undefined;
  }

  #claim(
    name: string,
    { kind, type, data, description }: HandledType,
    outbound: readonly HandledType[],
  ): string | undefined {
    if (kind !== "command" && kind !== "query") {
      return `inbound takes ${kind} ${type}; only commands and queries are routed${kind === "event" ? `; add it to subscribes: ["${type}"]` : ""}`;
    }
    if (RESERVED.has(type)) return `claims ${kind} ${type}, which the loop answers itself`;
    const other = this.route(kind, type);
    if (other) return `claims ${kind} ${type}, which ${other.capability} claims already`;
    const output = outbound.find((handle) => handle.kind === "reply" && handle.type === type)?.data ?? {};
    const route: Route = { capability: name, kind, type, input: data, output, description };
    this.#routes[kind].set(type, route);
    this.#inOrder.push(route);
    return undefined;
  }
}

function shapeProblems(capability: Capability): string[] {
  const { description, inbound, outbound, subscribes, spawn, durable } = (capability ?? {}) as Partial<Capability>;
  const problems: string[] = [];
  if (typeof description !== "string" || description === "") problems.push("has no description");
  if (!inbound) problems.push("has no inbound schema");
  if (!outbound) problems.push("has no outbound schema");
  if (typeof spawn !== "function") problems.push("has no spawn()");
  if (subscribes !== undefined && !Array.isArray(subscribes)) problems.push("subscribes is not a list of event types");
  const misspelt = durabilityProblem(durable);
  if (misspelt !== undefined) problems.push(misspelt);
  return problems;
}
