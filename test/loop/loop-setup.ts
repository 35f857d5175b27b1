/** The start of every loop test: simulated time, a loop over given capabilities, clients that keep their messages. */
import { type SimulatedHost, simulatedHost } from "../../src/host/simulated-host.ts";
import type { ActorEvent, ActorListener, Capability, CapabilityActor } from "../../src/loop/capability.ts";
import { EventLoop, type EventLoopOptions } from "../../src/loop/event-loop.ts";
import { messageSchema } from "../../src/loop/message-schema.ts";
import type { Connection } from "../../src/loop/pending-request.ts";
import type { Message } from "../../src/message/envelope.ts";
import type { ErrorData } from "../../src/message/error-data.ts";
import type { Json } from "../../src/message/json.ts";

/** A client of an adapter, without the adapter. */
export class Client implements Connection {
  readonly adapter = "test";
  readonly id: string;
  readonly received: Message[] = [];
  hasRoom = true;
  #waiting: (() => void)[] = [];

  constructor(id: string) {
    this.id = id;
  }

  deliver(answer: Message): void {
    this.received.push(answer);
  }

  stream(message: Message): void {
    this.received.push(message);
  }

  whenRoom(): Promise<void> {
    return this.hasRoom ? Promise.resolve() : new Promise((resolve) => this.#waiting.push(resolve));
  }

  makeRoom(): void {
    this.hasRoom = true;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /** Kind, causation and data of received messages, in order. */
  get answers(): string[] {
    return this.received.map(({ kind, data, metadata }) => {
      const what = kind === "error" ? (data as ErrorData).code : JSON.stringify(data);
      return `${kind} ${metadata.causation} ${what}`;
    });
  }
}

export interface Setup {
  readonly host: SimulatedHost;
  readonly loop: EventLoop;
  readonly observed: Message[];
  client(id?: string): Client;
  /** Types of observations, without the routing choices. */
  faults(): string[];
  /** Runs all work that needs no passing of time. */
  settle(): Promise<void>;
}

export async function setup(
  capabilities: Readonly<Record<string, Capability>>,
  options: Partial<EventLoopOptions> = {},
  seed = 1,
): Promise<Setup> {
  const host = (options.host as SimulatedHost | undefined) ?? simulatedHost(seed);
  const observed: Message[] = [];
  const observe = (observation: Message) => void observed.push(observation);
  const loop = await host.run(() => EventLoop.boot({ observe, ...options, host, capabilities }));
  let clients = 0;
  return {
    host,
    loop,
    observed,
    client: (id = `c${++clients}`) => new Client(id),
    faults: () => observed.map(({ type }) => type).filter((type) => type !== "Sys.Routed"),
    settle: async () => {
      await host.advance(0);
      loop.pending.checkInvariants();
    },
  };
}

export function message(
  kind: Message["kind"],
  type: string,
  id: string,
  data: Json = null,
  metadata: object = {},
): Message {
  return { kind, type, data, metadata: { id, timestamp: 1, ...metadata } };
}

export const query = (type: string, id: string, data: Json = null) => message("query", type, id, data);
export const command = (type: string, id: string, data: Json = null) => message("command", type, id, data);

/** An actor with the behaviour of the test, without a mailbox. */
export class BareActor implements CapabilityActor {
  readonly posted: Message[] = [];
  terminated = 0;
  readonly #listeners = new Map<string, ActorListener[]>();

  postMessage(given: Message): void {
    this.posted.push(given);
  }

  addEventListener(type: string, listener: ActorListener): void {
    this.#listeners.set(type, [...(this.#listeners.get(type) ?? []), listener]);
  }

  terminate(): void {
    this.terminated++;
  }

  dispatch(event: ActorEvent): void {
    for (const listener of this.#listeners.get(event.type) ?? []) listener(event);
  }

  say(data: unknown): void {
    this.dispatch({ type: "message", data });
  }

  reply(to: Message, data: Json = null): void {
    this.say(message("reply", to.type, `r-${to.metadata.id}`, data, { causation: to.metadata.id }));
  }

  fail(to: Message, code: number): void {
    const data = { code, message: "not now" };
    this.say(message("error", to.type, `e-${to.metadata.id}`, data, { causation: to.metadata.id }));
  }
}

export interface BareOptions {
  readonly takes?: readonly (readonly ["command" | "query", string])[];
  readonly emits?: readonly string[];
  readonly subscribes?: readonly string[];
}

/** A capability around actors that a test makes. */
export function bare(
  spawn: () => CapabilityActor,
  { takes = [["query", "Bare.Ask"]], emits = [], subscribes = [] }: BareOptions = {},
): Capability {
  return {
    description: "bare",
    inbound: messageSchema(takes.map(([kind, type]) => ({ kind, type }))),
    outbound: messageSchema([
      ...takes.map(([, type]) => ({ kind: "reply" as const, type })),
      ...emits.map((type) => ({ kind: "event" as const, type })),
    ]),
    subscribes,
    spawn,
  };
}

/** A promise to be kept by the test. */
export function deferred<T = void>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => undefined;
  const promise = new Promise<T>((keep) => {
    resolve = keep;
  });
  return { promise, resolve };
}
