/**
 * What an extension's code is running because of: the event whose handler it is in, however many awaits and calls deep. What it emits and
 * asks for meanwhile is caused by that event and belongs to its conversation, without anybody passing it along. SPEC: X24.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Message } from "../message/envelope.ts";
import { causedBy, type Lineage } from "../message/lineage.ts";

export class Cause {
  readonly #current = new AsyncLocalStorage<Message>();

  during<T>(message: Message, work: () => T): T {
    return this.#current.run(message, work);
  }

  /** The message that is being handled; undefined outside of any handler. */
  get message(): Message | undefined {
    return this.#current.getStore();
  }

  /** What a consequence of it carries. */
  get lineage(): Lineage | undefined {
    return this.message && causedBy(this.message);
  }
}
