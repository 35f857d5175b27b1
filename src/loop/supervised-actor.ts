/**
 * A capability's actor under supervision: spawned, listened to, restarted when it crashes, and given up when it keeps
 * crashing.
 *
 * ```
 *   running ──error escaped──> restarting ──backoff──> running
 *      │                           └──4th crash within a minute──> unhealthy ──heal()──> running
 *      └──stop(), in any state──> stopping ──it has ended──> stopped
 * ```
 * Messages that come while it restarts wait, up to the mailbox limit. An unhealthy actor takes none, nor does one that
 * stops.
 */
import { backoffMs } from "../host/backoff.ts";
import type { Host, Timer } from "../host/host.ts";
import { Waiters } from "../host/waiters.ts";
import {
  ACTOR_BACKOFF_START_MS,
  HANDLER_TIMEOUT_MS,
  RESTART_WINDOW_MS,
  RESTARTS_MAX,
  TIMER_DELAY_MS_MAX,
} from "../limits.ts";
import { causationOf, type Message } from "../message/envelope.ts";
import { type ErrorData, type Failure, thrownText } from "../message/error-data.ts";
import type { Attempt } from "../work/attempt.ts";
import type { HandlerFailure } from "../work/handler-options.ts";
import type { ActorEvent, Capability, CapabilityActor, Relayed, Withdrawn } from "./capability.ts";
import { MadeMessageEvent, MailboxActor, SentMessageEvent } from "./mailbox-actor.ts";
import type { Parcel } from "./parcel.ts";
import type { Failing, Origin, Posted } from "./pending-request.ts";

/** The part of the router that actors use. */
export interface ActorHome {
  /** Takes an event of the actor; the reason if its message is not routed. */
  take(actor: SupervisedActor, said: ActorEvent): Failure | undefined;
  /** An error escaped the actor: the requests that it has not answered are lost. */
  crashed(actor: SupervisedActor, reason: string, next: "restart" | "unhealthy"): void;
  restarted(actor: SupervisedActor): void;
  /** Takes relayed messages back. */
  withdraw(which: Relayed): Promise<Withdrawn>;
}

const NOTHING: ReadonlySet<string> = new Set();

/** An event emitter, such as the `Worker` of `node:worker_threads`. */
interface Emitter {
  readonly on?: (event: string, listener: (value: unknown) => void) => unknown;
}

export class SupervisedActor {
  readonly name: string;
  readonly capability: Capability;
  /** The origin of all its messages, as one object. */
  readonly origin: Origin = { kind: "actor", actor: this };
  state: "running" | "restarting" | "unhealthy" | "stopping" | "stopped" = "stopped";
  readonly #host: Host;
  readonly #home: ActorHome;
  readonly #mailboxMax: number;
  #actor: CapabilityActor | undefined;
  /** Messages that wait for the restart. */
  #waiting: Posted[] = [];
  /** Events in an actor that has `idle`, but not `accept`. */
  readonly #parcels = new Set<Parcel>();
  /** When it crashed, on the monotonic clock; within the window only. */
  #crashes: number[] = [];
  #restart: Timer | undefined;
  /** Callers that wait for the end of a restart. */
  readonly #settled = new Waiters();

  constructor(options: { name: string; capability: Capability; host: Host; home: ActorHome; mailboxMax: number }) {
    this.name = options.name;
    this.capability = options.capability;
    this.#host = options.host;
    this.#home = options.home;
    this.#mailboxMax = options.mailboxMax;
  }

