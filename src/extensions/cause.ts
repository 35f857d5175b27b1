/**
 * What an extension's code is running because of: the event whose handler it is in, however many awaits and calls deep. What it emits and
 * asks for meanwhile is caused by that event and belongs to its conversation, without anybody passing it along. SPEC: X24.
 *
 * It must not follow the calls into the kernel: a dispatcher or a lane that an extension's call has woken goes on with other people's work.
 * Whatever enters the kernel does so `outside`.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { contentId } from "../message/content-id.ts";
import { ID_LENGTH_MAX, type Message } from "../message/envelope.ts";
import type { Json } from "../message/json.ts";
import { causedBy, type Lineage } from "../message/lineage.ts";

/** A message whose handler runs, and how often that has made each request. */
interface Handled {
  readonly message: Message;
  readonly asked: Map<string, number>;
}

/** Of the hash of a request, in an id that follows from the event's. */
const CONTENT_DIGITS = 24;

export class Cause {
  readonly #current = new AsyncLocalStorage<Handled>();
  readonly #outside = AsyncLocalStorage.snapshot();

  /** Runs it as if no extension had called. */
  outside<T>(work: () => T): T {
    return this.#outside(work);
  }

  /** Runs it because of the message, and of nothing else. */
  during<T>(message: Message, work: () => T): T {
    return this.#outside(() => this.#current.run({ message, asked: new Map() }, work));
  }

  /** The message that is being handled; undefined outside of any handler. */
  get message(): Message | undefined {
    return this.#current.getStore()?.message;
  }

  /** An id for a request that its handler makes: the same in every delivery of the message, for the same request in the same place. */
  requestId(extension: string, type: string, data: Json): string | undefined {
    const handled = this.#current.getStore();
    if (handled === undefined) return undefined;
    const content = contentId([extension, type, data]).slice(0, CONTENT_DIGITS);
    const number = (handled.asked.get(content) ?? 0) + 1;
    handled.asked.set(content, number);
    const { id } = handled.message.metadata;
    // It begins with the id of the event, which may carry a time (`id-time.ts`).
    const follows = `${id}/${content}.${number}`;
    return follows.length <= ID_LENGTH_MAX ? follows : contentId([id, content, number]);
  }

  /** What a consequence of it carries. */
  get lineage(): Lineage | undefined {
    return this.message && causedBy(this.message);
  }
}
