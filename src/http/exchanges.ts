/** Requests that wait for their answers, counted by principal. SPEC: W20, W25. */
import { HTTP_REQUESTS_MAX } from "../limits.ts";
import type { Message } from "../message/envelope.ts";
import { Failure } from "../message/error-data.ts";
import { HttpExchange } from "./exchange.ts";
import type { HttpParts } from "./http-context.ts";
import type { Principal } from "./principal.ts";

/** The end of the waiting for an answer. */
interface Wait {
  readonly ms?: number;
  readonly signal: AbortSignal;
}

export class HttpExchanges {
  readonly #parts: HttpParts;
  /** Requests without an answer, by principal. */
  readonly #inFlight = new Map<string, number>();

  constructor(parts: HttpParts) {
    this.#parts = parts;
  }

  open(principal: Principal): HttpExchange {
    return new HttpExchange(this.#parts.host.id(), principal);
  }

  /** The whole answer; undefined if the time of `wait` has passed, or its signal says that the client has left. */
  ask(exchange: HttpExchange, message: Message): Promise<Message>;
  ask(exchange: HttpExchange, message: Message, wait: Wait): Promise<Message | undefined>;
  async ask(exchange: HttpExchange, message: Message, wait?: Wait): Promise<Message | undefined> {
    using _ = this.count(exchange.principal);
    this.#parts.kernel.loop.receive(message, exchange);
    return await (wait === undefined ? exchange.answer : this.#within(exchange, wait));
  }

  /** Counts a request until it is disposed of; throws if the principal has too many. */
  count(name: string): Disposable {
    const count = (this.#inFlight.get(name) ?? 0) + 1;
    if (count > HTTP_REQUESTS_MAX)
      throw new Failure(429, `the token "${name}" has ${HTTP_REQUESTS_MAX} requests under way, its limit`);
    this.#inFlight.set(name, count);
    return {
      [Symbol.dispose]: () => {
        const left = (this.#inFlight.get(name) ?? 1) - 1;
        if (left === 0) this.#inFlight.delete(name);
        else this.#inFlight.set(name, left);
      },
    };
  }

  #within(exchange: HttpExchange, { ms, signal }: Wait): Promise<Message | undefined> {
    const { host, kernel } = this.#parts;
    return new Promise((resolve) => {
      const end = (given: Message | undefined) => {
        timer?.cancel();
        signal.removeEventListener("abort", left);
        resolve(given);
      };
      // The response reaches no client; it ends the count of the request.
      const left = () => {
        exchange.leave(kernel.loop);
        end(undefined);
      };
      const timer = ms === undefined ? undefined : host.timer(ms, () => end(undefined), { keepAlive: false });
      signal.addEventListener("abort", left);
      if (signal.aborted) left();
      void exchange.answer.then(end);
    });
  }
}
