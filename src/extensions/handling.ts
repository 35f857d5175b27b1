/**
 * One call of an extension's event handler: its event, its time limit, and the ids of the commands that it sends. The
 * limit does not count while the handler waits for the agent (`hold`). When the time is over, the call is over:
 * messages of its code after that are refused. SPEC: X52-X55.
 */
import { BusError } from "../bus/bus-error.ts";
import type { Host, Timer } from "../host/host.ts";
import { contentId } from "../message/content-id.ts";
import { ID_LENGTH_MAX, type Message } from "../message/envelope.ts";
import type { Json } from "../message/json.ts";

/**
 * The call as the bus knows it: a `HandlerContext`, or the transaction of a handler that was subscribed with a space.
 */
interface HandlerCall {
  readonly signal: AbortSignal;
  requireOpen(what: string): void;
  cancel(reason: Error): void;
}

/** Of the hash of a command, in an id that follows from the event's. */
const CONTENT_DIGITS = 24;

export class EventHandling {
  readonly message: Message;
  readonly #context: HandlerCall;
  readonly #host: Host;
  /** Of the time limit, when the clock last began to run. */
  #leftMs: number;
  #sinceMs = 0;
  #timer: Timer | undefined;
  /** Waits that stop the clock. */
  #holds = 0;
  readonly #limitMs: number;
  readonly #timedOut = Promise.withResolvers<never>();
  /** How often a command of equal type and data was sent. */
  readonly #sent = new Map<string, number>();

  constructor(message: Message, { context, host, limitMs }: { context: HandlerCall; host: Host; limitMs: number }) {
    this.message = message;
    this.#context = context;
    this.#host = host;
    this.#limitMs = limitMs;
    this.#leftMs = limitMs;
    // The waiter may be gone when it comes.
    this.#timedOut.promise.catch(() => undefined);
  }

  /** The call of a transactional handler; the bus measures its time. */
  static inTransaction(
    message: Message,
    { delivery, host }: { delivery: { readonly signal: AbortSignal }; host: Host },
  ): EventHandling {
    const context: HandlerCall = {
      get signal() {
        return delivery.signal;
      },
      requireOpen: (what) => {
        const { aborted, reason } = delivery.signal;
        if (aborted) throw new BusError("BUS_HANDLER_OVER", `${what}: ${reason}, and its handler is over`);
      },
      cancel: () => undefined,
    };
    return new EventHandling(message, { context, host, limitMs: 0 });
  }

  get signal(): AbortSignal {
    return this.#context.signal;
  }

  /** Throws `BUS_HANDLER_OVER` once the handler has timed out, or was left behind by a bus that stopped. */
  requireOpen(what: string): void {
    this.#context.requireOpen(what);
  }

  /** Runs the handler within its time. */
  async run(handler: () => unknown): Promise<unknown> {
    this.#go();
    try {
      return await Promise.race([Promise.resolve().then(handler), this.#timedOut.promise]);
    } finally {
      this.#timer?.cancel();
      this.#holds = Number.POSITIVE_INFINITY;
    }
  }

  /** Stops the clock until the returned function is called. */
  hold(): () => void {
    if (this.#timer === undefined) return () => undefined;
    if (this.#holds++ === 0) {
      this.#timer?.cancel();
      this.#leftMs -= this.#host.monotonic() - this.#sinceMs;
    }
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      if (--this.#holds === 0) this.#go();
    };
  }

  /**
   * The id of a command that the handler sends. It follows from the event and the key, or from the event, type and
   * data: a handler that runs again sends the same commands, and a capability that remembers ids handles each once.
   */
  commandId(extensionId: string, type: string, data: Json, key: string | undefined): string {
    const named = key === undefined ? [extensionId, type, data] : [extensionId, { key }];
    const content = contentId(named).slice(0, CONTENT_DIGITS);
    const number = key === undefined ? (this.#sent.get(content) ?? 0) + 1 : 0;
    this.#sent.set(content, number);
    const { id } = this.message.metadata;
    // It begins with the id of the event, which may carry a time (`id-time.ts`).
    const follows = `${id}/${content}.${number}`;
    return follows.length <= ID_LENGTH_MAX ? follows : contentId([id, content, number]);
  }

  #go(): void {
    this.#sinceMs = this.#host.monotonic();
    this.#timer = this.#host.timer(Math.max(0, this.#leftMs), () => {
      const error = new Error(`the handler timed out after ${this.#limitMs} ms`);
      this.#context.cancel(error);
      this.#timedOut.reject(error);
    });
  }
}