  /** Starts the actor and listens to it; errors of `spawn` are thrown. */
  start(): void {
    const withdraw = this.capability.relays ? { withdraw: (which: Relayed) => this.#home.withdraw(which) } : {};
    const actor = this.capability.spawn({ host: this.#host, name: this.name, ...withdraw });
    if (typeof actor?.postMessage !== "function") {
      throw new TypeError(`spawn() of capability ${this.name} gave no actor with postMessage()`);
    }
    actor.limitTime?.(this.#host, this.capability.timeoutMs ?? HANDLER_TIMEOUT_MS);
    this.#actor = actor;
    this.#listen(actor);
    this.state = "running";
    const waiting = this.#waiting.splice(0);
    try {
      for (const posted of waiting) this.post(posted);
    } catch (thrown) {
      for (const { parcel } of waiting) parcel?.ended(`postMessage of ${this.name} failed: ${thrownText(thrown)}`);
      this.state = "unhealthy";
      this.#end().catch(() => undefined);
      throw thrown;
    }
    this.#tellSettled();
  }

  /** Puts a message into the actor's mailbox; the reason if it is not taken. Never runs its handler. */
  post(posted: Posted): string | undefined {
    const refusal = this.refusal;
    if (refusal !== undefined) return refusal;
    const actor = this.#actor;
    if (this.state === "restarting") this.#waiting.push(posted);
    else if (actor?.accept) actor.accept(posted);
    else if (actor) this.#postTo(actor, posted);
    return undefined;
  }

  /** Takes a request back that its actor has not begun to handle; false if it has, or cannot tell. */
  withdraw(id: string): boolean {
    const before = this.#waiting.length;
    this.#waiting = this.#waiting.filter(({ message }) => message.metadata.id !== id);
    return this.#waiting.length < before || (this.#actor?.withdraw?.(id) ?? false);
  }

  /** An event counts as handled when the actor is idle; if it cannot tell, when it was posted. */
  #postTo(actor: CapabilityActor, { message, parcel }: Posted): void {
    actor.postMessage(message);
    if (parcel === undefined) return;
    if (!actor.idle) return parcel.ended();
    this.#parcels.add(parcel);
    const end = (failure?: string) => {
      if (this.#parcels.delete(parcel)) parcel.ended(failure);
    };
    actor.idle().then(
      () => end(),
      (thrown: unknown) => end(thrownText(thrown)),
    );
  }

  /** The event that caused a message of an actor that has no `accept`. */
  parcelOf(message: Message): Parcel | undefined {
    if (this.#parcels.size === 0) return undefined;
    const id = causationOf(message);
    for (const parcel of this.#parcels) if (parcel.message.metadata.id === id) return parcel;
    return undefined;
  }

  /** Whether an emission that is refused throws in the handler. */
  get hearsRefusals(): boolean {
    return this.#actor instanceof MailboxActor;
  }

  /** Why it takes no message now; undefined while it does. */
  get refusal(): string | undefined {
    if (this.state === "unhealthy") return `${this.name} is unhealthy`;
    if (this.#isStopped) return `${this.name} is shutting down`;
    return this.mailboxLength >= this.#mailboxMax ? `the mailbox of ${this.name} is full` : undefined;
  }

  /**
   * Puts an observation into the actor's mailbox if it is at most half full: the rest is for messages that others wait
   * for.
   */
  show(observation: Message): void {
    if (this.state === "running" && this.mailboxLength * 2 < this.#mailboxMax) this.#actor?.postMessage(observation);
  }

  /**
   * Delivers the answer to a request of the actor, even if its mailbox is full, or two actors could wait for each
   * other.
   */
  answer(message: Message | Message<ErrorData>): boolean {
    if (this.state !== "running" || !this.#actor) return false;
    this.#actor.postMessage(message as Message);
    return true;
  }

  /** Whether it has asked a request, and handles the message. */
  waitsFor(request: string, message: string): boolean {
    return this.#actor?.waitsFor?.(request, message) ?? false;
  }

  /** Whether a message would wait until a message that it handles has ended: all do if it handles one at a time. */
  waitsBehind(message: Message, handled: string): boolean {
    return this.#actor?.waitsBehind?.(message, handled) ?? true;
  }

  /** Lets the actor handle the failure of an event as part of an attempt. */
  failedWork(message: Message, failure: HandlerFailure, attempt: Attempt): unknown {
    return this.#actor?.failedWork?.(message, failure, attempt);
  }

  /** Lets the actor handle a failure; a text if that failed too. */
  async failed(message: Message, failure: HandlerFailure, kept?: Failing): Promise<string | undefined> {
    return this.#actor?.failed?.(message, failure, kept);
  }

  /** Whether it waits for the answer to a request of its own, as far as is known. */
  awaits(request: string): boolean {
    return this.#actor?.awaits?.(request) ?? true;
  }

  /** Whether it may be waiting for others: it handles a message, and has an open request. */
  get isAsking(): boolean {
    return this.#actor?.isAsking ?? false;
  }

  /** The ids of the messages that it was given and has not finished, as far as is known. */
  given(): ReadonlySet<string> {
    return this.#actor?.given?.() ?? NOTHING;
  }

  get mailboxLength(): number {
    return this.#waiting.length + (this.#actor?.mailboxLength ?? 0);
  }

  /** The number of its timers. */
  get scheduled(): number {
    return this.#actor?.scheduled ?? 0;
  }

  async idle(): Promise<void> {
    await this.#whenSettled();
    await this.#actor?.idle?.();
  }

  async #whenSettled(): Promise<void> {
    if (this.state === "restarting") await this.#settled.wait();
  }

  /** Starts an actor that had been given up, with a clean record. */
  heal(): void {
    if (this.state !== "unhealthy") return;
    this.#crashes = [];
    this.start();
  }

  async stop(): Promise<void> {
    this.state = "stopping";
    this.#dropWaiting(`${this.name} was terminated`);
    this.#restart?.cancel();
    this.#tellSettled();
    try {
      await this.#end();
    } finally {
      this.state = "stopped";
    }
  }

  get #isStopped(): boolean {
    return this.state === "stopping" || this.state === "stopped";
  }

  #tellSettled(): void {
    this.#settled.release();
  }

  #listen(actor: CapabilityActor): void {
    const onMessage = (event: ActorEvent) => {
      if (this.#actor !== actor) return;
      const refused = this.#home.take(this, event);
      if (refused !== undefined && (event instanceof MadeMessageEvent || event instanceof SentMessageEvent))
        event.refused = refused;
    };
    const onError = (event: ActorEvent) => {
      // Deno ends the process for an error of a Worker that is not prevented.
      (event as { preventDefault?: () => void }).preventDefault?.();
      const { message, error } = event;
      this.#crash(actor, message || (error === undefined || error === null ? "error event" : thrownText(error)));
    };
    const onUndecoded = () => this.#crash(actor, "a message could not be decoded");
    const { on } = actor as Emitter;
    if (typeof actor.addEventListener === "function") {
      actor.addEventListener("message", onMessage);
      actor.addEventListener("error", onError);
      actor.addEventListener("messageerror", onUndecoded);
    } else if (typeof on === "function") {
      on.call(actor, "message", (data) => onMessage({ type: "message", data }));
      on.call(actor, "error", (thrown) => this.#crash(actor, thrownText(thrown)));
      on.call(actor, "messageerror", onUndecoded);
      on.call(actor, "exit", (code) => this.#crash(actor, `the worker ended with code ${code}`));
    } else {
      actor.onmessage = onMessage;
      actor.onerror = onError;
      actor.onmessageerror = onUndecoded;
    }
  }

  #crash(actor: CapabilityActor, reason: string): void {
    if (this.#actor !== actor || this.#isStopped) return;
    const now = this.#host.monotonic();
    this.#crashes = [...this.#crashes.filter((at) => now - at < RESTART_WINDOW_MS), now];
    const next = this.#crashes.length > RESTARTS_MAX ? "unhealthy" : "restart";
    this.state = next === "restart" ? "restarting" : "unhealthy";
    // A failure to end a crashed actor adds no information.
    this.#end(`${this.name} crashed: ${reason}`).catch(() => undefined);
    this.#home.crashed(this, reason, next);
    if (next === "restart") this.#restartLater();
    else this.#dropWaiting(`${this.name} is unhealthy: ${reason}`);
  }

  #restartLater(): void {
    const delay = backoffMs(this.#crashes.length, { startMs: ACTOR_BACKOFF_START_MS, maxMs: TIMER_DELAY_MS_MAX });
    this.#restart = this.#host.timer(delay, () => {
      try {
        this.start();
        this.#home.restarted(this);
      } catch (error) {
        this.state = "unhealthy";
        this.#dropWaiting(`${this.name} is unhealthy: spawn failed: ${thrownText(error)}`);
        this.#home.crashed(this, `spawn failed: ${thrownText(error)}`, "unhealthy");
        this.#tellSettled();
      }
    });
  }

  #dropWaiting(reason: string): void {
    for (const { parcel } of this.#waiting.splice(0)) parcel?.ended(reason);
  }

  async #end(reason?: string): Promise<void> {
    const actor = this.#actor;
    this.#actor = undefined;
    for (const parcel of [...this.#parcels]) {
      this.#parcels.delete(parcel);
      parcel.ended(reason ?? `${this.name} was terminated`);
    }
    await (actor?.accept ? actor.terminate?.(reason) : actor?.terminate?.());
  }
}
