/**
 * Remembers the calls of a handler of events. The wrapper returns the same value as the handler itself, in the same
 * turn.
 */
import { thrownText } from "../message/error-data.ts";
import type { Event } from "./event.ts";
import type { HandlingRing } from "./handling-ring.ts";

/** Every handler takes the event and a context. */
export function watchedHandler(
  handler: (...given: never) => unknown,
  subscriber: string,
  handlings: HandlingRing,
): (event: Event, context: unknown) => unknown {
  const call = handler as (event: Event, context: unknown) => unknown;
  return (event, context) => {
    const { attempt } = (context ?? {}) as { readonly attempt?: number };
    const place = handlings.given(event.message, subscriber, event.source, attempt);
    const failed = (thrown: unknown) => handlings.ended(place, `failed: ${thrownText(thrown)}`);
    try {
      const result = call(event, context);
      if (result instanceof Promise) result.then(() => handlings.ended(place, "done"), failed);
      else handlings.ended(place, "done");
      return result;
    } catch (thrown) {
      failed(thrown);
      throw thrown;
    }
  };
}
